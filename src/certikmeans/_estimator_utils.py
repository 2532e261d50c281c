"""Arguments of `fit`, warnings and label order shared by the scikit-learn estimators."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state

from certikmeans._alignment import SampleIndex
from certikmeans._jit.background_compiler import available_cores
from certikmeans._numbers import cost_text, percent, rounded_down, whole_number
from certikmeans._types import Floats, Ints
from certikmeans.constraint_model.sizes import (
    SizeLimits,
    balanced_limits,
    validate_demand,
    validate_limit,
)
from certikmeans.errors import CertikmeansError, InfeasibleError, InputError
from certikmeans.options import Options
from certikmeans.problem import Problem
from certikmeans.problem.constraints import Constraints, list_of_columns
from certikmeans.status import Status

if TYPE_CHECKING:
    from certikmeans.presolve.infeasibility_search import InfeasibilityProof
    from certikmeans.report.trace import Trace
    from certikmeans.result import Result


def seed_from(random_state: Any) -> int:
    """Return an int unchanged; otherwise draw a seed, as scikit-learn does for its own kernels.

    >>> seed_from(7)
    7
    """
    generator = check_random_state(random_state)
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(generator.randint(np.iinfo(np.int32).max))


def check_enough_samples(n_clusters: Any, available: int, what: str = "n_samples") -> None:
    """Reject more clusters than there are samples."""
    # Anything that is not a whole number is rejected by `Problem`, with a more specific message.
    if isinstance(n_clusters, numbers.Integral) and int(n_clusters) > available:
        raise InputError(
            f"n_clusters={n_clusters} is more than {what}={available}",
            hint=f"choose n_clusters from 1 to {available}",
        )


def finite_weights(sample_weight: Any, n_samples: int) -> Floats | None:
    """Return finite float64 weights, a number repeated for every sample; None if none were given.

    The caller checks shape and range, which differ between estimators.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n_samples, float(sample_weight))
    weights: Floats = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    return weights


def raise_infeasible(proof: InfeasibilityProof) -> NoReturn:
    """Raise `InfeasibleError` with the contradictory pairs."""
    text, _, remedy = proof.describe().partition("\n  what to do: ")
    raise InfeasibleError(
        f"no labelling respects every constraint: {text}",
        proof=proof,
        hint=remedy
        or "remove one of these constraints, raise n_clusters if cannot-links are the cause, or "
        "let pairs be violated at a price: constraints.softened(penalty), or soft_must_link and "
        "soft_cannot_link",
    )


# Arguments and results of `fit`: pairs in several forms, weights, order of clusters, warnings.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Data of a fitted model beside its result, for plots, reports and certificates."""

    problem: Problem
    options: Options
    trace: Trace
    feature_names: tuple[str, ...] | None


@final
@dataclass(frozen=True, slots=True, eq=False)
class GivenConstraints:
    """Constraints in all forms that `fit` takes, in the order of the rows of X."""

    must_link: Any = None
    cannot_link: Any = None
    partial_labels: Any = None
    groups: Any = None
    constraints: Any = None
    cannot_link_groups: Any = None
    soft_must_link: Any = None
    soft_cannot_link: Any = None

    def aligned(self, index: SampleIndex) -> GivenConstraints:
        """Find pairs by label, and put values of samples in the order of the rows of X."""
        return GivenConstraints(
            must_link=index.pairs("must_link", self.must_link),
            cannot_link=index.pairs("cannot_link", self.cannot_link),
            partial_labels=index.align("partial_labels", self.partial_labels, missing=-1),
            groups=index.align("groups", self.groups, missing=-1),
            constraints=self.constraints,
            cannot_link_groups=index.align(
                "cannot_link_groups", self.cannot_link_groups, missing=-1
            ),
            soft_must_link=index.priced_pairs("soft_must_link", self.soft_must_link),
            soft_cannot_link=index.priced_pairs("soft_cannot_link", self.soft_cannot_link),
        )

    def combined(self, n_samples: int) -> dict[str, Any]:
        """Return all constraints as arguments of `Problem.from_data`.

        >>> given = GivenConstraints(must_link=[(0, 1)], partial_labels=[5, -1, 6])
        >>> found = given.combined(3)
        >>> found["must_link"].tolist(), found["cannot_link"].tolist()
        ([[0, 1]], [[0, 2]])
        """
        converted = [
            _per_sample(
                "partial_labels", self.partial_labels, n_samples, Constraints.from_partial_labels
            ),
            _per_sample("groups", self.groups, n_samples, Constraints.from_group_labels),
            _checked_constraints(self.constraints, n_samples),
        ]
        others = [one for one in converted if one is not None]
        columns = list_of_columns(self.cannot_link_groups)
        if not others:
            return {
                "must_link": self.must_link,
                "cannot_link": self.cannot_link,
                "cannot_link_groups": columns or None,
                "soft_must_link": self.soft_must_link,
                "soft_cannot_link": self.soft_cannot_link,
            }
        # Checked one by one, so that an error names the argument, or the file and the line.
        every = Constraints.from_pairs(
            self.must_link,
            self.cannot_link,
            n_samples,
            soft_must_link=self.soft_must_link,
            soft_cannot_link=self.soft_cannot_link,
        )
        for one in others:
            every |= one
        columns += list(every.cannot_link_groups)
        return {
            "must_link": every.must_link,
            "cannot_link": every.cannot_link,
            "cannot_link_groups": columns or None,
            "soft_must_link": every.soft_must_link,
            "soft_cannot_link": every.soft_cannot_link,
        }


