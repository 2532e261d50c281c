"""The file: whatever is wrong with it is said, and nothing in it is run."""

from __future__ import annotations

import errno
import json
import struct
import warnings
import zlib
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans._atomic import write_atomically
from certikmeans.checkpoint import file as form
from certikmeans.checkpoint.codec import Decoder, Encoder, UnsupportedTypeError
from certikmeans.checkpoint.file import BestKnown, ProblemFingerprint
from certikmeans.checkpoint.resume import resume
from certikmeans.checkpoint.writer import CheckpointWriter
from certikmeans.errors import CheckpointWarning, InputError
from certikmeans.events import CheckpointOpportunity
from certikmeans.options import Options
from certikmeans.problem.data import Domain
from certikmeans.solver.bound_schedule import TurnState
from certikmeans.solver.state import SolverSnapshot
from certikmeans.tree.node import NodeOutcome
from tests.checkpoint.cases import clumps


def there_and_back(thing):
    encoder = Encoder()
    text = json.loads(json.dumps(encoder.encode(thing)))
    return Decoder(json.loads(json.dumps(encoder.objects)), encoder.arrays).decode(text)


@pytest.mark.parametrize(
    "thing",
    [
        None, True, 3, -(2**80), 0.1, float("inf"), "text", [1, (2, "x")], {1: 2, "a": [None]},
        {(0, 5), (1, 2)}, NodeOutcome.PRUNED, np.float64(0.1), np.int64(7), np.bool_(True),
    ],
    ids=repr,
)  # fmt: skip
def test_codec_round_trip(thing):
    back = there_and_back(thing)
    assert back == thing
    assert type(back) is type(thing)


def test_codec_keeps_sharing():
    array = np.arange(6.0).reshape(2, 3)
    part = Domain(array, array)
    one, other, same = there_and_back((part, [part], array))
    assert one is other[0]
    assert one.lower is one.upper is same
    assert np.array_equal(same, array)


def test_codec_random_generator():
    random = np.random.default_rng(3)
    random.normal(size=5)
    back = there_and_back(random)
    assert np.array_equal(back.normal(size=9), random.normal(size=9))


@pytest.mark.parametrize("thing", [object(), len, np.array([None]), Exception("x"), np.random])
def test_encoder_rejects_foreign_types(thing):
    with pytest.raises(UnsupportedTypeError):
        Encoder().encode([thing])


@pytest.mark.parametrize(
    "text",
    [
        {"c": "os:system", "v": {}},
        {"c": "certikmeans.errors:InputError", "v": {}},
        {"c": "certikmeans.checkpoint.file:os", "v": {}},
        {"c": "certikmeans.checkpoint.file:decode", "v": {}},
        {"c": "certikmeans.checkpoint.file:Path", "v": {}},
        {"k": "builtins:eval", "v": []},
        {"x": 1},
    ],
)
def test_decoder_rejects_foreign_types(text):
    with pytest.raises(UnsupportedTypeError):
        Decoder([text], []).decode({"r": 0})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "state"
    solve(clumps(must=2), bound="sample", node_limit=20, checkpoint=path, jobs=1)
    return path.read_bytes()


def refused(problem, path, match, **settings):
    with pytest.raises(InputError, match=match) as error:
        solve(problem, resume=path, **settings)
    assert error.value.hint


