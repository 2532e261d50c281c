"""Certificates: proofs in a file, and a verifier that shares no code with the solver."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certikmeans.certificate.check import Verdict
    from certikmeans.certificate.check_subdivision import Limits
    from certikmeans.certificate.format import Reason
    from certikmeans.certificate.verify import check_certificate

__all__ = ["Limits", "Reason", "Verdict", "check_certificate"]

# Imported on first use: every run needs the format, few need the verifier.
_HOMES = {
    "Limits": "check_subdivision",
    "Reason": "format",
    "Verdict": "check",
    "check_certificate": "verify",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
