"""Limits on the number of BLAS threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from scipy.linalg import cython_blas, cython_lapack
from threadpoolctl import ThreadpoolController

from kitchenette import _core

_FUNCTIONS = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}
BLAS_NAMES = tuple(letter + name for letter in "sd" for name in ("gemm", "syrk", "trsm", "potrf"))
BLAS = _core.Blas(**{name: _FUNCTIONS[name] for name in BLAS_NAMES})
_limiting = Lock()


SMALL_ORDER = 2048  # the largest order for which one BLAS thread is best


@contextmanager
def one_blas_thread(order: int | None = None) -> Iterator[None]:
    """Limit the BLAS to one thread where more threads do not pay.

    Without ``order``, this is where the threads of the native core call the BLAS, whose own threads
    would compete with them for the cores. With the order of a matrix to be factored, it is where
    the matrix is small: the threads of OpenBLAS wait for each other, so on a busy machine a
    Cholesky factor of order 1024 takes several times as long as with one thread, and an
    eigendecomposition ten times as long.

    The limit applies to the whole process. Only one Python thread sets and restores it at a time;
    others proceed without setting it.
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
    return ThreadpoolController()  # inspects all loaded libraries, which takes milliseconds
