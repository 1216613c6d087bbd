"""The tables of `benchmarks.outofthebox`: rows to learn from and rows to predict, by name.

A data set with several natural targets is several tables. The given split is kept where there is
one; otherwise a seeded fifth of the rows is for testing. Columns are left as they were published.
The small tables are Parquet files, of which some have strings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction import data
from reproduction.data import load

QUICK_ROWS = 20_000  # at most, for training and for testing, with --quick
TEST_PART = 0.2

Arrays = dict[str, NDArray[Any]]
Split = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Table(data.Split):
    """Rows of float32, and targets: labels if ``classes``, float64 numbers if not.

    Tables with strings are data frames, whose strings are categories.
    """

    name: str
    classes: bool

    @property
    def has_strings(self) -> bool:
        return not isinstance(self.X, np.ndarray)

    @property
    def n_classes(self) -> int:
        return len(np.unique(self.y)) if self.classes else 0

    def first(self, n_rows: int) -> Table:
        """The same table with at most so many rows to learn from; their order is random."""
        return replace(self, X=self.X[:n_rows], y=self.y[:n_rows])


def given(arrays: Arrays) -> Split:
    return arrays["X_train"], arrays["y_train"], arrays["X_test"], arrays["y_test"]


def seeded(X: NDArray[Any], y: NDArray[Any]) -> Split:
    """A fifth of the rows for testing, drawn with a fixed seed."""
    order = np.random.default_rng(0).permutation(len(X))
    test, train = np.split(order, [round(TEST_PART * len(X))])
    return X[train], y[train], X[test], y[test]


def first_fold(arrays: Arrays) -> Split:
    """The first of the ten folds that come with the data."""
    test = arrays["test_mask"][:, 0].astype(bool)
    X, y = arrays["X"], arrays["y"]
    return X[~test], y[~test], X[test], y[test]


def target(column: int) -> Callable[[Arrays], Split]:
    """One column of the targets of the given split."""

    def split(arrays: Arrays) -> Split:
        X, y, X_test, y_test = given(arrays)
        return X, y[:, column], X_test, y_test[:, column]

    return split


def logarithm(arrays: Arrays) -> Split:
    """The given split with log(1 + y) as the target."""
    X, y, X_test, y_test = given(arrays)
    return X, np.log1p(y), X_test, np.log1p(y_test)


def plain(arrays: Arrays) -> Split:
    return seeded(arrays["X"], arrays["y"])


@dataclass(frozen=True)
class Source:
    """Where a table comes from: the data set, whether it has classes, and its split."""

    data: str
    classes: bool
    split: Callable[[Arrays], Split]


NUMBERS = ("laser", "mortgage", "quake", "wizmir")  # small tables with numerical targets
CLASSES = (
    *("balance", "banana", "car", "contraceptive", "german", "led7digit", "marketing", "mushroom"),
    *("optdigits", "phoneme", "ring", "texture", "tic-tac-toe"),
)
SMALL = sorted((*NUMBERS, *CLASSES))
SOURCES = {
    "a9a": Source("a9a", True, given),
    "cod_rna": Source("cod_rna", True, given),
    "coil100": Source("coil100", True, plain),
    "covtype": Source("covtype", True, plain),
    "ijcnn1": Source("ijcnn1", True, given),
    "insurance": Source("insurance_coil2000", True, given),
    "kddcup99": Source("kddcup99_10pct", True, plain),
    "letter": Source("letter", True, given),
    "mnist": Source("mnist", True, given),
    "nursery": Source("nursery", True, plain),
    "nursery_onehot": Source("nursery", True, lambda a: seeded(a["X_onehot"], a["y"])),
    "pendigits": Source("pendigits", True, given),
    "shuttle": Source("shuttle", True, given),
    "spambase": Source("spambase", True, plain),
    "uji_building": Source("ujiindoorloc", True, target(3)),
    "uji_floor": Source("ujiindoorloc", True, target(2)),
    "usps": Source("usps", True, given),
    "blog_feedback": Source("blog_feedback", False, given),
    "blog_feedback_log": Source("blog_feedback", False, logarithm),
    "cpu_act": Source("cpu_act", False, plain),
    "kegg_directed": Source("kegg_directed", False, first_fold),
    "kegg_undirected": Source("kegg_undirected", False, first_fold),
    "parkinsons": Source("parkinsons", False, plain),
    "parkinsons_motor": Source("parkinsons", False, lambda a: seeded(a["X"], a["y_motor"])),
    "uji_latitude": Source("ujiindoorloc", False, target(1)),
    "uji_longitude": Source("ujiindoorloc", False, target(0)),
    "wine_quality": Source("wine_quality", False, plain),
    **{name: Source(name, name in CLASSES, plain) for name in SMALL},
}


def halved_images(X: NDArray[Any]) -> NDArray[Any]:
    """Images of 32 x 32 pixels and three colors, at half the width and height."""
    blocks = X.reshape(-1, 16, 2, 16, 2, 3).mean(axis=(2, 4), dtype=np.float32)
    return np.asarray(blocks.reshape(len(X), -1))


def some(n: int, most: int, seed: int) -> NDArray[np.intp]:
    """A seeded permutation of n rows, or its beginning."""
    return np.random.default_rng(seed).permutation(n)[:most]


def small_table(name: str, seed: int) -> Table:
    """A table of a Parquet file; another seed splits the rows in another way."""
    import pandas as pd  # type: ignore[import-untyped]

    frame = pd.read_parquet(directory_of_data() / "tables" / f"{name}.parquet")
    y = frame.pop("target").to_numpy()
    strings = frame.select_dtypes(exclude="number").columns
    frame[strings] = frame[strings].astype("category")
    order = np.random.default_rng(100 + seed).permutation(len(y))
    test, train = np.split(order, [round(TEST_PART * len(y))])
    X: Any = frame if len(strings) else frame.to_numpy(np.float32)
    X, X_test = (
        X.iloc[rows].reset_index(drop=True) if len(strings) else X[rows] for rows in (train, test)
    )
    if name in NUMBERS:
        y = y.astype(np.float64)
    else:
        y = np.unique(y, return_inverse=True)[1].astype(np.int64)
    return Table(X, y[train], X_test, y[test], name, name in CLASSES)


def directory_of_data() -> Path:
    """The directory of the data sets; an error if there is none."""
    place = data.directory()
    if place is None:
        raise data.MissingData("Set KITCHENETTE_DATA to the directory of the data sets.")
    return place


def table(name: str, *, quick: bool, seed: int = 0) -> Table:
    """One table, its training rows in random order; ``quick`` takes a sample of long ones.

    The images of coil100 are halved by ``quick``. Another seed takes another sample of training
    rows, or of small tables another split.
    """
    if name in SMALL:
        return small_table(name, seed)
    source = SOURCES[name]
    X, y, X_test, y_test = source.split(load(source.data))
    most = QUICK_ROWS if quick else max(len(X), len(X_test))
    train, test = some(len(X), most, 1 + 2 * seed), some(len(X_test), most, 2)
    X, y, X_test, y_test = X[train], y[train], X_test[test], y_test[test]
    if name == "coil100" and quick:
        X, X_test = halved_images(X), halved_images(X_test)
    if source.classes:
        y, y_test = y.astype(np.int64), y_test.astype(np.int64)
    else:
        y, y_test = y.astype(np.float64), y_test.astype(np.float64)
    return Table(X.astype(np.float32), y, X_test.astype(np.float32), y_test, name, source.classes)
