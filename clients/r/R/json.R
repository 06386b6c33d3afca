# JSON as a protocol file needs it: 1 and 1.0 stay apart, and no integer is rounded.
#
# Texts are character vectors of length 1, integers have class "json_integer" and keep their digits,
# other numbers are doubles, objects are lists of class "json_object", arrays are plain lists.

MOST_BYTES <- 2^26
MOST_VALUES <- 2^22
DEEPEST <- 32

bad_file <- function(...) {
  stop(structure(class = c("rldp_protocol_error", "error", "condition"),
                 list(message = paste0(...), call = NULL)))
}

bad_record <- function(...) {
  stop(structure(class = c("rldp_record_error", "error", "condition"),
                 list(message = paste0(...), call = NULL)))
}

STRING <- '"(?:[^"\\\\\\x00-\\x1f]++|\\\\(?:["\\\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
NUMBER <- "-?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++)?(?:[eE][-+]?[0-9]++)?"
TOKEN <- paste0("[{}\\[\\],:]|true|false|null|", STRING, "|", NUMBER)

not_json <- function() bad_file("The file is not valid JSON.")

parse_json <- function(bytes) {
  if (length(bytes) > MOST_BYTES) bad_file("Expected a file of at most ", MOST_BYTES, " bytes.")
  if (any(bytes == as.raw(0))) not_json()
  text <- rawToChar(bytes)
  if (!validUTF8(text)) bad_file("The file is not UTF-8 text, so it is not a protocol.")
  if (grepl("\x01", text, fixed = TRUE, useBytes = TRUE)) not_json()
  # strings are bytes here, so that places in a long text need not be counted in characters
  marked <- gsub(paste0("[ \\t\\n\\r]*+(", TOKEN, ")"), "\\1\x01", text, perl = TRUE, useBytes = TRUE)
  tokens <- strsplit(marked, "\x01", fixed = TRUE, useBytes = TRUE)[[1]]
  n <- length(tokens)
  if (n && grepl("^[ \\t\\n\\r]*$", tokens[n], perl = TRUE, useBytes = TRUE)) tokens <- tokens[-n]
  if (!length(tokens) || !all(grepl(paste0("^(?:", TOKEN, ")\\z"), tokens, perl = TRUE, useBytes = TRUE))) {
    not_json()
  }
  if (sum(tokens %in% c(",", "[", "{")) > MOST_VALUES) bad_file("The file has too many values.")
  depths <- cumsum((tokens %in% c("[", "{")) - (tokens %in% c("]", "}")))
  if (max(depths) > DEEPEST) bad_file("The file is damaged: it is nested too deeply.")
  state <- new.env(parent = emptyenv())
  state$tokens <- tokens
  state$values <- scalars(tokens)
  state$place <- 1L
  value <- json_value(state)
  if (state$place <= length(tokens)) not_json()
  value
}

# What tokens stand for where that is a text or a number.
scalars <- function(tokens) {
  first <- substr(tokens, 1, 1)
  values <- vector("list", length(tokens))
  is_text <- first == '"'
  values[is_text] <- as.list(decoded_texts(tokens[is_text]))
  is_number <- first %in% c("-", 0:9)
  is_float <- is_number & grepl("[.eE]", tokens)
  values[is_number & !is_float] <-
    lapply(tokens[is_number & !is_float], structure, class = "json_integer")
  values[is_float] <- as.list(nearest_doubles(tokens[is_float]))
  values
}

nearest_doubles <- function(texts) {
  if (!length(texts)) return(numeric())
  # R's own reading of decimals may miss the nearest double, the C library's does not
  found <- tryCatch(
    as.double(jsonlite::fromJSON(paste0("[", paste(texts, collapse = ","), "]"))),
    error = function(e) bad_file("The file has a number that is too large.")
  )
  found
}

decoded_texts <- function(tokens) {
  inner <- vapply(tokens, function(token) {
    bytes <- charToRaw(token)
    rawToChar(bytes[-c(1, length(bytes))])
  }, "", USE.NAMES = FALSE)
  Encoding(inner) <- "UTF-8"
  escaped <- grepl("\\", inner, fixed = TRUE)
  if (any(escaped)) inner[escaped] <- vapply(inner[escaped], unescaped, "", USE.NAMES = FALSE)
  inner
}

unescaped <- function(text) {
  units <- gsub("\\\\[^u]", "", text, perl = TRUE)
  pairs <- gsub("\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2}", "", units, perl = TRUE)
  if (grepl("\\\\u[dD][89a-fA-F]", pairs, perl = TRUE)) {
    bad_file("The file is not valid JSON: half a surrogate pair is no character.")
  }
  if (grepl("\\u0000", units, fixed = TRUE)) bad_file("The file has a text with a zero byte, which R cannot hold.")
  enc2utf8(jsonlite::fromJSON(paste0('["', text, '"]')))
}

