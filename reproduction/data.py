"""The public data sets that the papers' experiments need, as files of NumPy arrays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PLACES = (os.environ.get("KITCHENETTE_DATA"), "../shared/data")


def directory() -> Path | None:
    """Where the data sets are: ``KITCHENETTE_DATA``, or ``../shared/data`` beside the project."""
    beside = Path(__file__).resolve().parent.parent
    for place in PLACES:
        if place and (path := beside / place).is_dir():
            return path
    return None


def load(name: str) -> dict[str, NDArray[Any]]:
    """The arrays of one data set, such as ``X_train`` and ``y_train``."""
    place = directory()
    if place is None or not (place / f"{name}.npz").is_file():
        raise SystemExit(
            f"This needs {name}.npz. Set KITCHENETTE_DATA to the directory that has it; "
            "docs/reproduction.md says what the file holds."
        )
    with np.load(place / f"{name}.npz", allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}


def unit_rows(X: NDArray[Any]) -> NDArray[np.float32]:
    """float32 rows of norm one; rows of zeros stay."""
    X = X.astype(np.float32)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.where(norms > 0, norms, 1))


def sample_rows(name: str, n: int, seed: int = 0) -> NDArray[np.float32]:
    """A seeded sample of unit-norm training rows."""
    arrays = load(name)
    X = arrays.get("X_train", arrays.get("X"))
    assert X is not None
    picks = np.random.default_rng(seed).choice(len(X), size=min(n, len(X)), replace=False)
    return unit_rows(X[picks])
