"""Cheapest feasible labels of a dense core: dual bound, branch and bound, heuristics."""
