"""Execution of tasks in the calling thread, in local threads, or by remote workers."""

from certikmeans.parallel.remote import RemoteExecutor, RemoteParams, SharedData
from certikmeans.parallel.task_pool import TaskPool, resolve_executor

__all__ = ["RemoteExecutor", "RemoteParams", "SharedData", "TaskPool", "resolve_executor"]
