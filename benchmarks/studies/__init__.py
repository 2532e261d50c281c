"""One file per study: which instances, which solvers, and the page."""
