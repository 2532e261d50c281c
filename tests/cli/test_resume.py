"""``--checkpoint`` and ``--resume``: files, messages, exit codes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.cli.process import run

LIMITED = ("solve", "points.npy", "-k", 4, "--bound", "sample", "--node-limit", 21, "--jobs", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("resume")
    np.save(made / "points.npy", np.random.default_rng(0).uniform(size=(30, 2)))
    done = run(*LIMITED, "--checkpoint", "state", "--output", "whole.json", cwd=made)
    assert done.returncode == 1, done.stderr
    assert (made / "state").exists()
    return made


def test_resume(folder):
    done = run(*LIMITED, "--resume", "state", "--checkpoint", "state", "--json", cwd=folder)
    assert done.returncode == 1
    assert "state: going on after 21 nodes, lower bound" in done.stderr
    before, after = json.loads((folder / "whole.json").read_text()), json.loads(done.stdout)
    for name in ("nodes", "lower_bound", "cost", "labels"):
        assert after[name] == before[name]


def test_resume_with_changed_seed(folder):
    done = run(*LIMITED, "--resume", "state", "--seed", 4, cwd=folder)
    assert done.returncode == 1
    assert "labelling and bound" in done.stderr
    assert "the rest is computed again: settings have changed: seed" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--resume", "points.npy"), "points.npy: is neither a checkpoint nor a certificate"),
        (("--resume", "nowhere"), "nowhere: cannot be read"),
        (("--checkpoint", "no/state"), "the directory 'no' does not exist"),
        (("--checkpoint", "points.npy"), "points.npy: is an input of this run"),
        (("--checkpoint-every", "-1"), "--checkpoint-every: -1.0 is not a number of seconds"),
        (("--resume", "damaged"), "damaged: is damaged"),
        (("--cannot-link", "pair.txt", "--resume", "state"), "another problem: it is about other"),
    ],
)
def test_invalid_checkpoint_options(folder, arguments, message):
    content = bytearray((folder / "state").read_bytes())
    content[len(content) // 2] ^= 4
    (folder / "damaged").write_bytes(content)
    (folder / "pair.txt").write_text("0 1\n")
    done = run(*LIMITED, *arguments, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert "hint:" in done.stderr
    assert done.stdout == ""
