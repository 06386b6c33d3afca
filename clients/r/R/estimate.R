# From reports to the table of S and U: the moments of reports inverted, with their exact covariance.
#
# The same estimates as rldp.estimate(..., method = "inversion") of a public protocol in Python:
# generalised least squares with weights that are best at the uniform distribution and fixed before
# any report is seen, so that estimates are unbiased for every distribution and sum to 1.

FEWEST_REPORTS <- 30
MOST_CELLS <- 3000
INVISIBLE <- 1e-7
CAREFUL <- 10

# The chance of each output for each record, cells in rows, u fastest.
channel_matrix <- function(protocol) {
  channel <- protocol$channel
  if (channel$kind == "unary") bad_record("Expected a protocol whose outputs can be listed; this one reports sets.")
  n_s <- channel$shape[1]
  n_u <- channel$shape[2]
  law <- function(row) as_fraction(row$high, row$low, channel$bits)
  rows <- lapply(seq_len(n_s), function(s) {
    lapply(seq_len(n_u), function(u) {
      if (channel$kind != "independent") return(law(channel$row(s, u, 1)))
      as.vector(outer(law(channel$row(s, u, 2)), law(channel$row(s, u, 1))))
    })
  })
  do.call(rbind, unlist(rows, recursive = FALSE))
}

# What estimates need to know of a channel: means M (features by cells) and covariances.
moments_of <- function(protocol) {
  channel <- protocol$channel
  if (prod(channel$shape) > MOST_CELLS) {
    bad_record("Expected at most ", MOST_CELLS, " cells; estimate wider tables with rldp estimate.")
  }
  if (channel$kind == "unary") unary_moments(channel) else listed_moments(t(channel_matrix(protocol)))
}

listed_moments <- function(M) {
  list(M = M,
       sandwich = function(A, mean) (A * rep(mean, each = nrow(A))) %*% t(A) - tcrossprod(A %*% mean),
       root = function(mean) diag(ifelse(mean > 0, 1 / sqrt(pmax(mean, 0)), 0), length(mean)),
       squares = function(A, offset) (A + offset)^2 %*% M,
       jumps = function(A) {
         possible <- A[, rowSums(M) > 0, drop = FALSE]
         apply(possible, 1, max) - apply(possible, 1, min)
       },
       tally = function(reports, weights) {
         vapply(seq_len(nrow(M)) - 1, function(y) sum(weights[reports == y]), 0)
       })
}

unary_moments <- function(channel) {
  n_s <- channel$shape[1]
  n_u <- channel$shape[2]
  n_z <- channel$n_symbols
  blocks <- channel$words
  cells <- expand.grid(u = seq_len(n_u), s = seq_len(n_s))
  block <- channel$block(cells$s, cells$u)
  own <- t(vapply(seq_len(nrow(cells)), function(x) {
    as_fraction(channel$own$high[cells$s[x], cells$u[x], ], channel$own$low[cells$s[x], cells$u[x], ], channel$bits)
  }, numeric(n_z)))
  other <- as_fraction(channel$other$high, channel$other$low, channel$bits)
  flat <- as.vector(t(other))  # block by block, the symbol fastest
  M <- matrix(flat, blocks * n_z, nrow(cells))
  for (x in seq_len(nrow(cells))) M[(block[x] - 1) * n_z + seq_len(n_z), x] <- own[x, ]
  most <- matrix(apply(M, 1, max), n_z)
  of_block <- rep(seq_len(blocks), each = n_z)
  by_block <- function(A, x) t(rowsum(t(A * rep(x, each = nrow(A))), of_block))
  sandwich <- function(A, mean) {
    means <- by_block(A, mean)
    shift <- by_block(A, mean - flat)
    total <- rowSums(shift)
    (A * rep(mean, each = nrow(A))) %*% t(A) - tcrossprod(means) + tcrossprod(shift) - tcrossprod(total)
  }
  possible <- as.vector(most > 0)
  list(M = M, sandwich = sandwich,
       root = function(mean) {
         found <- eigen(sandwich(diag(length(mean)), mean), symmetric = TRUE)
         seen <- found$values > 1e-13
         t(found$vectors[, seen, drop = FALSE]) / sqrt(found$values[seen])
       },
       squares = function(A, offset) {
         mean <- by_block(A, flat)
         variance <- by_block(A^2, flat) - mean^2
         found <- vapply(seq_len(nrow(cells)), function(x) {
           values <- A[, (block[x] - 1) * n_z + seq_len(n_z), drop = FALSE]
           own_mean <- as.vector(values %*% own[x, ])
           own_variance <- as.vector(values^2 %*% own[x, ]) - own_mean^2
           (rowSums(mean) - mean[, block[x]] + own_mean + offset)^2 +
             rowSums(variance) - variance[, block[x]] + own_variance
         }, numeric(nrow(A)))
         matrix(found, nrow = nrow(A))
       },
       jumps = function(A) {
         largest <- function(a) {
           by <- split(a[possible], of_block[possible])
           max(vapply(by, function(v) max(v) - min(v), 0))
         }
         apply(A, 1, largest)
       },
       tally = function(reports, weights) {
         as.vector(vapply(seq_len(blocks), function(b) {
           vapply(seq_len(n_z) - 2, function(z) sum(weights[reports[, b] == z]), 0)
         }, numeric(n_z)))
       })
}

