"""Settings are checked where they are made."""

from __future__ import annotations

from pathlib import Path

import pytest

import certikmeans
from certikmeans.errors import InputError
from certikmeans.options import Options

BAD = [
    ({"gap": -0.1}, "gap"),
    ({"gap": 1.0}, "gap"),
    ({"gap": float("nan")}, "gap"),
    ({"gap": "tight"}, "gap"),
    ({"gap": "0.1"}, "gap"),
    ({"gap": False}, "gap"),
    ({"time_limit": 0}, "time_limit"),
    ({"time_limit": -3}, "time_limit"),
    ({"time_limit": float("inf")}, "time_limit"),
    ({"time_limit": "long"}, "time_limit"),
    ({"time_limit": "5"}, "time_limit"),
    ({"time_limit": True}, "time_limit"),
    ({"bound": "best"}, "bound"),
    ({"branching": "points"}, "branching"),
    ({"jobs": 0}, "jobs"),
    ({"jobs": 1.5}, "jobs"),
    ({"jobs": True}, "jobs"),
    ({"seed": -1}, "seed"),
    ({"seed": None}, "seed"),
]


@pytest.mark.parametrize(("changes", "name"), BAD)
def test_out_of_range(changes, name):
    with pytest.raises(InputError) as caught:
        Options(**changes)
    assert caught.value.message.startswith(f"{name}:")
    assert caught.value.hint


def test_range_of_gap_in_message():
    with pytest.raises(InputError, match=r"gap: 1 is not a number of at least 0 and below 1"):
        Options(gap=1)
    assert Options(gap=0).gap == 0.0


def test_gap_and_slack_in_per_cent():
    from certikmeans.certainty.report import validate_slack

    assert Options(gap="0.1%").gap == Options(gap="0.1 %").gap == 0.001
    assert validate_slack("2%") == 0.02
    for text in ("100%", "-1%", "%", "nan%"):
        with pytest.raises(InputError, match=r"^gap: "):
            Options(gap=text)


def test_numbers_of_other_types_are_taken():
    import numpy as np

    options = Options(gap=np.float32(0.5), time_limit=np.int64(3), jobs=np.int32(2))
    assert (options.gap, options.time_limit, options.jobs) == (0.5, 3.0, 2)
    assert Options().n_threads >= 1


@pytest.mark.parametrize(
    "text",
    [
        Options.__doc__,  # the help of the command line is made from it
        certikmeans.solve.__doc__,
        certikmeans.ConstrainedKMeans.__doc__,
        Path(__file__).parents[1].joinpath("docs/guides/scikit-learn.md").read_text("utf-8"),
    ],
    ids=["options", "solve", "estimator", "guide"],
)
def test_default_of_the_tree_is_one_sentence(text):
    sentence = (
        "Without a time limit and a node limit, the tree is searched for about ten seconds of work."
    )
    assert sentence in " ".join(text.split())
