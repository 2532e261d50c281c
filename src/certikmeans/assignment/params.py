"""Settings of the exact assignment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class AssignmentParams:
    """Limits that decide which method solves a component, and for how long.

    No limit affects the validity of a bound: a component beyond a limit is solved by another
    method, or its labels are reported as not proven optimal.
    """

    # Layout of components with cycles.
    max_cheap_additions: int = 30_000  # of bucket elimination; above, a search is tried first
    max_table_entries: int = 1_000_000  # of one table with its vertex: 8 MB
    max_total_entries: int = 4_000_000  # of all tables of a component
    min_fill_size: int = (
        150  # vertices; min-fill gives smaller tables than min-degree in cubic time
    )
    # Larger cores are laid out without Python sets: they are searched, and edges serve as clique
    # cover. Unless they are hardly more than trees: then an elimination order is computed.
    large_core_size: int = 20_000
    sparse_edges_per_vertex: float = 1.2
    # With more links a clique cover takes seconds: every link is a clique of its own.
    many_links: int = 20_000

    # Searches, in vertices visited: some milliseconds first, then about a second, then more.
    short_search_work: int = 100_000
    long_search_work: int = 1_000_000
    max_search_work: int = 64_000_000
    # With more cliques times labels, multipliers take longer than a short search may.
    max_multipliers: int = 1_000_000

    # Estimates of work, in multiplications.
    task_work: int = 200_000  # per task of an executor: about half a millisecond
    search_work: float = 5e6  # takes about as long as a short search in a component

    def __post_init__(self) -> None:
        if self.max_table_entries < 1 or self.task_work < 1:
            raise ValueError("max_table_entries and task_work must be positive")


DEFAULT_PARAMS = AssignmentParams()
