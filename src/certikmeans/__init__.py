"""k-means under must-link and cannot-link constraints, with a proven lower bound.

The names below are the public interface. They are loaded on first use, so that
``import certikmeans`` and the command line start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from certikmeans._version import __version__

if TYPE_CHECKING:
    from certikmeans.errors import BoundError, CertikmeansError, InfeasibleError, InputError
    from certikmeans.estimator import ConstrainedKMeans
    from certikmeans.problem.constraints import Constraints
    from certikmeans.problem.data import Problem
    from certikmeans.result import Result
    from certikmeans.solver import solve
    from certikmeans.status import Status, StopReason
    from certikmeans.stop import StopSignal
    from certikmeans.warming import warm_up

_HOMES = {
    "BoundError": "errors",
    "CertikmeansError": "errors",
    "ConstrainedKMeans": "estimator",
    "Constraints": "problem.constraints",
    "InfeasibleError": "errors",
    "InputError": "errors",
    "Problem": "problem.data",
    "Result": "result",
    "Status": "status",
    "StopReason": "status",
    "StopSignal": "stop",
    "solve": "solver",
    "warm_up": "warming",
}

__all__ = [
    "BoundError",
    "CertikmeansError",
    "ConstrainedKMeans",
    "Constraints",
    "InfeasibleError",
    "InputError",
    "Problem",
    "Result",
    "Status",
    "StopReason",
    "StopSignal",
    "__version__",
    "solve",
    "warm_up",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'certikmeans' has no attribute {name!r}")
    value = getattr(import_module(f"certikmeans.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
