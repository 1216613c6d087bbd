"""Least squares in one pass: statistics that can be updated, merged and solved.

Statistics do not know single rows, but they refuse what cannot be. The sums of squares and products
of the rows that are left are a positive semidefinite matrix, of features and targets. This is
tested with a half of what is to be removed, so that rows that were added pass it with a margin,
and with a tolerance for the rounding errors of all that was added and removed before. (Of
statistics from a file this is not known, and nothing is refused.) Rows that were not added fail if
there are no more rows than features, or if they are unlike all others. An estimator knows more: its
sample has the keys of rows (`RowSample.without`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from operator import attrgetter
from threading import RLock
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.utils import check_array, check_consistent_length

from kitchenette import _core
from kitchenette.files.budget import Budget
from kitchenette.files.registry import storable
from kitchenette.learning.gram import (
    STORAGES,
    Array,
    CholeskyFactor,
    PackedSymmetric,
    resolution,
    statistics_bytes,
)
from kitchenette.learning.penalty import CRITERIA, PenaltyPath
from kitchenette.learning.solution import NormalEquations, Solution
from kitchenette.parameters import check_choice, check_count
from kitchenette.resources import BLAS, check_memory, one_blas_thread

LARGEST_ORDER = 1024  # of a matrix whose factor takes a few hundredths of a second
MARGIN = 0.5  # the part of the removed squares that must exist; the rest is for rounding errors
# Rounding errors of sums of squares, relative to the largest sums that there ever were, are at most
# 1e-6 with float32 features (`LeastSquares`, Notes) and some 1e-14 with float64. Those of means are
# relative to the means, which may be far larger than what the features vary by.
TOLERANCE = {"float32": 1e-5, "float64": 1e-10}
MEAN_TOLERANCE = 1e-12
WEIGHT_TOLERANCE = 1e-6  # relative rounding error of sums of weights
NOT_ADDED = (
    "Cannot remove {n} rows: they are not all among those that were added, because {why}. Remove "
    "rows as they were added, with the same targets and weights."
)
SMALLEST_SQUARES = 1e-28  # a sum of squares of which float32 keeps all digits of small parts
NEGATIVE_SQUARES = 1e-3  # of all squares: the rounding errors after most of the rows were removed
_NUMBERS = ("n_features", "n_targets", "n_rows", "count", "has_float32")
_ARRAYS = ("feature_mean", "target_mean", "gram", "cross", "target_gram")


def checked_alpha(alpha: Any) -> str | Array:
    """A criterion, a penalty as a zero-dimensional array, or several penalties."""
    if isinstance(alpha, str) and alpha == "auto":
        return "evidence"
    if isinstance(alpha, str) and alpha in CRITERIA:
        return alpha
    criteria = " or ".join(map(repr, ("auto", *CRITERIA)))
    return checked_penalties("alpha", alpha, f"a number, a list of numbers, {criteria}")


def checked_penalties(name: str, given: Any, expected: str) -> Array:
    """One penalty or several, as an array."""
    try:
        penalties = np.asarray(given)
    except ValueError:
        penalties = np.asarray(None)
    if penalties.dtype.kind not in "iuf" or penalties.ndim > 1 or penalties.size == 0:
        raise ValueError(f"{name} must be {expected}; got {given!r}.")
    penalties = penalties.astype(np.float64)
    if not np.all(np.isfinite(penalties)) or penalties.min() < 0:
        raise ValueError(f"{name} must be finite and not negative; got {given!r}.")
    return penalties


def checked_rows(
    Z: Any, Y: Any, sample_weight: Any, n_features: int, n_targets: int
) -> tuple[NDArray[Any], Array, Array | None]:
    """Features, targets and weights in the types and shapes of the native core.

    The native core checks that they are finite.
    """
    Z = check_array(Z, dtype=[np.float64, np.float32], ensure_all_finite=False, input_name="Z")
    Y = check_array(Y, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, input_name="Y")
    Y = Y[:, None] if Y.ndim == 1 else Y
    check_consistent_length(Z, Y)
    for name, array, width in (("Z", Z, n_features), ("Y", Y, n_targets)):
        if array.ndim != 2 or array.shape[1] != width:
            raise ValueError(
                f"{name} must have {width} columns; got an array of shape {array.shape}."
            )
    weights = None if sample_weight is None else checked_weights(sample_weight, Z.shape[0])
    return _with_contiguous_rows(Z), np.require(Y, requirements=["C", "A"]), weights


def _with_contiguous_rows(Z: NDArray[Any]) -> NDArray[Any]:
    contiguous = Z.strides[1] == Z.itemsize and Z.strides[0] % Z.itemsize == 0
    return Z if contiguous and Z.flags.aligned else np.require(Z, requirements=["C", "A"])


def checked_weights(sample_weight: Any, n_rows: int) -> Array:
    """Sample weights as a checked float64 array."""
    try:
        weights = np.require(sample_weight, np.float64, ["C", "A"])
    except (TypeError, ValueError):
        raise ValueError(
            f"sample_weight must be a number for each row; got {sample_weight!r:.80}."
        ) from None
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must be one number for each of the {n_rows} rows; got an array of "
            f"shape {weights.shape}."
        )
    if not np.all(np.isfinite(weights)) or weights.min() < 0:
        raise ValueError("sample_weight must be finite and not negative.")
    return weights


def sums_of_squares(statistics: LeastSquares) -> Array:
    """The trace of the Gram matrix, the squared means times the weight, and both of the targets."""
    n = statistics.count
    with np.errstate(over="ignore"):
        return np.array(
            [
                statistics.gram.diagonal().sum(),
                n * np.square(statistics.feature_mean).sum(),
                np.trace(statistics.target_gram),
                n * np.square(statistics.target_mean).sum(),
            ]
        )


def check_removable(
    whole: LeastSquares, Z: NDArray[Any], Y: Array, weights: Array | None, before: Array
) -> None:
    """Refuse to remove rows that cannot be among those that were added.

    Parameters
    ----------
    whole : LeastSquares
        The statistics of the rows that were added, not fewer than those to be removed.
    Z, Y, weights : ndarrays
        The rows to be removed.
    before : ndarray of shape (4,)
        The largest `sums_of_squares` that the statistics have had, of which rounding errors are
        parts.
    """
    # The rows may have been added in another precision than that in which they are removed.
    is_float32 = whole.has_float32 or Z.dtype == np.float32
    part = TOLERANCE["float32" if is_float32 else whole.storage]
    with np.errstate(all="ignore"):  # of numbers at the ends of the range
        tolerance, of_targets = part * before[::2] + MEAN_TOLERANCE * before[1::2]
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


def _larger(exceeds: NDArray[np.bool_], what: str) -> str | None:
    if not exceeds.any():
        return None
    return f"the squares of {what} {int(np.argmax(exceeds))} exceed those of all rows"


def _of_statistics(name: str) -> Any:
    """A read-only attribute of the native object."""
    return property(attrgetter(f"_statistics.{name}"))


@storable
class LeastSquares:
    """Sufficient statistics of features and targets for ridge regression with any penalty.

    They are collected in one pass, in memory that does not grow with the number of rows. Batches
    can be added and removed, and statistics of different rows merged in any order. The weights
    for any number of penalties, the best penalty and the uncertainty of predictions are computed
    from them without access to the data.

    Parameters
    ----------
    n_features : int
        The number of columns of Z.
    n_targets : int, default=1
        The number of columns of Y.
    storage : {"float64", "float32"}, default="float64"
        The precision in which the Gram matrix and its Cholesky factor are stored. "float32" takes
        half the memory, for tens of thousands of features; see Notes.

    Attributes
    ----------
    storage : str
        The precision of the Gram matrix.
    n_rows : int
        The number of rows seen, regardless of their weights.
    count : float
        The sum of the weights of all rows, n.
    feature_mean : ndarray of shape (n_features,)
        Weighted mean m of the features.
    target_mean : ndarray of shape (n_targets,)
        Weighted mean of the targets.
    gram : PackedSymmetric of order n_features
        G, the weighted sum of (z - m)(z - m)'; ``gram.full()`` is its lower triangle.
    cross : ndarray of shape (n_features, n_targets)
        The weighted sum of products of centered features and centered targets.
    target_gram : ndarray of shape (n_targets, n_targets)
        The weighted sum of products of centered targets.
    has_float32 : bool
        Whether some of the features were float32.
    version : int
        A number that grows with every change.

    See Also
    --------
    sklearn.linear_model.Ridge : The same weights from all rows at once.

    Notes
    -----
    *The problem.* ``solve(alpha)`` minimizes the sum over the rows of
    weight * (y - c - w' z)^2, plus alpha |w|^2, as `sklearn.linear_model.Ridge` does. The
    intercept c is not penalized. A row of weight 2 counts as two rows.

    *Accuracy.* A batch is centered at its own mean before it is multiplied, and the difference
    of the means enters as one more row (Chan, Golub and LeVeque 1979), so that large means
    cause no cancellation. float32 rows are multiplied and summed in float32, two thousand at a
    time, and these sums are added in float64. Relative to the norms of its two columns, an entry
    of G has an error of about 1e-7 at 20,000 rows, which falls as 1 / sqrt(rows). For features
    with few distinct values, such as indicators, rounding errors do not average out: the error
    is 1e-6 for any number of rows. Predictions agree with a float64 solution to about 1e-8 times
    the condition number of G + alpha I. If that is not enough, pass float64 features; they are
    multiplied in float64, in twice the time.

    *Storage in float32.* Sums of up to 4096 rows are added in float64 and rounded to float32. The
    errors of entries are independent, so that of the whole matrix, relative to its trace, is at
    most about 3e-8 sqrt(batches / n_features) for batches of up to 4096 rows, and a third of that
    for Fourier features: 4e-10 for 16,384 of them and 10^5 rows, and 1.2e-9 for 10^6 rows. The
    factor is computed in float32, too, in half the time, and the weights are refined by products
    with the Gram matrix in float64 until they are those of the stored statistics. The criteria
    choose among penalties of 3e-8 times the trace or more. At this bound the effective degrees of
    freedom are known to some percent, and all else better. Smaller penalties can be given, but one
    that is too small for a factor is raised, with a warning. The estimators store in float32 if the
    features are float32 and more than 16,384.

    *Cost.* n_features^2 operations per row, on one triangle, which is stored in
    rectangular full packed format: 4 n_features^2 bytes in total, or 2 n_features^2 in float32,
    and a block of 4096 rows and tiles of products while updating. A batch should have a few hundred
    rows, because each batch reads and writes the whole Gram matrix once. A solution takes
    n_features^3 / 3 operations and as many bytes again (without intercept, twice as many); choosing
    alpha takes one to three solutions. In float32, 32,768 features take 4.3 GB for both, and 65,536
    take 17 GB. What does not fit is refused before it starts. With AVX2 or AVX-512 the
    products are computed by native code; otherwise by SciPy's BLAS, which is limited to one
    thread meanwhile, because several native threads call it for separate tiles.

    *Downdating* loses accuracy if the removed rows outweigh the remaining ones.

    References
    ----------
    Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample
    variances, 1979.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import LeastSquares
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(300, 3))
    >>> y = Z @ [1.0, 2.0, 3.0] + 5
    >>> here = LeastSquares(3).update(Z[:100], y[:100])
    >>> there = LeastSquares(3).update(Z[100:], y[100:])
    >>> solution = here.merge(there).solve(alpha=1e-6)
    >>> solution.coef.ravel().round(3), solution.intercept.round(3)
    (array([1., 2., 3.]), array([5.]))
    """

    # All mutable state is in one native object and changes by single method calls, so neither an
    # interrupt nor a MemoryError can leave an update half done.
    _statistics: _core.Statistics
    # Held by whoever changes the statistics or reads the large arrays, and the process it is for.
    _lock: tuple[int, AbstractContextManager[Any]]
    # The largest sums of squares that there were; those before a file are not known.
    _largest: Array | None

    n_features: int = _of_statistics("n_features")
    n_targets: int = _of_statistics("n_targets")
    n_rows: int = _of_statistics("n_rows")
    count: float = _of_statistics("count")
    has_float32: bool = _of_statistics("has_float32")
    version: int = _of_statistics("version")
    feature_mean: Array = _of_statistics("feature_mean")
    target_mean: Array = _of_statistics("target_mean")
    cross: Array = _of_statistics("cross")
    target_gram: Array = _of_statistics("target_gram")

    def __init__(self, n_features: int, n_targets: int = 1, *, storage: str = "float64"):
        check_count("n_features", n_features)
        check_count("n_targets", n_targets)
        check_choice("storage", storage, STORAGES)
        statistics = statistics_bytes(n_features, storage)
        check_memory(
            f"Statistics of {n_features} features",
            {f"the Gram matrix in {storage}": statistics},
            "Use fewer features.",
        )
        self._hold(_core.Statistics(n_features, n_targets, float32_gram=storage == "float32"))

    def _hold(self, statistics: _core.Statistics) -> None:
        self._statistics, self._lock = statistics, (os.getpid(), RLock())
        self._largest = np.zeros(4)
        self._frozen = False

    def freeze(self) -> None:
        """Refuse changes from now on, as of statistics that a model has; copies are free."""
        self._frozen = True

    def _refuse_if_frozen(self) -> None:
        if self._frozen:
            raise ValueError(
                "These statistics belong to a model, which changes by its own methods alone. "
                "Change a copy: copy.copy(statistics)."
            )

    @classmethod
    def _of(cls, statistics: _core.Statistics) -> Self:
        owner = cls.__new__(cls)
        owner._hold(statistics)
        return owner

    def unchanged(self) -> AbstractContextManager[Any]:
        """A context in which no other thread changes the statistics.

        `solve` and `path` are in it, and changes by other threads wait for its end. It is needed
        around several calls that must see the same rows, and while ``gram`` or ``cross`` are read,
        which are views.
        """
        if self._lock[0] != os.getpid():  # a thread of the parent process may have held the lock
            self._lock = os.getpid(), RLock()
        return self._lock[1]

    @property
    def storage(self) -> str:
        return str(self._statistics.gram.dtype)

    @property
    def gram(self) -> PackedSymmetric:
        return PackedSymmetric(self.n_features, self._statistics.gram)

    def __copy__(self) -> Self:
        statistics = self._of(self._statistics.copy())
        statistics._largest = self._largest
        return statistics

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def __getstate__(self) -> dict[str, Any]:
        return self.state()

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = {
            name: np.require(state[name], _stored_type(state, name), ["C", "A", "W"])
            for name in _ARRAYS
        }
        count, n_rows = float(state["count"]), int(state["n_rows"])
        has_float32 = bool(state["has_float32"])
        self._hold(
            _core.Statistics.adopt(**arrays, count=count, n_rows=n_rows, has_float32=has_float32)
        )
        self._largest = None

    def __repr__(self) -> str:
        return (
            f"LeastSquares(n_features={self.n_features}, n_targets={self.n_targets}) "
            f"of {self.n_rows} rows"
        )

    def update(self, Z: ArrayLike, Y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows.

        Parameters
        ----------
        Z : array-like of shape (n_rows, n_features)
            Features. float32 is multiplied in float32, all other types in float64.
        Y : array-like of shape (n_rows, n_targets) or (n_rows,)
            Targets.
        sample_weight : array-like of shape (n_rows,), optional
            Nonnegative weights; 1 by default.

        Returns
        -------
        self : LeastSquares
            This object.
        """
        self._change(Z, Y, sample_weight, remove=False)
        return self

    def downdate(self, Z: ArrayLike, Y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Remove rows that were added before, with the same weights.

        Parameters
        ----------
        Z, Y, sample_weight
            As in `update`. Rows are refused that cannot have been added: too many, of too large a
            weight, or with sums of squares and products that are not part of those of all rows
            (beyond 1024 features, sums of squares alone; and not if the statistics are from a file
            or a pickle). Others are not found out.

        Returns
        -------
        self : LeastSquares
            This object.

        Examples
        --------
        >>> import numpy as np
        >>> from kitchenette import LeastSquares
        >>> Z = np.random.default_rng(0).normal(size=(100, 2))
        >>> statistics = LeastSquares(2).update(Z, Z[:, 0])
        >>> statistics.downdate(Z[:40], Z[:40, 0]).n_rows
        60
        """
        self._change(Z, Y, sample_weight, remove=True)
        return self

    def _change(self, Z: Any, Y: Any, sample_weight: Any, *, remove: bool) -> None:
        self._refuse_if_frozen()
        batch = checked_rows(Z, Y, sample_weight, self.n_features, self.n_targets)
        with self.unchanged():
            if remove and batch[0].shape[0] <= self.n_rows:
                self._largest = self._largest_squares()
                if self._largest is not None:
                    check_removable(self, *batch, self._largest)
            with one_blas_thread():
                self._statistics.update(*batch, remove=remove, blas=BLAS)

    def _largest_squares(self) -> Array | None:
        """The largest sums of squares so far."""
        return None if self._largest is None else np.maximum(self._largest, sums_of_squares(self))

    def merge(self, other: LeastSquares) -> Self:
        """Add the rows of other statistics, which are not changed.

        Parameters
        ----------
        other : LeastSquares
            Statistics of other rows, with the same features and targets, in any storage; another
            object than this one, whose rows would count twice.

        Returns
        -------
        self : LeastSquares
            This object.
        """
        if not isinstance(other, LeastSquares):
            raise ValueError(f"merge takes a LeastSquares object; got {type(other).__name__}.")
        if other._statistics is self._statistics:
            raise ValueError(
                "Cannot merge statistics with themselves: all rows would count twice. Merge a copy "
                "if that is meant."
            )
        self._refuse_if_frozen()
        with self.unchanged():
            mine, theirs = self._largest_squares(), other._largest_squares()
            self._largest = None if mine is None or theirs is None else mine + theirs
            self._statistics.merge(other._statistics)
        return self

    def equals(self, other: LeastSquares) -> bool:
        """Whether other statistics are the same numbers, as those of a copy are.

        Parameters
        ----------
        other : LeastSquares
            Statistics.

        Returns
        -------
        equal : bool

        Examples
        --------
        >>> from copy import copy
        >>> from kitchenette import LeastSquares
        >>> statistics = LeastSquares(1).update([[1.0], [2.0]], [1.0, 2.0])
        >>> statistics.equals(copy(statistics))
        True
        """
        # The large arrays come last.
        names = (*_NUMBERS, "feature_mean", "target_mean", "target_gram", "cross", "gram")
        mine, theirs = self.state(), other.state()
        return all(np.array_equal(mine[name], theirs[name]) for name in names)

    def combined(self, other: LeastSquares) -> Self:
        """New statistics of the rows of both; neither operand is changed.

        Parameters
        ----------
        other : LeastSquares
            Statistics of other rows, with the same features and targets.

        Returns
        -------
        statistics : LeastSquares

        Examples
        --------
        >>> import numpy as np
        >>> from kitchenette import LeastSquares
        >>> Z = np.random.default_rng(0).normal(size=(100, 2))
        >>> here = LeastSquares(2).update(Z[:30], Z[:30, 0])
        >>> there = LeastSquares(2).update(Z[30:], Z[30:, 0])
        >>> here.combined(there).n_rows, here.n_rows, there.n_rows
        (100, 30, 70)
        """
        return self.__copy__().merge(other)

    def with_targets(self, columns: NDArray[np.intp], n_targets: int) -> Self:
        """A copy with ``n_targets`` targets: the present ones at ``columns``, the others zero."""
        return self._of(self._statistics.with_targets(columns.astype(np.int64), n_targets))

    def reweighted(self, factor: float) -> Self:
        """The statistics of the same rows with all weights multiplied by a factor, as a copy.

        Parameters
        ----------
        factor : float
            A positive number.

        Returns
        -------
        statistics : LeastSquares

        Examples
        --------
        >>> from kitchenette import LeastSquares
        >>> statistics = LeastSquares(1).update([[1.0], [2.0], [4.0]], [1.0, 2.0, 3.0])
        >>> statistics.reweighted(2.0).count
        6.0
        """
        if not 0 < factor < np.inf:
            raise ValueError(f"factor must be a positive number; got {factor!r}.")
        state = self.state()
        for name in ("gram", "cross", "target_gram", "count"):
            state[name] = float(factor) * state[name]
        return self.from_state(state)

    def leading(self, n_features: int) -> Self:
        """The statistics of the first features alone, with all targets, as a copy.

        The first features of a map do not depend on how many there are, up to a common factor.
        So the statistics of a large map contain those of all smaller ones, and the number of
        features that suffices is found without another pass over the data.

        Parameters
        ----------
        n_features : int
            How many features; at most those of this object.

        Returns
        -------
        statistics : LeastSquares

        Examples
        --------
        >>> from kitchenette import LeastSquares
        >>> statistics = LeastSquares(2).update([[1.0, 0.0], [2.0, 5.0], [4.0, 1.0]], [1, 2, 3])
        >>> statistics.leading(1).n_features
        1
        """
        m = check_count("n_features", n_features)
        if m > self.n_features:
            raise ValueError(f"n_features must be at most {self.n_features}; got {m}.")
        state = self.state()
        gram = self.gram.leading(m).values if m < self.n_features else state["gram"]
        state.update(
            n_features=m,
            feature_mean=state["feature_mean"][:m],
            gram=gram.copy(),
            cross=state["cross"][:m],
        )
        return self.from_state(state)

    def solve(
        self,
        alpha: float | str | ArrayLike = "auto",
        *,
        fit_intercept: bool = True,
        criterion: str = "gcv",
        n_observations: float | None = None,
    ) -> Solution:
        """The weights for a given penalty, or for one that is chosen by a criterion.

        Parameters
        ----------
        alpha : float, {"auto", "gcv", "evidence"} or array-like, default="auto"
            The penalty; or the criterion that chooses it among all positive numbers; or
            several penalties, of which ``criterion`` chooses one. "evidence" maximizes the marginal
            likelihood and "gcv" minimizes generalized cross-validation. Both are computed
            from the statistics alone and choose one penalty for all targets; see Notes. "auto" is
            "evidence", as it is for the estimators unless their validation rows contradict it.
        fit_intercept : bool, default=True
            Whether to add a constant that is not penalized.
        criterion : {"gcv", "evidence"}, default="gcv"
            How to choose among several penalties.
        n_observations : float, optional
            The number of independent observations, for the criteria and the variances; by
            default the sum of the weights, so that a row of weight 2 counts as two.

        Returns
        -------
        solution : Solution
            Weights, intercept, penalty, residuals, evidence and uncertainty.

        Warns
        -----
        ConvergenceWarning
            If G + alpha I is singular; the solution is then the one of least norm.

        Notes
        -----
        Up to 1024 features the criteria are exact, and minimized between 1e-8 (about 1e-13 for
        float64 features; 3e-8 for storage in float32; 1e-6 if there are no more rows than features)
        and 1000 times the trace of G. For more features Newton's method finds the minimum to within
        a tenth of a decade, usually with one to three Cholesky factors. The evidence is then exact
        as well; the effective number of parameters in "gcv" is estimated with a standard error of
        at most sqrt(edf) / 4.
        See `kitchenette.learning.penalty`.

        Examples
        --------
        >>> import numpy as np
        >>> from kitchenette import LeastSquares
        >>> rng = np.random.default_rng(0)
        >>> Z = rng.normal(size=(200, 5))
        >>> statistics = LeastSquares(5).update(Z, Z @ np.ones(5) + rng.normal(size=200))
        >>> statistics.solve(alpha=1.0).coef.shape
        (5, 1)
        >>> bool(0.1 < statistics.solve("evidence").alpha < 10)  # the noise has variance one
        True
        """
        alpha = checked_alpha(alpha)
        check_choice("criterion", criterion, CRITERIA)
        with self.unchanged():
            path = PenaltyPath(self.equations(fit_intercept, n_observations))
            return path.solve(alpha, criterion)

    def path(self, alphas: ArrayLike, *, fit_intercept: bool = True) -> list[Solution]:
        """The solutions for several penalties.

        For 24 penalties or more, one eigendecomposition serves all of them. For fewer, one
        Cholesky factor per penalty is faster; each solution then keeps its own factor, which is
        as large as the statistics. So it is for any number of penalties if these are stored in
        float32, because a matrix of that size is too large to decompose.

        Parameters
        ----------
        alphas : array-like of shape (n_penalties,)
            Penalties.
        fit_intercept : bool, default=True
            Whether to add a constant that is not penalized.

        Returns
        -------
        solutions : list of Solution
            In the order of the penalties.
        """
        penalties = np.atleast_1d(checked_penalties("alphas", alphas, "a list of numbers"))
        with self.unchanged():
            return PenaltyPath(self.equations(fit_intercept)).solutions(penalties)

    def equations(
        self, fit_intercept: bool, n_observations: float | None = None
    ) -> NormalEquations:
        """The normal equations, centered if there is an intercept."""
        if self.count == 0:
            raise ValueError(
                "There is nothing to solve: no rows were added, or all weights are zero."
            )
        if self.storage == "float32":
            self._check_range()
        gram, cross = self.gram, self.cross
        target_squares = np.diagonal(self.target_gram).copy()
        feature_mean, target_mean = self.feature_mean, self.target_mean
        if not fit_intercept:
            gram = gram.copy()
            gram.add_outer(feature_mean, self.count)
            cross = cross + self.count * np.outer(feature_mean, target_mean)
            target_squares += self.count * target_mean**2
            feature_mean, target_mean = np.zeros_like(feature_mean), np.zeros_like(target_mean)
        return NormalEquations(
            gram=gram,
            cross=cross,
            target_squares=np.maximum(target_squares, 0),
            feature_mean=feature_mean,
            target_mean=target_mean,
            count=self.count,
            n_observations=self.count if n_observations is None else float(n_observations),
            fit_intercept=bool(fit_intercept),
            resolution=resolution(
                self.n_features, self.n_rows, self.storage, has_float32=self.has_float32
            ),
        )

    def _check_range(self) -> None:
        """Refuse sums of squares in float32 that have lost digits because they are tiny."""
        largest = float(self.gram.diagonal().max())
        if 0 < largest < SMALLEST_SQUARES:
            raise ValueError(
                f"The features are too small for statistics in float32: no sum of squares is above "
                f"{largest:.2g}. Scale them up."
            )

    def state(self) -> dict[str, Any]:
        """The statistics as numbers and arrays, for `from_state`.

        Returns
        -------
        state : dict
            The numbers ``n_features``, ``n_targets``, ``n_rows``, ``count``, ``has_float32``, and
            the float64 arrays ``feature_mean``, ``target_mean``, ``gram`` (one triangle, in
            rectangular full packed format; float32 if it is stored so), ``cross`` and
            ``target_gram``. The large arrays are read-only views, not copies.
        """
        state: dict[str, Any] = {name: getattr(self, name) for name in _NUMBERS}
        state |= {name: getattr(self._statistics, name) for name in _ARRAYS}
        for name in _ARRAYS:
            state[name].flags.writeable = False  # so that `from_state` copies it
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The statistics that `state` describes.

        Writeable float64 arrays in C order are used without copying and change with the
        statistics; others are copied.

        Parameters
        ----------
        state : mapping
            The result of `state`. All values are checked.

        Returns
        -------
        statistics : LeastSquares
        """
        missing = {*_NUMBERS, *_ARRAYS} ^ set(state)
        if missing:
            raise ValueError(
                "The state of LeastSquares has other entries than it should have: "
                f"{', '.join(sorted(map(str, missing)))} missing or too many."
            )
        D = check_count("n_features", state["n_features"])
        k = check_count("n_targets", state["n_targets"])
        check_count("n_rows", state["n_rows"], 0)
        count = state["count"]
        if not isinstance(count, int | float) or not 0 <= count < np.inf:
            raise ValueError(f"count must be a finite number and not negative; got {count!r}.")
        if not isinstance(state["has_float32"], bool | np.bool_):
            raise ValueError(f"has_float32 must be True or False; got {state['has_float32']!r}.")
        shapes = (D,), (k,), (D * (D + 1) // 2,), (D, k), (k, k)
        arrays = {
            name: _state_array(state, name, shape)
            for name, shape in zip(_ARRAYS, shapes, strict=True)
        }
        target_gram = arrays["target_gram"]
        if not np.allclose(target_gram, target_gram.T):
            raise ValueError("target_gram must be symmetric.")
        for name, diagonal, mean in (
            ("gram", PackedSymmetric(D, arrays["gram"]).diagonal(), arrays["feature_mean"]),
            ("target_gram", np.diagonal(target_gram), arrays["target_mean"]),
        ):
            # Downdating may leave negative numbers where there is nothing but rounding errors: of
            # a single row, or of a constant. They are small beside sums that are not centered.
            with np.errstate(over="ignore"):
                largest = np.abs(diagonal).max() + count * np.square(mean).max()
            if not np.isfinite(largest):
                raise ValueError(f"{name} and its mean are too large.")
            if diagonal.min() < -NEGATIVE_SQUARES * largest:
                raise ValueError(f"{name} has a negative number on its diagonal.")
        statistics = cls.__new__(cls)
        statistics.__setstate__({**state, **arrays})
        return statistics

    def to_file(self) -> dict[str, Any]:
        """`state`, for a model file."""
        return self.state()

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """`from_state` for a model file, whose arrays are not copied."""
        return cls.from_state(state)


def _stored_type(state: Mapping[str, Any], name: str) -> DTypeLike:
    """Only a Gram matrix may be float32."""
    in_float32 = name == "gram" and getattr(state[name], "dtype", None) == np.float32
    return np.float32 if in_float32 else np.float64


def _state_array(state: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    array: NDArray[Any] = np.asarray(state[name], dtype=_stored_type(state, name))
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}; got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite.")
    return array
