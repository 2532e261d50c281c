"""Benchmarks. Use public names of the package only, and recompute every result."""
