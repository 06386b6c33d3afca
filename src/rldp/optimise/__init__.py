"""Numerical kernels that know nothing of privacy."""
