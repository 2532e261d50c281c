"""Kinds of leaves: one module per kind. A new kind is a new file; nothing else names it.

A module has ``NAME``, the kind as proofs name it, ``CODE``, its number in certificate files, which
never changes, and ``check(ctx)``, which returns if the leaf is proven and raises `Rejection` if
not.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol

from certikmeans.certificate.check_domains import LeafContext


class LeafKind(Protocol):
    """Interface of the modules of this package."""

    NAME: str
    CODE: int

    def check(self, ctx: LeafContext) -> None:
        """Return if the leaf is proven, else raise `Rejection`."""


def _found() -> dict[int, LeafKind]:
    kinds: dict[int, LeafKind] = {}
    for found in iter_modules(__path__):
        kind: LeafKind = import_module(f"{__name__}.{found.name}")  # type: ignore[assignment]
        assert kind.CODE not in kinds, f"two kinds of leaf have the number {kind.CODE}"
        kinds[kind.CODE] = kind
    return kinds


KINDS = _found()
CODES = {kind.NAME: code for code, kind in KINDS.items()}