def size_arguments(
    n_samples: int, n_clusters: Any, size_min: Any, size_max: Any, balanced: Any, demand: Any
) -> dict[str, Any]:
    """Limits on cluster sizes as arguments of `Problem.from_data`.

    >>> size_arguments(10, 3, None, None, True, None)
    {'size_min': 3, 'size_max': 4, 'demand': None}
    """
    if not balanced:
        return {"size_min": size_min, "size_max": size_max, "demand": demand}
    if size_min is not None or size_max is not None:
        raise InputError(
            "balanced: it sets size_min and size_max, which are given as well",
            hint="leave out balanced, or the two limits",
        )
    if demand is not None:
        raise InputError(
            "balanced: it counts samples, and demand counts something else",
            hint="give limits on the sums of demands: size_min and size_max",
        )
    if not isinstance(n_clusters, numbers.Integral) or n_clusters < 1:
        return {}  # rejected by `Problem`, with a more specific message
    smallest, largest = balanced_limits(n_samples, int(n_clusters))
    return {"size_min": smallest, "size_max": largest, "demand": None}


def labels_within_sizes(squared: Floats, size_min: Any, size_max: Any, demand: Any = None) -> Ints:
    """Cheapest labels for a table of costs such that the demands of clusters are within limits.

    Exact for a demand of 1 each: a transportation problem. With other demands it may be hard to
    decide whether there are such labels at all.

    >>> labels_within_sizes(np.array([[0.0, 9.0], [1.0, 4.0]]), 1, None)
    array([0, 1])
    """
    n_rows, k = squared.shape
    demands = validate_demand(demand, n_rows)
    each = np.ones(n_rows) if demands is None else demands
    total = math.fsum(each)
    lower = validate_limit(size_min, "size_min", k, total, counted=demands is None)
    upper = validate_limit(size_max, "size_max", k, total, counted=demands is None)
    low = np.zeros(k) if lower is None else lower
    limits = SizeLimits(each, low, np.full(k, total) if upper is None else np.minimum(upper, total))
    high, slack = limits.upper, limits.tolerance
    hint = (
        "limits are about the samples given to predict, not those of fit; leave size_min "
        "and size_max out for the nearest centres"
    )
    if (low > high).any() or low.sum() > total + k * slack or high.sum() < total - k * slack:
        raise InputError(
            f"predict: {n_rows} samples do not fit into {k} clusters of these sizes", hint=hint
        )
    if n_rows == 0:
        return np.empty(0, dtype=np.int64)
    nearest: Ints = squared.argmin(axis=1)
    sizes = limits.totals(nearest)
    if ((sizes >= low) & (sizes <= high)).all():
        return nearest
    from certikmeans.assignment.transportation import assign_sizes  # compiled code

    try:
        return assign_sizes(squared, limits).labels
    except ValueError as error:
        raise InputError(
            f"predict: found no way to fit {n_rows} samples into {k} clusters of these sizes",
            hint=hint,
        ) from error


def _per_sample(
    name: str, labels: Any, n_samples: int, read: Callable[[Any], Constraints]
) -> Constraints | None:
    if labels is None:
        return None
    hint = "give one label per sample; -1, None, NaN or empty text where there is none"
    try:
        found = read(labels)
    except TypeError as error:
        raise InputError(f"{name}: {error}", hint=hint) from error
    except InputError as error:
        raise InputError(f"{name}: {error.message}", hint=hint) from error
    if found.n_points != n_samples:
        raise InputError(
            f"{name}: {found.n_points} labels, but there are {n_samples} samples", hint=hint
        )
    return found