estimate <- function(protocol, reports, weights = NULL, level = 0.95, column = "y", allow_few = FALSE) {
  stopifnot(inherits(protocol, "rldp_protocol"))
  if (!(level > 0 && level < 1)) bad_record("Expected level between 0 and 1, such as 0.95.")
  if (is.data.frame(reports)) {
    check_origin(protocol, reports)
    if (is.character(weights) && length(weights) == 1) weights <- reports[[weights]]
    if (!column %in% names(reports)) bad_record("Expected a column \"", column, "\" with the reports.")
    reports <- reports[[column]]
  }
  n <- length(reports)
  if (is.null(weights)) weights <- rep(1, n)
  if (length(weights) != n || !is.numeric(weights) || anyNA(weights) || any(weights < 0) || !sum(weights) > 0) {
    bad_record("Expected a weight >= 0 for each report, some of them positive.")
  }
  if (n < FEWEST_REPORTS && !allow_few) {
    bad_record("Expected at least ", FEWEST_REPORTS, " reports, got ", n, ": too few for intervals that can be ",
               "trusted; allow_few = TRUE gives them anyway.")
  }
  moments <- moments_of(protocol)
  codes <- reports_of(protocol, reports)
  mean <- moments$tally(codes, weights) / sum(weights)
  seen <- moments$tally(codes, weights^2) / sum(weights^2)
  possible <- rowSums(moments$M) > 0
  if (any(mean[!possible] > 0)) bad_record("Expected reports that the protocol can give.")
  effective_n <- sum(weights)^2 / sum(weights^2)
  inverse <- inverse_of(moments)
  p0 <- inverse$p0
  p <- as.vector(p0 + inverse$G %*% (mean - moments$M %*% p0))
  drift <- as.vector(inverse$G %*% (seen - mean))
  covariance <- (moments$sandwich(inverse$G, seen) + tcrossprod(drift)) / max(1, effective_n - 1)
  found <- list(protocol = protocol, n = n, effective_n = effective_n, level = level, p = p,
                covariance = covariance, inverse = inverse, moments = moments)
  shape <- protocol$channel$shape
  eye <- diag(prod(shape))
  found$cells <- figures(found, eye, level)
  found$s <- figures(found, kronecker(diag(shape[1]), matrix(1, 1, shape[2])), level)
  found$u <- figures(found, kronecker(matrix(1, 1, shape[1]), diag(shape[2])), level)
  structure(found, class = "rldp_estimate")
}

check_origin <- function(protocol, reports) {
  mine <- substr(protocol$fingerprint, 1, 12)
  given <- unique(c(attr(reports, "rldp")$fingerprint, as.character(reports[["protocol"]])))
  given <- substr(given, 1, 12)
  if (any(given != mine)) {
    bad_record("Expected reports of the protocol ", mine, ", these are of ", given[given != mine][1], ".")
  }
  if (!length(given)) message("The reports do not say which protocol they come from, so this was not checked.")
}

inverse_of <- function(moments) {
  n <- ncol(moments$M)
  p0 <- rep(1 / n, n)
  mean <- as.vector(moments$M %*% p0)
  W <- moments$root(mean)
  found <- svd(W %*% (moments$M - rowMeans(moments$M)))
  seen <- found$d > INVISIBLE * sqrt(n)
  V <- found$v[, seen, drop = FALSE]
  G <- V %*% (t(found$u[, seen, drop = FALSE]) / found$d[seen]) %*% W
  list(p0 = p0, V = V, G = G)
}

