"""Every mutant of the trusted core is killed by its tests."""

from __future__ import annotations

import pytest
from tools.mutants.__main__ import ROOT, mutated, run_mutant
from tools.mutants.catalogue import MUTANTS


def test_every_mutant_changes_one_place():
    for mutant in MUTANTS:
        text = (ROOT / mutant.file).read_text(encoding="utf-8")
        assert mutated(mutant, text) != text
        assert all((ROOT / name.partition("::")[0]).exists() for name in mutant.tests)


def test_names_differ():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant", [one for one in MUTANTS if not one.covered], ids=lambda one: one.name
)
def test_mutant_is_killed(mutant):
    assert run_mutant(mutant).killed_by
