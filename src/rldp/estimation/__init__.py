"""From reports back to the table: `moments` and `report_counts` → a method → an `Estimate`.

Every method uses the moments of a channel: features of a report whose means are linear in the
distribution p of (S, U). Cells that they do not determine are not identified, and get bounds
instead of estimates.

mixin               `p.estimate` and `p.regress`
options             the options of an estimate, checked
read_reports        reports of every kind → counts
report_origin       which protocol reports come from
report_counts       counts of reports
moments             features of a report whose means are linear in p
weights_point       where the weights of estimates are best
inversion           unbiased estimates
promised_influence  what one report may add, where a design limited it
likelihood_fit, em  maximum likelihood estimates, and their algorithm
prior_fit           Bayesian estimates
identifiability     what reports can determine
interval_estimates  standard errors and intervals
strata              finite populations and strata
result              the estimate
rounding            tables of integers with rounded margins
export              estimates as tidy tables
sample_size         how many reports are needed
goal_errors         the errors that estimates of a goal will have
regression          S, U or an event explained by covariates
"""
