"""Regression of S, U or an event on covariates that are stored unchanged beside the reports.

`covariates` reads reports with their covariates and makes a design matrix of these. `regress` says
which cells of the table are which value of the outcome. `model` has the likelihood through the
channel and maximises it, and `result` is what the user gets.
"""
