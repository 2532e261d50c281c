"""Every solver by name."""

from __future__ import annotations

from benchmarks.solvers.base import AbstractSolver
from benchmarks.solvers.heuristics import Blpkm, CopKMeans, Coreset, EncodePost
from benchmarks.solvers.scip import ScipSolver
from benchmarks.solvers.sdc_gbb import ClusterSolver, GroupedSolver, SampleSolver
from benchmarks.solvers.sdp import SdpSolver

HEURISTICS = (CopKMeans.name, EncodePost.name, Blpkm.name, Coreset.name)

SOLVERS: dict[str, type[AbstractSolver]] = {
    one.name: one
    for one in (
        ClusterSolver,
        GroupedSolver,
        SampleSolver,
        ScipSolver,
        SdpSolver,
        CopKMeans,
        EncodePost,
        Blpkm,
        Coreset,
    )
}
