# A public protocol file, every part of it checked.

LONGEST_NAME <- 100
MISSING <- "(missing)"
BLANKS <- "[\\x{9}-\\x{d}\\x{1c}-\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}]+"

read_protocol <- function(file, signed_by = NULL) {
  bytes <- if (is.raw(file)) file else readBin(file, "raw", n = min(file.size(file), MOST_BYTES + 1))
  document <- parse_json(bytes)
  check_kind(document)
  fields <- unclass(document)
  signatures <- if ("signatures" %in% names(fields)) signatures_from(fields$signatures)
  rest <- structure(fields[setdiff(names(fields), c("hash", "signatures"))], class = "json_object")
  hash <- sha256(canonical(rest))
  if (!identical(fields$hash, hash)) bad_file("The file is damaged: its hash does not fit its content.")
  if (!is.null(signed_by)) check_signed(hash, signatures, signed_by)
  protocol_from(rest)
}

check_kind <- function(document) {
  fields <- if (is_object(document)) unclass(document) else list()
  format <- fields$format
  version <- fields$version
  if (identical(format, "rldp-protocol")) {
    bad_file("Expected a public protocol, this file holds the design sample too; give clients what rldp public writes.")
  }
  if (!identical(format, "rldp-client") || !is_integer(version)) bad_file("Expected a public protocol file of version 1, 2 or 3.")
  if (!unclass(version) %in% c("1", "2", "3")) {
    bad_file("Expected a public protocol file, this one is of version ", unclass(version), "; this client reads 1, 2 or 3.")
  }
}

protocol_from <- function(document) {
  version <- as.integer(unclass(unclass(document)$version))
  names <- c("format", "version", "name", "epsilon", "schema", "channel", if (version > 1) "claims")
  fields <- entries_of(document, names, "a public protocol")
  check_name(fields$name)
  epsilon <- number_of(fields$epsilon)
  if (is.na(epsilon) || epsilon <= 0 || epsilon >= 1e300) bad_file("Expected an epsilon > 0.")
  schema <- entries_of(fields$schema, c("sensitive", "useful"), "the schema")
  sensitive <- columns_of(schema$sensitive, "sensitive")
  useful <- columns_of(schema$useful, "useful")
  all <- c(column_names(sensitive), column_names(useful))
  if (!length(sensitive) || anyDuplicated(all)) {
    bad_file("Expected at least one sensitive column and every column once.")
  }
  channel <- read_channel(fields$channel)
  if (channel$shape[1] < 2) bad_file("Expected two values of S or more; there is nothing to protect.")
  sizes <- c(alphabet_size(sensitive), alphabet_size(useful))
  if (!all(sizes == channel$shape)) {
    bad_file("The schema has other cells than the channel, which has ", channel$shape[1], " x ", channel$shape[2], ".")
  }
  claims <- if (version > 1) {
    claims_from(fields$claims, version, channel$shape, epsilon, column_names(useful))
  } else {
    list()
  }
  labels_s <- labels_of(sensitive)
  labels_u <- labels_of(useful)
  structure(list(
    name = fields$name, epsilon = epsilon, fingerprint = fingerprint_of(document),
    sensitive = sensitive, useful = useful, claims = claims, channel = channel,
    labels_s = labels_s, labels_u = labels_u, report_labels = channel$labels(labels_s, labels_u),
    reads_sensitive = !length(useful) || channel$reads_sensitive,
    tables = new.env(parent = emptyenv())
  ), class = "rldp_protocol")
}

# The hash of the same document with epsilon and all levels as doubles.
fingerprint_of <- function(document) {
  as_double <- function(x) {
    if (is_integer(x)) number_of(x) else if (is_array(x)) lapply(x, as_double) else x
  }
  fields <- unclass(document)
  fields$epsilon <- number_of(fields$epsilon)
  if (is_array(fields$claims)) {
    fields$claims <- lapply(fields$claims, function(claim) {
      entries <- unclass(claim)
      entries$levels <- as_double(entries$levels)
      structure(entries, class = "json_object")
    })
  }
  sha256(canonical(structure(fields, class = "json_object")))
}

check_name <- function(name) {
  odd <- "(?! )[\\p{C}\\p{Z}]"
  if (!is_text(name) || nchar(name) > LONGEST_NAME || grepl(paste0("(*UTF)", odd), name, perl = TRUE)) {
    bad_file("Expected a name of at most ", LONGEST_NAME, " printable characters.")
  }
}

columns_of <- function(value, side) {
  if (!is_array(value)) bad_file("Expected a list of ", side, " columns.")
  lapply(value, function(entry) {
    fields <- entries_of(entry, c("name", "labels"), paste("a", side, "column"))
    is_good <- is_text(fields$name) && nzchar(fields$name) && is_array(fields$labels) &&
      length(fields$labels) > 0 && all(vapply(fields$labels, is_text, NA))
    if (!is_good) bad_file("Expected every ", side, " column with a name and labels that are texts.")
    labels <- unlist(fields$labels)
    if (anyDuplicated(labels)) bad_file("Expected different labels in column \"", fields$name, "\".")
    if (anyDuplicated(trimmed(labels))) {
      bad_file("Expected labels that differ by more than blanks in column \"", fields$name, "\".")
    }
    list(name = fields$name, labels = labels)
  })
}

