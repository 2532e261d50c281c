"""Prices of constraints at a point: valid upper bounds on the value of the best admissible set.

A price vector ``p`` with a constant ``c`` is valid if every admissible set ``I`` satisfies

    sum of the bonuses of the pairs inside I  +  sum_{s in I} p_s  <=  c .

Then for all ``v`` the value of the best admissible set is at most ``c + sum_s max(v_s - p_s, 0)``.
Each kind of constraint has a range of valid prices, and prices of several kinds add up:

* hard cannot-link ``uv``, ``pi >= 0``: ``p_u += pi``, ``p_v += pi``, ``c += pi``;
* soft cannot-link with penalty ``P``: the same with ``0 <= pi <= P``;
* soft must-link with bonus ``r``, ``0 <= t <= 1``: ``p_u -= t r``, ``p_v -= (1 - t) r``;
* odd cycle of ``k`` hard cannot-links, ``q >= 0``: ``p_s += q`` on it, ``c += q (k - 1) / 2``;
* set ``Q`` with at most one member in ``I``, ``q >= 0``: ``p_s += q`` in ``Q``, ``c += q``;
* sizes ``L <= demand(I) <= U``, any ``theta``: ``p_s += theta a_s``, and ``c += theta U`` if
  ``theta >= 0``, else ``theta L``;
* size cuts: see `size_cuts`.

Every number in these ranges is valid, so the modules here only look for good ones: `pairs`,
`reduction` and `flow` solve the linear program of the pairs, `cycles` strengthens it, `sets` and
`sizes` take order statistics, `compose` alternates between the kinds. `select` finds an admissible
set of large value.

**Rounding.** The computed price of a group is a sum of at most ``T`` floating-point terms, each in
its valid range as it is (the two parts of a must-link's bonus add up to it within ``UNIT r``, and
``theta a_s`` is rounded once). With exact sums ``p*`` and ``c*`` of the terms, an admissible set
has ``sum_I p - sum_I p* <= (T + 2) UNIT S`` to first order, ``S`` the sum over the set of the sizes
of the terms: at most ``sum |pi|`` at the ends of all pairs, ``sum q`` at the members of all cycles,
``sum q`` over all sets (a set has one member in ``I`` at most) and ``max(|theta| U, |theta| L)`` or
``|theta| demand``. The constant is a compensated sum. `update_prices` adds ``(T + 6) EPS`` of these
sums to the constant it returns
(``EPS = 2 UNIT`` covers the terms of higher order and the rounding of the sums themselves): **the
inequality above holds exactly for the returned floating-point numbers**.
"""
