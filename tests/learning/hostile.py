"""Data sets on which models that choose for themselves are led astray.

Each is a function of a generator of random numbers and returns rows to learn from and fresh rows.
They are small, and such that something can be learned or that a constant is a good answer: ridge
regression, boosted trees or a constant pass on each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from scipy import sparse

DEFAULT_FEATURES = 1024  # of the default map, for the sets with about as many rows
FRESH_ROWS = 2000

Generator = np.random.Generator


@dataclass(frozen=True)
class Data:
    """Rows to learn from, and fresh ones.

    Labels are whole numbers, numerical targets float64. R^2 is relative to the mean of the fresh
    targets; or, if ``training_mean``, to the mean of the training targets, for sets in which
    nobody can know the mean of the fresh ones.
    """

    X: Any
    y: np.ndarray
    X_fresh: Any
    y_fresh: np.ndarray
    sample_weight: np.ndarray | None = None
    training_mean: bool = False

    @property
    def classes(self) -> bool:
        return bool(np.issubdtype(self.y.dtype, np.integer))


SETS: dict[str, Callable[[Generator], Data]] = {}


def hostile(make: Callable[[Generator], Data]) -> Callable[[Generator], Data]:
    SETS[make.__name__] = make
    return make


def data(name: str, draw: int = 0) -> Data:
    """A set by name. Name and draw are its seed, so that it does not depend on the other sets."""
    return SETS[name](np.random.default_rng([crc32(name.encode()), draw]))


# ------------------------------------------------------------ pieces


def smooth(X: np.ndarray) -> np.ndarray:
    """A function of the first two columns with a spread of about one, for columns of spread one."""
    return np.sin(X[:, 0]) + 0.5 * X[:, 1]


def split(X: Any, y: np.ndarray, n: int, **options: Any) -> Data:
    return Data(X[:n], y[:n], X[n:], y[n:], **options)


def regression(
    rng: Generator, n: int, n_columns: int = 5, noise: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Normal columns and noisy targets: n rows to learn from, then fresh ones."""
    X = rng.normal(size=(n + FRESH_ROWS, n_columns))
    return X, smooth(X) + noise * rng.normal(size=len(X))


