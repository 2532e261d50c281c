"""`ConstrainedKMeans`: the solver behind scikit-learn's estimator interface."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from pathlib import Path
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

from certikmeans._alignment import SampleIndex, check_column_types
from certikmeans._atomic import write_atomically
from certikmeans._estimator_utils import (
    GivenConstraints,
    Run,
    check_enough_samples,
    checked_weights,
    in_center_order,
    labels_within_sizes,
    require_labels,
    resolve_n_jobs,
    seed_from,
    size_arguments,
    warn_about_empty_clusters,
    warn_about_gap,
    warn_about_labels,
)
from certikmeans.errors import InfeasibleError, InputError, warn_renamed
from certikmeans.options import Options
from certikmeans.problem import Problem
from certikmeans.problem.arrays import squared_distances
from certikmeans.problem.constraints import Constraints
from certikmeans.stop import StopSignal

if TYPE_CHECKING:  # These bring in numba, which `import certikmeans` must not pay for.
    from matplotlib.axes import Axes

    from certikmeans.events import Listener
    from certikmeans.result import Result


@final
class ConstrainedKMeans(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """K-means under constraints, with a proven lower bound.

    Minimises the weighted sum of squared distances to the cluster means over all labellings
    that respect the constraints, and proves a lower bound on the cost of any such labelling.
    Constraints are must-links and cannot-links, sets of which at most one member may be in a
    cluster, limits on the sizes of clusters, and soft pairs, whose violation costs a penalty.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, from 1 to the number of samples. Without limits on sizes, some may
        stay empty.
    size_min, size_max : int or array-like of shape (n_clusters,), optional
        Least and largest number of samples in a cluster; one number per cluster holds for the
        clusters in any order. With ``demand`` in `fit`, limits on the sum of the demands.
    balanced : bool, default=False
        Sizes differ by at most one: from ``n_samples // n_clusters``, rounded down, to the same
        rounded up.
    gap : float, default=1e-3
        Stop when ``(inertia_ - lower_bound_) / inertia_`` is at most this.
    time_limit : float, optional
        Wall time for `fit`, in seconds. Without it, `fit` ends by itself: the bounds are raised
        as long as that pays, then a tree is searched for about ten seconds of work.
    bound : str, default="auto"
        Which lower bound to compute; `Options` lists the names.
    branching : {"auto", "centers", "pairs"}, default="auto"
        How to split when the bound does not close the gap at once.
    node_limit : int, optional
        Largest number of nodes in the branch-and-bound tree. Without a time limit and a node
        limit, the tree is searched for about ten seconds of work.
    n_jobs : int, optional
        Number of threads. None and -1: one per available core; -2: all but one, and so on.
        The answer does not depend on it. Choose 1 where an outer tool already runs fits in
        parallel.
    random_state : int, RandomState instance, optional
        An int is the seed of the solver itself, so that `solve` and the command line repeat
        the run. A RandomState, or None for NumPy's global one, draws a fresh seed in every
        call of `fit`; it is stored in ``result_.seed``.
    callbacks : iterable of callables, optional
        Each is called with every event of the run (see ``certikmeans.events``). `clone`
        copies them, as it copies every parameter.
    keep_proof : bool, default=False
        Keep what `write_certificate` needs.
    verbose : int, default=0
        0: silent. 1 or more: progress on standard error, live on a terminal, plain lines in
        notebooks and log files.

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
        No labelling that respects the constraints costs less. Rounded down.
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
    Pairs name rows of the X passed along with them: by position, or by label where X is a
    DataFrame with an index of its own. Tools that split the samples, such as `cross_validate`,
    do not renumber pairs, so `fit` rejects row numbers inside them; `Constraints.subset` selects
    the pairs of a fold. Labels and groups of samples are cut with the samples.

    Interrupting `fit` (Ctrl-C, or the stop button of a notebook) ends it with the best labelling
    known so far, its bound, and a warning; a second interrupt raises KeyboardInterrupt.

    A fitted model keeps the samples and the history of the run for `plot`, `report` and
    `write_certificate`.

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
        size_min: Any = None,
        size_max: Any = None,
        *,
        balanced: bool = False,
        gap: float = 1e-3,
        time_limit: float | None = None,
        bound: str = "auto",
        branching: str = "auto",
        node_limit: int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        callbacks: Iterable[Listener] | None = None,
        keep_proof: bool = False,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.size_min = size_min
        self.size_max = size_max
        self.balanced = balanced
        self.gap = gap
        self.time_limit = time_limit
        self.bound = bound
        self.branching = branching
        self.node_limit = node_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callbacks = callbacks
        self.keep_proof = keep_proof
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: Any = None,
        *,
        must_link: Any = None,
        cannot_link: Any = None,
        sample_weight: ArrayLike | float | None = None,
        partial_labels: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        constraints: Constraints | None = None,
        cannot_link_groups: ArrayLike | None = None,
        demand: ArrayLike | None = None,
        soft_must_link: Any = None,
        soft_cannot_link: Any = None,
        start_labels: ArrayLike | None = None,
        initial_centers: ArrayLike | None = None,
        start_centers: ArrayLike | None = None,
        executor: Any = None,
        stop: StopSignal | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: str | os.PathLike[str] | None = None,
    ) -> ConstrainedKMeans:
        """Find the best labelling that respects the constraints, and bound the optimum from below.

        Constraints from all arguments are combined. Where X is a DataFrame, a Series of labels,
        groups, demands or weights is aligned with its index, and a dictionary names its rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples, dense and finite. Computed in float64.
        y : None
            Ignored, by scikit-learn's convention. Whole numbers with -1 among them (and more
            than -1 and 1) look like labels of which some are unknown and bring a warning: those
            belong into ``partial_labels``.
        must_link, cannot_link : array-like of shape (n_pairs, 2) or Links, optional
            Pairs of row numbers of X, counted from 0, or of labels of its index. Order and
            repetition do not matter.
        sample_weight : array-like of shape (n_samples,) or float, optional
            Non-negative. A sample of weight 0 counts for nothing and takes the label of its
            must-link group or, without one, of the nearest centre; it may not take part in a
            cannot-link unless its must-link group has weight.
        partial_labels : array-like of shape (n_samples,), optional
            Known classes, numbers or text: equal ones share a cluster, different ones do not.
            -1, None, NaN and empty text mean unknown. A Series or a dictionary may hold the known
            rows only.
        groups : array-like of shape (n_samples,), optional
            Samples of a group share a cluster; different groups may, too. -1, None, NaN and
            empty text mean no group.
        constraints : Constraints, optional
            Constraints that know the number of rows they are about.
        cannot_link_groups : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            At most one sample of a group in every cluster; -1, None, NaN and empty text mean no
            group. Several columns hold several divisions into groups.
        demand : array-like of shape (n_samples,), optional
            What a sample counts for in ``size_min`` and ``size_max``, 0 or more, instead of 1:
            population, or use of a capacity. It has no influence on the cost.
        soft_must_link, soft_cannot_link : array-like of shape (n_pairs, 3), optional
            Rows ``(i, j, penalty)``: pairs that may be violated; the cost then rises by the
            penalty, in units of squared distance.
        start_labels : array-like of shape (n_samples,), optional
            A known labelling that respects every constraint: the answer costs no more.
        initial_centers : array-like of shape (n_clusters, n_features), optional
            Centres to start from, beside the usual starts.
        start_centers : array-like, optional
            Deprecated name of ``initial_centers``.
        executor : concurrent.futures.Executor or Dask Client, optional
            Runs bounds and nodes of the tree: processes, machines. By default threads.
        stop : StopSignal, optional
            ``stop.interrupt()``, called from a callback, another thread or a signal handler,
            ends `fit` with the best result so far.
        checkpoint : path-like, optional
            Save the state of the run to this file, every minute and at the end.
        resume : path-like, optional
            Continue from such a file, or from a certificate, of the same samples and pairs.

        Returns
        -------
        self : ConstrainedKMeans
            Fitted.

        Raises
        ------
        InputError
            The input is invalid; a subclass of ValueError.
        InfeasibleError
            No labelling respects every constraint; ``error.proof`` shows why.
        CertikmeansError
            No labelling was found within the time limit, nor proven impossible.

        Warns
        -----
        ConvergenceWarning
            The requested gap was not reached; the message says why and what would help.
        """
        if start_centers is not None:
            warn_renamed("start_centers", "initial_centers")
            initial_centers = start_centers
        check_column_types(X)
        points = validate_data(self, X, dtype=np.float64, order="C")
        if y is not None and partial_labels is None:
            warn_about_labels(y)
        index = SampleIndex(X)
        weights = checked_weights(index.align("sample_weight", sample_weight), len(points))
        check_enough_samples(self.n_clusters, len(points))
        available = len(points) if weights is None else int(np.count_nonzero(weights))
        check_enough_samples(self.n_clusters, available, "samples of positive weight")
        given = GivenConstraints(
            must_link=must_link,
            cannot_link=cannot_link,
            partial_labels=partial_labels,
            groups=groups,
            constraints=constraints,
            cannot_link_groups=cannot_link_groups,
            soft_must_link=soft_must_link,
            soft_cannot_link=soft_cannot_link,
        )
        sizes = size_arguments(
            len(points),
            self.n_clusters,
            self.size_min,
            self.size_max,
            self.balanced,
            index.align("demand", demand),
        )
        problem = Problem.from_data(
            points,
            self.n_clusters,
            weights=weights,
            **given.aligned(index).combined(len(points)),
            **sizes,
        )
        start_labels = index.align("start_labels", start_labels)
        try:
            self._solve(
                problem,
                executor=executor,
                start_labels=start_labels,
                initial_centers=initial_centers,
                stop=stop,
                checkpoint=checkpoint,
                resume=resume,
            )
        except InfeasibleError as error:
            # An answer, not a fault inside: the traceback of a notebook would hide it.
            raise error.with_traceback(None) from None
        warn_about_empty_clusters(self.result_)
        warn_about_gap(self.result_, self._run.options.gap)
        return self

    def _solve(self, problem: Problem, **how: Any) -> None:
        from certikmeans.api import solve
        from certikmeans.report.trace import Trace

        options, trace = self._options(), Trace()
        given = () if self.callbacks is None else tuple(self.callbacks)
        result = solve(problem, options, callbacks=(*given, trace), verbose=self.verbose, **how)
        labels, centers = require_labels(result)
        self._publish(result, labels, centers)
        names = getattr(self, "feature_names_in_", None)
        self._run = Run(problem, options, trace, None if names is None else tuple(map(str, names)))

    def _options(self) -> Options:
        return Options(
            gap=self.gap,
            time_limit=self.time_limit,
            bound=self.bound,
            branching=self.branching,
            node_limit=self.node_limit,
            jobs=resolve_n_jobs(self.n_jobs),
            seed=seed_from(self.random_state),
            keep_proof=bool(self.keep_proof),
        )

    def _publish(
        self,
        result: Result,
        labels: NDArray[np.int64],
        centers: NDArray[np.float64],
    ) -> None:
        """Set the attributes of a fitted estimator."""
        labels, centers = in_center_order(labels, centers)
        self.labels_ = labels
        self.cluster_centers_ = centers
        self.inertia_ = result.cost
        self.lower_bound_ = result.lower_bound
        self.gap_ = result.gap
        self.status_ = result.status
        self.n_iter_ = result.iterations
        self.result_ = dataclasses.replace(result, labels=labels, centers=centers)

    def predict(
        self,
        X: ArrayLike,
        *,
        size_min: Any = None,
        size_max: Any = None,
        demand: ArrayLike | None = None,
    ) -> NDArray[np.int64]:
        """Index of the nearest centre for each sample, one by one and without constraints.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, seen before or not.
        size_min, size_max : int or array-like of shape (n_clusters,), optional
            Limits on the number of these samples in every cluster: then the labels with the least
            sum of squared distances to the centres among those within the limits. Limits that
            were given to the estimator are about the samples of `fit` and do not apply.
        demand : array-like of shape (n_samples,), optional
            What each of these samples counts in its cluster, instead of 1. Labels are exact for a
            demand of 1 and good for others.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Numbers of clusters.

        Raises
        ------
        InputError
            If the samples do not fit into the limits.
        """
        squared = self._squared_distances(X)
        if size_min is not None or size_max is not None:
            return labels_within_sizes(squared, size_min, size_max, demand)
        if demand is not None:
            raise InputError(
                "demand: there is no limit on the sizes of clusters",
                hint="give size_min or size_max as well, or leave demand out",
            )
        nearest: NDArray[np.int64] = squared.argmin(axis=1)
        return nearest

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Distances to the centres, of shape (n_samples, n_clusters)."""
        return np.sqrt(self._squared_distances(X))

    def score(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | float | None = None
    ) -> float:
        """Minus the weighted sum of squared distances to the nearest centres, without constraints.

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
        weights = checked_weights(sample_weight, len(nearest))
        return -float(nearest.sum() if weights is None else weights @ nearest)

    def write_certificate(self, path: str | os.PathLike[str]) -> Path:
        """Write what was proven, and its proof, to a file that ``certikmeans check`` reads.

        Needs ``keep_proof=True`` when the model is fitted. Returns the path, which
        `certikmeans.check_certificate` takes.
        """
        from certikmeans.certificate.write import write_certificate

        check_is_fitted(self)
        write_certificate(path, self._run.problem, self.result_)
        return Path(path)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the samples, coloured by cluster, with their pairs.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default in a new figure of pyplot.

        Returns
        -------
        ax : matplotlib.axes.Axes
            The axes.

        Raises
        ------
        MissingExtraError
            matplotlib is not installed; an ImportError.
        """
        from certikmeans.report.plots import plot_clusters

        check_is_fitted(self)
        return plot_clusters(self._run.problem, self.result_, ax, self._run.feature_names)

    def report(self, path: str | os.PathLike[str], *, title: str = "certikmeans") -> Path:
        """Write a page of HTML about the fit: clusters, pairs, gap over time, what is proven.

        The page is self-contained; its name ends with .html. An existing file is replaced
        atomically. Returns the path.
        """
        from certikmeans.report.html import check_name, report_html

        check_is_fitted(self)
        check_name(Path(path))
        run = self._run
        page = report_html(
            run.problem,
            self.result_,
            run.trace,
            title=title,
            feature_names=run.feature_names,
            settings=run.options.to_dict(),
        )
        try:
            write_atomically(path, page.encode())
        except OSError as error:
            raise InputError(
                f"{path}: could not be written ({error.strerror or error})",
                hint="choose a place where files can be created",
            ) from error
        return Path(path)

    def _squared_distances(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        points = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        return squared_distances(points, self.cluster_centers_)

    @property
    def _n_features_out(self) -> int:
        """Number of columns of `transform`, read by `get_feature_names_out`."""
        return int(self.cluster_centers_.shape[0])
