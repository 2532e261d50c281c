"""What an instance is: plain values and a recipe, so that another process can make it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from certikmeans import Problem


class MissingDataError(Exception):
    """The data set is not on this machine; the message names what is missing."""


@dataclass(frozen=True)
class Sizes:
    """Sizes by which a solver decides whether to skip an instance."""

    n_points: int
    n_features: int
    n_clusters: int
    n_must_link: int
    n_cannot_link: int
    n_groups: int  # must-link components

    @classmethod
    def of(cls, problem: Problem) -> Sizes:
        """Count."""
        n, must = problem.n_points, problem.must_link
        links = coo_array((np.ones(len(must)), (must[:, 0], must[:, 1])), shape=(n, n))
        return cls(
            n,
            problem.n_features,
            problem.n_clusters,
            len(must),
            len(problem.cannot_link),
            int(connected_components(links, directed=False, return_labels=False)),
        )


@dataclass(frozen=True)
class BuiltInstance:
    """An instance with everything the harness needs to judge an answer."""

    problem: Problem
    classes: NDArray[np.int64] | None = None  # what a perfect clustering would find
    pairs: str = ""  # where the pairs come from


class AbstractInstance(ABC):
    """One instance. Concrete ones are frozen dataclasses that can be pickled."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Short and, within a study, unique: rows are found by it."""

    @property
    def facts(self) -> dict[str, Any]:
        """What is known beforehand and belongs into every row: section, target, best known cost."""
        return {}

    @abstractmethod
    def build(self, directory: Path | None) -> BuiltInstance:
        """Make it; raises `MissingDataError` where its data are not in ``directory``."""


@final
@dataclass(frozen=True)
class Recipe(AbstractInstance):
    """A function that makes the instance from the directory of real data, and what is known."""

    title: str
    make: Callable[..., BuiltInstance]  # called with ``directory``
    known: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As given."""
        return self.title

    @property
    def facts(self) -> dict[str, Any]:
        """As given."""
        return dict(self.known)

    def build(self, directory: Path | None) -> BuiltInstance:
        """Call the function."""
        return self.make(directory=directory)


def required_file(directory: Path | None, name: str) -> Path:
    """The path of a file of real data; raises `MissingDataError` where it is not here."""
    if directory is None:
        raise MissingDataError(f"data set absent: {name} (no data directory)")
    path = directory / name
    if not path.is_file():
        raise MissingDataError(f"data set absent: {name} (not in {directory.name}/)")
    return path
