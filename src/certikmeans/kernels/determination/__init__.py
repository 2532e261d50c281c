"""Which clusters the groups of a part can still be in."""
