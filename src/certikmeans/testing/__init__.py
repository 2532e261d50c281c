"""Exact oracles, random instances and contracts: for our tests and for plug-in authors."""