column_names <- function(columns) vapply(columns, function(column) column$name, "")
alphabet_size <- function(columns) prod(vapply(columns, function(column) length(column$labels), 0L))

trimmed <- function(texts) {
  texts <- enc2utf8(texts)
  gsub(paste0("(*UTF)^", BLANKS, "|", BLANKS, "$(?!\\n)"), "", texts, perl = TRUE)
}

# The labels of the product of columns, the first most significant; NA without columns.
labels_of <- function(columns) {
  found <- NA_character_
  for (column in columns) {
    texts <- gsub("([\\\\|;])", "\\\\\\1", column$labels)
    texts[texts == ""] <- "\\-"
    found <- paired(found, texts)
  }
  found
}

paired <- function(first, second) {
  a <- rep(first, each = length(second))
  b <- rep(second, times = length(first))
  ifelse(is.na(a), b, ifelse(is.na(b), a, paste(a, b, sep = " | ")))
}

numbered <- function(size) paste0("y", seq_len(size) - 1)
fitting <- function(texts, size) if (length(texts) == size) texts else numbered(size)

# ---- signatures

signatures_from <- function(value) {
  if (!is_array(value) || !length(value)) bad_file("Expected a list of signatures.")
  found <- lapply(value, function(entry) {
    fields <- entries_of(entry, c("public_key", "signature"), "a signature")
    fits <- is_text(fields$public_key) && grepl("^[0-9a-f]{64}\\z", fields$public_key, perl = TRUE) &&
      is_text(fields$signature) && grepl("^[0-9a-f]{128}\\z", fields$signature, perl = TRUE)
    if (!fits) bad_file("Expected signatures as 64 and 128 hexadecimal digits.")
    fields
  })
  keys <- vapply(found, function(x) x$public_key, "")
  if (anyDuplicated(keys)) bad_file("Expected signatures by different keys.")
  found
}

check_signed <- function(hash, signatures, signed_by) {
  for (signature in signatures) {
    if (signature$public_key != signed_by) next
    key <- openssl::read_ed25519_pubkey(raw_from_hex(signature$public_key))
    data <- charToRaw(paste0("rldp-signature-1:", hash))
    is_valid <- tryCatch(
      openssl::ed25519_verify(data, raw_from_hex(signature$signature), key),
      error = function(e) FALSE
    )
    if (isTRUE(is_valid)) return(invisible(TRUE))
  }
  bad_file("The file is not signed by the key ", signed_by, ".")
}

raw_from_hex <- function(hex) {
  starts <- seq(1, nchar(hex), 2)
  as.raw(strtoi(substring(hex, starts, starts + 1), 16L))
}

# ---- what people see

print.rldp_protocol <- function(x, ...) {
  shape <- x$channel$shape
  cat("A public protocol of rldp: ", x$name, ", epsilon = ", format(x$epsilon, digits = 4), "\n", sep = "")
  cat("  S: ", paste(column_names(x$sensitive), collapse = ", "), " (", shape[1], " values), sensitive\n", sep = "")
  useful <- paste(column_names(x$useful), collapse = ", ")
  cat("  U: ", if (nzchar(useful)) useful else "none", " (", shape[2], if (shape[2] == 1) " value)\n" else " values)\n", sep = "")
  outputs <- if (x$channel$kind == "unary") paste(x$channel$words, "blocks") else paste(x$channel$n_outputs, "outputs")
  cat("  channel: ", x$channel$kind, ", ", outputs, ", thresholds of ", x$channel$bits, " bits\n", sep = "")
  cat("  fingerprint: ", x$fingerprint, "\n", sep = "")
  claims <- if (length(x$claims)) {
    vapply(x$claims, claim_in_words, "")
  } else {
    paste("epsilon =", format(x$epsilon, digits = 4), "over a set of distributions that the file does not name")
  }
  cat("It claims, and does not prove:\n")
  cat(paste0("  ", claims, "\n"), sep = "")
  cat("Whoever has the whole file can prove it: rldp verify WHOLE --vouches PUBLIC\n")
  invisible(x)
}

# The chance of each output for each record, as a picture.
plot.rldp_protocol <- function(x, main = x$name, xlab = "output", ylab = "record (S | U)", ...) {
  Q <- channel_matrix(x)
  cells <- paired(x$labels_s, x$labels_u)
  image(seq_len(ncol(Q)), seq_len(nrow(Q)), t(Q[rev(seq_len(nrow(Q))), , drop = FALSE]), axes = FALSE,
        main = main, xlab = xlab, ylab = ylab, ...)
  axis(1)
  axis(2, at = seq_len(nrow(Q)), labels = rev(cells), las = 1)
  invisible(x)
}
