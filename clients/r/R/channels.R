# The channel of a file: which rows the words of a record draw from, and what the report is.
# The kinds, their parts and the alias table are those of docs/release.md and docs/format.md.

MOST_BUCKETS <- 2^25
MOST_NAMED <- 32

# The entries of an object, which has these and no others.
entries_of <- function(value, names, where) {
  if (!is_object(value)) bad_file("Expected an object as ", where, ".")
  found <- names(value)
  if (length(found) != length(names) || !all(names %in% found)) {
    bad_file("Expected the entries ", paste(names, collapse = ", "), " in ", where, ", got ",
             paste(found, collapse = ", "), ".")
  }
  unclass(value)[names]
}

# A rectangular nested list of decimal texts as halves with these many axes.
integer_part <- function(value, axes, name) {
  shape <- integer()
  level <- list(value)
  for (axis in seq_len(axes)) {
    sizes <- vapply(level, function(x) if (is_array(x)) length(x) else 0L, 0L)
    if (any(sizes == 0) || any(sizes != sizes[1])) {
      bad_file("Expected ", name, " as a rectangular table with ", axes, " axes.")
    }
    shape <- c(shape, sizes[1])
    level <- unlist(level, recursive = FALSE, use.names = FALSE)
  }
  texts <- natural_texts(level, name)
  # lists have the last axis fastest, arrays the first
  found <- halves(texts)
  order <- rev(seq_len(axes))
  lapply(found, function(x) aperm(array(x, rev(shape)), order))
}

natural_texts <- function(level, name) {
  if (is.list(level)) {
    is_plain <- vapply(level, is_text, NA)
    if (!all(is_plain)) bad_file("Expected non-negative integers as text in ", name, ".")
    level <- unlist(level, use.names = FALSE)
  }
  if (!is.character(level) || !all(grepl("^(0|[1-9][0-9]{0,18})\\z", level, perl = TRUE))) {
    bad_file("Expected non-negative integers as text in ", name, ".")
  }
  level
}

check_sums <- function(sums, bits, name) {
  one <- power_of_two(bits)
  if (!all(sums$high == one[1] & sums$low == one[2])) {
    bad_file("Expected every row of ", name, " to sum to 2^", bits, " exactly.")
  }
}

read_channel <- function(value) {
  kind <- if (is_object(value)) unclass(value)[["kind"]]
  kinds <- c("dense", "choice", "independent", "unary", "sets")
  if (!is_text(kind) || !kind %in% kinds) {
    bad_file("Expected the channel to be ", paste(kinds, collapse = ", "), ".")
  }
  axes <- list(dense = c(Q = 3), choice = c(own = 3, other = 2), independent = c(r_s = 2, r_u = 2),
               unary = c(own = 3, other = 2), sets = c(s_partitions = 0, u_partitions = 0, outputs = 0))[[kind]]
  entries <- entries_of(value, c("kind", "bits", names(axes)), paste("a", kind, "channel"))
  bits <- if (is_integer(entries$bits) && nchar(entries$bits) < 4) as.numeric(unclass(entries$bits)) else NA
  if (is.na(bits) || bits < 1 || bits > 62) bad_file("Expected 1 to 62 bits.")
  if (kind == "sets") return(sets_channel(entries, bits))
  parts <- Map(function(name, n) integer_part(entries[[name]], n, name), names(axes), axes)
  made <- switch(kind, dense = dense_channel, choice = choice_channel,
                 independent = independent_channel, unary = unary_channel)
  made(parts, bits)
}

shape_of <- function(part) dim(part$low)

dense_channel <- function(parts, bits) {
  Q <- parts$Q
  check_sums(half_sums(Q$high, Q$low), bits, "Q")
  size <- shape_of(Q)
  differs <- function(x) any(x != aperm(array(x[1, , ], size[c(2, 3, 1)]), c(3, 1, 2)))
  list(kind = "dense", bits = bits, shape = size[1:2], words = 1, n_outputs = size[3],
       rows = size[1] * size[2], buckets = size[3],
       row = function(s, u, word) list(high = Q$high[s, u, ], low = Q$low[s, u, ]),
       report = function(symbols) symbols[1, ],
       labels = function(of_s, of_u) numbered(size[3]),
       reads_sensitive = differs(Q$high) || differs(Q$low))
}

