"""Data sets as files, each learned by one command, beside gradient-boosted trees on the same split.

python -m benchmarks.commands                       # all sets; an hour on a small machine
python -m benchmarks.commands --sets a9a,ujiindoorloc --folder FOLDER
python -m benchmarks.commands --methods ours        # or some of the libraries of trees

Every set is written to files first: covtype and a9a to Parquet and to CSV, kddcup99 with its
categories as strings to CSV, UJIIndoorLoc with two targets to Parquet. Then `kitchenette fit` and
`kitchenette evaluate` run on them as processes of their own, whose whole time counts, from reading
the files to the model. Trees have the same rows in memory, categories as such, and the settings of
`kitchenette.report.boosting`: their defaults without early stopping; their time is that of `fit`
alone. Times are in processor seconds, those of all threads together, which other processes on the
machine hardly disturb; all have one thread. Errors are the share of wrong classes, or the root
mean square error over the standard deviation of the target, averaged over targets.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits

from benchmarks.outofthebox import markdown, names
from benchmarks.tables import given, seeded
from benchmarks.timing import command
from kitchenette.baselines import error_of
from kitchenette.report.boosting import boosted, installed
from reproduction.data import load

Frames = tuple[pd.DataFrame, pd.DataFrame, list[str]]  # to learn, to test, and the targets


def covtype() -> Frames:
    arrays = load("covtype")
    return _framed(seeded(arrays["X"], arrays["y"]), ["cover"])


def a9a() -> Frames:
    return _framed(given(load("a9a")), ["income"])


def kddcup99() -> Frames:
    arrays = load("kddcup99_10pct")
    train, test, targets = _framed(seeded(arrays["X"], arrays["y"]), ["attack"])
    for frame in (train, test):
        for column in (1, 2, 3):
            words = arrays[f"levels_col{column}"].astype(object)
            frame[f"x{column}"] = words[frame[f"x{column}"].astype(int)]
        frame["attack"] = arrays["class_names"].astype(object)[frame["attack"]]
    return train, test, targets


def ujiindoorloc() -> Frames:
    X, y, X_test, y_test = given(load("ujiindoorloc"))
    return _framed((X, y[:, :2], X_test, y_test[:, :2]), ["longitude", "latitude"])


def _framed(split: Any, targets: list[str]) -> Frames:
    X, y, X_test, y_test = split
    frames = []
    for rows, values in ((X, y), (X_test, y_test)):
        frame = pd.DataFrame(rows, columns=[f"x{j}" for j in range(rows.shape[1])])
        frame[targets] = values.reshape(len(values), -1)
        frames.append(frame)
    return frames[0], frames[1], targets


# By name: how to make the set, and the formats that it is written in.
SETS: dict[str, tuple[Callable[[], Frames], tuple[str, ...]]] = {
    "covtype": (covtype, ("parquet", "csv")),
    "a9a": (a9a, ("parquet", "csv")),
    "kddcup99": (kddcup99, ("csv",)),
    "ujiindoorloc": (ujiindoorloc, ("parquet",)),
}


def written(frame: pd.DataFrame, path: Path) -> Path:
    if not path.exists():
        frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    return path


def trees(library: str, frames: Frames) -> tuple[str, str]:
    """The error of trees, and the time of their fit."""
    train, test, targets = frames
    X, X_test = (frame.drop(columns=targets) for frame in (train, test))
    strings = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    for name in strings:
        kinds = pd.CategoricalDtype(sorted({*X[name], *X_test[name]}))
        X[name], X_test[name] = X[name].astype(kinds), X_test[name].astype(kinds)
    y, y_test = (frame[targets].to_numpy() for frame in (train, test))
    task = "regression" if len(targets) > 1 else "classification"
    if task == "classification":
        y, y_test = y[:, 0], y_test[:, 0]
    model = boosted(library, task, n_targets=len(targets))
    with threadpool_limits(1):
        start = process_time()
        model.fit(X, y)
        seconds = process_time() - start
        error = error_of(model.predict(X_test), y_test, task)[0]
    return f"{error:.4f}", f"{seconds:.0f} s"


def ours(name: str, ending: str, frames: Frames, folder: Path) -> tuple[str, str, str]:
    """The error of the command, the time of its process, and the peak of its memory."""
    train, test, targets = frames
    roles = [part for target in targets for part in ("--target", target)]
    learned = written(train, folder / f"{name}-train.{ending}")
    tested = written(test, folder / f"{name}-test.{ending}")
    model = folder / f"{name}-{ending}.safetensors"
    ran = command("fit", learned, *roles, "--out", model, "--threads", 1)
    error = command("evaluate", model, tested).document["error"]
    peak = ran.document["peak_bytes"] / 1e6
    return f"{error:.4f}", f"{ran.processor_seconds:.0f} s", f"{peak:.0f} MB"


def measured(name: str, folder: Path, methods: list[str]) -> list[list[str]]:
    make, endings = SETS[name]
    frames = make()
    train, _, targets = frames
    theirs = [cell for method in methods if method != "ours" for cell in trees(method, frames)]
    rows = []
    for ending in endings:
        cells = ours(name, ending, frames, folder) if "ours" in methods else ()
        shape = f"{len(train):,} x {train.shape[1] - len(targets)}"
        rows.append([f"{name}, {ending}", shape, *cells, *theirs])
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    known = ("ours", *installed())
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sets", type=names(SETS), default=list(SETS), metavar="A,B,...")
    parser.add_argument("--methods", type=names(known), default=list(known), metavar="A,B,...")
    parser.add_argument("--folder", type=Path, help="where to keep the files")
    options = parser.parse_args()
    header = ["set", "rows x columns"]
    if "ours" in options.methods:
        header += ["`kitchenette fit`", "whole command", "memory"]
    for method in options.methods:
        header += [] if method == "ours" else [method, "its `fit`"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        rows = [row for name in options.sets for row in measured(name, folder, options.methods)]
    print(markdown(header, rows))


if __name__ == "__main__":
    main()
