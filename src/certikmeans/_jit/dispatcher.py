"""`njit` for kernels: what only other kernels call is not compiled for its own sake.

numba compiles every function that a kernel calls as if Python might call it next: it makes two
wrappers, optimises the function with all that it calls in turn, generates machine code, and writes
a file. Then it links the function into its caller and optimises it once more, at every level up to
the kernel that Python called. With kernels nested eight deep, that is most of the compile time.

Here a function that is compiled because another kernel calls it (a helper) is only brought into
LLVM's language; it is optimised and turned into machine code once, as a part of the kernel that
Python called. That is how numba compiles its own subroutines. A helper that Python calls later is
compiled again, in full.

All of this stands on parts of numba that may change. Where they are not as expected, kernels are
compiled by numba's own ``njit``: the same results, later.
"""

# numba's own types do not tell what is adjusted here.
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

_PLAIN = "CERTIKMEANS_PLAIN_NUMBA"  # set it to have every helper compiled in full
_NEEDED = {
    codegen.JITCodeLibrary: ("_optimize_final_module", "_finalize_final_module"),
    compiler.Compiler: ("compile_extra", "define_pipelines"),
    registry.CPUDispatcher: ("compile", "add_overload", "enable_caching"),
    compiler.Flags: ("no_compile", "no_cpython_wrapper", "no_cfunc_wrapper"),
}
_here = threading.local()


def _depth() -> int:
    """How many kernels this thread is compiling, one for the sake of the other."""
    return getattr(_here, "depth", 0)


class _Unfinished:
    """Stands for the machine code that a helper does not have; no two are equal."""


class _HelperLibrary(codegen.JITCodeLibrary):
    """Code that waits for being linked into a caller: neither optimised nor made executable."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _KernelCompiler(compiler.Compiler):
    """numba's compiler, which stops before machine code where a helper is compiled."""

    def compile_extra(self, func: Any) -> Any:
        if _depth() <= 1:
            return super().compile_extra(func)
        state = self.state
        state.library = _HelperLibrary(state.targetctx.codegen(), func.__qualname__)
        flags = state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        made = super().compile_extra(func)
        entry = _Unfinished()
        state.targetctx.insert_user_function(entry, made.fndesc, [made.library])
        return made._replace(entry_point=entry)


class _KernelCache(FunctionCache):
    """Keeps what can be called."""

    def save_overload(self, sig: Any, data: Any) -> None:
        if not isinstance(data.entry_point, _Unfinished):
            super().save_overload(sig, data)


class _KernelDispatcher(registry.CPUDispatcher):
    """Finds or compiles the code for the types at hand; knows who asks for it."""

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
            if _depth() == 0:  # Python asks: what was made for other kernels will not do
                for types, made in list(self.overloads.items()):
                    if isinstance(made.entry_point, _Unfinished):
                        del self.overloads[types]
            _here.depth = _depth() + 1
            try:
                with CLOCK.paused():  # also while files are read or written
                    return super().compile(sig)
            finally:
                _here.depth -= 1

    def add_overload(self, cres: Any) -> None:
        if isinstance(cres.entry_point, _Unfinished):
            self.overloads[tuple(cres.signature.args)] = cres  # for kernels; not for Python
        else:
            super().add_overload(cres)


def _supported() -> bool:
    """Whether this numba has every part that is adjusted here."""
    return not os.environ.get(_PLAIN) and all(
        hasattr(owner, name) for owner, names in _NEEDED.items() for name in names
    )


def njit(*, cache: bool, nogil: bool) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function when it is first called, as ``numba.njit`` does, but sooner done.

    Parameters
    ----------
    cache : bool
        Keep the machine code on disk, if Python calls the function.
    nogil : bool
        Let other threads run meanwhile.
    """
    ensure_cache()
    register_numba_listener()
    plain = config.DISABLE_JIT or not _supported()

    def decorate(function: Callable[..., Any]) -> Any:
        if plain:
            made = numba.njit(cache=cache, nogil=nogil)(function)
        else:
            options = {"nopython": True, "nogil": nogil, "boundscheck": None}
            made = _KernelDispatcher(function, targetoptions=options)
            if cache:
                made.enable_caching()
        made.is_kernel = True  # for who listens to the compiler
        return made

    return decorate