choice_channel <- function(parts, bits) {
  own <- parts$own
  other <- parts$other
  size <- shape_of(own)
  if (!identical(shape_of(other), size[c(1, 3)])) {
    bad_file("Expected other of shape (", size[1], ", ", size[3], ").")
  }
  one <- half_sums(own$high, own$low)
  all <- half_sums(other$high, other$low)
  # every mass is below 2^64 and there are fewer than 2^20 of them
  elsewhere <- function(x) sum(x) - x
  total_low <- one$low + elsewhere(all$low)
  sums <- list(high = one$high + elsewhere(all$high) + total_low %/% HALF, low = total_low %% HALF)
  check_sums(sums, bits, "own and other")
  list(kind = "choice", bits = bits, shape = size[1:2], words = 1, n_outputs = size[1] * size[3],
       rows = size[1] * size[2], buckets = size[1] * size[3],
       row = function(s, u, word) {
         high <- t(other$high)
         low <- t(other$low)
         high[, s] <- own$high[s, u, ]
         low[, s] <- own$low[s, u, ]
         list(high = as.vector(high), low = as.vector(low))
       },
       report = function(symbols) symbols[1, ],
       labels = function(of_s, of_u) paired(of_s, fitting(of_u, size[3])),
       reads_sensitive = TRUE)
}

independent_channel <- function(parts, bits) {
  r_s <- parts$r_s
  r_u <- parts$r_u
  check_sums(half_sums(r_s$high, r_s$low), bits, "r_s")
  check_sums(half_sums(r_u$high, r_u$low), bits, "r_u")
  size_s <- shape_of(r_s)
  size_u <- shape_of(r_u)
  list(kind = "independent", bits = bits, shape = c(size_s[1], size_u[1]), words = 2,
       n_outputs = size_s[2] * size_u[2],
       rows = max(size_s[1], size_u[1]), buckets = max(size_s[2], size_u[2]),
       row = function(s, u, word) {
         part <- if (word == 1) r_s else r_u
         at <- if (word == 1) s else u
         list(high = part$high[at, ], low = part$low[at, ])
       },
       report = function(symbols) symbols[1, ] * size_u[2] + symbols[2, ],
       labels = function(of_s, of_u) paired(fitting(of_s, size_s[2]), fitting(of_u, size_u[2])),
       reads_sensitive = TRUE)
}

unary_channel <- function(parts, bits) {
  own <- parts$own
  other <- parts$other
  size <- shape_of(own)
  blocks <- shape_of(other)[1]
  if (!blocks %in% c(size[1], size[1] * size[2]) || shape_of(other)[2] != size[3]) {
    bad_file("Expected other of shape (blocks, ", size[3], ") with ", size[1], " or ", size[1] * size[2], " blocks.")
  }
  check_sums(half_sums(own$high, own$low), bits, "own")
  check_sums(half_sums(other$high, other$low), bits, "other")
  of_s <- blocks == size[1]
  block <- function(s, u) if (of_s) s else (s - 1) * size[2] + u
  list(kind = "unary", bits = bits, shape = size[1:2], words = blocks, n_symbols = size[3],
       rows = size[1] * size[2] + blocks, buckets = size[3], block = block, own = own, other = other,
       row = function(s, u, word) {
         if (word == block(s, u)) list(high = own$high[s, u, ], low = own$low[s, u, ])
         else list(high = other$high[word, ], low = other$low[word, ])
       },
       report = function(symbols) t(symbols - 1),
       labels = function(labels_s, labels_u) {
         if (of_s) list(labels_s, fitting(labels_u, size[3] - 1))
         else list(paired(labels_s, labels_u), if (size[3] == 2) NA_character_ else numbered(size[3] - 1))
       },
       reads_sensitive = TRUE)
}

# ---- sets: a level for each pair of a class of s and a class of u; the last output is the rest

