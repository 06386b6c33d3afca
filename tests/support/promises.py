"""What a design is asked for in tests that speak of the paper's measure and guarantee alone."""

PAPER = {"goal": "information", "epsilon_given_u": None, "epsilon_all": None}
