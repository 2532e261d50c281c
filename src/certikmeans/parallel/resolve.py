"""Resolution of the executor argument, with advice for unsupported objects."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, final

from certikmeans.errors import InputError
from certikmeans.parallel.remote import RemoteExecutor

# By the package and the name of a class: what to say about it.
ADVICE = {
    ("distributed", "LocalCluster"): "pass Client(cluster)",
    ("distributed", "SpecCluster"): "pass Client(cluster)",
    ("dask_jobqueue", ""): "pass Client(cluster), of dask.distributed",
    ("dask_kubernetes", ""): "pass Client(cluster), of dask.distributed",
    ("joblib", "Parallel"): "pass joblib.externals.loky.get_reusable_executor(max_workers=2)",
    ("joblib", ""): "pass joblib.externals.loky.get_reusable_executor(max_workers=2)",
    ("multiprocessing", ""): "pass concurrent.futures.ProcessPoolExecutor(2)",
    ("mpi4py", "Comm"): "pass mpi4py.futures.MPIPoolExecutor()",
    ("mpi4py", "Intracomm"): "pass mpi4py.futures.MPIPoolExecutor()",
    ("ray", ""): "pass ray.util.joblib's or any other concurrent.futures executor",
    ("ipyparallel", ""): "pass client.executor()",
    ("builtins", "int"): "for threads, say jobs=2; for processes, pass ProcessPoolExecutor(2)",
    ("builtins", "str"): "pass the executor itself, such as ProcessPoolExecutor(2)",
}
DEFAULT_ADVICE = (
    "pass a concurrent.futures executor, a Dask Client, mpi4py's MPIPoolExecutor or loky's "
    "get_reusable_executor()"
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ResolvedExecutor:
    """Who runs tasks: threads that share memory, or workers elsewhere; or neither."""

    threads: Executor | None = None
    remote: RemoteExecutor | None = None


def resolve_executor(executor: Any) -> ResolvedExecutor:
    """Take what was passed as an executor, or say what to pass instead.

    >>> resolve_executor(None).remote is None
    True
    >>> resolve_executor(4)
    Traceback (most recent call last):
    ...
    certikmeans.errors.InputError: executor: a number of type int takes no tasks
    hint: for threads, say jobs=2; for processes, pass ProcessPoolExecutor(2)
    """
    if executor is None:
        return ResolvedExecutor()
    if isinstance(executor, ThreadPoolExecutor):
        _reject_closed(executor)
        return ResolvedExecutor(threads=executor)
    client = _dask_client(executor)
    if client is not None:
        if client.status != "running":
            raise InputError(
                f"executor: the Dask client is {client.status}",
                hint="pass a Client that is connected to a scheduler",
            )
        return ResolvedExecutor(remote=RemoteExecutor(client.get_executor(pure=False), client))
    if isinstance(executor, Executor):
        _reject_closed(executor)
        return ResolvedExecutor(remote=RemoteExecutor(executor))
    raise InputError(f"executor: {_described(executor)} takes no tasks", hint=_advice(executor))


def _dask_client(executor: Any) -> Any:
    """The client of Dask that an executor is, or belongs to; None: none."""
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(executor).__mro__}
    if ("distributed", "Client") in kinds:
        if executor.asynchronous:
            raise InputError(
                "executor: an asynchronous Dask client cannot be waited for",
                hint="pass Client(address), without asynchronous=True",
            )
        return executor
    if ("distributed", "ClientExecutor") in kinds:
        return executor._client
    return None


def _reject_closed(executor: Executor) -> None:
    closed = getattr(executor, "_shutdown", False) or getattr(executor, "_shutdown_thread", False)
    if closed is True or getattr(executor, "_broken", False):
        raise InputError(
            "executor: it was shut down or is broken",
            hint="call solve inside the with statement that opens it",
        )


def _described(executor: Any) -> str:
    kind = type(executor)
    if kind.__module__ == "builtins":
        return f"a {'number' if isinstance(executor, int | float) else 'value'} of type " + (
            kind.__name__
        )
    return f"a {kind.__module__.partition('.')[0]} {kind.__name__}"


def _advice(executor: Any) -> str:
    for kind in type(executor).__mro__:
        package = kind.__module__.partition(".")[0]
        for key in ((package, kind.__name__), (package, "")):
            if key in ADVICE:
                return ADVICE[key]
    return DEFAULT_ADVICE
