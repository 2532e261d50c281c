"""Kempe chains: collection and label swap, shared by all local searches. Compiled.

Two labels ``a`` and ``b`` are swapped on a connected component of the vertices that have one of
them. No edge then joins equal labels that did not before, so feasible labels stay feasible. A
vertex without a neighbour of the other label is a chain of length one: a plain move.
"""

from certikmeans._jit.dispatcher import njit


@njit(cache=True, nogil=True)
def collect_chain(
    indptr,  # IN   (n + 1,) int64
    neighbors,  # IN   int64
    labels,  # IN   (n,) int64, feasible
    start,  # IN   first vertex of the chain
    b,  # IN   label that ``start`` is to get
    stamp,  # IN   a number that ``mark`` does not hold yet
    mark,  # IN/OUT (n,) int64: scratch
    chain,  # OUT  (max_length,) int64: vertices, breadth first
):
    """Collect the chain of ``start`` towards label ``b``.

    Returns its length, or 0 if the chain is longer than ``chain``.
    """
    a = labels[start]
    chain[0] = start
    mark[start] = stamp
    length, head = 1, 0
    while head < length:
        vertex = chain[head]
        head += 1
        other_side = b if labels[vertex] == a else a
        for e in range(indptr[vertex], indptr[vertex + 1]):
            other = neighbors[e]
            if labels[other] == other_side and mark[other] != stamp:
                if length == chain.size:
                    return 0
                mark[other] = stamp
                chain[length] = other
                length += 1
    return length


@njit(cache=True, nogil=True)
def swap_chain(labels, chain, length, b):
    """Swap the labels ``a`` and ``b`` on a chain, where ``a`` is the label of its first vertex."""
    a = labels[chain[0]]
    for i in range(length):
        vertex = chain[i]
        labels[vertex] = b if labels[vertex] == a else a
