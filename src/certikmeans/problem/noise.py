"""Deprecated names of `certikmeans.problem.conflicts`."""

from __future__ import annotations

from typing import Any

from certikmeans.errors import renamed_name

_HOME = "certikmeans.problem.conflicts"
_RENAMED = {
    "Broken": (_HOME, "BrokenCannotLink"),
    "Clash": (_HOME, "Conflict"),
    "Diagnosis": (_HOME, "Diagnosis"),
    "diagnose": (_HOME, "diagnose"),
}


def __getattr__(name: str) -> Any:
    return renamed_name(__name__, name, _RENAMED)