sets_channel <- function(entries, bits) {
  of_s <- partitions(entries$s_partitions, "s_partitions")
  of_u <- partitions(entries$u_partitions, "u_partitions")
  outputs <- entries$outputs
  if (!is_array(outputs) || !length(outputs)) bad_file("Expected at least one output.")
  columns <- lapply(outputs, set_column, of_s, of_u, bits)
  n_s <- length(of_s[[1]]$classes)
  n_u <- length(of_u[[1]]$classes)
  one <- power_of_two(bits)
  high <- matrix(0, n_s, n_u)
  low <- high
  for (column in columns) {
    high <- high + column$high[column$s, column$u, drop = FALSE]
    low <- low + column$low[column$s, column$u, drop = FALSE]
  }
  high <- high + low %/% HALF
  low <- low %% HALF
  rest_low <- one[2] - low
  rest_high <- one[1] - high - (rest_low < 0)
  rest_low <- rest_low %% HALF
  if (any(rest_high < 0)) bad_file("Expected outputs that sum to 1 at most in every cell.")
  varies <- function(column) any(t(column$high) != column$high[1, ]) || any(t(column$low) != column$low[1, ])
  list(kind = "sets", bits = bits, shape = c(n_s, n_u), words = 1, n_outputs = length(columns) + 1,
       row = function(s, u, word) {
         at <- function(half) vapply(columns, function(column) column[[half]][column$s[s], column$u[u]], 0)
         list(high = c(at("high"), rest_high[s, u]), low = c(at("low"), rest_low[s, u]))
       },
       report = function(symbols) symbols[1, ],
       labels = function(labels_s, labels_u) numbered(length(columns) + 1),
       reads_sensitive = any(vapply(columns, varies, NA)))
}

partitions <- function(texts, name) {
  if (!is_array(texts) || !length(texts)) bad_file("Expected a list of partitions as ", name, ".")
  found <- lapply(texts, partition, name)
  sizes <- vapply(found, function(x) length(x$classes), 0L)
  if (any(sizes != sizes[1])) bad_file("Expected partitions of the same values in ", name, ".")
  found
}

partition <- function(text, name) {
  refused <- function() bad_file("Expected a partition in ", name, " as values:classes:digits.")
  if (!is_text(text) || !grepl("^[1-9][0-9]{0,4}:[1-9][0-9]{0,4}:[0-9a-f]*\\z", text, perl = TRUE)) refused()
  parts <- regmatches(text, regexec("^([0-9]+):([0-9]+):(.*)$", text))[[1]]
  n <- as.integer(parts[2])
  size <- as.integer(parts[3])
  each <- if (size > 1) nchar(sub("^0+", "", paste(rev(as.integer(intToBits(size - 1L))), collapse = ""))) else 0L
  if (size > n || nchar(parts[4]) != ceiling(each * n / 4)) refused()
  digits <- strtoi(strsplit(parts[4], "")[[1]], 16L)
  bits <- as.vector(vapply(digits, function(d) (d %/% c(8, 4, 2, 1)) %% 2, numeric(4)))
  unused <- length(bits) - each * n
  if (any(bits[seq_len(unused)] == 1)) refused()
  if (each == 0L) return(list(classes = rep(1L, n), size = 1L))
  used <- matrix(bits[unused + seq_len(each * n)], nrow = each)
  classes <- as.integer(colSums(used * 2^((each - 1):0))) + 1L
  if (max(classes) > size || length(unique(classes)) != size) refused()
  list(classes = classes, size = size)
}

set_column <- function(output, of_s, of_u, bits) {
  is_place <- function(x, all) is_integer(x) && grepl("^[0-9]{1,6}$", x) && as.integer(unclass(x)) < length(all)
  if (!is_array(output) || length(output) != 3 || !is_place(output[[1]], of_s) ||
      !is_place(output[[2]], of_u) || !is_text(output[[3]])) {
    bad_file("Expected two numbers of partitions and a text in every output.")
  }
  i <- of_s[[as.integer(unclass(output[[1]])) + 1]]
  j <- of_u[[as.integer(unclass(output[[2]])) + 1]]
  texts <- strsplit(paste0(output[[3]], " ."), " ", fixed = TRUE)[[1]]  # a blank at the end counts
  levels <- halves(natural_texts(texts[-length(texts)], "outputs"))
  one <- power_of_two(bits)
  if (length(levels$low) != i$size * j$size || any(is_less(one[1], one[2], levels$high, levels$low))) {
    bad_file("Expected a probability for each pair of classes of every output.")
  }
  list(s = i$classes, u = j$classes, high = matrix(levels$high, i$size, byrow = TRUE),
       low = matrix(levels$low, i$size, byrow = TRUE))
}

# ---- from words to outputs

bucket_bits <- function(outputs, bits) {
  needed <- 0
  while (2^needed < outputs) needed <- needed + 1
  min(bits, max(1, needed))
}

