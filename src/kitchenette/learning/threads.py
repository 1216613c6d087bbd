"""One thread for the BLAS where the threads of the native core call it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

from kitchenette import _core

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
