"""Regression of S, U or an event on covariates that are stored unchanged beside the reports.

`outcome` says which cells of the table are which value, `covariates` reads reports with their
covariates and makes a design matrix of these. `model` has the likelihood through the channel and
maximises it, and `result` is what the user gets from `regress`.
"""
