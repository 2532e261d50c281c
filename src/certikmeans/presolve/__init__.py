"""Exact, reversible simplification: nobody outside sees reduced indices."""
