"""One run of the solver: context, state, root bounds, result."""
