"""From reports back to the table: `moments` and `counts` → a method → an `Estimate`.

Every method sees a channel through its moments: features of a report whose means are linear in the
distribution p of (S, U). What they do not tell apart is not identified, and gets bounds only.
"""
