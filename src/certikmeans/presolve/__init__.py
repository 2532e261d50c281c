"""Presolve: exact, reversible reductions, and proofs of infeasibility."""
