# Integers from 0 to 2^64 - 1 in halves of 32 bits, as doubles hold 53 bits only.

HALF <- 2^32

# Decimal texts of up to 19 digits.
halves <- function(texts) {
  n <- nchar(texts)
  high <- as.numeric(ifelse(n > 9, substr(texts, 1, n - 9), "0"))
  low <- as.numeric(substr(texts, pmax(1, n - 8), n))
  # high * 10^9 + low, with high = a * 2^17 + b: every product stays below 2^53
  a <- high %/% 2^17
  b <- high %% 2^17
  upper <- a * 1e9
  rest <- (upper %% 2^15) * 2^17 + b * 1e9 + low
  list(high = upper %/% 2^15 + rest %/% HALF, low = rest %% HALF)
}

power_of_two <- function(k) {
  if (k >= 32) c(2^(k - 32), 0) else c(0, 2^k)
}

# Sums over the last axis of arrays of halves, at most 2^20 terms each.
half_sums <- function(high, low) {
  axes <- seq_len(length(dim(low)) - 1)
  lows <- apply(low, axes, sum)
  list(high = apply(high, axes, sum) + lows %/% HALF, low = lows %% HALF)
}

# Words shifted to the right by r bits.
shifted <- function(words, r) {
  if (r == 0) return(words)
  if (r >= 32) return(list(high = words$high * 0, low = words$high %/% 2^(r - 32)))
  list(high = words$high %/% 2^r, low = words$low %/% 2^r + (words$high %% 2^r) * 2^(32 - r))
}

# The lowest k bits.
masked <- function(words, k) {
  if (k >= 32) return(list(high = words$high %% 2^(k - 32), low = words$low))
  list(high = words$high * 0, low = words$low %% 2^k)
}

is_less <- function(a_high, a_low, b_high, b_low) {
  a_high < b_high | (a_high == b_high & a_low < b_low)
}

as_fraction <- function(high, low, bits) (high * HALF + low) / 2^bits
