"""The BLAS that the native core may call, and its one thread while the threads of the core do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from scipy.linalg import cython_blas
from threadpoolctl import ThreadpoolController

from kitchenette import _core

BLAS = _core.Blas(
    **{name: cython_blas.__pyx_capi__[name] for name in ("sgemm", "ssyrk", "dgemm", "dsyrk")}
)
_limiting = Lock()


SMALL_ORDER = 2048  # of matrices for which more threads gain little and may lose much


@contextmanager
def one_blas_thread(order: int | None = None) -> Iterator[None]:
    """Keep the BLAS to one thread where more of them do not pay.

    Without ``order`` that is where threads of the native core call it, because its own would fight
    with them for the cores. With the order of a matrix that is factored it is where the matrix is
    small: the threads of OpenBLAS wait for each other, and beside busy processes a factor of
    order 1024 then takes several times as long as with one thread, an eigendecomposition ten times.

    The limit is one of the whole process. If several threads of Python want it, one has it: the
    others are slower for a moment, but none can restore what another one had set.
    """
    pays = _core.products_call_blas() if order is None else order <= SMALL_ORDER
    if not pays or _core.max_threads() == 1 or not _limiting.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limiting.release()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all libraries: some milliseconds
