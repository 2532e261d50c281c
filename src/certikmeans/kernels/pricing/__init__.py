"""The best cluster for given multipliers: a search over boxes of its centre, and local ascents."""
