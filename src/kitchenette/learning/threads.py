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


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep the BLAS, if we call it, to one thread; its own would fight for cores with ours.

    The limit is one of the whole process. If several threads of Python want it, one has it: the
    others are slower for a moment, but none can restore what another one had set.
    """
    alone = _core.max_threads() == 1 or not _core.products_call_blas()
    if alone or not _limiting.acquire(blocking=False):
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
