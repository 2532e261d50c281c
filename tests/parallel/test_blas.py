"""Limit of BLAS to one thread."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from certikmeans.parallel.blas import one_blas_thread


def threads():
    np.linalg.solve(np.eye(2), np.ones(2))  # loads the library
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


def test_nested_limits():
    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        assert before
        assert max(before) == 2
        with one_blas_thread():
            assert set(threads()) == {1}
            with one_blas_thread():
                assert set(threads()) == {1}
            assert set(threads()) == {1}
        assert threads() == before


def test_overlapping_limits():
    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        one, other = one_blas_thread(), one_blas_thread()
        one.__enter__()
        other.__enter__()
        one.__exit__(None, None, None)
        assert set(threads()) == {1}
        other.__exit__(None, None, None)
        assert threads() == before