json_value <- function(state) {
  place <- state$place
  if (place > length(state$tokens)) not_json()
  token <- state$tokens[place]
  state$place <- place + 1L
  switch(token,
    "[" = json_array(state),
    "{" = json_object(state),
    "true" = TRUE,
    "false" = FALSE,
    "null" = structure(list(), class = "json_null"),
    "]" = , "}" = , "," = , ":" = not_json(),
    state$values[[place]]
  )
}

next_token <- function(state) {
  if (state$place > length(state$tokens)) not_json()
  state$tokens[state$place]
}

json_array <- function(state) {
  values <- list()
  if (next_token(state) == "]") {
    state$place <- state$place + 1L
    return(values)
  }
  repeat {
    values[[length(values) + 1L]] <- json_value(state)
    mark <- next_token(state)
    state$place <- state$place + 1L
    if (mark == "]") return(values)
    if (mark != ",") not_json()
  }
}

json_object <- function(state) {
  values <- list()
  names <- character()
  if (next_token(state) == "}") {
    state$place <- state$place + 1L
    return(structure(values, names = names, class = "json_object"))
  }
  repeat {
    token <- next_token(state)
    if (!startsWith(token, '"')) not_json()
    key <- state$values[[state$place]]
    if (key %in% names) bad_file("The file is not valid JSON: the key ", token, " stands twice.")
    state$place <- state$place + 1L
    if (next_token(state) != ":") not_json()
    state$place <- state$place + 1L
    names <- c(names, key)
    values[[length(names)]] <- json_value(state)
    mark <- next_token(state)
    state$place <- state$place + 1L
    if (mark == "}") return(structure(values, names = names, class = "json_object"))
    if (mark != ",") not_json()
  }
}

is_object <- function(x) inherits(x, "json_object")
is_array <- function(x) is.list(x) && is.null(attr(x, "class"))
is_text <- function(x) is.character(x) && is.null(attr(x, "class"))
is_integer <- function(x) inherits(x, "json_integer")

# ---- the one spelling that is hashed

canonical <- function(value) {
  if (is_object(value)) {
    names <- enc2utf8(names(value))
    order <- order(names, method = "radix")  # by bytes, which is by code points
    parts <- vapply(order, function(i) {
      paste0(quoted(names[i]), ":", canonical(unclass(value)[[i]]))
    }, "")
    return(paste0("{", paste(parts, collapse = ","), "}"))
  }
  if (inherits(value, "json_null")) return("null")
  if (is_integer(value)) return(unclass(value))
  if (is.list(value)) return(paste0("[", paste(vapply(value, canonical, ""), collapse = ","), "]"))
  if (is.character(value)) return(quoted(value))
  if (is.logical(value)) return(if (value) "true" else "false")
  python_float(value)
}

quoted <- function(text) {
  if (!grepl("[^ -~]|[\"\\\\]", text, perl = TRUE)) return(paste0('"', text, '"'))
  codes <- utf8ToInt(text)
  short <- c("\b" = "\\b", "\t" = "\\t", "\n" = "\\n", "\f" = "\\f", "\r" = "\\r", '"' = '\\"', "\\" = "\\\\")
  parts <- vapply(codes, function(code) {
    if (code > 0xffff) {
      high <- 0xd800 + (code - 0x10000) %/% 0x400
      return(sprintf("\\u%04x\\u%04x", as.integer(high), as.integer(0xdc00 + (code - 0x10000) %% 0x400)))
    }
    char <- intToUtf8(code)
    if (char %in% names(short)) return(short[[char]])
    if (code < 0x20 || code > 0x7e) sprintf("\\u%04x", code) else char
  }, "")
  paste0('"', paste(parts, collapse = ""), '"')
}

# A double by the fewest digits that read back as the same double.
python_float <- function(x) {
  if (!is.finite(x)) return(if (x > 0) "inf" else "-inf")
  if (x == 0) return(if (1 / x < 0) "-0.0" else "0.0")
  for (digits in 0:16) {
    text <- sprintf("%.*e", digits, x)
    if (nearest_doubles(text) == x) break
  }
  parts <- strsplit(text, "e", fixed = TRUE)[[1]]
  power <- as.integer(parts[2])
  sign <- if (startsWith(parts[1], "-")) "-" else ""
  mantissa <- gsub("[-.]", "", parts[1])
  mantissa <- sub("0+$", "", mantissa)
  if (mantissa == "") mantissa <- "0"
  n <- nchar(mantissa)
  if (power < -4 || power >= 16) {
    tail <- if (n > 1) paste0(".", substr(mantissa, 2, n)) else ""
    return(sprintf("%s%s%se%s%02d", sign, substr(mantissa, 1, 1), tail, if (power < 0) "-" else "+", abs(power)))
  }
  if (power < 0) return(paste0(sign, "0.", strrep("0", -power - 1), mantissa))
  if (n <= power + 1) return(paste0(sign, mantissa, strrep("0", power + 1 - n), ".0"))
  paste0(sign, substr(mantissa, 1, power + 1), ".", substr(mantissa, power + 2, n))
}

sha256 <- function(text) as.character(openssl::sha256(text))
