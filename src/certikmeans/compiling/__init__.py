"""How kernels are compiled: quickly, off the clock, and kept for the next run."""