# Estimates of the rows of C with intervals that generalise Wilson's: docs/estimation.md.
figures <- function(found, C, level) {
  moments <- found$moments
  n <- found$effective_n
  p0 <- found$inverse$p0
  A <- C %*% found$inverse$G
  offset <- as.vector(C %*% p0 - A %*% (moments$M %*% p0))
  theta <- as.vector(C %*% found$p)
  least <- apply(C, 1, min)
  most <- apply(C, 1, max)
  centre <- pmin(pmax(theta, least), most)
  variance <- pmax(0, rowSums((C %*% found$covariance) * C))
  second <- n * variance + centre^2
  squares <- moments$squares(A, offset)
  k <- qnorm(1 - (1 - level) / 2)^2 / n
  jumps <- moments$jumps(A)
  least_count <- pmax(CAREFUL * jumps, 1e-300)
  care <- CAREFUL * jumps / pmax(least_count, n * sqrt(variance))
  half <- care * jumps / (2 * n)
  weight <- pmax(found$p, 0) + 1e-9 * p0
  ends <- lapply(c(-1, 1), function(sign) {
    edge <- if (sign < 0) least else most
    group <- ifelse(C == edge, rep(weight, each = nrow(C)), 0)
    top <- rowSums(group * squares) / rowSums(group)
    width <- abs(edge - centre)
    slope <- ifelse(width > 0, (top - second) / width, 0)
    d <- reach(half, k, n * variance, slope - 2 * sign * centre, care)
    pmin(pmax(centre + sign * d, least), most)
  })
  size <- sqrt(rowSums((C - rowMeans(C))^2))
  centred <- C - rowMeans(C)
  hidden <- centred - (centred %*% found$inverse$V) %*% t(found$inverse$V)
  identified <- sqrt(rowSums(hidden^2)) <= 1e-8 * pmax(size, 1e-300)
  data.frame(estimate = ifelse(identified, theta, NA), std_error = ifelse(identified, sqrt(variance), NA),
             low = ifelse(identified, ends[[1]], least), high = ifelse(identified, ends[[2]], most))
}

# The largest d with (d - half)^2 <= k v(d), v(d) = v + slope d - d^2, faded by care.
reach <- function(half, k, v, slope, care) {
  plain <- half + sqrt(k * v)
  lead <- 1 + k
  b <- 2 * half + k * slope
  root <- pmax(0, b^2 - 4 * lead * (half^2 - k * v))
  bent <- (b + sqrt(root)) / (2 * lead)
  bent + care * pmax(0, plain - bent)
}

# ---- what people see

as.data.frame.rldp_estimate <- function(x, row.names = NULL, optional = FALSE, of = c("cells", "s", "u"), ...) {
  of <- match.arg(of)
  p <- x$protocol
  labels <- switch(of,
    cells = data.frame(s = rep(p$labels_s, each = length(p$labels_u)), u = rep(p$labels_u, length(p$labels_s))),
    s = data.frame(s = p$labels_s), u = data.frame(u = p$labels_u))
  cbind(labels, x[[of]])
}

coef.rldp_estimate <- function(object, ...) setNames(object$cells$estimate, cell_names(object))

vcov.rldp_estimate <- function(object, ...) {
  names <- cell_names(object)
  matrix(object$covariance, length(names), dimnames = list(names, names))
}

confint.rldp_estimate <- function(object, parm, level = object$level, ...) {
  found <- figures(object, diag(length(object$p)), level)
  out <- cbind(found$low, found$high)
  rest <- (1 - level) / 2
  dimnames(out) <- list(cell_names(object), paste(format(100 * c(rest, 1 - rest), trim = TRUE, digits = 3), "%"))
  if (missing(parm)) out else out[parm, , drop = FALSE]
}

cell_names <- function(x) paired(x$protocol$labels_s, x$protocol$labels_u)

print.rldp_estimate <- function(x, digits = 3, ...) {
  cat("Estimates from ", x$n, " reports of ", x$protocol$name, ", epsilon = ", format(x$protocol$epsilon, digits = 4),
      "; intervals of ", format(100 * x$level), " %\n", sep = "")
  cat("\n", paste(column_names(x$protocol$sensitive), collapse = " | "), ":\n", sep = "")
  print(as.data.frame(x, of = "s"), digits = digits, row.names = FALSE)
  if (length(x$protocol$useful)) {
    cat("\n", paste(column_names(x$protocol$useful), collapse = " | "), ":\n", sep = "")
    print(as.data.frame(x, of = "u"), digits = digits, row.names = FALSE)
    cat("\nBoth:\n")
    print(as.data.frame(x), digits = digits, row.names = FALSE)
  }
  if (anyNA(x$cells$estimate)) cat("Cells without an estimate are not identified by these reports; low and high only bound them.\n")
  invisible(x)
}

plot.rldp_estimate <- function(x, of = c("cells", "s", "u"), main = NULL, xlab = "share", ...) {
  of <- match.arg(of)
  found <- x[[of]]
  labels <- switch(of, cells = cell_names(x), s = x$protocol$labels_s, u = x$protocol$labels_u)
  at <- rev(seq_along(labels))
  plot(found$estimate, at, xlim = range(0, found$low, found$high), ylim = c(0.5, length(at) + 0.5), yaxt = "n",
       pch = 19, main = main, xlab = xlab, ylab = "", ...)
  arrows(found$low, at, found$high, at, angle = 90, code = 3, length = 0.04)
  axis(2, at = at, labels = labels, las = 1)
  invisible(x)
}