def classification(
    rng: Generator, n: int, n_columns: int = 5, noise: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Three classes, cut from the targets of `regression`."""
    X, y = regression(rng, n, n_columns, noise)
    return X, np.digitize(y, [-0.7, 0.7])


def clusters(
    rng: Generator, n_classes: int, n_each: int, n_columns: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Well separated classes: ``n_each`` rows of every class to learn from, then fresh ones."""
    centers = 3 * rng.normal(size=(n_classes, n_columns))
    y = np.concatenate(
        [np.repeat(np.arange(n_classes), n_each), rng.integers(n_classes, size=FRESH_ROWS)]
    )
    return centers[y] + rng.normal(size=(len(y), n_columns)), y, n_classes * n_each


# ------------------------------------------------------------ rows


@hostile
def rows_with_entries_of_1e6(rng: Generator) -> Data:
    """One row in fifty has a broken sensor, among the fresh ones too."""
    X, y = regression(rng, 600)
    broken = rng.random(len(X)) < 0.02
    X[broken, rng.integers(X.shape[1], size=broken.sum())] = 1e6
    return split(X, y, 600)


@hostile
def classes_of_rows_with_entries_of_1e6(rng: Generator) -> Data:
    X, y = classification(rng, 600)
    broken = rng.random(len(X)) < 0.02
    X[broken, rng.integers(X.shape[1], size=broken.sum())] = -1e6
    return split(X, y, 600)


@hostile
def duplicated_rows(rng: Generator) -> Data:
    """100 rows ten times each, with the same noise in each copy of a target."""
    X, y = regression(rng, 100, 2)
    copies = np.concatenate([np.tile(np.arange(100), 10), np.arange(100, len(X))])
    return split(X[copies], y[copies], 1000)


@hostile
def nearly_duplicated_rows(rng: Generator) -> Data:
    """60 persons measured twelve times; the fresh rows are of other persons."""
    X, y = regression(rng, 60, 2, noise=0.3)
    copies = np.concatenate([np.repeat(np.arange(60), 12), np.arange(60, len(X))])
    X = X[copies] + 1e-4 * rng.normal(size=(len(copies), 2))
    return split(X, y[copies] + 0.1 * rng.normal(size=len(copies)), 720)


@hostile
def nearly_duplicated_rows_of_conflicting_classes(rng: Generator) -> Data:
    """Nine of ten copies have the label 1, whatever the row."""
    X = np.repeat(rng.normal(size=(80, 4)), 10, axis=0)
    X = np.concatenate([X, rng.normal(size=(FRESH_ROWS, 4))])
    y = (rng.random(len(X)) < 0.9).astype(int)
    return split(X + 1e-5 * rng.normal(size=X.shape), y, 800)


@hostile
def two_rows(rng: Generator) -> Data:
    X_fresh = rng.uniform(0, 1, size=(FRESH_ROWS, 1))
    X = np.array([[0.0], [1.0]])
    return Data(X, X[:, 0], X_fresh, X_fresh[:, 0], training_mean=True)


@hostile
def two_rows_of_two_classes(rng: Generator) -> Data:
    y = np.concatenate([[0, 1], rng.integers(2, size=FRESH_ROWS)])
    return split(4.0 * y[:, None] + rng.normal(size=(len(y), 6)), y, 2)


@hostile
def one_row_for_each_class(rng: Generator) -> Data:
    X, y, n = clusters(rng, 40, 1, 10)
    return split(X, y, n)


@hostile
def two_hundred_classes_of_three_rows(rng: Generator) -> Data:
    X, y, n = clusters(rng, 200, 3, 10)
    return split(X, y, n)


@hostile
def extreme_imbalance(rng: Generator) -> Data:
    """One row in two hundred is of the second class, and mostly outside of the first."""
    y = (rng.random(1200 + FRESH_ROWS) < 0.005).astype(int)
    X = rng.normal(size=(len(y), 5)) + 2.0 * y[:, None]
    return split(X, y, 1200)


@hostile
def as_many_rows_as_features(rng: Generator) -> Data:
    X, y = regression(rng, DEFAULT_FEATURES, noise=1.0)
    return split(X, y, DEFAULT_FEATURES)


@hostile
def one_row_more_than_features(rng: Generator) -> Data:
    X, y = regression(rng, DEFAULT_FEATURES + 1, noise=1.0)
    return split(X.astype(np.float32), y, DEFAULT_FEATURES + 1)


@hostile
def rows_in_the_order_of_their_targets(rng: Generator) -> Data:
    X, y = regression(rng, 800)
    order = np.concatenate([np.argsort(y[:800]), np.arange(800, len(y))])
    return split(X[order], y[order], 800)


@hostile
def drift_in_time(rng: Generator) -> Data:
    """A column that goes on growing, in the fresh rows from where the others ended."""
    n = 800
    time = np.concatenate([np.linspace(0, 1, n), np.linspace(1, 1.3, FRESH_ROWS)])
    X, _ = regression(rng, n)
    X[:, 2] = 10 * time + 0.1 * rng.normal(size=len(X))
    y = smooth(X) + time + 0.5 * rng.normal(size=len(X))
    return split(X, y, n, training_mean=True)


# ------------------------------------------------------------ columns


@hostile
def constant_columns(rng: Generator) -> Data:
    X, y = regression(rng, 500, 8)
    X[:, 2:5] = [0.0, 1e6, -3.0]
    return split(X, y, 500)


@hostile
def only_constant_columns(rng: Generator) -> Data:
    """All rows are equal; the mean is all that can be known."""
    _, y = regression(rng, 300, 2)
    return split(np.tile([1.0, 0.0, 1e3], (len(y), 1)), y, 300, training_mean=True)


@hostile
def only_constant_columns_and_classes(rng: Generator) -> Data:
    y = (rng.random(300 + FRESH_ROWS) < 0.3).astype(int)
    return split(np.full((len(y), 2), 7.0), y, 300)


@hostile
def float32_with_means_of_1e6(rng: Generator) -> Data:
    """Steps between numbers of this size are a sixteenth, a hundredth of the spread."""
    X, y = regression(rng, 800)
    return split((1e6 + 6 * X).astype(np.float32), y, 800)


@hostile
def columns_of_scale_1e_minus_8_and_1e8(rng: Generator) -> Data:
    X, y = regression(rng, 800)
    return split(X * [1e8, 1e-8, 1e8, 1e-8, 1.0], y, 800)


@hostile
def heavy_tailed_columns(rng: Generator) -> Data:
    """Columns without a variance; the target depends on them through a bounded function."""
    X = rng.standard_cauchy(size=(800 + FRESH_ROWS, 4))
    y = np.tanh(X[:, 0]) + np.tanh(X[:, 1]) + 0.5 * rng.normal(size=len(X))
    return split(X, y, 800)


@hostile
def signal_in_columns_of_small_scale(rng: Generator) -> Data:
    """Two columns of skewed counts, some of them four times as large, hide the useful one."""
    n = 2000
    counts = np.round(np.exp(rng.normal(size=(n + FRESH_ROWS, 2)) * [0.6, 0.5]) * [30, 90])
    counts[rng.random(len(counts)) < 0.005] *= 4
    small = rng.normal(size=(len(counts), 6))
    y = np.round(small[:, 0] + 0.5 * rng.normal(size=len(counts)))
    return split(np.column_stack([counts, 0.1 * small]).astype(np.float32), y, n)


@hostile
def useless_columns(rng: Generator) -> Data:
    X, y = regression(rng, 800, 502)
    return split(X.astype(np.float32), y, 800)


@hostile
def classes_and_useless_columns(rng: Generator) -> Data:
    X, y = classification(rng, 800, 502)
    return split(X, y, 800)


@hostile
def codes_of_large_values(rng: Generator) -> Data:
    """Identifiers of groups as numbers of nine digits, and one plain column."""
    group = rng.integers(12, size=1000 + FRESH_ROWS)
    codes = np.sort(rng.integers(10**8, 10**9, size=12))
    X = np.column_stack([codes[group], rng.normal(size=len(group))])
    y = (group // 4 + (X[:, 1] > 1)).astype(int)
    return split(X, y, 1000)


@hostile
def sparse_wide_rows(rng: Generator) -> Data:
    """Sparse rows of 5000 columns; each class has frequent columns of its own among common ones."""
    n = 400 + FRESH_ROWS // 2
    y = rng.integers(3, size=n)
    own = 40 * y[:, None] + rng.integers(40, size=(n, 6))
    words = np.concatenate([own, rng.integers(5000, size=(n, 14))], axis=1)
    ones = np.ones(words.size)
    X = sparse.csr_array((ones, (np.repeat(np.arange(n), 20), words.ravel())), shape=(n, 5000))
    return split(X, y, 400)


@hostile
def binary_columns(rng: Generator) -> Data:
    """The class is whether two of sixteen bits differ, wrong for one row in ten."""
    X = rng.integers(2, size=(900 + FRESH_ROWS, 16))
    y = (X[:, 0] ^ X[:, 1]) ^ (rng.random(len(X)) < 0.1)
    return split(X, y.astype(int), 900)


# ------------------------------------------------------------ targets


@hostile
def targets_fifty_spreads_away(rng: Generator) -> Data:
    """Ten targets of a thousand are wrong by 50 spreads, five up and five down; no fresh ones."""
    X, y = regression(rng, 1000)
    wrong = rng.choice(1000, size=10, replace=False)
    y[wrong] += 50 * np.std(y) * np.repeat([1, -1], 5)
    return split(X, y, 1000)


@hostile
def heavy_tailed_targets(rng: Generator) -> Data:
    """Noise without a variance (Student's t with two degrees of freedom); none in fresh rows."""
    X, y = regression(rng, 1000, noise=0.0)
    y[:1000] += rng.standard_t(2, size=1000)
    return split(X, y, 1000)


@hostile
def heavy_tailed_columns_and_targets(rng: Generator) -> Data:
    X = rng.standard_cauchy(size=(1000 + FRESH_ROWS, 4))
    y = 2 * np.tanh(X[:, 0]) + 2 * np.tanh(X[:, 1])
    y[:1000] += rng.standard_t(2, size=1000)
    return split(X, y, 1000)


@hostile
def heavy_tailed_counts_and_targets(rng: Generator) -> Data:
    """Counts without a mean, and targets that grow with the cube of their logarithm."""
    X = np.floor(3 * np.abs(rng.standard_cauchy(size=(1000 + FRESH_ROWS, 4))))
    y = (np.log1p(X[:, 0]) + rng.normal(size=len(X))) ** 3
    return split(X.astype(np.float32), y, 1000)


@hostile
def targets_that_are_mostly_zero(rng: Generator) -> Data:
    """Counts with a long tail, such as comments on blog posts."""
    X = rng.normal(size=(1000 + FRESH_ROWS, 6))
    rate = np.exp(X[:, 0] + 0.5 * X[:, 1] - 1.5)
    return split(X, rng.poisson(rate).astype(float), 1000)


@hostile
def pure_noise(rng: Generator) -> Data:
    X, _ = regression(rng, 800)
    return split(X, rng.normal(size=len(X)), 800)


@hostile
def pure_noise_and_classes(rng: Generator) -> Data:
    """Seven rows of ten are of the first class, and no column says which."""
    X, _ = regression(rng, 800)
    return split(X, (rng.random(len(X)) < 0.3).astype(int), 800)


@hostile
def perfect_fit(rng: Generator) -> Data:
    X, _ = regression(rng, 500)
    return split(X, X @ np.arange(1.0, 6.0), 500)


@hostile
def targets_near_1e8(rng: Generator) -> Data:
    X, y = regression(rng, 600)
    return split(X, 1e8 + y, 600)


@hostile
def targets_of_scale_1e_minus_12(rng: Generator) -> Data:
    X, y = regression(rng, 600)
    return split(X.astype(np.float32), 1e-12 * y, 600)


# ------------------------------------------------------------ weights


@hostile
def weights_from_1e_minus_6_to_1e6(rng: Generator) -> Data:
    """Weights that say nothing about the rows; 70 rows of a thousand have most of the weight."""
    X, y = regression(rng, 1000, 3)
    return split(X, y, 1000, sample_weight=10 ** rng.uniform(-6, 6, size=1000))


@hostile
def weights_of_a_thousandth(rng: Generator) -> Data:
    X, y, n = clusters(rng, 10, 50, 8)
    return split(X, y, n, sample_weight=np.full(n, 1e-3))


@hostile
def weights_of_a_thousand(rng: Generator) -> Data:
    X, y = classification(rng, 600, noise=1.0)
    return split(X, y, 600, sample_weight=np.full(600, 1e3))


# ------------------------------------------------------------ visible signals

VISIBLE_ROWS = 2000

SIGNALS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "line and square": lambda X: X[:, 0] + 0.5 * X[:, 1] ** 2,
    "step": lambda X: np.where(X[:, 0] > 0.3, 1.0, -1.0),
    "box": lambda X: np.where(np.abs(X[:, :2]).max(axis=1) < 0.8, 1.0, -1.0),
    "all of three": lambda X: np.where(X[:, :3].min(axis=1) > -0.6, 1.0, -1.0),
    "sum of steps": lambda X: (X[:, :5] > [0.2, -0.4, 0.6, 0.0, -1.0]).sum(axis=1) - 2.5,
    "parity of two": lambda X: np.sign(X[:, 0] * X[:, 1]),
    "parity of three": lambda X: np.sign(X[:, :3].prod(axis=1)),
    "wave": lambda X: np.sin(6 * X[:, 0]),
    "waves of two": lambda X: np.sin(3 * X[:, 0]) * np.cos(3 * X[:, 1]),
    "wave of a sum": lambda X: np.sin(3 * (X[:, 0] + X[:, 1])),
    "product of two": lambda X: X[:, 0] * X[:, 1],
    "product of three": lambda X: X[:, :3].prod(axis=1),
    "ratio": lambda X: X[:, 0] / (1 + np.abs(X[:, 1])),
    "Friedman's function": lambda X: _friedman((np.tanh(X) + 1) / 2),
    "robot arm": lambda X: _robot_arm(1.5 * X[:, :2], 1 + 0.3 * X[:, 2:4]),
}


def _friedman(U: np.ndarray) -> np.ndarray:
    waves = 10 * np.sin(np.pi * U[:, 0] * U[:, 1]) + 20 * (U[:, 2] - 0.5) ** 2
    return waves + 10 * U[:, 3] + 5 * U[:, 4]


def _robot_arm(angles: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The distance of a hand from the shoulder, with the sign of the first angle's sine."""
    along = np.cumsum(angles, axis=1)
    hand = (lengths[:, :, None] * np.stack([np.cos(along), np.sin(along)], axis=2)).sum(axis=1)
    return np.linalg.norm(hand, axis=1) * np.sign(np.sin(angles[:, 0]))


def visible(name: str, n_columns: int, classes: bool, draw: int = 0) -> Data:
    """A function of a few of many columns, with noise: a tenth of its spread, or 5 % of labels."""
    rng = np.random.default_rng([crc32(name.encode()), n_columns, draw])
    X = rng.normal(size=(VISIBLE_ROWS + FRESH_ROWS, n_columns))
    y = SIGNALS[name](X)
    y = y / y.std() + 0.1 * rng.normal(size=len(X))
    if classes:
        cuts = [0.0] if np.unique(SIGNALS[name](X)).size == 2 else np.quantile(y, [1 / 3, 2 / 3])
        y = np.digitize(y, cuts)
        wrong = rng.random(len(y)) < 0.05
        y[wrong] = rng.integers(y.max() + 1, size=wrong.sum())
    return split(X[:, rng.permutation(n_columns)], y, VISIBLE_ROWS)
