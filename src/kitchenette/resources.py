"""Memory and threads: how much a process may use, and limits on the threads of the BLAS."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock

from scipy.linalg import cython_blas, cython_lapack
from threadpoolctl import ThreadpoolController

from kitchenette import _core
from kitchenette.quantities import of_bytes

MEMBERSHIP = Path("/proc/self/cgroup")
MOUNT = Path("/sys/fs/cgroup")
STATUS = Path("/proc/self/status")
_FUNCTIONS = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}
BLAS_NAMES = tuple(letter + name for letter in "sd" for name in ("gemm", "syrk", "trsm", "potrf"))
BLAS = _core.Blas(**{name: _FUNCTIONS[name] for name in BLAS_NAMES})
_limiting = Lock()


SMALL_ORDER = 2048  # the largest order for which one BLAS thread is best


def check_memory(what: str, needed: Mapping[str, int], advice: str) -> None:
    """Refuse what exceeds the memory limit, before any of it is allocated.

    ``what`` is the subject of the error message and ``advice`` its last sentence; ``needed`` are
    numbers of bytes, by what they are for.
    """
    total, limit = sum(needed.values()), memory_limit()
    if limit is None or total <= limit:
        return
    parts = ", ".join(f"{of_bytes(size)} for {name}" for name, size in needed.items())
    raise MemoryError(
        f"{what} would take {of_bytes(total)} of memory ({parts}); there are {of_bytes(limit)}. "
        f"{advice}"
    )


def memory_limit() -> int | None:
    """The least of the machine's memory and the limits of the process and its container.

    None if the system does not have any of them.
    """
    limits = [_of_machine(), _of_process(), control_group_limit(MEMBERSHIP, MOUNT)]
    return min((limit for limit in limits if limit is not None), default=None)


def _of_machine() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _of_process() -> int | None:
    try:
        import resource
    except ImportError:  # on Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def control_group_limit(membership: Path, mount: Path) -> int | None:
    """The limit of Linux's control groups of either version, parents included; None for none.

    ``membership`` is a file like /proc/self/cgroup, ``mount`` a directory like /sys/fs/cgroup.
    """
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return None
    limits = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            root, name = mount, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = mount / "memory", "memory.limit_in_bytes"
        else:
            continue
        directory = root / group.lstrip("/")
        for parent in (directory, *directory.parents):
            limits.append(_number_in(parent / name))
            if parent == root:
                break
    return min((limit for limit in limits if limit is not None), default=None)


def _number_in(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # no such file, or the word "max"
        return None


def resident(entry: str) -> int | None:
    """The resident memory of this process, now ("VmRSS") or at most ("VmHWM"), on Linux."""
    try:
        lines = STATUS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    value = dict(line.split(":", 1) for line in lines).get(entry)
    return None if value is None else int(value.split()[0]) * 1024


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
