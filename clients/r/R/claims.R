# What a public file from version 2 on claims, and against whom: docs/format.md, Section 2.
# Nothing in a public file proves a claim. These are the words of whoever wrote it.

MOST_LEVEL <- 100
MOST_CORNERS <- 5000
SETS <- list(all = character(), "given-u" = character(), known = character(), "chi-square" = "alpha",
             renyi = c("alpha", "order"), kl = "alpha", "kl-finite" = "alpha",
             polytope = "distributions", "total-variation" = "alpha", evidence = "evidence")
PIECES <- list(reports = c("test", "alpha", "n"), known = "n", features = c("alpha", "n"))
TESTS_OF_REPORTS <- c("chi-square", "kl-finite", "total-variation")
POPULATION <- c(
  known = "the frequencies of the sample, taken for true",
  "chi-square" = "a distribution that a chi-squared test on the sample accepts",
  renyi = "a distribution that a power-divergence test on the sample accepts",
  kl = "a distribution that a likelihood ratio test on the sample accepts",
  "kl-finite" = "a distribution near the sample in Kullback-Leibler divergence",
  polytope = "a mixture of the frequencies of the sample and of distributions that the file lists",
  "total-variation" = "a distribution near the sample in total variation",
  evidence = "a distribution that earlier reports, measured features or known margins allow"
)

claims_from <- function(value, version, shape, epsilon, useful) {
  if (!is_array(value) || !length(value)) bad_file("Expected a list of claims.")
  claims <- lapply(value, claim_of, version, shape, useful)
  knows <- vapply(claims, function(claim) length(claim$knows) > 0, NA)
  if (version == 2 && length(claims) == 1 && claims[[1]]$is_uniform) {
    bad_file("Expected version 1 where one level is claimed over one set.")
  }
  if (version == 3 && !any(knows)) bad_file("Expected version 2 where nothing is claimed for someone who knows part of U.")
  if (knows[1]) bad_file("Expected no knows in the first claim: epsilon is for someone who knows nothing of U.")
  if (claims[[1]]$epsilon != epsilon) bad_file("Expected epsilon as the largest level of the first claim.")
  claims
}

claim_of <- function(entry, version, shape, useful) {
  has_knows <- version == 3 && is_object(entry) && "knows" %in% names(entry)
  fields <- entries_of(entry, c("uncertainty", "levels", if (has_knows) "knows"), "a claim")
  set <- fields$uncertainty
  kind <- if (is_object(set)) unclass(set)[["kind"]]
  if (!is_text(kind) || !kind %in% names(SETS)) {
    bad_file("Expected the set of a claim to be ", paste(names(SETS), collapse = ", "), ".")
  }
  parameters <- entries_of(set, c("kind", SETS[[kind]]), paste("a claim over", kind))
  if (!is.null(parameters$alpha)) check_alpha(parameters$alpha)
  if (!is.null(parameters$order)) check_order(parameters$order)
  if (!is.null(parameters$distributions)) check_distributions(parameters$distributions, shape)
  if (!is.null(parameters$evidence)) check_evidence(parameters$evidence)
  knows <- if (has_knows) knows_from(fields$knows, kind, useful) else character()
  levels <- levels_from(fields$levels, shape[1])
  apart <- levels[row(levels) != col(levels)]
  if (!any(is.finite(apart))) bad_file("Expected a level for some pair of S values, got none.")
  is_uniform <- all(apart == apart[1])
  if (is_uniform && is_array(fields$levels)) bad_file("Expected one number where all pairs have the same level.")
  list(kind = kind, alpha = parameters$alpha, levels = levels, epsilon = max(apart[is.finite(apart)]),
       is_uniform = is_uniform, knows = knows)
}

check_evidence <- function(value) {
  if (!is_array(value) || !length(value)) bad_file("Expected a list of pieces of evidence.")
  for (item in value) {
    kind <- if (is_object(item)) unclass(item)[["kind"]]
    if (!is_text(kind) || !kind %in% names(PIECES)) bad_file("Expected pieces of evidence of a known kind.")
    piece <- entries_of(item, c("kind", PIECES[[kind]]), "a piece of evidence")
    if (!is.null(piece$alpha)) check_alpha(piece$alpha)
    if (kind == "reports" && !(is_text(piece$test) && piece$test %in% TESTS_OF_REPORTS)) bad_file("Expected a test of reports.")
    n <- number_of(piece$n)
    if (!is.finite(n) || n < 1 || n >= 2^53 || n != floor(n)) bad_file("Expected n from 1 on in a piece of evidence.")
  }
}

knows_from <- function(value, kind, useful) {
  is_part <- is_array(value) && length(value) > 0 && all(vapply(value, is_text, NA))
  found <- if (is_part) unlist(value) else character()
  if (!is_part || !identical(found, useful[useful %in% found])) {
    bad_file("Expected knows as names of useful columns, each once and in their order.")
  }
  if (kind == "given-u") bad_file("Expected no knows where all of U is known.")
  found
}

