"""Orders of the vertices of a graph."""
