"""Names of 0.2 work, and say what they are called now; docs/upgrade.md lists them."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import certikmeans
from certikmeans import ActiveSession, ConstrainedKMeans, Problem, StopSignal
from certikmeans.certainty.pair_queries import PairQuery
from certikmeans.events import PresolveDone
from certikmeans.problem import conflicts

PAGE = Path(__file__).parents[1] / "docs" / "upgrade.md"
MOVED = {
    "certikmeans.Conversation": ActiveSession,
    "certikmeans.certainty.questions.Question": PairQuery,
    "certikmeans.problem.noise.Broken": conflicts.BrokenCannotLink,
    "certikmeans.problem.noise.Clash": conflicts.Conflict,
    "certikmeans.problem.noise.Diagnosis": conflicts.Diagnosis,
    "certikmeans.problem.noise.diagnose": conflicts.diagnose,
}
X = np.array([[0.0], [1.0], [8.0], [9.0]])
CENTERS = [[0.5], [8.5]]


@pytest.mark.parametrize("name", sorted(MOVED))
def test_moved_names(name):
    module, _, last = name.rpartition(".")
    new = MOVED[name].__name__
    with pytest.warns(DeprecationWarning, match=rf"{re.escape(name)} .*: use certikmeans\S*{new}$"):
        assert getattr(import_module(module), last) is MOVED[name]


def test_unknown_names_are_attribute_errors():
    for module in ("certikmeans", "certikmeans.problem.noise", "certikmeans.certainty.questions"):
        with pytest.raises(AttributeError, match="no attribute 'missing'"):
            import_module(module).missing  # noqa: B018


def test_start_centers():
    with pytest.warns(DeprecationWarning, match="use initial_centers") as caught:
        fitted = ConstrainedKMeans(2, random_state=0).fit(X, start_centers=CENTERS)
    assert caught[0].filename == __file__
    assert fitted.labels_.tolist() == [0, 0, 1, 1]
    with pytest.warns(DeprecationWarning, match="use initial_centers"):
        result = certikmeans.solve(Problem.from_data(X, 2), start_centers=CENTERS)
    assert result.cost == fitted.inertia_


def test_start_centers_are_used():
    with (
        pytest.warns(DeprecationWarning, match="use initial_centers"),
        pytest.raises(certikmeans.InputError, match="initial_centers"),
    ):
        certikmeans.solve(Problem.from_data(X, 2), start_centers=[[1.0]])


def test_renamed_attributes():
    event = PresolveDone(0.0, 4, 4, 1, 0, 1)
    certainty = certikmeans.solve(Problem.from_data(X, 2)).certainty()
    stop = StopSignal()
    with pytest.warns(DeprecationWarning, match="use n_dims"):
        assert event.n_axes == event.n_dims
    with pytest.warns(DeprecationWarning, match="use locates_centers"):
        assert certainty.tells_centers == certainty.locates_centers
    with pytest.warns(DeprecationWarning, match="use locates_points"):
        assert certainty.tells_points == certainty.locates_points
    with pytest.warns(DeprecationWarning, match="use reason"):
        assert stop.cause() is None
    with pytest.warns(DeprecationWarning, match="use with_time_limit"):
        assert stop.within(0.0).reason() is not None


def test_page_lists_every_alias():
    """Every call of `warn_renamed` and every moved name is on the page."""
    page = PAGE.read_text(encoding="utf-8")
    source = Path(inspect.getfile(certikmeans)).parent
    called = [
        name
        for file in source.rglob("*.py")
        for name in re.findall(r'warn_renamed\("([\w.]+)"', file.read_text(encoding="utf-8"))
    ]
    assert len(called) >= 6
    missing = [name for name in (*called, *MOVED) if name.split(".")[-1] not in page]
    assert missing == []
