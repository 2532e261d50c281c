"""Nested test kernels of depth three."""

from certikmeans._jit.dispatcher import njit


@njit(cache=True, nogil=True)
def square(x):
    return x * x


@njit(cache=True, nogil=True)
def sum_of_squares(values):
    total = 0.0
    for i in range(values.size):
        total += square(values[i])
    return total


@njit(cache=True, nogil=True)
def distance(values, others):
    for i in range(values.size):
        if values[i] < -1e100:
            raise ValueError("too far")
        values[i] -= others[i]
    return sum_of_squares(values) ** 0.5
