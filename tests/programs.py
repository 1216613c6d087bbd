"""Programs of Python in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

# For `printed_by`: one thread, and modules beside this one can be imported.
WITH_ONE_THREAD: dict[str, Any] = {
    "cwd": Path(__file__).parent,
    "env": {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
}


def printed_by(program: str, *arguments: Any, **options: Any) -> str:
    """What a program prints; options are those of `subprocess.run`."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
