"""Compilation of numba kernels: fast, cached, and excluded from time limits."""
