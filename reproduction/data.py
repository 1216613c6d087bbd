"""The public data sets that the papers' experiments need, as NumPy arrays.

They are files ``name.npz`` in the directory ``KITCHENETTE_DATA`` or in ``../shared/data`` beside
the project. Some that are not there are fetched from OpenML if there is a network.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.kernels import Gaussian

PLACES = (os.environ.get("KITCHENETTE_DATA"), "../shared/data")

Arrays = dict[str, NDArray[Any]]


class MissingData(SystemExit):
    """A data set is not there. Ends a script with a sentence unless somebody catches it."""


@dataclass(frozen=True)
class Split:
    """Training and test rows, and their targets."""

    X: NDArray[Any]
    y: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]


def least_error_scale(
    X: NDArray[Any], powers: Iterable[int], error: Callable[[float], float]
) -> float:
    """The median distance times that of these powers of two whose error is least."""
    median = float(Gaussian().resolve(X[:1000]).length_scale)
    return min((median * 2.0**power for power in powers), key=error)


@dataclass(frozen=True)
class OpenML:
    """A data set of OpenML, whose first `n_train` rows are the customary training rows."""

    number: int
    n_train: int | None = None


OPENML = {
    "covtype": OpenML(1596),
    "cpu_act": OpenML(197),
    "letter": OpenML(6, n_train=16000),
    "mnist": OpenML(554, n_train=60000),
    "pendigits": OpenML(32, n_train=7494),
    "spambase": OpenML(44),
}


def directory() -> Path | None:
    """Where the data sets are: ``KITCHENETTE_DATA``, or ``../shared/data`` beside the project."""
    beside = Path(__file__).resolve().parent.parent
    for place in PLACES:
        if place and (path := beside / place).is_dir():
            return path
    return None


def available(name: str) -> bool:
    """Whether the file of this data set is there; nothing is fetched."""
    place = directory()
    return place is not None and (place / f"{name}.npz").is_file()


@lru_cache(maxsize=4)
def load(name: str) -> Arrays:
    """The arrays of one data set, such as ``X_train`` and ``y_train``; not to be changed."""
    place = directory()
    if place is None or not (place / f"{name}.npz").is_file():
        return fetched(name)
    with np.load(place / f"{name}.npz", allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}


def fetched(name: str) -> Arrays:
    """The data set from OpenML, in the form of our files."""
    sentence = (
        f"This needs {name}.npz. Set KITCHENETTE_DATA to the directory that has it; "
        "docs/reproduction.md says what the file holds."
    )
    if name not in OPENML:
        raise MissingData(sentence)
    from sklearn.datasets import fetch_openml

    try:
        table = fetch_openml(data_id=OPENML[name].number, as_frame=False, parser="liac-arff")
    except OSError as reason:  # no network, or the server does not answer
        raise MissingData(f"{sentence} OpenML did not answer: {reason}") from reason
    return in_our_form(table.data, table.target, OPENML[name].n_train)


def in_our_form(X: NDArray[Any], y: NDArray[Any], n_train: int | None) -> Arrays:
    """Numbers for labels, and the customary split if there is one."""
    X = np.asarray(X, dtype=np.float32)
    try:
        y = y.astype(np.float64)
    except ValueError:  # names of classes
        y = np.unique(y, return_inverse=True)[1]
    if n_train is None:
        return {"X": X, "y": y}
    return {
        "X_train": X[:n_train],
        "y_train": y[:n_train],
        "X_test": X[n_train:],
        "y_test": y[n_train:],
    }


def unit_rows(X: NDArray[Any]) -> NDArray[np.float32]:
    """float32 rows of norm one; rows of zeros stay."""
    X = X.astype(np.float32)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.where(norms > 0, norms, 1))


def sample_rows(name: str, n: int, seed: int = 0) -> NDArray[np.float32]:
    """A seeded sample of unit-norm training rows."""
    return unit_rows(raw_sample(name, n, seed))


def raw_sample(name: str, n: int, seed: int = 0) -> NDArray[Any]:
    """A seeded sample of training rows as they were published."""
    arrays = load(name)
    X = arrays.get("X_train", arrays.get("X"))
    assert X is not None
    return X[np.random.default_rng(seed).choice(len(X), size=min(n, len(X)), replace=False)]
