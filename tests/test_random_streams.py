"""Random streams: no two of them are the same."""

from __future__ import annotations

import ast
from itertools import combinations

import pytest

from certikmeans.random_streams import STREAMS, generator, stream_number
from tests.test_architecture import MODULES, module_name

# Packages that draw outside a run, each from a seed of its own, and the streams themselves.
WITHOUT_STREAMS = {"baselines", "generate", "random_streams", "report", "testing", "warmup"}
MODULES_WITH_STREAMS = [
    path for path in MODULES if module_name(path).partition(".")[0] not in WITHOUT_STREAMS
]


def first_numbers(*key):
    return tuple(generator(*key).integers(2**63, size=4).tolist())


def test_names_have_different_hashes():
    assert len(STREAMS) > 1
    assert len({stream_number(name) for name in STREAMS}) == len(STREAMS)


@pytest.mark.parametrize("seed", [0, 1, 2**32, 2**40 + 3])
def test_no_two_streams_collide(seed):
    keys = [(seed, name) for name in STREAMS]
    keys += [(seed, name, number) for name in STREAMS for number in range(30)]
    keys += [(seed, name, number, 0) for name in STREAMS for number in range(3)]
    drawn = [first_numbers(*key) for key in keys]
    for (a, first), (b, second) in combinations(zip(keys, drawn, strict=True), 2):
        assert first != second, (a, b)


def test_same_name_same_numbers():
    for name in STREAMS:
        assert first_numbers(7, name, 3) == first_numbers(7, name, 3)


def test_unknown_name_raises():
    with pytest.raises(ValueError, match="not a random stream"):
        generator(0, "heuristics.unknown")


def test_solver_modules_draw_from_named_streams_only():
    used = set()
    for path in MODULES_WITH_STREAMS:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("default_rng", "SeedSequence"), path
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "generator":
                assert isinstance(node.args[1], ast.Constant), path
                used.add(node.args[1].value)
    assert used == set(STREAMS)
