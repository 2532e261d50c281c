"""`njit` that compiles helpers of a kernel only as part of the kernel.

numba compiles every function that a kernel calls as if Python might call it next: it builds two
wrappers, optimises the function together with its callees, generates machine code and writes a
cache file. Then it links the function into its caller and optimises it again, at every level up to
the kernel that Python called. With kernels nested eight deep, that is most of the compile time.

Here a function that is compiled because another kernel calls it (a helper) is only lowered to LLVM
IR; it is optimised and compiled to machine code once, as part of the kernel that Python called, as
numba does with its own subroutines. A helper that Python calls later is compiled again, in full.

This subclasses four internal classes of numba, which may change in any release. It stays because
of what it saves: a cold start with numba's own ``njit`` takes 1.45 times the processor time without
pairs and 1.7 times with pairs (``CERTIKMEANS_PLAIN_NUMBA=1``; iris, K = 3, an empty cache). Where
the internals are not as expected, kernels are compiled by ``numba.njit``, with the same results.
"""

# numba has no type stubs.
# mypy: disable-error-code="no-untyped-call, attr-defined, misc"

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numba
from numba.core import codegen, compiler, config, registry
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock

from certikmeans._jit.cache import ensure_cache
from certikmeans._jit.clock import CLOCK
from certikmeans._jit.compile_events import register_numba_listener

_PLAIN = "CERTIKMEANS_PLAIN_NUMBA"  # environment variable: use numba.njit
_REQUIRED_ATTRIBUTES = {
    codegen.JITCodeLibrary: ("_optimize_final_module", "_finalize_final_module"),
    compiler.Compiler: ("compile_extra", "define_pipelines"),
    registry.CPUDispatcher: ("compile", "add_overload", "enable_caching"),
    compiler.Flags: ("no_compile", "no_cpython_wrapper", "no_cfunc_wrapper"),
}
_thread = threading.local()


def _depth() -> int:
    """Nesting depth of compilations in this thread: 1 for a kernel, more for its helpers."""
    return getattr(_thread, "depth", 0)


class _Unfinished:
    """Placeholder for the machine code that a helper does not have; no two are equal."""


class _HelperLibrary(codegen.JITCodeLibrary):
    """Library to be linked into a caller: neither optimised nor made executable."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _KernelCompiler(compiler.Compiler):
    """numba's compiler, without code generation for helpers."""

    def compile_extra(self, func: Any) -> Any:
        if _depth() <= 1:
            return super().compile_extra(func)
        state = self.state
        state.library = _HelperLibrary(state.targetctx.codegen(), func.__qualname__)
        flags = state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        result = super().compile_extra(func)
        entry = _Unfinished()
        state.targetctx.insert_user_function(entry, result.fndesc, [result.library])
        return result._replace(entry_point=entry)


class _KernelCache(FunctionCache):
    """Cache of callable kernels; helpers are not written."""

    def save_overload(self, sig: Any, data: Any) -> None:
        if not isinstance(data.entry_point, _Unfinished):
            super().save_overload(sig, data)


class _KernelDispatcher(registry.CPUDispatcher):
    """Dispatcher that distinguishes calls from Python and from other kernels."""

    def __init__(
        self,
        py_func: Any,
        locals: Any = None,
        targetoptions: Any = None,
        pipeline_class: Any = _KernelCompiler,
    ) -> None:
        super().__init__(py_func, locals, targetoptions, pipeline_class)

    def enable_caching(self) -> None:
        self._cache = _KernelCache(self.py_func)

    def compile(self, sig: Any) -> Any:
        with global_compiler_lock:
            if _depth() == 0:  # called from Python, which cannot run helpers
                for types, compiled in list(self.overloads.items()):
                    if isinstance(compiled.entry_point, _Unfinished):
                        del self.overloads[types]
            _thread.depth = _depth() + 1
            try:
                with CLOCK.paused():  # includes reading and writing the cache
                    return super().compile(sig)
            finally:
                _thread.depth -= 1

    def add_overload(self, cres: Any) -> None:
        if isinstance(cres.entry_point, _Unfinished):
            self.overloads[tuple(cres.signature.args)] = cres  # visible to kernels, not to Python
        else:
            super().add_overload(cres)


def _supported() -> bool:
    """Whether numba has all internals that are overridden here."""
    return not os.environ.get(_PLAIN) and all(
        hasattr(owner, name) for owner, names in _REQUIRED_ATTRIBUTES.items() for name in names
    )


def njit(*, cache: bool, nogil: bool) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function at its first call, as ``numba.njit`` does, in less time.

    Parameters
    ----------
    cache : bool
        Store the machine code on disk, if Python calls the function.
    nogil : bool
        Release the GIL during calls.
    """
    ensure_cache()
    register_numba_listener()
    plain = config.DISABLE_JIT or not _supported()

    def decorate(function: Callable[..., Any]) -> Any:
        if plain:
            kernel = numba.njit(cache=cache, nogil=nogil)(function)
        else:
            options = {"nopython": True, "nogil": nogil, "boundscheck": None}
            kernel = _KernelDispatcher(function, targetoptions=options)
            if cache:
                kernel.enable_caching()
        kernel.is_kernel = True  # recognised by compile_events
        return kernel

    return decorate
