"""Deprecated names of `certikmeans.certainty.pair_queries`."""

from __future__ import annotations

from typing import Any

from certikmeans.errors import renamed_name

_RENAMED = {"Question": ("certikmeans.certainty.pair_queries", "PairQuery")}


def __getattr__(name: str) -> Any:
    return renamed_name(__name__, name, _RENAMED)
