"""Colouring groups with K colours by plain search, and small sets that cannot be coloured.

The graphs that are left after peeling off vertices with fewer than K neighbours are small in
practice; where one is not, the search gives up after a fixed number of steps and says so.
"""

from __future__ import annotations

from itertools import combinations

Neighbours = dict[int, set[int]]

_STEPS = 50_000


class OutOfSteps(Exception):
    """The search was given up."""


def core(neighbours: Neighbours, n_colours: int) -> Neighbours:
    """Peel off vertices with fewer neighbours than colours: they can be coloured last.

    >>> core({0: {1, 2, 3}, 1: {0, 2}, 2: {0, 1}, 3: {0}}, 2) == {0: {1, 2}, 1: {0, 2}, 2: {0, 1}}
    True
    """
    left = {v: set(near) for v, near in neighbours.items()}
    loose = [v for v, near in left.items() if len(near) < n_colours]
    while loose:
        v = loose.pop()
        if v not in left:
            continue
        for other in left.pop(v):
            left[other].discard(v)
            if len(left[other]) == n_colours - 1:
                loose.append(other)
    return left


def pieces(neighbours: Neighbours) -> list[Neighbours]:
    """Return the connected components."""
    found, seen = [], set[int]()
    for start in neighbours:
        if start in seen:
            continue
        queue, piece = [start], {start}
        while queue:
            for other in neighbours[queue.pop()] - piece:
                piece.add(other)
                queue.append(other)
        seen |= piece
        found.append({v: neighbours[v] for v in sorted(piece)})
    return found


def colourable(neighbours: Neighbours, n_colours: int, steps: int = _STEPS) -> bool:
    """Say whether the graph can be coloured properly.

    The vertex that sees most colours is next, and of the colours not used so far one is tried.

    Raises
    ------
    OutOfSteps
        If it could not be decided.

    Examples
    --------
    >>> triangle = {0: {1, 2}, 1: {0, 2}, 2: {0, 1}}
    >>> colourable(triangle, 3), colourable(triangle, 2)
    (True, False)
    """
    return all(_piece(piece, n_colours, steps) for piece in pieces(core(neighbours, n_colours)))


def _piece(neighbours: Neighbours, n_colours: int, steps: int) -> bool:
    seen: dict[int, list[int]] = {v: [0] * n_colours for v in neighbours}
    saturation = dict.fromkeys(neighbours, 0)
    colour: dict[int, int] = {}
    trail: list[tuple[int, list[int]]] = []

    def paint(v: int, c: int, step: int) -> None:
        for other in neighbours[v]:
            before = seen[other][c]
            seen[other][c] += step
            saturation[other] += (before == 0) - (seen[other][c] == 0)

    while len(colour) < len(neighbours):
        steps -= 1
        if steps < 0:
            raise OutOfSteps
        free = (v for v in neighbours if v not in colour)
        v = max(free, key=lambda v: (saturation[v], len(neighbours[v])))
        offered = min(len(set(colour.values())) + 1, n_colours)
        trail.append((v, [c for c in range(offered) if not seen[v][c]]))
        while trail and not trail[-1][1]:
            v, _ = trail.pop()
            if trail:
                last = trail[-1][0]
                paint(last, colour.pop(last), -1)
        if not trail:
            return False
        v, left = trail[-1]
        colour[v] = left.pop()
        paint(v, colour[v], 1)
    return True


def uncolourable_set(neighbours: Neighbours, n_colours: int) -> set[int] | None:
    """Return vertices that cannot be coloured by themselves, a clique if one is found.

    None if everything can be coloured. If it takes too many steps, `OutOfSteps` is raised.

    >>> wheel = {0: {1, 4, 5}, 1: {0, 2, 5}, 2: {1, 3, 5}, 3: {2, 4, 5}, 4: {3, 0, 5}}
    >>> sorted(uncolourable_set({**wheel, 5: {0, 1, 2, 3, 4}, 6: {5}}, 3))
    [0, 1, 2, 3, 4, 5]
    """
    undecided = False
    for piece in pieces(core(neighbours, n_colours)):
        found = _clique(piece, n_colours + 1)
        if found is not None:
            return found
        try:
            if _piece(piece, n_colours, _STEPS):
                continue
        except OutOfSteps:
            undecided = True
            continue
        return _shrunk(piece, n_colours)
    if undecided:
        raise OutOfSteps
    return None


def _clique(neighbours: Neighbours, size: int, steps: int = 20_000) -> set[int] | None:
    """Look for a clique; None if there is none, or none was found in time."""
    left = {v: set(near) for v, near in neighbours.items()}
    for v in sorted(left, key=lambda v: len(left[v])):
        stack = [([v], left[v])]
        while stack and steps > 0:
            steps -= 1
            clique, near = stack.pop()
            if len(clique) == size:
                return set(clique)
            if len(clique) + len(near) < size:
                continue
            ordered = sorted(near, key=lambda u: len(left[u] & near))
            for at, u in enumerate(ordered):
                stack.append(([*clique, u], near.intersection(ordered[at + 1 :], left[u])))
        for other in left.pop(v):
            left[other].discard(v)
    return None


def _shrunk(piece: Neighbours, n_colours: int) -> set[int]:
    """Leave out vertices while the others still cannot be coloured."""
    kept = set(piece)
    for v in sorted(piece, key=lambda v: len(piece[v])):
        rest = kept - {v}
        try:
            if not colourable({u: piece[u] & rest for u in rest}, n_colours, _STEPS // 10):
                kept = rest
        except OutOfSteps:
            pass
    return kept


def edges_within(vertices: set[int], neighbours: Neighbours) -> list[tuple[int, int]]:
    """Return the edges between some vertices."""
    return [(u, v) for u, v in combinations(sorted(vertices), 2) if v in neighbours[u]]
