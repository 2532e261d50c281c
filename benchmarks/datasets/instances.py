"""The paper's instances by name, so that a row can be made in another process and found again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from benchmarks.datasets.base import AbstractInstance, Built
from benchmarks.datasets.paper import Dataset, real, synthetic, with_pairs
from benchmarks.datasets.published import read_published
from certikmeans import Problem

UNCONSTRAINED = "none"

FILES = {
    "Iris": "iris",
    "Seeds": "seeds",
    "Hemi": "hemi",
    "PR2392": "pr2392",
    "RDS_CNT": "rds_cnt",
    "HTRU2": "htru2",
    "SPNET3D_5": "spnet3D_5",
    "Skin_8": "skin_8",
    "URBANGB": "urbanGB",
    "SPNET3D": "spnet3D",
}
"""The paper's names of its real data sets, and ours."""

PUBLISHED = {
    ("Iris", "ML"): "iris/ml_50_cl_0_0",
    ("Iris", "CL"): "iris/ml_0_cl_50_2",
    ("Iris", "ML+CL"): "iris/ml_25_cl_25_1",
    ("Seeds", "ML"): "seeds/ml_50_cl_0_0",
    ("Seeds", "CL"): "seeds/ml_0_cl_50_0",
    ("Seeds", "ML+CL"): "seeds/ml_25_cl_25_1",
}
"""Rows of the paper whose pairs are public: those of PC-SOS-SDP reproduce its printed objective."""

SYNTHETIC = "Syn-"


@final
@dataclass(frozen=True)
class Instance(AbstractInstance):
    """A data set of the paper, a kind of pairs and how many, and K."""

    dataset: str
    kind: str  # "ML", "CL", "ML+CL" or "none"
    fraction: int = 4  # n / fraction pairs of each kind
    n_clusters: int = 3

    @property
    def name(self) -> str:
        """Short and unique.

        >>> Instance("Hemi", "CL").name, Instance("Skin_8", "ML", n_clusters=2).name
        ('Hemi CL', 'Skin_8 ML K=2')
        """
        share = "" if self.fraction == 4 else f" n/{self.fraction}"
        clusters = "" if self.n_clusters == 3 else f" K={self.n_clusters}"
        return f"{self.dataset} {self.kind}{share}{clusters}"

    @property
    def facts(self) -> dict[str, Any]:
        """Which data set and which kind of pairs."""
        return {"dataset": self.dataset, "kind": self.kind}

    def build(self, directory: Path | None) -> Built:
        """Read or draw; raises `AbsentError` where the data are not here."""
        data = _dataset(self, directory)
        classes = data.labels if data.has_classes else None
        if self.kind == UNCONSTRAINED:
            return Built(Problem.from_data(data.points, self.n_clusters), classes, "none")
        published = _published(self, directory)
        if published is not None:
            return Built(published[0], classes, f"published, {published[1]}")
        problem = with_pairs(data, self.kind, self.n_clusters, self.fraction)
        drawn_from = "classes" if data.has_classes else "labels of k-means"
        return Built(problem, classes, f"drawn from {drawn_from}")


def _dataset(instance: Instance, directory: Path | None) -> Dataset:
    if instance.dataset.startswith(SYNTHETIC):
        return synthetic(int(instance.dataset.removeprefix(SYNTHETIC)))
    name = FILES[instance.dataset]
    return real(name, directory)


def _published(instance: Instance, directory: Path | None) -> tuple[Problem, str] | None:
    """The published instance behind a row of the paper, where the user has it."""
    name = PUBLISHED.get((instance.dataset, instance.kind))
    if name is None or directory is None or instance.fraction != 4 or instance.n_clusters != 3:
        return None
    if not (directory / "instances" / f"{name}.txt").is_file():
        return None
    return read_published(name, instance.n_clusters, directory).problem, name
