"""Regression of S, U or an event on covariates that are stored unchanged beside the reports.

`outcome` says which cells of the table are which value, `rows` reads reports with their covariates,
`coding` turns these into a design matrix. `model` has the likelihood through the channel, `fit`
maximises it, and `result` is what the user gets from `regress`.
"""
