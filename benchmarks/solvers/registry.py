"""The solvers of the paper's tables by name."""

from __future__ import annotations

from benchmarks.solvers.base import AbstractSolver
from benchmarks.solvers.certikmeans_solver import CLUSTER, GROUPED, SAMPLE
from benchmarks.solvers.exact_baselines import ScipSolver, SdpSolver
from benchmarks.solvers.heuristics import Blpkm, CopKMeans, Coreset, EncodePost

_HEURISTICS = (CopKMeans(), EncodePost(), Blpkm(), Coreset())
HEURISTICS = tuple(one.name for one in _HEURISTICS)

SOLVERS: dict[str, AbstractSolver] = {
    one.name: one for one in (CLUSTER, GROUPED, SAMPLE, ScipSolver(), SdpSolver(), *_HEURISTICS)
}
