"""
Many machines
=============

Bounds and nodes of the tree are tasks that anything with the interface of `concurrent.futures` can
run: threads, processes, Dask's `client.get_executor()`, `mpi4py.futures.MPIPoolExecutor`. The
result does not depend on the executor.
"""

from concurrent.futures import ProcessPoolExecutor

import matplotlib.pyplot as plt
import numpy as np

from certikmeans import Problem, solve
from certikmeans.events import TreeProgress

# %%
# Uniform points, with cannot-links that cut across the geometry: the root leaves a gap, and
# the tree closes it. Executors speed up the tree; problems that close at the root do not need them.
rng = np.random.default_rng(3)
points = rng.uniform(size=(40, 2))
classes = rng.integers(3, size=len(points))
pairs = rng.choice(len(points), size=(100, 2))
problem = Problem.from_data(
    points, n_clusters=3, cannot_link=pairs[classes[pairs[:, 0]] != classes[pairs[:, 1]]]
)

# %%
# Processes import this file, so the run is guarded by `__name__`. For several machines, only the
# line with the executor changes.
if __name__ == "__main__":
    events_here, events_there = [], []
    here = solve(problem, gap=0.001, callbacks=[events_here.append])
    with ProcessPoolExecutor(2) as executor:
        there = solve(problem, gap=0.001, callbacks=[events_there.append], executor=executor)

    print(f"threads:   {here.status}, {here.nodes} nodes, lower bound {here.lower_bound:.6f}")
    print(f"processes: {there.status}, {there.nodes} nodes, lower bound {there.lower_bound:.6f}")
    assert (here.labels == there.labels).all()
    assert here.lower_bound == there.lower_bound

    fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for name, events, width in (("threads", events_here, 5), ("processes", events_there, 1.5)):
        tree = [event for event in events if isinstance(event, TreeProgress)]
        bounds = [event.lower_bound for event in tree]
        ax.step([event.nodes for event in tree], bounds, label=name, linewidth=width)
    ax.axhline(there.cost, color="0.4", linestyle=":", label="cost")
    ax.set(xlabel="nodes of the tree", ylabel="sum of squares", title="the same bounds")
    ax.legend()
    plt.show()
