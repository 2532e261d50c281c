"""The state of a run in a file, so that another run can go on from it."""
