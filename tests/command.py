"""The command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMAND = [str(Path(sys.executable).with_name("kitchenette"))]
MODULE = [sys.executable, "-m", "kitchenette"]


def run(
    command: list[str],
    *arguments: str,
    path_first: Path | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Run the command and wait for its end.

    ``path_first`` is a folder in which modules are looked up before others.
    """
    return subprocess.run(
        [*command, *map(str, arguments)],
        env=environment(path_first),
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def assert_one_sentence(
    done: subprocess.CompletedProcess[str], exit_code: int, sentence: str
) -> None:
    """The command failed with a line for people on the standard error stream, and nothing else."""
    assert done.returncode == exit_code, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("kitchenette: ")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def run_in_a_terminal(command: list[str], *arguments: str, **variables: str) -> str:
    """All that the command writes to a terminal, of which the test holds the other end."""
    import pty  # on Unix only

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*command, *map(str, arguments)],
        env={**environment(), "TERM": "xterm-256color", **variables},
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = b""
    try:
        while part := os.read(ours, 1 << 16):
            written += part
    except OSError:  # Linux says so when the other end is closed
        pass
    finally:
        os.close(ours)
    assert process.wait() == 0, written
    return written.decode()


def environment(path_first: Path | None = None) -> dict[str, str]:
    """The environment of the command: a wide terminal, and one thread for linear algebra."""
    variables = {**os.environ, "COLUMNS": "160"}
    if path_first is not None:
        variables["PYTHONPATH"] = os.pathsep.join(
            [str(path_first), *filter(None, [variables.get("PYTHONPATH")])]
        )
    return variables
