"""What people read and look at: sentences and pictures, made from finished results.

texts           designs, proofs and audits in words
promises        what is promised to whom
risk_texts      risk in words
price_texts     what promises cost in people
estimate_texts  notes on an estimate
plots           pictures
"""
