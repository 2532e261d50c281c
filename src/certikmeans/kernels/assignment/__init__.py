"""Cheapest proper labels of one component of the cannot-link graph."""