# A row of halves as 2^j buckets with a threshold and an alias each: docs/release.md.
alias_table <- function(row, bits) {
  n <- length(row$low)
  j <- bucket_bits(n, bits)
  size <- 2^j
  c_half <- power_of_two(bits - j)
  is_positive <- row$high > 0 | row$low > 0
  items <- c(which(is_positive), which(!is_positive))
  items <- items[seq_len(min(size, n))]
  high <- c(row$high[items], rep(0, size - length(items)))
  low <- c(row$low[items], rep(0, size - length(items)))
  items <- c(items - 1, rep(0, size - length(items)))
  is_small <- is_less(high, low, c_half[1], c_half[2])
  small <- which(is_small)
  large <- which(!is_small)
  threshold_high <- rep(c_half[1], size)
  threshold_low <- rep(c_half[2], size)
  alias <- items
  next_small <- 2L
  first <- 1L
  current <- if (length(small)) small[1] else NA
  while (!is.na(current)) {
    other <- large[first]
    threshold_high[current] <- high[current]
    threshold_low[current] <- low[current]
    alias[current] <- items[other]
    # R[other] -= c - R[current]
    new_low <- low[other] - c_half[2] + low[current]
    new_high <- high[other] - c_half[1] + high[current] + floor(new_low / HALF)
    low[other] <- new_low %% HALF
    high[other] <- new_high
    if (is_less(high[other], low[other], c_half[1], c_half[2])) {
      first <- first + 1L
      current <- other
    } else {
      current <- if (next_small <= length(small)) small[next_small] else NA
      next_small <- next_small + 1L
    }
  }
  list(j = j, bits = bits, high = threshold_high, low = threshold_low, items = items, alias = alias)
}

alias_draw <- function(table, words) {
  b <- words$high %/% 2^(32 - table$j) + 1
  x <- masked(shifted(words, 64 - table$bits), table$bits - table$j)
  is_item <- is_less(x$high, x$low, table$high[b], table$low[b])
  ifelse(is_item, table$items[b], table$alias[b])
}

# The output whose sum of the row up to it first exceeds the highest bits of a word.
summed_draw <- function(row, words, bits) {
  x <- shifted(words, 64 - bits)
  n <- length(row$low)
  ends_low <- numeric(n)
  ends_high <- numeric(n)
  low <- cumsum(row$low)  # fewer than 2^20 outputs
  ends_low <- low %% HALF
  ends_high <- cumsum(row$high) + low %/% HALF
  is_word <- rep(c(FALSE, TRUE), c(n, length(x$low)))
  order <- order(c(ends_high, x$high), c(ends_low, x$low), is_word, method = "radix")
  passed <- cumsum(!is_word[order])
  out <- numeric(length(is_word))
  out[order] <- passed
  out[is_word]
}

# Reports of records with codes s, u (from 1) by a matrix of words: an integer each, or a row for sets.
draw <- function(p, s, u, words) {
  channel <- p$channel
  n <- length(s)
  if (channel$kind != "sets" && channel$rows * 2^bucket_bits(channel$buckets, channel$bits) > MOST_BUCKETS) {
    bad_file("Expected a table of at most ", MOST_BUCKETS, " buckets.")
  }
  symbols <- matrix(0, channel$words, n)
  cell <- (s - 1) * channel$shape[2] + u
  for (word in seq_len(channel$words)) {
    at <- seq(word, by = channel$words, length.out = n)
    high <- words$high[at]
    low <- words$low[at]
    # records that draw from the same row
    group <- if (channel$kind == "unary") {
      ifelse(channel$block(s, u) == word, cell, 0)
    } else if (channel$kind == "independent") {
      if (word == 1) s else u
    } else {
      cell
    }
    for (same in split(seq_len(n), group)) {
      row <- channel$row(s[same[1]], u[same[1]], word)
      part <- list(high = high[same], low = low[same])
      symbols[word, same] <-
        if (channel$kind == "sets") summed_draw(row, part, channel$bits) else drawn(p, row, part)
    }
  }
  channel$report(symbols)
}

drawn <- function(p, row, words) {
  key <- paste(c(row$high, row$low), collapse = " ")
  table <- p$tables[[key]]
  if (is.null(table)) {
    table <- alias_table(row, p$channel$bits)
    assign(key, table, envir = p$tables)
  }
  alias_draw(table, words)
}
