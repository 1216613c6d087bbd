"""Small tables for the tests of Spark, the same in every process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

CLASSES = ["high", "low", "middle"]
CITIES = np.array(["Oslo", "Paris", "Rome"])


def rows_and_targets(n_rows: int) -> tuple[Any, Any, Any]:
    """Rows of three columns, a smooth function of them, and weights."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * random.normal(size=n_rows)
    return X, y, random.integers(1, 4, size=n_rows).astype(float)


def a_table(n_rows: int) -> pa.Table:
    """Columns of numbers, words and missing values, with a number and a label to be predicted."""
    random = np.random.default_rng(1)
    x, city = random.normal(size=n_rows), random.integers(3, size=n_rows)
    z = random.normal(size=n_rows)
    number = np.sin(2 * x) + city
    label = np.array(["low", "middle", "high"])[np.digitize(number, [0.5, 1.5])]
    words = pa.array(CITIES[city], pa.string())
    gaps = pa.array(z, mask=random.random(n_rows) < 0.1)
    return pa.table({"x": x, "city": words, "z": gaps, "number": number, "label": label})
