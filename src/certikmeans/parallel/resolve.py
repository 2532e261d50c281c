"""Resolution of the executor argument, with advice for unsupported objects."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, final

from certikmeans.errors import InputError
from certikmeans.parallel.remote import RemoteExecutor

# What to pass instead, by package and name of a class or of a base class.
ADVICE = {
    ("distributed", "Cluster"): "pass Client(cluster), of dask.distributed",
    ("joblib", ""): "pass joblib.externals.loky.get_reusable_executor(max_workers=2)",
    ("multiprocessing", ""): "pass concurrent.futures.ProcessPoolExecutor(2)",
    ("mpi4py", "Comm"): "pass mpi4py.futures.MPIPoolExecutor()",
    ("ipyparallel", ""): "pass client.executor()",
    ("builtins", "int"): "for threads, pass jobs=2; for processes, ProcessPoolExecutor(2)",
    ("builtins", "str"): "pass the executor itself, such as ProcessPoolExecutor(2)",
}
DEFAULT_ADVICE = (
    "pass a concurrent.futures executor, a Dask Client, mpi4py's MPIPoolExecutor or loky's "
    "get_reusable_executor()"
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ResolvedExecutor:
    """An executor argument: threads that share memory, a remote executor, or neither."""

    threads: Executor | None = None
    remote: RemoteExecutor | None = None


def resolve_executor(executor: Any) -> ResolvedExecutor:
    """Classify an executor argument, or raise with advice on what to pass instead.

    >>> resolve_executor(None).remote is None
    True
    >>> resolve_executor(4)
    Traceback (most recent call last):
    ...
    certikmeans.errors.InputError: executor: a number of type int takes no tasks
    hint: for threads, pass jobs=2; for processes, ProcessPoolExecutor(2)
    """
    if executor is None:
        return ResolvedExecutor()
    if isinstance(executor, RemoteExecutor):
        return ResolvedExecutor(remote=executor)
    client = _dask_client(executor)
    if client is not None:
        if client.status != "running":
            raise InputError(
                f"executor: the Dask client is {client.status}",
                hint="pass a Client that is connected to a scheduler",
            )
        return ResolvedExecutor(remote=RemoteExecutor(client.get_executor(pure=False), client))
    if not isinstance(executor, Executor):
        raise InputError(f"executor: {_described(executor)} takes no tasks", hint=_advice(executor))
    closed = getattr(executor, "_shutdown", False) or getattr(executor, "_shutdown_thread", False)
    if closed is True or getattr(executor, "_broken", False):
        raise InputError(
            "executor: it was shut down or is broken",
            hint="call solve inside the with statement that opens it",
        )
    if isinstance(executor, ThreadPoolExecutor):
        return ResolvedExecutor(threads=executor)
    return ResolvedExecutor(remote=RemoteExecutor(executor))


def _dask_client(executor: Any) -> Any:
    """Return the Dask client that an executor is, or belongs to; None for other executors."""
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(executor).__mro__}
    if ("distributed", "Client") in kinds:
        if executor.asynchronous:
            raise InputError(
                "executor: asynchronous Dask clients are not supported",
                hint="pass Client(address), without asynchronous=True",
            )
        return executor
    if ("distributed", "ClientExecutor") in kinds:
        return executor._client
    return None


def _described(executor: Any) -> str:
    kind = type(executor)
    if kind.__module__ == "builtins":
        word = "number" if isinstance(executor, int | float) else "value"
        return f"a {word} of type {kind.__name__}"
    return f"a {kind.__module__.partition('.')[0]} {kind.__name__}"


def _advice(executor: Any) -> str:
    for kind in type(executor).__mro__:
        package = kind.__module__.partition(".")[0]
        for key in ((package, kind.__name__), (package, "")):
            if key in ADVICE:
                return ADVICE[key]
    return DEFAULT_ADVICE
