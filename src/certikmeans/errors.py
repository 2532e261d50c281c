"""Exceptions and warnings of certikmeans. Each names what is wrong, where, and how to fix it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, final


@final
@dataclass(frozen=True, slots=True)
class Argument:
    """An argument that a message mentions, by its name in Python.

    Parameters
    ----------
    name : str
        The parameter of the Python interface.
    value : str, optional
        A value to pass, as a Python expression.

    Examples
    --------
    >>> str(Argument("header", "'none'")), str(Argument("time_limit"))
    ("header='none'", 'time_limit')
    """

    name: str
    value: str | None = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value}"


@final
class Message(str):
    """Text that mentions arguments: Python spells them as parameters, the command line as options.

    Examples
    --------
    >>> text = Message("if it is a point, pass ", Argument("header", "'none'"))
    >>> text
    "if it is a point, pass header='none'"
    >>> text.spelled(lambda argument: f"--{argument.name}")
    'if it is a point, pass --header'
    """

    __slots__ = ("parts",)
    parts: tuple[str | Argument, ...]

    def __new__(cls, *parts: str | Argument) -> Message:
        text = super().__new__(cls, "".join(map(str, parts)))
        text.parts = parts
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        return Message, self.parts

    def spelled(self, spell: Callable[[Argument], str]) -> str:
        """Return the text with every argument replaced by what ``spell`` returns for it."""
        return "".join(spell(part) if isinstance(part, Argument) else part for part in self.parts)


class CertikmeansError(Exception):
    """Base of all errors raised by certikmeans.

    Parameters
    ----------
    message : str
        What is wrong and where: file and line, or argument and row. A `Message` if it mentions
        arguments.
    hint : str, optional
        What the user can do about it. Shown on a line of its own.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep all attributes when an error is sent to another process."""
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
    """Invalid input."""


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
    """Warn with the file and line of the caller outside this package.

    Called from within a compiler, the depth of which varies.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno)


def warn_renamed(old: str, new: str) -> None:
    """Warn that the name ``old`` of version 0.2 is deprecated."""
    warn_caller(f"{old} is deprecated and will be removed in 0.4: use {new}", DeprecationWarning)


def renamed_name(module: str, name: str, renamed: Mapping[str, tuple[str, str]]) -> Any:
    """Return what a deprecated name of a module stands for, with a warning.

    Parameters
    ----------
    module, name : str
        The module, and the name that was asked for.
    renamed : mapping
        Module and name of today, by the old name.
    """
    if name not in renamed:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    home, new = renamed[name]
    warn_renamed(f"{module}.{name}", f"{home}.{new}")
    return getattr(import_module(home), new)


def _is_inside(module: str) -> bool:
    return module.split(".")[0] in ("certikmeans", "numba", "llvmlite", "contextlib", "importlib")


class CompilingWarning(UserWarning):
    """Kernels are being compiled: once per installation, outside of every time limit."""


class CacheWarning(UserWarning):
    """Compiled kernels cannot be kept where they belong."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; the run continues."""


class CertificateWarning(UserWarning):
    """A certificate claims less than was proven, or the verifier rejects it."""
