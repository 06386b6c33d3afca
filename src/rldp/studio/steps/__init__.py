"""One module for each step of the page: what it asks, and the answer.

data, tradeoff and its prices, protocol, risk, use, and whole, which shows the code for all of it.
"""
