"""Compiled functions over arrays, nothing else."""
