"""The demonstration: three models on scikit-learn's digits."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from kitchenette.kernels import Gaussian
from kitchenette.maps import Fastfood


@dataclass
class Result:
    """One row of the table."""

    name: str
    accuracy: float
    fit_seconds: float
    predict_seconds_per_row: float
    model_bytes: int


def run_demo(n_components: int, seed: int, console: Console) -> list[Result]:
    """Train, measure, and print a table."""
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)  # grey values from 0 to 1
    data = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
    kernel = Gaussian().resolve(data[0])
    models = {
        "linear model": _linear_model(),
        "exact kernel SVM": SVC(C=10.0, gamma=1 / (2 * kernel.length_scale**2)),
        f"linear, on {n_components} Fastfood features": make_pipeline(
            Fastfood(kernel, n_components, projection="orthogonal", random_state=seed),
            _linear_model(),
        ),
    }
    results = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=len(models))
        for name, model in models.items():
            progress.update(task, description=f"training: {name}")
            results.append(_measure(name, model, *data))
            progress.advance(task)
    console.print(_table(results, len(data[0]), len(data[1])))
    console.print(
        "The SVM compares every row with its support vectors, whose number grows with the "
        "data. On random features a linear model does the same work at a fixed cost."
    )
    return results


def _linear_model() -> RidgeClassifier:
    return RidgeClassifier(alpha=0.01)


def _measure(
    name: str,
    model: Any,
    X_train: NDArray[Any],
    X_test: NDArray[Any],
    y_train: NDArray[Any],
    y_test: NDArray[Any],
) -> Result:
    fit_seconds = _best_time(lambda: model.fit(X_train, y_train), repeats=3)
    predict_seconds = _best_time(lambda: model.predict(X_test), repeats=5)
    return Result(
        name=name,
        accuracy=float(np.mean(model.predict(X_test) == y_test)),
        fit_seconds=fit_seconds,
        predict_seconds_per_row=predict_seconds / len(X_test),
        model_bytes=len(pickle.dumps(model)),
    )


def _best_time(action: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = perf_counter()
        action()
        times.append(perf_counter() - start)
    return min(times)


def _table(results: list[Result], n_train: int, n_test: int) -> Table:
    table = Table(title=f"Handwritten digits: {n_train} rows to train on, {n_test} to test")
    table.add_column("model")
    for heading in ("accuracy", "training", "prediction per row", "model size"):
        table.add_column(heading, justify="right")
    for r in results:
        table.add_row(
            r.name,
            f"{r.accuracy:.1%}",
            f"{1e3 * r.fit_seconds:.0f} ms",
            f"{1e6 * r.predict_seconds_per_row:.1f} µs",
            f"{r.model_bytes / 1024:.0f} KiB",
        )
    return table
