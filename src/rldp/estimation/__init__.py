"""From reports back to the table: `moments` and `report_counts` → a method → an `Estimate`.

Every method uses the moments of a channel: features of a report whose means are linear in the
distribution p of (S, U). Cells that they do not determine are not identified, and get bounds
instead of estimates.
"""
