"""Execution of tasks in the calling thread, in local threads, or by remote workers."""

from certikmeans.parallel.remote import RemoteExecutor, RemoteParams
from certikmeans.parallel.resolve import resolve_executor
from certikmeans.parallel.task_pool import TaskPool
from certikmeans.parallel.worker import SharedData

__all__ = ["RemoteExecutor", "RemoteParams", "SharedData", "TaskPool", "resolve_executor"]