def _checked_constraints(constraints: Any, n_samples: int) -> Constraints | None:
    if constraints is not None and not isinstance(constraints, Constraints):
        raise InputError(
            f"constraints: expected a Constraints object, got {type(constraints).__name__}",
            hint="pass pairs as must_link and cannot_link, labels as partial_labels",
        )
    if constraints is not None:
        constraints.check(n_samples)
    return constraints


def warn_about_labels(y: Any) -> None:
    """Warn where ``y`` looks like labels of which some are unknown: it is ignored.

    Whole numbers with -1 among them, that is; but -1 and 1 alone are two ordinary classes.
    """
    try:
        values = np.unique(np.asarray(y))
    except (TypeError, ValueError):
        return
    if (
        values.dtype.kind == "i"
        and len(values) > 1
        and values[0] == -1
        and values.tolist() != [-1, 1]
    ):
        warnings.warn(
            "y is ignored, though its -1 look like unknown labels. "
            "Pass partial_labels=y if the others are to be respected.",
            UserWarning,
            stacklevel=3,
        )


def warn_about_gap(result: Result, target: float) -> None:
    """Warn where the gap was missed, with the reason and what would help."""
    if result.status is not Status.FEASIBLE:
        return
    text = (
        f"The gap is {percent(result.gap)}, not {100 * target:g} % as required: cost "
        f"{cost_text(result.cost)}, lower bound {rounded_down(result.lower_bound)}; "
        f"{result.stop_reason.sentence}."
    )
    for more in (result.failure, result.advice):
        text += "" if more is None else f" {more[:1].upper()}{more[1:]}."
    warnings.warn(text, ConvergenceWarning, stacklevel=3)


def warn_about_empty_clusters(result: Result) -> None:
    """Warn where fewer clusters are used than requested."""
    if result.labels is None:
        return
    used = len(np.unique(result.labels))
    if used < result.n_clusters:
        warnings.warn(
            f"{used} of n_clusters={result.n_clusters} clusters are used: the samples have too "
            "few distinct values, or the constraints join them.",
            ConvergenceWarning,
            stacklevel=3,
        )


def require_labels(result: Result) -> tuple[Ints, Floats]:
    """Labels and centres of a run, or the error that says why there are none."""
    if result.infeasibility is not None:
        raise_infeasible(result.infeasibility)
    if result.labels is None or result.centers is None:
        raise CertikmeansError(
            f"{Status(result.status).sentence} The run ended because {result.stop_reason.sentence}",
            hint="raise or remove time_limit, or give fewer cannot-links",
        )
    return result.labels, result.centers


def in_center_order(labels: Ints, centers: Floats) -> tuple[Ints, Floats]:
    """Number clusters by the coordinates of their centres, the empty ones last.

    >>> in_center_order(np.array([0, 2, 2]), np.array([[5.0], [4.0], [3.0]]))
    (array([1, 0, 0]), array([[3.],
           [5.],
           [4.]]))
    """
    empty = np.bincount(labels, minlength=len(centers)) == 0
    order = np.lexsort(np.vstack([centers.T[::-1], empty]))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[labels], centers[order]


def checked_weights(sample_weight: Any, n_samples: int) -> Floats | None:
    """Finite, non-negative weights, one per sample, not all zero; None if none were given."""
    weights = finite_weights(sample_weight, n_samples)
    if weights is None:
        return None
    if weights.shape != (n_samples,):
        raise InputError(
            f"sample_weight: expected shape ({n_samples},), got {weights.shape}",
            hint="give one non-negative number per sample",
        )
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise InputError(
            f"sample_weight: row {row} is {weights[row]}",
            hint="weights must not be negative; 0 leaves a sample out",
        )
    if not weights.any():
        raise InputError(
            "sample_weight: all weights are zero", hint="give at least one sample a positive weight"
        )
    return weights


def resolve_n_jobs(n_jobs: Any) -> int | None:
    """Turn scikit-learn's convention into that of `solve`: None for all cores, or a number."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, numbers.Integral) and int(n_jobs) < 0:
        return max(1, available_cores() + 1 + int(n_jobs))
    try:
        return whole_number("n_jobs", n_jobs, least=1)
    except InputError as error:
        hint = "give a number of threads, or None or -1 for one per core"
        raise InputError(error.message, hint=hint) from None
