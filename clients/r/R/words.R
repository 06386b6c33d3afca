# Words of 64 bits in halves: fresh ones from the operating system, or those of a key and an id.

LEAST_KEY_BYTES <- 16
LEAST_DIFFERENT <- 8

# n random bytes of the operating system, never of R's own generators.
system_bytes <- function(n) {
  if (file.exists("/dev/urandom")) {
    source <- file("/dev/urandom", "rb", raw = TRUE)
    on.exit(close(source))
    bytes <- readBin(source, "raw", n)
  } else {
    bytes <- openssl::rand_bytes(n)
  }
  if (length(bytes) != n) stop("The operating system gave no randomness; nothing was released.")
  bytes
}

# The lowest byte of a word comes first.
words_from <- function(bytes) {
  b <- matrix(as.numeric(bytes), nrow = 8)
  scale <- 256^(0:3)
  list(high = colSums(b[5:8, , drop = FALSE] * scale), low = colSums(b[1:4, , drop = FALSE] * scale))
}

fresh_words <- function(n) words_from(system_bytes(8 * n))

four_bytes <- function(x) as.raw((x %/% c(2^24, 2^16, 2^8, 1)) %% 256)

# The words of each person under a key, `n` for each, as a matrix with a column for each person.
keyed_words <- function(n, key, fingerprint, ids, cells = NULL) {
  purpose <- paste0("rldp keyed release ", if (!is.null(cells)) "per record ", fingerprint)
  secret <- as.raw(openssl::sha256(charToRaw(purpose), key = key))
  subkeys <- cmac_subkeys(secret)
  blocks <- ceiling(n / 2)
  out <- vapply(seq_along(ids), function(i) {
    codes <- if (is.null(cells)) raw() else c(four_bytes(cells[i, 1]), four_bytes(cells[i, 2]))
    rest <- c(codes, charToRaw(enc2utf8(ids[i])))
    unlist(lapply(seq_len(blocks) - 1, function(q) as.integer(cmac(secret, subkeys, c(four_bytes(q), rest)))))
  }, integer(16 * blocks))
  bytes <- matrix(as.raw(out), nrow = 16 * blocks)
  words_from(bytes[seq_len(8 * n), , drop = FALSE])
}

# AES-256-CMAC (RFC 4493): the last block of CBC from zero, with a subkey added to the end.
cmac <- function(key, subkeys, message) {
  size <- max(1, ceiling(length(message) / 16)) * 16
  padded <- raw(size)
  padded[seq_along(message)] <- message
  subkey <- subkeys[[1]]
  if (length(message) < size) {
    padded[length(message) + 1] <- as.raw(0x80)
    subkey <- subkeys[[2]]
  }
  last <- size - 15:0
  padded[last] <- xor(padded[last], subkey)
  cbc(key, padded)[last]
}

cmac_subkeys <- function(key) {
  first <- doubled(cbc(key, raw(16))[1:16])
  list(first, doubled(first))
}

cbc <- function(key, data) {
  as.raw(openssl::aes_cbc_encrypt(data, key = key, iv = raw(16)))
}

doubled <- function(block) {
  bits <- as.integer(block)
  twice <- (bits * 2L) %% 256L + c(bits[-1] %/% 128L, 0L)
  if (bits[1] >= 128L) twice[16] <- bitwXor(twice[16], 0x87L)
  as.raw(twice)
}

checked_key <- function(key) {
  if (!is.raw(key) || length(key) < LEAST_KEY_BYTES) {
    bad_record("Expected a key of at least ", LEAST_KEY_BYTES, " bytes as a raw vector; see read_key().")
  }
  different <- length(unique(key))
  if (different < LEAST_DIFFERENT) {
    bad_record("Expected a random key, this one has only ", different, " different bytes.")
  }
  key
}

checked_ids <- function(ids) {
  if (is.factor(ids)) ids <- as.character(ids)
  if (is.numeric(ids)) {
    is_exact <- is.finite(ids) & ids == round(ids) & abs(ids) < 2^53
    if (!all(is_exact)) bad_record("Expected ids that are texts or integers; got ", ids[!is_exact][1], " in row ", which(!is_exact)[1], ".")
    return(format(ids, scientific = FALSE, trim = TRUE, digits = 17))
  }
  if (!is.character(ids)) bad_record("Expected ids that are texts or integers.")
  is_bad <- is.na(ids) | ids == "" | !validUTF8(enc2utf8(ids))
  if (any(is_bad)) bad_record("Expected an id that is not missing and not empty in row ", which(is_bad)[1], ".")
  ids
}

read_key <- function(path) {
  mode <- file.info(path)$mode
  if (is.na(mode)) bad_record("Cannot read ", path, ".")
  if (.Platform$OS.type == "unix" && bitwAnd(as.integer(mode), strtoi("077", 8L)) != 0L) {
    bad_record("Others may read the key in ", path, "; run chmod 600 on it.")
  }
  hex <- trimws(readLines(path, n = 1, warn = FALSE))
  if (!length(hex) || !grepl("^([0-9a-f]{2})+$", hex)) {
    bad_record("Expected a key in ", path, " as rldp new-key writes it: one line of hexadecimal digits.")
  }
  starts <- seq(1, nchar(hex), 2)
  checked_key(as.raw(strtoi(substring(hex, starts, starts + 1), 16L)))
}
