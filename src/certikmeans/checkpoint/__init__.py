"""Checkpoints: the state of a run in a file, from which another run continues."""
