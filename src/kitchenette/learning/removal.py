"""Whether rows that are to be removed from statistics can be among those that were added.

Statistics do not know single rows, but they refuse what cannot be. The sums of squares and products
of the rows that are left are a positive semidefinite matrix, of features and targets. This is
tested with a half of what is to be removed, so that rows that were added pass it with a margin,
and with a tolerance for the rounding errors of all that was added and removed before. (Of
statistics from a file this is not known, and nothing is refused.) Rows that were not added fail if
there are no more rows than features, or if they are unlike all others. An estimator knows more: its
sample has the keys of rows (`RowSample.without`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.learning.packed import CholeskyFactor
from kitchenette.learning.threads import one_blas_thread

if TYPE_CHECKING:
    from kitchenette.learning.least_squares import LeastSquares

Array = NDArray[np.float64]
LARGEST_ORDER = 1024  # of a matrix whose factor takes a few hundredths of a second
MARGIN = 0.5  # the part of the removed squares that must be there
# Rounding errors of sums of squares, relative to the largest sums that there ever were, are at most
# 1e-6 with float32 features (`LeastSquares`, Notes) and some 1e-14 with float64. Those of means are
# relative to the means, which may be far larger than what the features vary by.
TOLERANCE = {"float32": 1e-5, "float64": 1e-10}
MEAN_TOLERANCE = 1e-12
WEIGHT_TOLERANCE = 1e-6  # relative rounding error of the weight of all rows, if all are removed
NOT_ADDED = (
    "Cannot remove {n} rows: they are not all among those that were added, because {why}. Remove "
    "rows as they were added, with the same targets and weights."
)


@dataclass(frozen=True)
class Squares:
    """Sums of squares, of which rounding errors are parts.

    Attributes
    ----------
    centered, means : float
        The trace of the Gram matrix, and the squared means of the features times the weight.
    targets, target_means : float
        The same of the targets.
    """

    centered: float = 0.0
    means: float = 0.0
    targets: float = 0.0
    target_means: float = 0.0

    @classmethod
    def of(cls, statistics: LeastSquares) -> Squares:
        """The sums of squares of statistics."""
        n = statistics.count
        with np.errstate(over="ignore"):
            return cls(
                float(statistics.gram.diagonal().sum()),
                n * float(np.square(statistics.feature_mean).sum()),
                float(np.trace(statistics.target_gram)),
                n * float(np.square(statistics.target_mean).sum()),
            )

    def largest(self, other: Squares) -> Squares:
        """The larger ones."""
        return Squares(*map(max, vars(self).values(), vars(other).values()))

    def added(self, other: Squares) -> Squares:
        """The sums of both."""
        return Squares(*map(sum, zip(vars(self).values(), vars(other).values(), strict=True)))


def check_removable(
    whole: LeastSquares, Z: NDArray[Any], Y: Array, weights: Array | None, before: Squares
) -> None:
    """Refuse to remove rows that cannot be among those that were added.

    Parameters
    ----------
    whole : LeastSquares
        The statistics of the rows that were added, not fewer than those to be removed.
    Z, Y, weights : ndarrays
        The rows to be removed.
    before : Squares
        The largest sums of squares that the statistics have had.
    """
    # The rows may have been added in another precision than that in which they are removed.
    is_float32 = whole.has_float32 or Z.dtype == np.float32
    part = TOLERANCE["float32" if is_float32 else whole.storage]
    with np.errstate(all="ignore"):  # of numbers at the ends of the range
        tolerance = part * before.centered + MEAN_TOLERANCE * before.means
        of_targets = part * before.targets + MEAN_TOLERANCE * before.target_means
        if whole.n_features > LARGEST_ORDER:
            excess = _larger_squares(whole, Z, weights, tolerance)
        else:
            excess = _impossible(whole, Z, Y, weights, tolerance, of_targets)
    if excess is not None:
        raise ValueError(NOT_ADDED.format(n=Z.shape[0], why=excess))


def _larger_squares(
    whole: LeastSquares, Z: NDArray[Any], weights: Array | None, tolerance: float
) -> str | None:
    """Features whose squares exceed those of all rows, which takes no products to find."""
    there = whole.gram.diagonal() + whole.count * np.square(whole.feature_mean)
    scale = np.ones(Z.shape[0]) if weights is None else weights
    squares = np.einsum("ij,ij,i->j", Z, Z, scale, dtype=np.float64)
    return _larger(MARGIN * squares > there + tolerance, "feature")


def _impossible(
    whole: LeastSquares,
    Z: NDArray[Any],
    Y: Array,
    weights: Array | None,
    tolerance: float,
    of_targets: float,
) -> str | None:
    """Why the statistics of rows are not part of others, or None if they may be."""
    gone = type(whole)(whole.n_features, whole.n_targets).update(Z, Y, weights)
    step, target_step = gone.feature_mean - whole.feature_mean, gone.target_mean - whole.target_mean
    left = whole.count - gone.count
    if gone.n_rows == whole.n_rows and abs(left) <= WEIGHT_TOLERANCE * whole.count:
        return _different(whole, gone, tolerance, of_targets)
    if gone.count == 0 or left <= 0:
        return None  # nothing is removed, or too much, which is refused by the native core
    # The update of Chan, Golub and LeVeque (1979), reversed, for a part of the rows.
    between = MARGIN * whole.count * gone.count / left
    gram = whole.gram.copy()
    gram.values[:] -= MARGIN * gone.gram.values
    gram.add_outer(step, -between)
    gram.add_to_diagonal(tolerance)
    squares = np.diagonal(whole.target_gram - MARGIN * gone.target_gram) + of_targets
    squares = squares - between * np.square(target_step)
    wrong = _larger(squares < 0, "target")
    if wrong is not None or tolerance == 0:
        return wrong
    try:
        with one_blas_thread(whole.n_features):
            factor = CholeskyFactor(gram, 0.0)
    except np.linalg.LinAlgError:
        return "the features are unlike those of all rows"
    cross = whole.cross - MARGIN * gone.cross - between * np.outer(step, target_step)
    explained = np.square(factor.forward(cross)).sum(axis=0)
    return "the targets are others" if np.any(explained > squares) else None


def _different(
    whole: LeastSquares, gone: LeastSquares, tolerance: float, of_targets: float
) -> str | None:
    """Whether statistics of as many rows are others."""
    squares = whole.gram.diagonal() - gone.gram.diagonal()
    distances = whole.count * np.square(whole.feature_mean - gone.feature_mean)
    if max(np.abs(squares).max(), distances.max()) > tolerance:
        return "the features are others"
    squares = np.diagonal(whole.target_gram - gone.target_gram)
    distances = whole.count * np.square(whole.target_mean - gone.target_mean)
    products = np.abs(whole.cross - gone.cross).max()
    if max(np.abs(squares).max(), distances.max()) > of_targets or products > np.sqrt(
        tolerance * of_targets
    ):
        return "the targets are others"
    return None


def _larger(found: NDArray[np.bool_], what: str) -> str | None:
    if not found.any():
        return None
    return f"the squares of {what} {int(np.argmax(found))} exceed those of all rows"
