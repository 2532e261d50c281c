"""Certificates written by versions 0.1 and 0.2 are accepted; see data/README.md."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from certikmeans.certificate import check_certificate
from certikmeans.certificate import format as form
from certikmeans.certificate.format import Reason
from certikmeans.certificate.leaves import CODES

DATA = Path(__file__).parent / "data"
CONTENT = json.loads((DATA / "cases.json").read_text())
CASES = CONTENT["certificates"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_accepted(case):
    points = np.array(CONTENT["points"][case["points"]])
    content = (DATA / case["file"]).read_bytes()
    verdict = check_certificate(points, content)
    assert verdict.accepted, verdict.message
    assert verdict.cost == (math.inf if case["cost"] is None else case["cost"])
    assert verdict.lower_bound == (math.inf if case["cost"] is None else case["lower_bound"])
    decoded = form.decode(content, points.shape)
    assert decoded.writer == case["writer"]
    assert sorted(set(decoded.kinds.tolist())) == case["kinds"]
    if decoded.certainty is not None:
        assert verdict.details["certainty"] == {"slack": 0.05, "certain": 6, "boxes": 4}
    points[0, 0] += 1.0
    assert check_certificate(points, content).reason is Reason.DATA


def test_all_kinds_present():
    kinds = {
        version: {kind for case in CASES if version in case["writer"] for kind in case["kinds"]}
        for version in ("0.1.0", "0.2.0")
    }
    codes = {CODES[name] for name in ("cluster", "sample", "sdp", "one cluster", "infeasible")}
    splits = {form.CENTER_SPLIT, form.PAIR_SPLIT}
    assert kinds["0.1.0"] == codes | splits
    new = {CODES[name] for name in ("spectral", "partition", "trivial")}
    assert kinds["0.2.0"] == codes | splits | new


def test_encoding_unchanged():
    for case in CASES:
        content = (DATA / case["file"]).read_bytes()
        again = form.decode(form.encode(form.decode(content)))
        for name in ("kinds", "first", "second", "values", "lengths", "multipliers", "axes"):
            assert np.array_equal(getattr(again, name), getattr(form.decode(content), name))
