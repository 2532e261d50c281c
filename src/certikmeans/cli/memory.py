"""Memory limits (``ulimit -v``), under which linear algebra may wait for ever.

OpenBLAS takes buffers of its own when it is first used, and more with every thread. Where they are
not to be had it tries again without end, inside a call that no signal interrupts. So under a limit
it gets one thread, and its buffers before anything else is taken. LLVM, without which no kernel
runs, ends the process where it finds no room. If there is too little for both and for a small
problem, the run ends before it begins.
"""

from __future__ import annotations

import mmap
import os

from certikmeans.errors import InputError

# Two copies of OpenBLAS, that of numpy and that of scipy; LLVM; kernels; a small problem. Address
# space, not memory: with a limit of 550 MB a run of 400 points is aborted, with 620 MB it ends.
_ROOM = 512 << 20
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def is_limited() -> bool:
    """Whether the address space of this process has a limit."""
    try:
        import resource
    except ImportError:  # not on this system
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def one_thread_if_limited() -> None:
    """Ask for one thread of linear algebra, before it is loaded."""
    if is_limited():
        for name in _THREADS:
            os.environ.setdefault(name, "1")


def take_buffers_if_limited() -> None:
    """Have linear algebra take its buffers now; an `InputError` if there is no room."""
    if not is_limited():
        return
    try:
        mmap.mmap(-1, _ROOM).close()
    except (OSError, ValueError) as error:
        raise InputError(
            "there is not enough memory to begin with",
            hint=f"raise the limit (ulimit -v) by {_ROOM >> 10} kilobytes, or lift it",
        ) from error
    import numpy as np
    from scipy.linalg import eigh

    matrix = np.eye(64)
    np.linalg.eigh(matrix @ matrix)
    eigh(matrix, subset_by_index=(0, 3))
