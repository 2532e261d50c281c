"""Result of a run: labels, cost, lower bound, status and stop reason."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._html import html_table
from certikmeans._numbers import (
    cost_text,
    count,
    duration,
    percent,
    rounded_down,
    whole_number,
)
from certikmeans._version import __version__
from certikmeans.constraint_model.soft_pairs import ViolatedPair
from certikmeans.errors import InputError
from certikmeans.proof import Proof
from certikmeans.status import Status, StopReason
from certikmeans.stop import StopSignal
from certikmeans.tolerances import relative_gap

if TYPE_CHECKING:
    from certikmeans.certainty import Certainty, SolveArtifacts
    from certikmeans.certainty.pair_queries import PairQuery
    from certikmeans.presolve.infeasibility_search import InfeasibilityProof


@final
@dataclass(frozen=True, slots=True)
class Attempt:
    """A bound that was computed at the root: its value, and when."""

    bound: str
    lower_bound: float  # what it proved itself
    began: float  # seconds since the start of the run
    ended: float
    outcome: str  # why it ended, in a clause


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Result:
    """The best labelling found and what is proven about it.

    ``cost`` is rounded up and ``lower_bound`` down, so that in real arithmetic

        lower_bound <= cost of every feasible labelling,   cost of ``labels`` <= ``cost``.

    Printed, it is one line; notebooks show a small table. Both round bounds down and gaps up, and
    costs up where more than rounding errors of their evaluation (2e-14 of them) is cut off.

    Attributes
    ----------
    status : Status
        What was proven.
    stop_reason : StopReason
        Why the run ended.
    cost : float
        Cost of ``labels``, rounded up; infinite without a labelling.
    lower_bound : float
        No labelling that satisfies every pair costs less; infinite if proven infeasible.
    sum_of_squares, penalty : float
        The two parts of ``cost``: squared distances to the centres, and the penalties of the
        violated soft pairs. Each is rounded up.
    violated_soft_pairs : tuple of ViolatedPair
        The soft pairs that ``labels`` violate: ``kind`` ("must_link" or "cannot_link"), the rows
        ``first`` and ``second``, and ``penalty``.
    labels : ndarray of shape (n_points,) or None
        Cluster of every point, numbered by first appearance.
    centers : ndarray of shape (n_clusters, n_features) or None
        Means of the clusters.
    n_clusters, n_points, n_features, n_must_link, n_cannot_link : int
        Sizes of the problem as stated.
    n_soft_must_link, n_soft_cannot_link : int
        Numbers of soft pairs as stated.
    nodes : int
        Nodes of the tree that were bounded.
    iterations : int
        Assignment steps of the run that found the labelling.
    seconds : dict
        ``"total"``, and one per stage.
    seed : int
        Every random choice followed from it.
    bound : str
        The method that proved ``lower_bound``.
    infeasibility : InfeasibilityProof or None
        Why there is no labelling, where that is so.
    failure : str or None
        What went wrong where a worker failed.
    proof : Proof or None
        What a certificate needs, if ``keep_proof`` was set.
    attempts : tuple of Attempt
        The bounds that were computed at the root, in order.
    version : str
        Of certikmeans.
    basis : SolveArtifacts or None
        The problem and multipliers, for `certainty` and `questions`.
    """

    status: Status
    stop_reason: StopReason
    cost: float  # infinite without a labelling
    lower_bound: float  # infinite if proven infeasible
    labels: NDArray[np.int64] | None  # (n_points,), numbered by first appearance
    centers: NDArray[np.float64] | None  # (n_clusters, n_features)
    n_clusters: int
    n_points: int
    n_features: int
    n_must_link: int
    n_cannot_link: int
    nodes: int
    iterations: int  # assignment steps of the run that found the labelling
    seconds: dict[str, float]  # "total" and one per stage
    seed: int
    bound: str  # the method that proved ``lower_bound``
    infeasibility: InfeasibilityProof | None = None
    failure: str | None = None  # what went wrong where a worker failed
    proof: Proof | None = None  # what a certificate needs, if kept
    attempts: tuple[Attempt, ...] = ()  # bounds computed at the root, in order
    version: str = field(default=__version__)
    basis: SolveArtifacts | None = None  # input of `certainty`; never written to files
    sum_of_squares: float = math.nan  # by default the cost
    penalty: float = 0.0
    violated_soft_pairs: tuple[ViolatedPair, ...] = ()
    n_soft_must_link: int = 0
    n_soft_cannot_link: int = 0

    def __post_init__(self) -> None:
        if math.isnan(self.sum_of_squares):
            object.__setattr__(self, "sum_of_squares", self.cost)

    @property
    def gap(self) -> float:
        """``(cost - lower_bound) / cost``; infinite without a labelling."""
        return relative_gap(self.cost, self.lower_bound)

    @property
    def advice(self) -> str | None:
        """What would help where the gap was missed; None where there is nothing to add."""
        if self.status is not Status.FEASIBLE:
            return None
        best = max(self.attempts, key=lambda attempt: attempt.lower_bound, default=None)
        match self.stop_reason:
            case StopReason.TIME_LIMIT:
                if best is None:
                    return "the time limit was reached before a bound was computed: increase it"
                return (
                    f"more time may help: the best bound at the root is the {best.bound} bound, "
                    f"and {best.outcome}"
                )
            case StopReason.NODE_LIMIT:
                return (
                    "the tree was still growing: set a time limit, and it is searched until then; "
                    "where a node limit was given, raise it"
                )
            case StopReason.ROUNDING:
                return (
                    "rounding errors exceed every bound: bring weights and coordinates to "
                    "a similar size, and subtract what they have in common"
                )
            case StopReason.METHODS_EXHAUSTED:
                return (
                    "no bound can be raised further in reasonable time: accept the gap, or make "
                    "the problem easier (more pairs, fewer clusters)"
                )
            case _:
                return None

    def certainty(
        self,
        slack: float = 1e-3,
        *,
        time_limit: float | None = None,
        stop: StopSignal | None = None,
    ) -> Certainty:
        """Prove properties of *every* labelling that costs at most ``(1 + slack)`` times ours.

        Proven, as the bound is, with rounding accounted for: which points are grouped as here,
        where the others can be, where the centres are. Where nothing follows, ``reason`` says why.

        Parameters
        ----------
        slack : float
            0.001: labellings within 0.1 %. With 0, all that are no worse.
        time_limit : float, optional
            Seconds. By default as many as the proof took, or eight where that is more.
        stop : StopSignal, optional
            Stops the computation early, with what is proven by then.

        Examples
        --------
        >>> from certikmeans import Problem, solve
        >>> points = [[0.0], [1.0], [2.0], [5.6], [9.0], [10.0], [11.0]]
        >>> certainty = solve(Problem.from_data(points, 2)).certainty(slack=0.05)
        >>> certainty.certain
        array([ True,  True,  True, False,  True,  True,  True])
        >>> certainty.most_elsewhere
        1
        """
        from certikmeans.certainty.compute import compute_certainty
        from certikmeans.certainty.report import validate_slack, validate_time_limit

        share, seconds = validate_slack(slack), validate_time_limit(time_limit)
        basis, labels = self._known()
        return compute_certainty(basis, labels, self.cost, share, stop, seconds)

    def questions(
        self,
        most: int = 10,
        *,
        slack: float = 1e-3,
        time_limit: float | None = None,
        stop: StopSignal | None = None,
    ) -> tuple[PairQuery, ...]:
        """Return the pairs that an expert should label next, the most informative first.

        A point whose cluster differs in some labelling within ``slack`` of the cost is paired with
        a representative of a cluster. `ActiveSession` takes the answers.
        """
        from certikmeans.certainty.pair_queries import select_queries

        wanted = whole_number("questions", most, least=0)
        certainty = self.certainty(slack, time_limit=time_limit, stop=stop)
        basis, labels = self._known()
        assert self.centers is not None
        return select_queries(basis.problem, labels, self.centers, certainty, wanted)

    def _known(self) -> tuple[SolveArtifacts, NDArray[np.int64]]:
        """Return problem and labels for `certainty`; raise if there are none."""
        if self.labels is None:
            raise InputError(
                "certainty is about a labelling, and there is none",
                hint="see status and stop_reason",
            )
        if self.basis is None:
            raise InputError(
                "this result does not know its problem: it was read from a file",
                hint="solve again, with start_labels=result.labels if that takes long",
            )
        return self.basis, self.labels

    def summary(self) -> str:
        """Return a summary as plain text, as ``certikmeans solve`` prints it.

        >>> from certikmeans import Problem, solve
        >>> print(solve(Problem.from_data([[0.0], [1.0]], 2)).summary().splitlines()[3])
        Cost          0 (squared distances to the centres)
        """
        from certikmeans.report.summary import summarize

        return summarize(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; numbers keep full precision, infinities become None."""
        return {
            "status": str(self.status),
            "stop_reason": str(self.stop_reason),
            "cost": _finite(self.cost),
            "sum_of_squares": _finite(self.sum_of_squares),
            "penalty": _finite(self.penalty),
            "violated_soft_pairs": [one._asdict() for one in self.violated_soft_pairs],
            "lower_bound": _finite(self.lower_bound),
            "gap": _finite(self.gap),
            "bound": self.bound,
            "advice": self.advice,
            "bounds": [dataclasses.asdict(attempt) for attempt in self.attempts],
            "labels": None if self.labels is None else self.labels.tolist(),
            "centers": None if self.centers is None else self.centers.tolist(),
            "n_clusters": self.n_clusters,
            "n_points": self.n_points,
            "n_features": self.n_features,
            "n_must_link": self.n_must_link,
            "n_cannot_link": self.n_cannot_link,
            "n_soft_must_link": self.n_soft_must_link,
            "n_soft_cannot_link": self.n_soft_cannot_link,
            "nodes": self.nodes,
            "iterations": self.iterations,
            "seconds": self.seconds,
            "seed": self.seed,
            "version": self.version,
            "failure": self.failure,
            "infeasibility": None if self.infeasibility is None else self.infeasibility.to_json(),
        }

    def to_json(self) -> str:
        """Serialise `to_dict`."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Result:
        """Return the result that `to_json`, or ``certikmeans solve --json``, wrote.

        Numbers come back exactly. What the text does not hold is None: ``proof`` always, and
        ``infeasibility``, of which it has the pairs but not the object (``status`` still says
        that it was proven). A certificate is the file for proofs.

        Raises
        ------
        InputError
            If the text is not the JSON of a result.
        """
        try:
            return _from_dict(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise InputError(
                f"not the JSON of a result: {what if len(what) <= 200 else what[:200] + '...'}",
                hint="pass the text that Result.to_json or certikmeans solve --json wrote",
            ) from error

    def __repr__(self) -> str:
        return f"Result({', '.join(f'{name} {value}' for name, value in self._facts())})"

    def _repr_html_(self) -> str:
        return html_table(self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("status", str(self.status)), ("stopped by", str(self.stop_reason))]
        if self.labels is not None:
            facts.append(("cost", cost_text(self.cost)))
        if self.status is not Status.INFEASIBLE:
            facts.append(("lower bound", rounded_down(self.lower_bound)))
        if self.labels is not None:
            facts.append(("gap", percent(self.gap)))
        sizes = f"{count(self.n_points, 'point')} in {count(self.n_clusters, 'cluster')}"
        return [*facts, ("size", sizes), ("time", duration(self.seconds.get("total", 0.0)))]


def _from_dict(data: dict[str, Any]) -> Result:
    status, labels, centers = Status(data["status"]), data["labels"], data["centers"]
    lower, squares = data["lower_bound"], data.get("sum_of_squares")
    same = (
        *("n_clusters", "n_points", "n_features", "n_must_link", "n_cannot_link", "nodes"),
        *("iterations", "seconds", "seed", "bound", "failure", "version"),
    )
    return Result(
        status=status,
        stop_reason=StopReason(data["stop_reason"]),
        cost=math.inf if data["cost"] is None else float(data["cost"]),
        lower_bound=math.inf if lower is None else float(lower),
        labels=None if labels is None else np.array(labels, dtype=np.int64),
        centers=None if centers is None else np.array(centers, dtype=np.float64),
        attempts=tuple(Attempt(**attempt) for attempt in data["bounds"]),
        # Files of version 0.1 do not have the following.
        sum_of_squares=math.nan if squares is None else float(squares),
        penalty=float(data.get("penalty", 0.0)),
        violated_soft_pairs=tuple(
            ViolatedPair(one["kind"], int(one["first"]), int(one["second"]), float(one["penalty"]))
            for one in data.get("violated_soft_pairs", ())
        ),
        n_soft_must_link=int(data.get("n_soft_must_link", 0)),
        n_soft_cannot_link=int(data.get("n_soft_cannot_link", 0)),
        **{name: data[name] for name in same},
    )


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
