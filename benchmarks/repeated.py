"""Tables whose rows repeat: few categories, small integers, surveys, copies.

python -m benchmarks.repeated                    # all tables, default settings
python -m benchmarks.repeated --quick            # the smaller ones
python -m benchmarks.repeated --methods default,Fastfood,logistic,iterative --sets grid
python -m benchmarks.repeated --seeds 12 --sets "100 rows, bernoulli"  # means over random tables
python -m benchmarks.repeated --out docs/results/repeated.json

Scores (accuracy or R^2) on rows that were not learned, beside gradient-boosted trees of the
libraries that are installed, with the settings of `kitchenette.report.boosting` (their defaults
without early stopping), a linear model of one-hot columns, and the trivial model. "validation" is
the ``validation_score_`` of ours, and "z" its difference to the test score in standard errors of
both. The columns of grids are given as numbers. Without ``--seeds`` the last lines are a table for
the documents.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from numpy.typing import NDArray
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from kitchenette import Fastfood, KernelClassifier, KernelRegressor
from kitchenette.report.boosting import LIBRARIES, boosted, installed
from reproduction.data import directory, load

TEST_ROWS = 4000
OTHERS = (*reversed(LIBRARIES), "linear", "trivial")
FEW_VALUES = 20  # columns with at most so many values are one-hot for the linear model

Generator = np.random.Generator


@dataclass(frozen=True)
class Data:
    """Rows to learn from and fresh rows, with labels if ``classes``."""

    name: str
    X: Any
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]
    classes: bool


# ------------------------------------------------------------ tables


def grid(n_values: int, n_columns: int, n_rows: int, target: str, seed: int = 0) -> Data:
    """Rows of a grid, and a target whose distribution is a random function of the cell.

    Targets: "bernoulli" and "multinomial" labels, "counts" (Poisson), "exact" (whole numbers
    without noise) and "values" (real numbers without noise).
    """
    rng = np.random.default_rng([seed, n_values, n_columns, n_rows])
    X = rng.integers(n_values, size=(n_rows + TEST_ROWS, n_columns))
    cells = np.ravel_multi_index(tuple(X.T), (n_values,) * n_columns)
    y = TARGETS[target](rng, n_values**n_columns, cells)
    name = f"grid {n_values}^{n_columns}, {n_rows} rows, {target}"
    split = X[:n_rows].astype(float), y[:n_rows], X[n_rows:].astype(float), y[n_rows:]
    return Data(name, *split, classes=target in ("bernoulli", "multinomial"))


def bernoulli(rng: Generator, n_cells: int, cells: NDArray[Any]) -> NDArray[Any]:
    chances = rng.uniform(0.05, 0.95, n_cells)[cells]
    return (rng.random(cells.size) < chances).astype(int)


def multinomial(rng: Generator, n_cells: int, cells: NDArray[Any]) -> NDArray[Any]:
    chances = rng.dirichlet(np.full(4, 0.7), n_cells).cumsum(axis=1)[cells]
    return np.minimum((rng.random((cells.size, 1)) > chances).sum(axis=1), 3)


def counts(rng: Generator, n_cells: int, cells: NDArray[Any]) -> NDArray[Any]:
    return rng.poisson(rng.gamma(2.0, 2.0, n_cells)[cells]).astype(float)


def exact(rng: Generator, n_cells: int, cells: NDArray[Any]) -> NDArray[Any]:
    return np.round(4 * rng.uniform(0.05, 0.95, n_cells))[cells]


def values(rng: Generator, n_cells: int, cells: NDArray[Any]) -> NDArray[Any]:
    return rng.normal(size=n_cells)[cells]


TARGETS: dict[str, Callable[[Generator, int, NDArray[Any]], NDArray[Any]]] = {
    "bernoulli": bernoulli,
    "multinomial": multinomial,
    "counts": counts,
    "exact": exact,
    "values": values,
}


def strings(n_rows: int, seed: int = 0) -> Data:
    """Three columns of strings, and a number that depends on all of them."""
    made = grid(4, 3, n_rows, "values", seed)
    names = ["color", "city", "size"]

    def frame(X: NDArray[Any]) -> pd.DataFrame:
        words = np.char.add("v", X.astype(int).astype(str))
        return pd.DataFrame({name: words[:, j] for j, name in enumerate(names)})

    name = f"three string columns, {n_rows} rows"
    return Data(name, frame(made.X), made.y, frame(made.X_test), made.y_test, False)


def survey(n_rows: int, seed: int = 0) -> Data:
    """Answers from 1 to 5 of a few types of people, and a noisy boolean."""
    rng = np.random.default_rng([seed, 7, n_rows])
    n = n_rows + TEST_ROWS
    types = rng.integers(3, size=n)
    habits = rng.uniform(1, 5, size=(3, 6))
    X = np.clip(np.round(habits[types] + 0.8 * rng.normal(size=(n, 6))), 1, 5)
    logits = 0.9 * (X[:, 0] - X[:, 1]) * (types - 1) + 0.4 * (X[:, 2] - 3)
    y = (rng.random(n) < 1 / (1 + np.exp(-logits))).astype(int)
    return Data(f"survey, {n_rows} rows", X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:], True)


def copies(n_rows: int, n_copies: int, seed: int = 0) -> Data:
    """Continuous rows with a noisy target, each of them several times; fresh test rows."""
    rng = np.random.default_rng([seed, 8, n_rows])
    X = rng.normal(size=(n_rows + TEST_ROWS, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.7 * rng.normal(size=len(X))
    which = np.repeat(np.arange(n_rows), n_copies)
    name = f"{n_rows} continuous rows, {n_copies} copies"
    return Data(name, X[which], y[which], X[n_rows:], y[n_rows:], False)


def adult(n_columns: int) -> Data:
    """The first groups of one-hot columns of a9a that people ask for: few categories."""
    given = load("a9a")
    groups = [(44, 51), (70, 72), (0, 5), (22, 38), (51, 65), (65, 70)]
    some = np.concatenate([np.arange(*group) for group in groups[:n_columns]])
    X, X_test = (given[name][:, some].astype(float) for name in ("X_train", "X_test"))
    return Data(f"a9a, {n_columns} columns", X, given["y_train"], X_test, given["y_test"], True)


def parquet(name: str) -> Data:
    """A table with strings and repeated rows; a seeded fifth of it is for testing."""
    folder = directory()
    assert folder is not None
    frame = pd.read_parquet(folder / "tables" / f"{name}.parquet")
    X, y = frame.drop(columns="target"), frame["target"].to_numpy()
    order = np.random.default_rng(0).permutation(len(X))
    test, train = np.split(order, [len(X) // 5])
    return Data(name, X.iloc[train], y[train], X.iloc[test], y[test], True)


def nursery() -> Data:
    given = load("nursery")
    order = np.random.default_rng(0).permutation(len(given["X"]))
    test, train = np.split(order, [len(order) // 5])
    X = given["X"].astype(float)
    return Data("nursery", X[train], given["y"][train], X[test], given["y"][test], True)


def tables(quick: bool) -> Iterator[Callable[[], Data]]:
    shapes = [(2, 2), (2, 5), (3, 3), (4, 3), (6, 2), (6, 3)] + ([] if quick else [(4, 5), (6, 5)])
    sizes = [100, 1000, 4000] if quick else [100, 1000, 5000, 50_000]
    for shape in shapes:
        for n_rows in sizes:
            for target in TARGETS:
                yield partial(grid, *shape, n_rows, target)
    for n_rows in (200, 600, 2000, 6000) if quick else (200, 600, 2000, 6000, 20_000):
        yield partial(strings, n_rows)
    for n_rows in (500, 5000):
        yield partial(survey, n_rows)
        yield partial(copies, n_rows, 10)
    if directory() is not None:
        for n_columns in (1, 2, 4) if quick else (1, 2, 3, 4, 5, 6):
            yield partial(adult, n_columns)
        for name in ("led7digit", "contraceptive", "marketing"):
            yield partial(parquet, name)
        yield nursery


# ------------------------------------------------------------ methods


def ours(method: str, classes: bool) -> Any:
    options: dict[str, dict[str, Any]] = {
        "default": {},
        "Fastfood": {"feature_map": Fastfood(random_state=0)},
        "logistic": {"loss": "logistic" if classes else "huber"},
        "iterative": {"solver": "iterative"},
    }
    made = KernelClassifier if classes else KernelRegressor
    return made(random_state=0, **options[method])


def trees(library: str, classes: bool) -> Any:
    task = "classification" if classes else "regression"
    return make_pipeline(_ordinal(), boosted(library, task))


def linear(data: Data) -> Any:
    X = pd.DataFrame(data.X)
    few = [name for name in X.columns if X[name].nunique() <= FEW_VALUES]
    encoder = OneHotEncoder(handle_unknown="ignore", drop="if_binary")
    prepared = make_column_transformer((encoder, few), remainder=StandardScaler())
    last = LogisticRegression(max_iter=1000) if data.classes else RidgeCV(np.logspace(-3, 3, 7))
    return make_pipeline(prepared, last)


def _ordinal() -> Any:
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    some = make_column_selector(dtype_exclude=np.number)
    return make_column_transformer((encoder, some), remainder="passthrough")


def deviation(model: Any, X: Any, y: NDArray[Any], score: float, classes: bool) -> float:
    """The standard error of a score on so many rows."""
    if classes:
        return float(np.sqrt(max(score * (1 - score), 0.25 / len(y)) / len(y)))
    errors = np.square(y - model.predict(X)) / y.var()
    return float(np.sqrt(errors.var() / len(y)))


def measured(data: Data, methods: list[str]) -> dict[str, Any]:
    """The scores of all methods on a table."""
    row: dict[str, Any] = {"table": data.name, "classes": data.classes, "rows": len(data.y)}
    for method in methods:
        start = process_time()
        model = ours(method, data.classes).fit(data.X, data.y)
        score = float(model.score(data.X_test, data.y_test))
        validation = getattr(model, "validation_score_", np.nan)
        error = deviation(model, data.X_test, data.y_test, score, data.classes)
        own = error * np.sqrt(len(data.y_test) / min(len(data.y), model.validation_rows))
        row[method] = {
            "score": score,
            "validation": validation,
            "z": (validation - score) / max(float(np.hypot(error, own)), 1e-12),
            "seconds": process_time() - start,
        }
    others = {name: trees(name, data.classes) for name in reversed(installed())}
    others["linear"] = linear(data)
    others["trivial"] = DummyClassifier() if data.classes else DummyRegressor()
    X, X_test = pd.DataFrame(data.X), pd.DataFrame(data.X_test)
    X.columns, X_test.columns = (list(map(str, frame.columns)) for frame in (X, X_test))
    for name, model in others.items():
        row[name] = float(model.fit(X, data.y).score(X_test, data.y_test))
    return row


def over_seeds(make: Callable[..., Data], n_seeds: int, methods: list[str]) -> str:
    """Mean scores over random tables, and mean differences to others with standard errors."""
    rows = [measured(make(seed=seed), methods) for seed in range(n_seeds)]
    others = [name for name in OTHERS if name in rows[0]]
    scores = {name: np.array([row[name] for row in rows]) for name in others}
    parts = []
    for method in methods:
        own, validation = (
            np.array([row[method][name] for row in rows]) for name in ("score", "validation")
        )
        parts.append(f"{method} {own.mean():.3f} (validation {validation.mean():.3f})")
        for name, score in scores.items():
            error = (own - score).std(ddof=1) / np.sqrt(n_seeds)
            parts.append(f"{name} {score.mean():.3f} ({(own - score).mean():+.3f} +- {error:.3f})")
    return "  ".join(parts)


def markdown(results: list[dict[str, Any]], methods: list[str]) -> str:
    """A table of all scores."""
    names = [name for name in OTHERS if name in results[0]]
    titles = [title for method in methods for title in (method, "`validation_score_`")]
    lines = [["table", *titles, *names], ["---"] + ["---:"] * (len(titles) + len(names))]
    for row in results:
        own = [row[method][key] for method in methods for key in ("score", "validation")]
        scores = [f"{score:.3f}" for score in (*own, *(row[name] for name in names))]
        lines.append([row["table"], *scores])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sets", default="", help="part of the names of the tables")
    parser.add_argument("--methods", default="default")
    parser.add_argument("--seeds", type=int, default=1, help="average over so many random tables")
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    options = parser.parse_args()
    methods, results = options.methods.split(","), []
    for make in tables(options.quick):
        data = make()
        if options.sets not in data.name:
            continue
        if options.seeds > 1:
            if isinstance(make, partial) and make.func in (grid, strings, survey, copies):
                print(f"{data.name:<36}{over_seeds(make, options.seeds, methods)}", flush=True)
            continue
        row = measured(data, methods)
        results.append(row)
        found = "  ".join(
            f"{m} {row[m]['score']:.3f} (validation {row[m]['validation']:.3f}, "
            f"z {row[m]['z']:+.1f}, {row[m]['seconds']:.1f} s)"
            for m in methods
        )
        others = "  ".join(f"{name} {row[name]:.3f}" for name in OTHERS if name in row)
        print(f"{data.name:<36}{found}  {others}", flush=True)
    if results:
        print(markdown(results, methods))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
