# From records to reports.

# Codes of records, from 1: columns s and u.
codes_of <- function(protocol, data) {
  data <- as.data.frame(data, stringsAsFactors = FALSE)
  code <- function(columns) {
    total <- rep(0, nrow(data))
    for (column in columns) {
      values <- label_texts(data[[column$name]], column$name, nrow(data))
      found <- match(trimmed(values), trimmed(column$labels))
      if (anyNA(found)) {
        row <- which(is.na(found))[1]
        what <- if (values[row] == MISSING) "Expected a value" else paste0("Unknown label \"", values[row], "\"")
        known <- paste0('"', head(column$labels, 8), '"', collapse = ", ")
        bad_record(what, " in column \"", column$name, "\", row ", row, "; known are ", known,
                   if (length(column$labels) > 8) ", ...", ".")
      }
      total <- total * length(column$labels) + found - 1
    }
    total + 1
  }
  s <- if (protocol$reads_sensitive) code(protocol$sensitive) else rep(1, nrow(data))
  cbind(s = s, u = code(protocol$useful))
}

label_texts <- function(values, name, n) {
  if (is.null(values)) return(rep(MISSING, n))
  if (is.factor(values)) values <- as.character(values)
  if (is.logical(values)) {
    texts <- ifelse(values, "true", "false")
  } else if (is.numeric(values)) {
    is_whole <- is.finite(values) & values == round(values)
    texts <- as.character(values)
    texts[is_whole] <- sprintf("%.0f", values[is_whole])
    is_other <- is.finite(values) & !is_whole
    texts[is_other] <- vapply(values[is_other], python_float, "")
  } else if (is.character(values)) {
    texts <- values
  } else {
    bad_record("Expected texts, factors, numbers or logical values in column \"", name, "\".")
  }
  texts[is.na(values)] <- MISSING
  trimmed(texts)
}

release <- function(protocol, data, id = NULL, key = NULL, per = c("person", "record"), keep = NULL,
                    column = "y", fingerprint = TRUE, labels = NULL) {
  stopifnot(inherits(protocol, "rldp_protocol"))
  per <- match.arg(per)
  data <- as.data.frame(data, stringsAsFactors = FALSE)
  codes <- codes_of(protocol, data)
  n <- nrow(data)
  check_kept(protocol, data, keep, column)
  if (is.null(id) != is.null(key)) bad_record("Expected both id, a column, and key, or neither of them.")
  words <- if (is.null(key)) {
    fresh_words(n * protocol$channel$words)
  } else {
    if (!id %in% names(data)) bad_record("Expected the column \"", id, "\" of ids.")
    keyed_words(protocol$channel$words, checked_key(key), protocol$fingerprint, checked_ids(data[[id]]),
                if (per == "record") codes - 1)
  }
  reports <- draw(protocol, codes[, "s"], codes[, "u"], words)
  out <- data[, keep, drop = FALSE]
  rownames(out) <- NULL
  out[[column]] <- report_texts(protocol, reports, labels)
  if (fingerprint) out$protocol <- rep(substr(protocol$fingerprint, 1, 12), n)
  # reports first, then what is kept beside them
  out <- out[, c(column, if (fingerprint) "protocol", keep), drop = FALSE]
  attr(out, "rldp") <- list(name = protocol$name, epsilon = protocol$epsilon, fingerprint = protocol$fingerprint,
                            randomness = if (is.null(key)) "secure" else "keyed")
  out
}

check_kept <- function(protocol, data, keep, column) {
  secret <- c(column_names(protocol$sensitive), column_names(protocol$useful))
  if (column %in% names(data)) bad_record("Expected another name for the reports: the records have a column \"", column, "\".")
  unknown <- setdiff(keep, names(data))
  if (length(unknown)) bad_record("Expected columns of the records in keep, got \"", unknown[1], "\".")
  if (any(keep %in% secret)) {
    bad_record("Expected no column of S or U in keep, got \"", intersect(keep, secret)[1],
               "\": beside it a report does not protect what the protocol promises.")
  }
  if (length(keep)) {
    warning("The guarantee does not cover kept columns: ", paste(keep, collapse = ", "), ".", call. = FALSE)
  }
}

