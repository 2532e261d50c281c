"""Group subproblems of the grouped bound, and the master problem of its multipliers."""
