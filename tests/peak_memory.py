"""The peak memory of a process, for tests that measure it in a process of their own."""

from __future__ import annotations

import inspect


def peak() -> int:
    """In bytes."""
    import sys
    from pathlib import Path

    status = Path("/proc/self/status")
    if status.exists():  # of this process; the other figure includes the one that started it
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


SOURCE = inspect.getsource(peak)