def test_damage_is_detected(saved, tmp_path):
    path, rng = tmp_path / "state", np.random.default_rng(0)
    problem = clumps(must=2)
    for place in [0, 5, 9, 13, 21, 40, *rng.integers(60, len(saved), size=20).tolist()]:
        content = bytearray(saved)
        content[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        refused(problem, path, r"damaged|neither|version")
    for length in [0, 3, 8, 30, len(saved) // 2, len(saved) - 1]:
        path.write_bytes(saved[:length])
        refused(problem, path, r"damaged|neither")
    path.write_bytes(saved + b"\0")
    refused(problem, path, "damaged")


def test_invalid_content_with_valid_checksum(tmp_path):
    path, problem = tmp_path / "state", clumps(must=2)
    for document in ({}, [], {"facts": {}}, {"arrays": [["O", "O", [3], False]]}):
        text = json.dumps(document).encode()
        body = zlib.compress(text)
        digest = form.hashlib.sha256(body).digest()
        prefix = struct.pack("<8sIQQ32s", form.MAGIC, form.VERSION, len(text), 0, digest)
        path.write_bytes(prefix + body)
        refused(problem, path, "damaged")


def changed(problem, **changes):
    fields = {
        "n_clusters": problem.n_clusters,
        "must_link": problem.must_link,
        "cannot_link": problem.cannot_link,
        "weights": problem.weights,
        **changes,
    }
    points = fields.pop("points", problem.points)
    return Problem.from_data(points, fields.pop("n_clusters"), **fields)


def test_checkpoint_of_another_problem(saved, tmp_path):
    path, problem = tmp_path / "state", clumps(must=2)
    path.write_bytes(saved)
    moved = problem.points.copy()
    moved[3, 1] = np.nextafter(moved[3, 1], 9.0)
    weights = problem.weights.copy()
    weights[0] = 2.0
    for other, why in (
        (changed(problem, points=moved), "other data"),
        (changed(problem, points=problem.points[::-1]), "other data"),
        (changed(problem, weights=weights), "other weights"),
        (changed(problem, cannot_link=problem.cannot_link[1:]), "other pairs"),
        (changed(problem, must_link=problem.must_link[1:]), "other pairs"),
        (changed(problem, n_clusters=problem.n_clusters + 1), "clusters"),
        (clumps(n=25), "points"),
    ):
        refused(other, path, f"checkpoint of another problem: .*{why}")


def test_other_code_keeps_labelling_and_bound(saved, tmp_path, monkeypatch):
    path, problem = tmp_path / "state", clumps(must=2)
    path.write_bytes(saved)
    monkeypatch.setattr("certikmeans.checkpoint.file.code_sha256", lambda: "another")
    found = form.decode(saved, path)
    assert found.state is None
    assert not found.same_code
    assert solve(problem, resume=path, node_limit=1).cost <= solve(problem, node_limit=1).cost


def test_missing_file():
    refused(clumps(must=2), "/nowhere/state", "cannot be read")


@pytest.mark.parametrize("name", ["no/state", "."])
def test_unwritable_path(tmp_path, name):
    with pytest.raises(InputError, match="cannot be written"):
        solve(clumps(must=2), checkpoint=tmp_path / name, checkpoint_interval=0)


def test_read_only_folder(tmp_path, monkeypatch):
    """The run does not begin: its state could never be saved. Reading there is allowed."""
    problem, path = clumps(must=2), tmp_path / "state"
    solve(problem, bound="sample", node_limit=2, checkpoint=path, jobs=1)

    def denied(*arguments, **named):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("certikmeans._atomic.os.open", denied)
    with pytest.raises(InputError, match="cannot be written there") as error:
        solve(problem, checkpoint=path)
    assert error.value.hint
    assert solve(problem, bound="sample", node_limit=2, resume=path, jobs=1).labels is not None


def failing_writes(monkeypatch, fails):
    """Let the numbered writes of checkpoints fail as on a full disk."""
    numbers = count()

    def write(path, content):
        if fails(next(numbers)):
            raise OSError(errno.ENOSPC, "No space left on device")
        write_atomically(path, content)

    monkeypatch.setattr("certikmeans.checkpoint.writer.write_atomically", write)


def test_full_disk_keeps_result(tmp_path, monkeypatch):
    problem, path = clumps(must=2), tmp_path / "state"
    settings = {"bound": "sample", "node_limit": 20, "jobs": 1}
    expected = solve(problem, **settings)
    failing_writes(monkeypatch, lambda number: True)
    with pytest.warns(CheckpointWarning, match="could not be written") as caught:
        result = solve(problem, checkpoint=path, checkpoint_interval=0, **settings)
    assert np.array_equal(result.labels, expected.labels)
    assert result.lower_bound == expected.lower_bound
    assert not path.exists()
    messages = [str(one.message) for one in caught]
    assert len(messages) == 2  # at the first failure and at the end
    assert "continues" in messages[0]
    assert "result is not affected" in messages[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = solve(problem, checkpoint=path, checkpoint_interval=0, **settings)
    assert again.lower_bound == expected.lower_bound


def test_full_disk_is_tried_again(tmp_path, monkeypatch):
    problem, path = clumps(must=2), tmp_path / "state"
    failing_writes(monkeypatch, lambda number: number < 2)
    with pytest.warns(CheckpointWarning, match="continues") as caught:
        solve(problem, checkpoint=path, checkpoint_interval=0, bound="sample", node_limit=20)
    assert len(caught) == 1
    assert resume(path, problem, Options(bound="sample")).state is not None


def with_checksum(text, payload_size, body):
    digest = form.hashlib.sha256(body).digest()
    return struct.pack("<8sIQQ32s", form.MAGIC, form.VERSION, text, payload_size, digest) + body


def test_memory_of_small_files(tmp_path):
    path, problem = tmp_path / "state", clumps(must=2)
    bomb = zlib.compress(bytes(10_000_000))
    path.write_bytes(with_checksum(100, 0, bomb))  # longer than it says
    refused(problem, path, "shorter or longer")
    path.write_bytes(with_checksum(6_000_000_000, 0, bomb))
    refused(problem, path, "holds 6,000,000,000 bytes")


def test_edited_state_is_reported(saved, tmp_path):
    """Objects of the wrong kind behind a valid checksum are an error of the file."""
    path, problem = tmp_path / "state", clumps(must=2)
    prefix = struct.Struct("<8sIQQ32s")
    _, _, length, size, _ = prefix.unpack_from(saved)
    raw = zlib.decompress(saved[prefix.size :])
    rng, errors = np.random.default_rng(0), 0
    for _ in range(25):
        document = json.loads(raw[:length])
        objects = [one for one in document["objects"] if one and "c" in one and one["v"]]
        fields = objects[int(rng.integers(len(objects)))]["v"]
        fields[list(fields)[int(rng.integers(len(fields)))]] = {"l": ["edited"]}
        text = json.dumps(document).encode()
        path.write_bytes(with_checksum(len(text), size, zlib.compress(text + raw[length:])))
        try:
            solve(problem, resume=path, bound="sample", node_limit=30, jobs=1)
        except InputError as error:
            errors += error.hint is not None
    assert errors >= 5


def test_error_of_listener_stays(saved, tmp_path):
    path = tmp_path / "state"
    path.write_bytes(saved)

    def listener(event):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        solve(clumps(must=2), resume=path, bound="sample", callbacks=[listener])


def test_other_fields_rejected():
    encoder = Encoder()
    text = encoder.encode(Domain(np.zeros((1, 1)), np.ones((1, 1))))
    for change in ({"lower": None, "upper": None, "more": 1}, {"lower": None}):
        objects = [{**encoder.objects[0], "v": change}, *encoder.objects[1:]]
        with pytest.raises(UnsupportedTypeError, match="other fields"):
            Decoder(objects, encoder.arrays).decode(text)


@pytest.mark.parametrize("interval", [-1.0, float("nan")])
def test_invalid_interval(interval, tmp_path):
    with pytest.raises(InputError, match="checkpoint interval"):
        solve(clumps(must=2), checkpoint=tmp_path / "state", checkpoint_interval=interval)


def test_version_1_keeps_labelling_and_bound():
    """The file was written by certikmeans 0.2.0 (format version 1)."""
    path = Path(__file__).parent / "data" / "version1.checkpoint"
    points = np.random.default_rng(0).uniform(size=(12, 2))
    problem = Problem.from_data(points, 3, cannot_link=[(0, 1), (2, 3)])
    found = form.decode(path.read_bytes(), path)
    assert (found.state, found.essence.lower_bound) == (None, 0.004390512605381953)
    read = resume(path, problem, Options())
    assert "another version of the program" in read.describe()
    again = solve(problem, resume=path, node_limit=1)
    assert again.cost <= 0.7036284628338854
    assert again.lower_bound >= found.essence.lower_bound


def test_unencodable_bound_state_is_reported(tmp_path):
    """A warm start of another package's class is not dropped silently."""
    state = SolverSnapshot(
        True, None, (), (), (TurnState("mine", 1.0, 0.0, 1, False, object()),), None
    )
    best = BestKnown(None, 0, 0.0, "trivial", 1)
    writer = CheckpointWriter(tmp_path / "state", clumps(), Options(), 0.0)
    event = CheckpointOpportunity(0.0, lambda: best, lambda: state)
    with pytest.warns(RuntimeWarning, match="state of a bound cannot be saved"):
        writer(event)
    saved = form.decode((tmp_path / "state").read_bytes(), tmp_path / "state")
    assert saved.state.schedule[0].warm_start is None


OTHER_KINDS = (
    {"cannot_link_groups": [0, 0, -1, -1]},
    {"cannot_link_groups": [0, -1, 0, -1]},
    {"size_max": 2},
    {"size_max": 3},
    {"size_min": 2},
    {"size_max": 5, "demand": [1, 2, 1, 2]},
    {"size_max": 5, "demand": [2, 1, 2, 1]},
    {"soft_must_link": [(0, 3, 2.0)]},
    {"soft_cannot_link": [(0, 3, 2.0)]},
    {"soft_cannot_link": [(0, 3, 2.5)]},
    {},
)


@pytest.mark.parametrize("kind", range(len(OTHER_KINDS)))
def test_fingerprint_of_other_constraints(kind):
    points = [[0.0], [1.0], [5.0], [6.0]]
    facts = [ProblemFingerprint.of(Problem.from_data(points, 2, **kinds)) for kinds in OTHER_KINDS]
    assert facts[kind].difference(facts[kind]) is None
    for other in (*facts[:kind], *facts[kind + 1 :]):
        assert "other sets, sizes or soft pairs" in facts[kind].difference(other)
    assert ("constraints_sha256" in facts[kind].to_state()) == (OTHER_KINDS[kind] != {})
