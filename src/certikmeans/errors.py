"""Everything certikmeans raises on purpose. Each error says what, where and how to mend it."""

from __future__ import annotations

import sys
import warnings
from typing import Any


class CertikmeansError(Exception):
    """Base of all errors raised by certikmeans.

    Parameters
    ----------
    message : str
        What is wrong and where: file and line, or argument and row.
    hint : str, optional
        What the user can do about it. Shown on a line of its own.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors travel between processes as they are: what they hold is put back."""
        return _rebuilt, (type(self), self.args, dict(self.__dict__))

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


def _rebuilt(
    kind: type[CertikmeansError], args: tuple[Any, ...], fields: dict[str, Any]
) -> CertikmeansError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


class InputError(CertikmeansError, ValueError):
    """The input cannot be understood or breaks a rule. Nothing was repaired silently."""


class MissingExtraError(CertikmeansError, ImportError):
    """An optional dependency is needed and not installed; the hint names the extra."""


class InfeasibleError(CertikmeansError, ValueError):
    """No labelling satisfies the constraints; ``proof`` shows why.

    Parameters
    ----------
    message : str
        What is wrong and where.
    proof : InfeasibilityProof
        A small part of the constraints that cannot be satisfied.
    hint : str, optional
        What the user can do about it. Shown on a line of its own.
    """

    def __init__(self, message: str, *, proof: Any, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.proof = proof


class BoundError(CertikmeansError, RuntimeError):
    """A lower bound came out above the cost of a known labelling: a bug, never a result."""


class WorkerError(CertikmeansError):
    """A task of the executor raised, or its worker died. What was proven before stays proven."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn as if the code outside of this package had: it is the only place that the user knows.

    Called from within a compiler, the depth of which varies.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno)


def _is_inside(module: str) -> bool:
    return module.split(".")[0] in ("certikmeans", "numba", "llvmlite", "contextlib", "importlib")


class CompilingWarning(UserWarning):
    """Kernels are being compiled: once per installation, outside of every time limit."""


class CacheWarning(UserWarning):
    """Compiled kernels cannot be kept where they belong."""
