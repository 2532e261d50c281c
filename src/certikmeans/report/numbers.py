"""Numbers for people, as every report shows them; see `certikmeans._numbers`."""

from certikmeans._numbers import DIGITS, count, duration, percent, rounded_down, rounded_up

__all__ = ["DIGITS", "count", "duration", "percent", "rounded_down", "rounded_up"]
