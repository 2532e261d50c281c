"""Published methods to compare with, one per file, behind the estimator's interface.

Loaded on first use: ``import certikmeans.baselines`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certikmeans.baselines.blpkm_cc import BLPKMCC
    from certikmeans.baselines.cop_kmeans import COPKMeans
    from certikmeans.baselines.encode_kmeans_post import EncodeKMeansPost
    from certikmeans.baselines.misocp import MISOCP
    from certikmeans.baselines.pckmeans import PCKMeans
    from certikmeans.baselines.sdp import PengWeiSDP
    from certikmeans.baselines.sensitivity_coreset import SensitivityCoreset

_HOMES = {
    "BLPKMCC": "blpkm_cc",
    "COPKMeans": "cop_kmeans",
    "EncodeKMeansPost": "encode_kmeans_post",
    "MISOCP": "misocp",
    "PCKMeans": "pckmeans",
    "PengWeiSDP": "sdp",
    "SensitivityCoreset": "sensitivity_coreset",
}

__all__ = [
    "BLPKMCC",
    "MISOCP",
    "COPKMeans",
    "EncodeKMeansPost",
    "PCKMeans",
    "PengWeiSDP",
    "SensitivityCoreset",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'certikmeans.baselines' has no attribute {name!r}")
    value = getattr(import_module(f"certikmeans.baselines.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
