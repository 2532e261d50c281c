"""`ConstrainedKMeans`: the solver behind scikit-learn's estimator interface."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from certikmeans.errors import CertikmeansError, InputError
from certikmeans.options import DEFAULT_NODE_LIMIT, available_cores, whole_number
from certikmeans.problem import Problem
from certikmeans.problem.distances import squared_distances
from certikmeans.status import Status
from certikmeans.validation import (
    check_enough_samples,
    finite_weights,
    raise_infeasible,
    seed_from,
)

if TYPE_CHECKING:  # These bring in numba, which `import certikmeans` must not pay for.
    from certikmeans.events import Listener
    from certikmeans.result import Result


@final
class ConstrainedKMeans(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """K-means under must-link and cannot-link pairs, with a proven lower bound.

    Minimises the weighted sum of squared distances to the cluster means over all labellings
    that respect every pair, and proves a lower bound on the cost of any such labelling.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, from 1 to the number of samples. Some may stay empty.
    gap : float, default=1e-3
        Stop when ``(inertia_ - lower_bound_) / inertia_`` is at most this.
    time_limit : float, optional
        Wall time for `fit`, in seconds. None: no limit.
    bound : {"auto", "cluster", "grouped", "partition", "sample", "sdp", "spectral"}, default="auto"
        Which lower bound to compute.
    branching : {"auto", "centers", "pairs"}, default="auto"
        How to split when the bound does not close the gap at once.
    node_limit : int, optional
        Nodes of the tree to bound at most. None: with a time limit, as many as it allows; without
        one only the root, so that `fit` always ends by itself.
    n_jobs : int, optional
        Number of threads. None and -1: one per available core; -2: all but one, and so on.
        The answer does not depend on it. Choose 1 where an outer tool already runs fits in
        parallel.
    random_state : int, RandomState instance, optional
        An int is the seed of the solver itself, so that `solve` and the command line repeat
        the run. A RandomState, or None for NumPy's global one, draws a fresh seed in every
        call of `fit`; ``result_.seed`` tells which.
    callbacks : iterable of callables, optional
        Each is called with every event of the run (see ``certikmeans.events``). `clone`
        copies them, as it copies every parameter.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample. Respects every pair, so it may differ from ``predict(X)``.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Weighted means of the clusters, in the order of their coordinates; empty clusters last.
        The numbering therefore does not depend on the order of the samples.
    inertia_ : float
        Cost of ``labels_``, rounded up.
    lower_bound_ : float
        No labelling that respects the pairs costs less. Rounded down.
    gap_ : float
        ``(inertia_ - lower_bound_) / inertia_``.
    status_ : Status
        ``"optimal"``: ``gap_`` is within the requested gap; ``"feasible"``: it is not.
    n_iter_ : int
        Assignment steps of the run that found the labelling.
    result_ : Result
        Everything the solver reported, with clusters numbered as in ``labels_``.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had any.

    Notes
    -----
    Pairs name rows of the X passed along with them. Tools that split the samples, such as
    `cross_validate`, do not renumber pairs; `Constraints.subset` does.

    Examples
    --------
    >>> from certikmeans import ConstrainedKMeans
    >>> model = ConstrainedKMeans(n_clusters=2, random_state=0)
    >>> model.fit([[0.0], [1.0], [9.0], [10.0]], must_link=[(1, 2)]).labels_
    array([0, 1, 1, 1])
    >>> model.predict([[1.0]])
    array([0])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        gap: float = 1e-3,
        time_limit: float | None = None,
        bound: str = "auto",
        branching: str = "auto",
        node_limit: int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        callbacks: Iterable[Listener] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.gap = gap
        self.time_limit = time_limit
        self.bound = bound
        self.branching = branching
        self.node_limit = node_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callbacks = callbacks

    def fit(
        self,
        X: ArrayLike,
        y: Any = None,
        *,
        must_link: Any = None,
        cannot_link: Any = None,
        sample_weight: ArrayLike | float | None = None,
    ) -> ConstrainedKMeans:
        """Find the best labelling that respects the pairs, and bound the optimum from below.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples, dense and finite. Computed in float64.
        y : None
            Ignored.
        must_link, cannot_link : array-like of shape (n_pairs, 2) or Links, optional
            Pairs of row numbers of X, counted from 0. Order and repetition do not matter.
        sample_weight : array-like of shape (n_samples,) or float, optional
            Non-negative. A sample of weight 0 counts for nothing and takes the label of its
            must-link group or, without one, of the nearest centre; it may not take part in a
            cannot-link unless its must-link group has weight.

        Returns
        -------
        self : ConstrainedKMeans
            Fitted.

        Raises
        ------
        InputError
            Something about the input is wrong; a ValueError.
        InfeasibleError
            No labelling respects every pair; ``error.proof`` shows why.
        CertikmeansError
            No labelling was found within the time limit, nor proven impossible.
        """
        points = validate_data(self, X, dtype=np.float64, order="C")
        weights = _checked_weights(sample_weight, len(points))
        check_enough_samples(self.n_clusters, len(points))
        available = len(points) if weights is None else int(np.count_nonzero(weights))
        check_enough_samples(self.n_clusters, available, "samples of positive weight")
        problem = Problem.from_data(
            points, self.n_clusters, must_link=must_link, cannot_link=cannot_link, weights=weights
        )
        result = self._solve(problem)
        labels, centers = _labelling(result)
        self._publish(result, labels, centers)
        return self

    def _solve(self, problem: Problem) -> Result:
        from certikmeans.solver import solve

        return solve(
            problem,
            gap=self.gap,
            time_limit=self.time_limit,
            bound=self.bound,
            branching=self.branching,
            node_limit=self._most_nodes(),
            jobs=_thread_count(self.n_jobs),
            seed=seed_from(self.random_state),
            callbacks=() if self.callbacks is None else tuple(self.callbacks),
        )

    def _most_nodes(self) -> int:
        if self.node_limit is not None:
            return self.node_limit
        return 1 if self.time_limit is None else DEFAULT_NODE_LIMIT

    def _publish(
        self,
        result: Result,
        labels: NDArray[np.int64],
        centers: NDArray[np.float64],
    ) -> None:
        """Set the attributes of a fitted estimator."""
        labels, centers = _in_center_order(labels, centers)
        self.labels_ = labels
        self.cluster_centers_ = centers
        self.inertia_ = result.cost
        self.lower_bound_ = result.lower_bound
        self.gap_ = result.gap
        self.status_ = result.status
        self.n_iter_ = result.iterations
        self.result_ = dataclasses.replace(result, labels=labels, centers=centers)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Index of the nearest centre for each sample, one by one and without pairs."""
        nearest: NDArray[np.int64] = self._squared_distances(X).argmin(axis=1)
        return nearest

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Distances to the centres, of shape (n_samples, n_clusters)."""
        return np.sqrt(self._squared_distances(X))

    def score(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | float | None = None
    ) -> float:
        """Minus the weighted sum of squared distances to the nearest centres, without pairs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, seen before or not.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,) or float, optional
            Non-negative.

        Returns
        -------
        score : float
            At most 0; higher is better.
        """
        nearest = self._squared_distances(X).min(axis=1)
        weights = _checked_weights(sample_weight, len(nearest))
        return -float(nearest.sum() if weights is None else weights @ nearest)

    def _squared_distances(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        points = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        return squared_distances(points, self.cluster_centers_)

    @property
    def _n_features_out(self) -> int:
        """Number of columns of `transform`, read by `get_feature_names_out`."""
        return int(self.cluster_centers_.shape[0])


def _labelling(result: Result) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Labels and centres of a run, or the error that says why there are none."""
    if result.infeasibility is not None:
        raise_infeasible(result.infeasibility)
    if result.labels is None or result.centers is None:
        raise CertikmeansError(
            f"{Status(result.status).sentence} The run ended because {result.stop_reason.sentence}",
            hint="raise or remove time_limit, or give fewer cannot-links",
        )
    return result.labels, result.centers


def _in_center_order(
    labels: NDArray[np.int64], centers: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Number clusters by the coordinates of their centres, the empty ones last.

    >>> _in_center_order(np.array([0, 2, 2]), np.array([[5.0], [4.0], [3.0]]))
    (array([1, 0, 0]), array([[3.],
           [5.],
           [4.]]))
    """
    empty = np.bincount(labels, minlength=len(centers)) == 0
    order = np.lexsort(np.vstack([centers.T[::-1], empty]))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[labels], centers[order]


def _checked_weights(sample_weight: Any, n_samples: int) -> NDArray[np.float64] | None:
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


def _thread_count(n_jobs: Any) -> int | None:
    """Turn scikit-learn's convention into that of `solve`: None for all cores, or a number."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, numbers.Integral) and int(n_jobs) < 0:
        return max(1, available_cores() + 1 + int(n_jobs))
    return whole_number("n_jobs", n_jobs, least=1)
