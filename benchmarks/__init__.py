"""Measurements. Uses the package's public names only, and recomputes every answer itself."""
