"""Format numbers, rounded in the direction that keeps the claim true, and validate them."""

from __future__ import annotations

import math
import operator
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from certikmeans.errors import Argument, InputError, Message

DIGITS = 10
ROUNDING_OF_COSTS = Decimal("2e-14")  # of a cost: its evaluation adds less


def rounded_up(value: float, digits: int = DIGITS) -> str:
    """Show ``value`` or a little more: for gaps, so that none looks better than it is.

    >>> rounded_up(0.10004, 3)
    '0.101'
    >>> rounded_up(78.0)
    '78'
    """
    return _shown(value, digits, ROUND_CEILING)


def cost_text(cost: float, digits: int = DIGITS) -> str:
    """Show a cost, rounded up unless it exceeds a shorter number by rounding errors only.

    A cost is an upper bound on the sum that it stands for; evaluating that sum in floats adds
    about 1e-15 of it. Rounded up to ten digits, this would appear as a digit of its own.

    >>> cost_text(12.500000000000004), cost_text(12.5000001, 4)
    ('12.5', '12.51')
    """
    if not math.isfinite(cost):
        return _shown(cost, digits, ROUND_CEILING)
    nearest = Context(prec=digits, rounding=ROUND_HALF_EVEN).create_decimal(Decimal(cost))
    if abs(nearest - Decimal(cost)) <= abs(Decimal(cost)) * ROUNDING_OF_COSTS:
        return _shown(nearest, digits, ROUND_CEILING)
    return rounded_up(cost, digits)


def rounded_down(value: float, digits: int = DIGITS) -> str:
    """Show ``value`` or a little less: for lower bounds.

    >>> rounded_down(0.10009, 3)
    '0.1'
    >>> rounded_down(float("inf"))
    'infinite'
    """
    return _shown(value, digits, ROUND_FLOOR)


def percent(fraction: float) -> str:
    """Show a share in per cent, rounded up.

    >>> percent(0.0010001)
    '0.101 %'
    >>> percent(0.0)
    '0 %'
    """
    if not math.isfinite(fraction):
        return _shown(fraction, 3, ROUND_CEILING)
    # Multiplied as decimals: a product of floats could fall below the exact one.
    return f"{_shown(Decimal(fraction) * 100, 3, ROUND_CEILING)} %"


def percent_in_full(share: float) -> str:
    """Show a share in per cent with all its digits: for what a claim is about.

    >>> percent_in_full(0.001), percent_in_full(0.00099999996)
    ('0.1 %', '0.099999996 %')
    """
    return f"{(Decimal(repr(share)) * 100).normalize():f} %"


def count(number: int, noun: str) -> str:
    """Show a count with its noun.

    >>> count(1, "point"), count(1500000, "point")
    ('1 point', '1,500,000 points')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float) -> str:
    """Show a time span.

    >>> duration(0.0123), duration(75.0), duration(7384.0)
    ('0.01 s', '1 min 15 s', '2 h 03 min')
    """
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def plain_number(value: Any) -> float:
    """Return ``value`` as a float; NaN if it is not a number.

    >>> plain_number(3), plain_number("3"), plain_number(None)
    (3.0, nan, nan)
    """
    if isinstance(value, str | bytes | bool):  # float() would take them, and hide a slip
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def parse_fraction(text: str, name: str = "gap") -> float:
    """Parse a fraction, which may be given in per cent; the range is checked elsewhere.

    >>> parse_fraction("0.01"), parse_fraction("1%"), parse_fraction("0.1 %")
    (0.01, 0.01, 0.001)
    """
    number = text.strip()
    try:
        # Divided as a decimal: 0.1 % is the float 0.001, not a neighbour of it.
        return float(Decimal(number[:-1].strip()) / 100 if number.endswith("%") else number)
    except (ValueError, ArithmeticError) as error:
        raise InputError(
            Message(Argument(name), f": {text!r} is not a number"),
            hint="0.001 or 0.1% stands for 0.1 % of the cost",
        ) from error


def fraction(value: Any, name: str) -> float:
    """Return ``value`` as a float; text must have a per cent sign, and NaN is no fraction.

    >>> fraction("0.1%", "gap"), fraction(0.001, "gap"), fraction("0.1", "gap")
    (0.001, 0.001, nan)
    """
    if isinstance(value, str) and value.rstrip().endswith("%"):
        return parse_fraction(value, name)
    return plain_number(value)


def whole_number(name: str, value: Any, least: int) -> int:
    """Return ``value`` as an int; raise unless it is a whole number of at least ``least``."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise InputError(
            Message(Argument(name), f": {value!r} is not a whole number of at least {least}"),
            hint=f"give a whole number, {least} or more",
        )
    return number


def _shown(value: float | Decimal, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return "infinite" if value > 0 else "none"
    exact = Context(prec=digits, rounding=rounding).create_decimal(Decimal(value)).normalize()
    return f"{exact:f}" if exact == 0 or -6 < exact.adjusted() < 15 else f"{exact:e}"
