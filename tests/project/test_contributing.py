"""The worked examples of CONTRIBUTING.md run, and the files that it names exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def example(heading: str) -> str:
    """The Python blocks of a section, joined."""
    section = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    return "\n\n".join(re.findall(r"```python\n(.*?)```", section, re.DOTALL))


# In a process of its own, because the example makes its map known to all of the package.
@pytest.mark.parametrize("heading", ["How to add a kernel", "How to add a map"])
def test_the_worked_example_runs(heading, tmp_path):
    script = tmp_path / "example.py"
    script.write_text(example(heading), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert max(map(len, example(heading).splitlines())) <= 100


def test_the_files_that_are_named_exist():
    names = re.findall(r"`([\w./]+/[\w./]*\w)`", TEXT)
    assert len(names) > 15
    for name in names:
        places = [ROOT, ROOT / "src", ROOT / "src" / "kitchenette"]
        assert any((place / name).exists() for place in places), name
