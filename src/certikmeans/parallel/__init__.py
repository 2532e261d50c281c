"""Execution of tasks in this thread, in a thread pool, or by remote workers."""

from certikmeans.parallel.remote import RemoteExecutor
from certikmeans.parallel.resolve import resolve_executor
from certikmeans.parallel.task_pool import TaskPool
from certikmeans.parallel.worker import SharedData

__all__ = ["RemoteExecutor", "SharedData", "TaskPool", "resolve_executor"]
