"""Primal heuristics: searches for feasible labellings of low cost."""
