"""Numbers shown to people never claim more than the numbers they stand for."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certikmeans._numbers import cost_text, duration, percent, rounded_down, rounded_up

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(value=FINITE, digits=st.integers(1, 12))
def test_rounding_keeps_its_side_and_stays_close(value, digits):
    up, down = Fraction(rounded_up(value, digits)), Fraction(rounded_down(value, digits))
    exact = Fraction(value)
    assert down <= exact <= up
    assert up - down <= abs(exact) * Fraction(10) ** (1 - digits)


@given(value=st.floats(min_value=1e-290, max_value=1e290), digits=st.integers(1, 12))
def test_costs_are_rounded_up_but_for_rounding_errors(value, digits):
    shown, exact = Fraction(cost_text(value, digits)), Fraction(value)
    assert exact * (1 - Fraction(2, 10**14)) <= shown <= Fraction(rounded_up(value, digits))


def test_rounding_errors_of_a_cost_are_not_shown():
    assert cost_text(12.500000000000036) == cost_text(12.5) == "12.5"
    assert cost_text(12.50000001) == "12.50000001"
    assert cost_text(12.5000000001) == "12.50000001"


@given(share=st.floats(0.0, 1e6))
def test_percent_is_never_too_small(share):
    shown = Fraction(percent(share).removesuffix(" %"))
    assert shown >= 100 * Fraction(share)
    assert shown <= 101 * Fraction(share)


def test_gap_above_the_goal_is_rounded_up():
    assert percent(0.00100001) == "0.101 %"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0, "0.00 s"), (9.999, "10.0 s"), (59.99, "1 min 00 s"), (3599.7, "1 h 00 min")],
)
def test_durations_carry_over(seconds, shown):
    assert duration(seconds) == shown


@pytest.mark.parametrize(("value", "shown"), [(float("inf"), "infinite"), (float("-inf"), "none")])
def test_infinities_are_words(value, shown):
    assert rounded_up(value) == shown
    assert percent(value) == shown
