p <- read_protocol(system.file("extdata", "income.public.json", package = "rldp"))
people <- data.frame(income = rep(c("low", "high", "middle", "low"), 500), sex = c("f", "m"))

test_that("integers beyond doubles are exact in halves", {
  found <- rldp:::halves(c("0", "4611686018427387904", "4611686018427387903", "18446744073709551615", "9007199254740993"))
  expect_equal(found$high, c(0, 2^30, 2^30 - 1, 2^32 - 1, 2^21))
  expect_equal(found$low, c(0, 0, 2^32 - 1, 2^32 - 1, 1))
})

test_that("every word of a small table gives each output as often as its integer says", {
  row <- list(high = rep(0, 3), low = c(5, 0, 11))
  table <- rldp:::alias_table(row, 4)
  words <- list(high = (0:15) * 2^28, low = rep(0, 16))
  expect_equal(tabulate(rldp:::alias_draw(table, words) + 1, 3), c(5, 0, 11))
  expect_equal(tabulate(rldp:::summed_draw(row, words, 4) + 1, 3), c(5, 0, 11))
})

test_that("doubles are spelled as in Python", {
  expect_equal(vapply(c(1, 0.1, 1e16, 1e-5, 123456.75, 1e15, 5e-324), rldp:::python_float, ""),
               c("1.0", "0.1", "1e+16", "1e-05", "123456.75", "1000000000000000.0", "5e-324"))
})

test_that("a damaged file is refused", {
  path <- system.file("extdata", "income.public.json", package = "rldp")
  text <- readChar(path, file.size(path))
  damaged <- sub("low", "row", text, fixed = TRUE)
  expect_error(read_protocol(charToRaw(damaged)), "hash does not fit")
  expect_error(read_protocol(charToRaw(paste0(text, "x"))), "not valid JSON")
})

test_that("reports are known to the protocol and follow its table", {
  n <- 200000
  found <- table(factor(release(p, people[rep(1, n), ])$y, p$report_labels))
  Q <- rldp:::channel_matrix(p)
  codes <- codes_of(p, people[1, ])
  law <- Q[(codes[, "s"] - 1) * p$channel$shape[2] + codes[, "u"], ]
  expect_equal(sum(law), 1)
  limit <- qchisq(1e-9, length(law) - 1, lower.tail = FALSE)
  expect_lt(sum((found - n * law)^2 / (n * law)), limit)
  off <- law + c(0.02, -0.02, rep(0, length(law) - 2))
  expect_gt(sum((found - n * off)^2 / (n * off)), limit)
})

test_that("R's generators play no part", {
  set.seed(1)
  first <- release(p, people)$y
  set.seed(1)
  expect_false(identical(first, release(p, people)$y))
  expect_identical(runif(1), {
    set.seed(1)
    runif(1)
  })
})

test_that("a key gives the same report again", {
  key <- as.raw(0:31)
  people$id <- seq_len(nrow(people))
  first <- release(p, people, "id", key)
  expect_identical(first, release(p, people, "id", key))
  expect_false(identical(first$y, release(p, people, "id", rev(key))$y))
  expect_error(release(p, people, "id", as.raw(rep(0, 16))), "random key")
  expect_error(release(p, people, "id"), "both id")
})

test_that("estimates cover the truth and refuse reports of others", {
  e <- estimate(p, release(p, people))
  s <- as.data.frame(e, of = "s")
  expect_equal(sum(e$cells$estimate), 1)
  expect_lt(max(abs(s$estimate - c(high = 0.25, low = 0.5, middle = 0.25)[s$s]) / s$std_error), 6)
  expect_true(all(s$low <= s$high & s$low >= 0 & s$high <= 1))
  expect_equal(dim(confint(e)), c(6, 2))
  expect_equal(unname(sqrt(diag(vcov(e)))), e$cells$std_error)
  expect_error(estimate(p, data.frame(y = "low | f", protocol = "0123456789ab")), "these are of 0123456789ab")
  expect_message(estimate(p, data.frame(y = rep(p$report_labels, 10))), "not checked")
  expect_error(suppressMessages(estimate(p, rep("?", 40))), "got \"\\?\" in row 1")
  expect_output(print(e), "intervals of 95 %")
  expect_output(print(p), "does not prove")
})

test_that("what is kept is said, and S and U are not kept", {
  people$w <- 1
  expect_warning(out <- release(p, people, keep = "w"), "does not cover kept columns: w")
  expect_named(out, c("y", "protocol", "w"))
  expect_error(release(p, people, keep = "income"), "no column of S or U")
  expect_error(release(p, transform(people, income = "?")), "Unknown label \"\\?\" in column \"income\", row 1")
})

test_that("pictures are drawn", {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_silent(plot(p))
  expect_silent(plot(estimate(p, release(p, people)), of = "u"))
})
