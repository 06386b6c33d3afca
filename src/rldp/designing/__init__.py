"""From F and ε to a proven protocol: closed forms, linear programmes, and their solvers."""
