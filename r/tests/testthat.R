library(testthat)
library(dvim)

test_check("dvim")
