library(testthat)
library(rldp)

test_check("rldp")
