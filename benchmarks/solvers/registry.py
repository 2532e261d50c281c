"""The solvers of the paper's tables by name."""

from __future__ import annotations

from benchmarks.solvers.base import AbstractSolver
from benchmarks.solvers.heuristics import Blpkm, CopKMeans, Coreset, EncodePost
from benchmarks.solvers.ours import CLUSTER, GROUPED, SAMPLE
from benchmarks.solvers.scip import ScipSolver
from benchmarks.solvers.sdp import SdpSolver

_HEURISTICS = (CopKMeans(), EncodePost(), Blpkm(), Coreset())
HEURISTICS = tuple(one.name for one in _HEURISTICS)

SOLVERS: dict[str, AbstractSolver] = {
    one.name: one for one in (CLUSTER, GROUPED, SAMPLE, ScipSolver(), SdpSolver(), *_HEURISTICS)
}
