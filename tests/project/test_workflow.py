"""Pushes run what .ci/run runs, and what it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT, WORKFLOW = ROOT / ".ci" / "run", ROOT / ".github" / "workflows" / "tests.yml"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="source distributions have no .ci")


def test_every_push_runs_the_script():
    workflow = WORKFLOW.read_text(encoding="utf-8")
    assert re.search(r"^on:\n  push:\n    branches: \[\"\*\*\"\]$", workflow, flags=re.MULTILINE)
    assert re.search(r"^      - run: \.ci/run$", workflow, flags=re.MULTILINE)


def test_the_script_runs_all_tests_with_spark_pictures_and_reproduction():
    script = SCRIPT.read_text(encoding="utf-8")
    assert '-m "slow or not slow"' in script
    for needed in (".[spark]", "matplotlib", "chromium", "openjdk"):
        assert needed in script
    for kind in ("address", "thread"):
        assert f"KITCHENETTE_SANITIZE={kind}" in script


def test_paths_in_the_script_exist():
    paths = re.findall(r"(?<![\w/.-])(?:tests|src)/[\w/]+(?:\.py)?", SCRIPT.read_text("utf-8"))
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