# Reports as texts, the same as in Python.
report_texts <- function(protocol, reports, labels = NULL) {
  channel <- protocol$channel
  if (channel$kind != "unary") return(protocol$report_labels[reports + 1])
  names <- protocol$report_labels
  if (is.null(labels)) labels <- channel$words <= MOST_NAMED
  if (!labels) return(apply(reports, 1, in_bits, channel$n_symbols - 1))
  apply(reports, 1, function(report) {
    named <- which(report >= 0)
    texts <- ifelse(is.na(names[[2]][report[named] + 1]), names[[1]][named],
                    ifelse(is.na(names[[1]][named]), names[[2]][report[named] + 1],
                           paste(names[[1]][named], names[[2]][report[named] + 1], sep = " | ")))
    paste0("{", paste(texts, collapse = "; "), "}")
  })
}

DIGITS <- strsplit("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", "")[[1]]

bits_of_symbol <- function(symbols) {
  each <- 1
  while (2^each <= symbols) each <- each + 1
  each
}

# Six bits to a character of base64url, silence 0.
in_bits <- function(report, symbols) {
  each <- bits_of_symbol(symbols)
  bits <- as.vector(outer(2^((each - 1):0), report + 1, function(power, z) (z %/% power) %% 2))
  bits <- c(bits, rep(0, -length(bits) %% 6))
  paste0("bits:", paste(DIGITS[colSums(matrix(bits, 6) * 2^(5:0)) + 1], collapse = ""))
}

# Texts as reports again.
reports_of <- function(protocol, texts) {
  texts <- trimmed(as.character(texts))
  channel <- protocol$channel
  unknown <- function(i) {
    bad_record("Expected reports of this protocol, got \"", texts[i], "\" in row ", i, ".")
  }
  if (channel$kind != "unary") {
    found <- match(texts, protocol$report_labels)
    if (anyNA(found)) unknown(which(is.na(found))[1])
    return(found - 1)
  }
  n_z <- channel$n_symbols - 1
  names <- protocol$report_labels
  known <- paired(names[[1]], names[[2]])
  out <- matrix(-1, length(texts), channel$words)
  different <- unique(texts)
  rows <- lapply(different, function(text) {
    i <- match(text, texts)
    if (startsWith(text, "bits:")) return(from_bits(substring(text, 6), channel$words, n_z, function() unknown(i)))
    if (!grepl("^\\{.*\\}$", text)) unknown(i)
    row <- rep(-1, channel$words)
    inner <- substr(text, 2, nchar(text) - 1)
    if (nzchar(inner)) {
      # a semicolon within a label has a backslash before it
      parts <- regmatches(inner, gregexpr("(?:[^\\\\;]|\\\\.)+", inner, perl = TRUE))[[1]]
      found <- match(c(parts[1], sub("^ ", "", parts[-1])), known) - 1
      if (anyNA(found) || anyDuplicated(found %/% n_z)) unknown(i)
      row[found %/% n_z + 1] <- found %% n_z
    }
    row
  })
  out[] <- do.call(rbind, rows)[match(texts, different), ]
  out
}

from_bits <- function(text, blocks, n_z, refused) {
  each <- bits_of_symbol(n_z)
  digits <- match(strsplit(text, "")[[1]], DIGITS) - 1
  if (anyNA(digits) || length(digits) != ceiling(blocks * each / 6)) refused()
  bits <- as.vector(vapply(digits, function(d) (d %/% 2^(5:0)) %% 2, numeric(6)))
  if (any(bits[-seq_len(blocks * each)] != 0)) refused()
  z <- colSums(matrix(bits[seq_len(blocks * each)], each) * 2^((each - 1):0))
  if (any(z > n_z)) refused()
  z - 1
}
