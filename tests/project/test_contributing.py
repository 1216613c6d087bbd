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


# In a process of their own, because the examples make what they add known to all of the
# package.
@pytest.mark.slow
def test_the_worked_examples_run(tmp_path):
    headings = ("add a kernel", "add a map", "add a loss", "store a class", "add a file format")
    scripts = [tmp_path / f"{heading}.py" for heading in headings]
    for script in scripts:
        text = example(f"How to {script.stem}")
        script.write_text(text, encoding="utf-8")
        assert max(map(len, text.splitlines())) <= 100
    code = "import runpy, sys\nfor path in sys.argv[1:]:\n    runpy.run_path(path)"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, scripts)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_files_that_are_named_exist():
    names = re.findall(r"`([\w./]+/[\w./]*\w)`", TEXT)
    assert len(names) > 15
    for name in names:
        places = [ROOT, ROOT / "src", ROOT / "src" / "kitchenette"]
        assert any((place / name).exists() for place in places), name
