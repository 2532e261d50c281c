"""Status of a result (what was proven) and stop reason (why the run ended)."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """What was proven about the labelling returned."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"

    @property
    def sentence(self) -> str:
        """Description for messages."""
        return _STATUS_SENTENCES[self]


class StopReason(StrEnum):
    """Why the run ended."""

    GAP_REACHED = "gap_reached"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"
    NODE_LIMIT = "node_limit"
    WORKER_FAILED = "worker_failed"
    ROUNDING = "rounding"
    METHODS_EXHAUSTED = "methods_exhausted"
    PROVEN_INFEASIBLE = "proven_infeasible"

    @property
    def sentence(self) -> str:
        """Description for messages."""
        return _REASON_SENTENCES[self]


_STATUS_SENTENCES = {
    Status.OPTIMAL: "The labelling is proven to be within the requested gap of the optimum.",
    Status.FEASIBLE: "The labelling respects every constraint; a better one may exist above the "
    "bound.",
    Status.INFEASIBLE: "No labelling respects every constraint; the proof is attached.",
    Status.UNKNOWN: "No labelling was found, and none was proven impossible.",
}

_REASON_SENTENCES = {
    StopReason.GAP_REACHED: "the requested gap was reached",
    StopReason.TIME_LIMIT: "the time limit was reached",
    StopReason.INTERRUPTED: "the run was interrupted",
    StopReason.NODE_LIMIT: "the limit on the search tree was reached",
    StopReason.WORKER_FAILED: "a worker failed; what was proven before stays proven",
    StopReason.ROUNDING: "rounding errors are as large as the cost: weights or coordinates differ "
    "by too many orders of magnitude",
    StopReason.METHODS_EXHAUSTED: "no bound could be raised further",
    StopReason.PROVEN_INFEASIBLE: "the constraints contradict each other",
}
