"""The command, run as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kitchenette
from kitchenette.cli.app import app


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments,
        env={**os.environ, "COLUMNS": "120", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


COMMAND = str(Path(sys.executable).with_name("kitchenette"))


@pytest.mark.parametrize(
    "command",
    [
        pytest.param((COMMAND,), id="script"),
        pytest.param((sys.executable, "-m", "kitchenette"), id="module", marks=pytest.mark.slow),
    ],
)
def test_the_demo_prints_a_table_in_which_fastfood_matches_the_exact_kernel(command):
    done = run(*command, "demo", "--n-components", "512")
    assert done.returncode == 0
    assert done.stderr == ""
    rows = {
        cells[0]: float(cells[1].rstrip("%"))
        for line in done.stdout.splitlines()
        if len(cells := [cell.strip() for cell in line.split("│")[1:-1]]) == 5
    }
    assert list(rows) == ["linear model", "exact kernel SVM", "linear, on 512 Fastfood features"]
    linear, exact, fastfood = rows.values()
    assert fastfood > exact - 1
    assert fastfood > linear + 3
    for heading in ("accuracy", "training", "prediction per row", "model size"):
        assert heading in done.stdout


def test_version_and_help():
    version = CliRunner().invoke(app, ["--version"]).output
    assert version.strip() == f"kitchenette {kitchenette.__version__}"
    assert "demo" in CliRunner().invoke(app, ["--help"]).output


@pytest.mark.parametrize(
    ("arguments", "sentences"),
    [
        (["demo", "--n-components", "0"], ["--n-components", "Invalid value"]),
        (["demo", "--seed", str(2**32)], ["--seed"]),
        (["dmeo"], ["No such command"]),
    ],
    ids=str,
)
def test_mistakes_are_explained(arguments, sentences):
    done = CliRunner(env={"COLUMNS": "120"}).invoke(app, arguments)
    assert done.exit_code == 2
    assert isinstance(done.exception, SystemExit)
    for sentence in sentences:
        assert sentence in done.output


def test_without_its_libraries_the_command_says_what_to_install(tmp_path):
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('no typer', name='typer')")
    done = run(COMMAND, "demo", PYTHONPATH=str(tmp_path))
    assert done.returncode != 0
    assert "pip install 'kitchenette[cli]'" in done.stderr
