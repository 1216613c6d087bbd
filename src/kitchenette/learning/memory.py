"""How much memory a process may use, and whether that is enough."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

MEMBERSHIP = Path("/proc/self/cgroup")
MOUNT = Path("/sys/fs/cgroup")
STATUS = Path("/proc/self/status")


def check_memory(what: str, needed: Mapping[str, int], advice: str) -> None:
    """Refuse what takes more memory than there is, before any of it is allocated.

    Parameters
    ----------
    what : str
        The subject of the error message.
    needed : mapping from str to int
        The numbers of bytes, by what they are for.
    advice : str
        The last sentence of the error message.
    """
    total, limit = sum(needed.values()), memory_limit()
    if limit is None or total <= limit:
        return
    parts = ", ".join(f"{in_words(size)} for {name}" for name, size in needed.items())
    raise MemoryError(
        f"{what} would take {in_words(total)} of memory ({parts}); there are {in_words(limit)}. "
        f"{advice}"
    )


def in_words(size: float) -> str:
    """A number of bytes."""
    for unit, bytes_of_unit in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= bytes_of_unit:
            return f"{size / bytes_of_unit:.3g} {unit}"
    return f"{size:.0f} bytes"


def memory_limit() -> int | None:
    """The least of the machine's memory and the limits of the process and its container.

    None if the system does not tell any of them.
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

    Parameters
    ----------
    membership : Path
        A file like /proc/self/cgroup.
    mount : Path
        A directory like /sys/fs/cgroup.
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
    found = dict(line.split(":", 1) for line in lines).get(entry)
    return None if found is None else int(found.split()[0]) * 1024