levels_from <- function(value, n_s) {
  if (!is_array(value)) {
    levels <- matrix(level_of(value), n_s, n_s)
  } else {
    is_table <- length(value) == n_s && all(vapply(value, function(row) is_array(row) && length(row) == n_s, NA))
    if (!is_table || !all(vapply(seq_len(n_s), function(s) identical(value[[s]][[s]], "inf"), NA))) {
      bad_file("Expected levels as ", n_s, " rows of ", n_s, " with \"inf\" on the diagonal.")
    }
    numbers <- lapply(value, vapply, function(level) if (identical(level, "inf")) Inf else level_of(level), 0)
    levels <- do.call(rbind, numbers)
  }
  diag(levels) <- Inf
  levels
}

level_of <- function(value) {
  x <- number_of(value)
  if (is.na(x) || x <= 0 || x > MOST_LEVEL) bad_file("Expected a level above 0 and up to ", MOST_LEVEL, ".")
  x
}

# A double, or an integer that a double equals; NA for anything else.
number_of <- function(value) {
  if (is.double(value) && is.null(attr(value, "class"))) return(value)
  if (!is_integer(value)) return(NA_real_)
  digits <- unclass(value)
  x <- nearest_doubles(paste0(digits, ".0"))
  if (is.finite(x) && sprintf("%.0f", x) == digits) x else NA_real_
}

check_alpha <- function(value) {
  if (!is.double(value) || !(value > 0 && value < 1)) bad_file("Expected alpha between 0 and 1.")
}

check_order <- function(value) {
  refused <- function() bad_file("Expected order as a fraction in lowest terms, above 1 and up to 16.")
  if (!is_text(value) || !grepl("^[1-9][0-9]{0,3}(/[1-9][0-9]?)?\\z", value, perl = TRUE)) refused()
  parts <- as.numeric(strsplit(value, "/", fixed = TRUE)[[1]])
  bottom <- if (length(parts) == 2) parts[2] else 1
  a <- parts[1]
  b <- bottom
  while (b > 0) {
    rest <- a %% b
    a <- b
    b <- rest
  }
  if (a != 1 || (length(parts) == 2 && bottom == 1) || parts[1] <= bottom || parts[1] > 16 * bottom || bottom > 16) refused()
}

# Tables of fractions in lowest terms, each of which sums to 1 exactly.
check_distributions <- function(value, shape) {
  is_table <- function(table) {
    is_array(table) && length(table) == shape[1] &&
      all(vapply(table, function(row) is_array(row) && length(row) == shape[2], NA))
  }
  if (!is_array(value) || !length(value) || length(value) > MOST_CORNERS || !all(vapply(value, is_table, NA))) {
    bad_file("Expected distributions as 1 to ", MOST_CORNERS, " tables of ", shape[1], " x ", shape[2], " fractions.")
  }
  for (table in value) {
    top <- openssl::bignum(0)
    bottom <- openssl::bignum(1)
    for (text in unlist(table, recursive = FALSE)) {
      if (!is_text(text) || !grepl("^(0|[1-9][0-9]{0,399})(/[1-9][0-9]{0,399})?\\z", text, perl = TRUE)) {
        bad_file("Expected probabilities as fractions in lowest terms, such as 0 or 1/3.")
      }
      parts <- strsplit(text, "/", fixed = TRUE)[[1]]
      a <- openssl::bignum(parts[1])
      b <- if (length(parts) == 2) openssl::bignum(parts[2]) else openssl::bignum(1)
      is_whole <- length(parts) == 2 && b == openssl::bignum(1)
      if (is_whole || !(divisor(a, b) == openssl::bignum(1))) {
        bad_file("Expected probabilities as fractions in lowest terms, such as 0 or 1/3.")
      }
      common <- divisor(bottom, b)
      top <- top * (b %/% common) + a * (bottom %/% common)
      bottom <- (bottom %/% common) * b
    }
    if (!(top == bottom)) bad_file("Expected distributions that sum to 1.")
  }
}

divisor <- function(a, b) {
  zero <- openssl::bignum(0)
  while (!(b == zero)) {
    rest <- a %% b
    a <- b
    b <- rest
  }
  a
}

claim_in_words <- function(claim) {
  known <- if (length(claim$knows)) {
    paste("knows", paste0('"', claim$knows, '"', collapse = " and "), "of the person")
  }
  who <- if (claim$kind == "given-u") {
    "someone who knows U, whatever distribution is true"
  } else if (claim$kind == "all") {
    paste0(if (is.null(known)) "anyone" else paste("someone who", known),
           ", whatever else they know about the person except S, whatever distribution is true")
  } else {
    from <- paste0("from a population with ", POPULATION[[claim$kind]],
                   if (!is.null(claim$alpha)) paste0(" (alpha = ", format(claim$alpha), ")"))
    if (is.null(known)) paste("someone who knows nothing about the person except that they come", from)
    else paste0("someone who ", known, ", and beside that only that they come ", from)
  }
  finite <- claim$levels[is.finite(claim$levels)]
  level <- if (claim$is_uniform) {
    paste("epsilon =", format(claim$epsilon, digits = 4))
  } else {
    paste0("epsilon by pair of S values, from ", format(min(finite), digits = 4), " to ", format(max(finite), digits = 4))
  }
  paste0(level, " against ", who)
}
