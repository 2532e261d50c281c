"""k-means under constraints, with a proven lower bound.

The names below are the public interface. They are loaded on first use, so that
``import certikmeans`` and the command line start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from certikmeans._version import __version__

if TYPE_CHECKING:
    from certikmeans.active import ActiveSession
    from certikmeans.api import solve
    from certikmeans.certainty import Certainty
    from certikmeans.certificate.verify import check_certificate
    from certikmeans.certificate.write import write_certificate
    from certikmeans.elbow_curve import Elbow, elbow
    from certikmeans.errors import (
        BoundError,
        CertikmeansError,
        InfeasibleError,
        InputError,
        MissingExtraError,
    )
    from certikmeans.estimator import ConstrainedKMeans
    from certikmeans.options import Options
    from certikmeans.problem.constraints import Constraints
    from certikmeans.problem.data import Problem
    from certikmeans.problem.io import (
        read_cannot_link_groups,
        read_links,
        read_partial_labels,
        read_points,
        read_weights,
    )
    from certikmeans.problem.links import Links
    from certikmeans.result import Result
    from certikmeans.status import Status, StopReason
    from certikmeans.stop import StopSignal
    from certikmeans.warmup import warm_up

_HOMES = {
    "BoundError": "errors",
    "Certainty": "certainty",
    "CertikmeansError": "errors",
    "ConstrainedKMeans": "estimator",
    "Constraints": "problem.constraints",
    "ActiveSession": "active",
    "Elbow": "elbow_curve",
    "InfeasibleError": "errors",
    "InputError": "errors",
    "Links": "problem.links",
    "MissingExtraError": "errors",
    "Options": "options",
    "Problem": "problem.data",
    "Result": "result",
    "Status": "status",
    "StopReason": "status",
    "StopSignal": "stop",
    "check_certificate": "certificate.verify",
    "elbow": "elbow_curve",
    "read_cannot_link_groups": "problem.io",
    "read_links": "problem.io",
    "read_partial_labels": "problem.io",
    "read_points": "problem.io",
    "read_weights": "problem.io",
    "solve": "api",
    "warm_up": "warmup",
    "write_certificate": "certificate.write",
}

__all__ = [
    "ActiveSession",
    "BoundError",
    "Certainty",
    "CertikmeansError",
    "ConstrainedKMeans",
    "Constraints",
    "Elbow",
    "InfeasibleError",
    "InputError",
    "Links",
    "MissingExtraError",
    "Options",
    "Problem",
    "Result",
    "Status",
    "StopReason",
    "StopSignal",
    "__version__",
    "check_certificate",
    "elbow",
    "read_cannot_link_groups",
    "read_links",
    "read_partial_labels",
    "read_points",
    "read_weights",
    "solve",
    "warm_up",
    "write_certificate",
]


def __getattr__(name: str) -> Any:
    if name == "Conversation":  # the name in 0.2
        from certikmeans.errors import renamed_name

        return renamed_name(__name__, name, {name: ("certikmeans", "ActiveSession")})
    if name not in _HOMES:
        raise AttributeError(f"module 'certikmeans' has no attribute {name!r}")
    value = getattr(import_module(f"certikmeans.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
