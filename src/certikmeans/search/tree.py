"""From a root that did not close to the tree: workers, root answers, the rule for branching."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import Assigner
from certikmeans.bounds.cluster.bound import ClusterProof
from certikmeans.bounds.cluster.plugin import ClusterRestart, heaviest_columns, mixture_of
from certikmeans.presolve.pipeline import Presolved
from certikmeans.problem import Problem, ReducedProblem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import Leaf
from certikmeans.search.bounding import BoundMaker
from certikmeans.search.center_splits import CenterSplitter
from certikmeans.search.centers import CenterWorker
from certikmeans.search.node import AbstractWorker, Answer
from certikmeans.search.pairs import PairPart, PairRestart, PairWorker
from certikmeans.search.rows import leaf_of

# Up to this many groups, pairs; beyond, presolving every node anew costs more than it gains.
PAIRS_UP_TO = 20_000


def chosen_branching(branching: str, bound: str, problem: ReducedProblem) -> str:
    """Resolve ``auto``: pairs where the bound says which, and nodes are cheap; else centres.

    Boxes of centres mean nothing to the semidefinite bound.
    """
    if branching != "auto":
        return branching
    says_which = bound in ("cluster", "sdp")
    return "pairs" if says_which and problem.n_groups <= PAIRS_UP_TO else "centers"


@final
class Tree:
    """Everything that the search needs to know about one way of branching.

    Nodes are the executor's tasks. The root is alone: its bound may use the executor itself. (A
    task that waits for tasks of its own pool could wait for ever.)
    """

    def __init__(
        self,
        problem: Problem,
        presolved: Presolved,
        assigner: Assigner,
        maker: BoundMaker,
        branching: str,
        *,
        executor: Executor | None,
        keep_proof: bool,
        on_bound: Callable[[float], None] = lambda value: None,
    ) -> None:
        self.branching = branching
        self._problem = problem
        self._presolved = presolved
        self._assigner = assigner
        self._maker = maker
        self._executor = executor
        self._keep_proof = keep_proof
        self._on_bound = on_bound
        self.worker: PairWorker | CenterWorker
        self.root: Any
        if branching == "pairs":
            self.worker = PairWorker(problem, maker, keep_proof=keep_proof)
            self.root = PairPart()
        else:
            bound = maker.make(assigner)
            self.worker = CenterWorker(presolved, assigner, bound, keep_proof=keep_proof)
            self.root = Subproblem.root(presolved.reduced)

    def root_worker(self) -> AbstractWorker[Any]:
        """Who bounds the root: with the executor, and telling what is proven on the way."""
        if isinstance(self.worker, CenterWorker):
            return self.worker.using(self._maker.make(self._assigner, self._executor))
        return PairWorker(
            self._problem,
            self._maker,
            self._executor,
            self._on_bound,
            keep_proof=self._keep_proof,
        )

    def root_from(self, found: ClusterProof) -> Answer[Any]:
        """Answer for the root from a cluster bound that has been computed already."""
        presolved, reduced = self._presolved, self._presolved.reduced
        evidence = {"bound": "cluster", "multipliers": found.multipliers}
        if reduced.n_clusters == 1:
            evidence = {"bound": "one cluster"}
        everyone = tuple(range(reduced.n_clusters))
        mixture = mixture_of(found.columns, found.weights, lambda _: everyone)
        columns = heaviest_columns(found.columns, found.weights)
        centers = _ordered_means(reduced, found.labels)
        restart: Any = ClusterRestart(found.multipliers, columns, centers)
        if self.branching == "pairs":
            assert isinstance(self.worker, PairWorker)
            split: Any = self.worker.choose(presolved, mixture)
            restart = PairRestart(presolved, restart)
        else:
            split = CenterSplitter(reduced).choose(self.root, mixture, 0)
        leaf: Leaf = leaf_of(presolved, evidence, self._keep_proof)
        bound = presolved.restore_bound(found.value)
        return Answer(bound, leaf, restart, split, (), self.root)


def _ordered_means(reduced: ReducedProblem, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Means in the order of axis 0; an empty cluster sits on the last of the others."""
    sums, masses = reduced.cluster_sums(labels)
    means = sums[masses > 0.0] / masses[masses > 0.0, None]
    means = means[np.argsort(means[:, 0], kind="stable")]
    return np.concatenate([means, np.repeat(means[-1:], reduced.n_clusters - len(means), axis=0)])
