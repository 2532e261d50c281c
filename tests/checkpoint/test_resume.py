"""A run that continues from a checkpoint ends as the one that was never interrupted."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans import Status, StopSignal, check_certificate, solve
from certikmeans.certificate.write import certificate_bytes, write_certificate
from certikmeans.errors import InputError
from certikmeans.events import CheckpointOpportunity, IncumbentFound, StageStarted
from tests.checkpoint.cases import RUN_SETTINGS, KillAt, Killed, clumps, same


def killed(problem, path, at, **settings):
    with pytest.raises(Killed):
        solve(problem, checkpoint=path, checkpoint_interval=0, callbacks=[KillAt(at)], **settings)


few_or_many = pytest.mark.parametrize("moments", [2, pytest.param(4, marks=pytest.mark.slow)])


@few_or_many
@pytest.mark.parametrize("name", RUN_SETTINGS)
def test_resume_equals_uninterrupted(name, moments, tmp_path):
    settings, path, problem = {**RUN_SETTINGS[name], "jobs": 1}, tmp_path / "state", clumps()
    counter = KillAt()
    whole = solve(problem, callbacks=[counter], **settings)
    assert whole.nodes > 2
    assert counter.seen > 8
    for at in sorted({3, *np.linspace(5, counter.seen, moments).astype(int).tolist()}):
        killed(problem, path, at, **settings)
        later = KillAt()
        again = solve(problem, resume=path, callbacks=[later], **settings)
        assert same(again, whole), at
        # What was done before the last safe point is not done again.
        assert later.seen <= counter.seen - at + 5
        if settings.get("keep_proof"):
            verdict = check_certificate(problem.points, certificate_bytes(problem, again))
            assert verdict.accepted, verdict.message


def test_killed_repeatedly(tmp_path):
    settings, path, problem = (
        {**RUN_SETTINGS["cluster, pairs"], "jobs": 1},
        tmp_path / "state",
        clumps(),
    )
    whole = solve(problem, **settings)
    killed(problem, path, 5, **settings)
    for _ in range(3):
        killed(problem, path, 5, resume=path, **settings)
    assert same(solve(problem, resume=path, **settings), whole)


@few_or_many
@pytest.mark.parametrize("name", RUN_SETTINGS)
def test_killed_right_after_resume(name, moments, tmp_path):
    """The saved state is kept until the interrupted bound or the tree continues."""
    settings, path, problem = {**RUN_SETTINGS[name], "jobs": 1}, tmp_path / "state", clumps()
    counter = KillAt()
    whole = solve(problem, callbacks=[counter], **settings)
    for at in np.linspace(6, counter.seen, moments).astype(int).tolist():
        for again in (2, 3):
            killed(problem, path, at, **settings)
            killed(problem, path, again, resume=path, **settings)
            later = KillAt()
            assert same(solve(problem, resume=path, callbacks=[later], **settings), whole), at
            assert later.seen <= counter.seen - at + 5


def test_resume_with_other_thread_count(tmp_path):
    settings, path, problem = RUN_SETTINGS["cluster, pairs"], tmp_path / "state", clumps()
    whole = solve(problem, jobs=2, **settings)
    killed(problem, path, 14, jobs=2, **settings)
    assert same(solve(problem, resume=path, jobs=1, **settings), whole)


def test_partition_resume_keeps_parts(tmp_path):
    rng = np.random.default_rng(0)
    from certikmeans import Problem

    problem = Problem.from_data(rng.normal(size=(90, 12)), 3)
    settings, path = {"bound": "partition", "jobs": 1}, tmp_path / "state"
    counter = KillAt()
    whole = solve(problem, callbacks=[counter], **settings)
    assert counter.seen > 6
    killed(problem, path, 5, **settings)
    later = KillAt()
    again = solve(problem, resume=path, callbacks=[later], **settings)
    assert np.array_equal(again.labels, whole.labels)
    assert again.lower_bound >= 0.999 * whole.lower_bound
    assert later.seen < counter.seen


def test_resume_after_interrupt(tmp_path):
    """Stopped by hand, in the middle of a round: the round is taken up again."""
    settings, path, problem = (
        {**RUN_SETTINGS["sample, depth"], "jobs": 1},
        tmp_path / "state",
        clumps(),
    )
    whole = solve(problem, **settings)
    for at in (4, 9, 20, 41):
        stop = StopSignal()
        counter = KillAt()

        def pull(event, stop=stop, counter=counter, at=at):
            counter(event)
            if counter.seen >= at:
                stop.interrupt()

        first = solve(problem, checkpoint=path, callbacks=[pull], stop=stop, **settings)
        assert first.nodes < whole.nodes
        assert same(solve(problem, resume=path, **settings), whole)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("selection", ["best", "depth", "mixed"])
def test_resume_with_higher_node_limit(selection, jobs, tmp_path):
    settings, path, problem = {"bound": "sample", "selection": selection}, tmp_path / "s", clumps()
    whole = solve(problem, node_limit=65, jobs=1, **settings)
    assert whole.nodes == 65
    for limit in (3, 12, 34):
        solve(problem, node_limit=limit, checkpoint=path, jobs=jobs, **settings)
        assert same(solve(problem, node_limit=65, resume=path, jobs=jobs, **settings), whole)


def test_resume_takes_saved_options(tmp_path):
    path, problem = tmp_path / "state", clumps()
    before = solve(problem, bound="sample", seed=3, gap=1e-4, node_limit=21, checkpoint=path)
    events = []
    again = solve(problem, node_limit=21, resume=path, callbacks=[events.append])
    assert same(again, before)
    assert again.seed == 3
    assert not any(isinstance(one, StageStarted) and one.stage == "heuristics" for one in events)


@pytest.mark.parametrize(
    "changes", [{"gap": 1e-6}, {"bound": "cluster"}, {"seed": 5}, {"selection": "depth"}]
)
def test_resume_with_changed_options(changes, tmp_path):
    path, problem = tmp_path / "state", clumps()
    before = solve(problem, bound="sample", gap=1e-4, node_limit=21, checkpoint=path)
    first = []
    settings = {"bound": "sample", "node_limit": 3, **changes}
    again = solve(problem, resume=path, callbacks=[first.append], **settings)
    assert again.cost <= before.cost
    assert again.lower_bound >= before.lower_bound
    assert any(isinstance(one, StageStarted) and one.stage == "heuristics" for one in first)


def test_resume_of_finished_run(tmp_path):
    path, problem = tmp_path / "state", clumps()
    for settings in ({"gap": 0.3}, {"gap": 1e-4, "bound": "cluster", "keep_proof": True}):
        before = solve(problem, checkpoint=path, **settings)
        assert before.status is Status.OPTIMAL
        again = solve(problem, resume=path)
        assert same(again, before)
        assert (again.proof is None) == (before.proof is None)


def test_write_interval(tmp_path):
    from certikmeans.checkpoint.writer import CheckpointWriter
    from certikmeans.options import Options

    problem = clumps()
    ticks = iter(range(10_000))  # a clock that counts how often it is looked at
    writer = CheckpointWriter(
        tmp_path / "state", problem, Options(), interval_seconds=20, clock=lambda: next(ticks)
    )
    counter = KillAt()
    solve(problem, callbacks=[counter, writer], bound="sample", node_limit=60, jobs=1)
    assert 1 < writer.written <= counter.seen // 20 + 1


def test_heuristic_incumbent_is_saved(tmp_path):
    """Killed while they go on: the best so far is in the file, and the answer is the same."""
    path, problem = tmp_path / "state", clumps()
    stages, kept = [], []

    def kill_in_heuristics(event):
        if isinstance(event, StageStarted):
            stages.append(event.stage)
        elif isinstance(event, CheckpointOpportunity) and stages[-1:] == ["heuristics"]:
            kept.append(event.essence().labels)
            if len(kept) == 2:
                raise Killed

    settings = {**RUN_SETTINGS["sample, depth"], "jobs": 1}
    with pytest.raises(Killed):
        solve(
            problem,
            checkpoint=path,
            checkpoint_interval=0,
            callbacks=[kill_in_heuristics],
            **settings,
        )
    events = []
    again = solve(problem, resume=path, callbacks=[events.append], **settings)
    found = next(one for one in events if isinstance(one, IncumbentFound))
    assert found.source == "run before"
    assert any(isinstance(one, StageStarted) and one.stage == "heuristics" for one in events)
    assert same(again, solve(problem, **settings))


def test_resume_from_certificate(tmp_path):
    path, problem = tmp_path / "proof", clumps(weighted=True)
    rough = solve(problem, gap=0.05, keep_proof=True, bound="sample", node_limit=30)
    write_certificate(path, problem, rough)
    better = solve(problem, gap=1e-3, keep_proof=True, resume=path)
    assert better.lower_bound > rough.lower_bound
    assert better.cost <= rough.cost
    assert check_certificate(problem.points, certificate_bytes(problem, better)).accepted
    # And a run that does not get as far shows what was shown before.
    short = solve(problem, keep_proof=True, bound="sample", node_limit=1, resume=path)
    verdict = check_certificate(problem.points, certificate_bytes(problem, short))
    assert verdict.accepted
    assert verdict.lower_bound >= rough.lower_bound * (1.0 - 1e-8)
    assert short.lower_bound >= rough.lower_bound * (1.0 - 1e-8)


def test_resume_rejects_invalid_certificate(tmp_path):
    problem, other = clumps(), clumps(seed=1)
    path = tmp_path / "proof"
    result = solve(problem, keep_proof=True)
    write_certificate(path, problem, result)
    with pytest.raises(InputError, match="certificate of another problem"):
        solve(other, resume=path)
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="certificate that was refused"):
        solve(problem, resume=path)


def test_snapshots_can_be_encoded(tmp_path):
    """The state between two events can be encoded."""
    from certikmeans.checkpoint.codec import Encoder

    seen = []

    def look(event):
        if isinstance(event, CheckpointOpportunity):
            seen.append(Encoder().encode(event.state()))

    solve(clumps(), bound="sample", node_limit=20, callbacks=[look])
    assert len(seen) > 5
