"""From reports back to the table: `moments` and `report_counts` → a method → an `Estimate`.

Every method uses the moments of a channel: features of a report whose means are linear in the
distribution p of (S, U). Cells that they do not determine are not identified, and get bounds
instead of estimates.

mixin               `p.estimate` and `p.regress`, and their options
read_reports        reports of every kind → counts; which protocol they come from
report_counts       counts of reports
moments             features of a report whose means are linear in p
inversion           unbiased estimates, of a whole population or of strata
likelihood          maximum likelihood estimates, by EM
prior_fit           Bayesian estimates
identifiability     what reports can determine
interval_estimates  standard errors and intervals
result              the estimate
export              estimates as tidy tables and as integers
sample_size         how many reports are needed
goal_errors         the errors that estimates of a goal will have
regression          S, U or an event explained by covariates
"""
