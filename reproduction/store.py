"""Results on disk: one JSON file for each experiment and mode, written cell by cell."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kitchenette import _core
from reproduction.experiment import Cell, Experiment, Measured, Mode, Numbers, Results

ROOT = Path(__file__).resolve().parent
RESULTS = ROOT / "results"  # those of full runs are part of the project, quick ones are not


def path_of(experiment: Experiment, mode: Mode, folder: Path = RESULTS) -> Path:
    return folder / ("quick" if mode == "quick" else "") / f"{experiment.name}.json"


def load(experiment: Experiment, mode: Mode, folder: Path = RESULTS) -> Results:
    """The stored cells that the experiment still has, in its order; perhaps none."""
    path = path_of(experiment, mode, folder)
    if not path.is_file():
        return Results(mode)
    stored = json.loads(path.read_text(encoding="utf-8"))
    if stored["revision"] != experiment.revision:
        return Results(mode)
    measured = {}
    for row in stored["cells"]:
        cell = Cell(row["setting"], row["seed"])
        measured[cell.key] = Measured(cell, row["numbers"], row["seconds"], row["run"])
    wanted = (measured.get(cell.key) for cell in experiment.cells(mode))
    return Results(mode, [one for one in wanted if one is not None], stored["runs"])


def save(experiment: Experiment, results: Results, folder: Path = RESULTS) -> None:
    """Replace the file at once, so that an interrupt leaves the old one or the new one."""
    path = path_of(experiment, results.mode, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    used = sorted({one.run for one in results.measured})
    rows = [
        {
            "setting": dict(one.cell.setting),
            "seed": one.cell.seed,
            "run": used.index(one.run),
            "seconds": shortened(one.seconds, 3),
            "numbers": one.numbers,
        }
        for one in results.measured
    ]
    header = {
        "experiment": experiment.name,
        "mode": results.mode,
        "revision": experiment.revision,
        "runs": [results.runs[run] for run in used],
    }
    # One line for each cell keeps the changes of a file readable.
    lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    opening = json.dumps(header, indent=1, ensure_ascii=False).removesuffix("\n}")
    text = f'{opening},\n "cells": [\n  {lines}\n ]\n}}\n'
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def this_run() -> dict[str, Any]:
    """Version, machine and time; the machine without a name."""
    return {
        "kitchenette": version("kitchenette"),
        "numpy": version("numpy"),
        "scikit-learn": version("scikit-learn"),
        "python": platform.python_version(),
        "instruction_set": _core.simd(),
        "cores": os.cpu_count(),
        "threads": _core.max_threads(),
        "started": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def shortened(number: float, digits: int = 6) -> float:
    """The number with so many significant digits, which keeps files small."""
    return float(f"{number:.{digits}g}")


def compact(numbers: Numbers) -> Numbers:
    return {name: shortened(float(value)) for name, value in numbers.items()}
