"""Least squares in one pass: statistics that can be updated, merged and solved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kitchenette.learning.batches import Batch, WaitingRows
from kitchenette.learning.packed import Array, PackedSymmetric
from kitchenette.learning.regularisation import CRITERIA, choose
from kitchenette.learning.solution import (
    NormalEquations,
    ShiftedSpectrum,
    Solution,
    Spectrum,
    shifted_inverse,
    solution,
)
from kitchenette.maps.base import check_choice, check_count

CHEAPER_FACTORS = 24  # Cholesky factors, measured, that cost less than an eigendecomposition
SINGLE_RESOLUTION = 1e-8  # error of a Gram matrix of float32 rows, relative to its trace ...
SINGLE_FEATURES, SINGLE_ROWS = 10, 20_000  # ... from so many on; some times what was measured


class LeastSquares:
    """Statistics of features and targets, from which weights follow for any penalty.

    All that least squares needs to know of the data, in one pass and in memory that does not
    grow with the rows: batches are added and removed, statistics of different rows merged
    in any order, and the weights for any number of penalties, the best penalty and the
    uncertainty of predictions are computed without seeing the data again.

    Parameters
    ----------
    n_features : int
        The number of columns of Z.
    n_targets : int, default=1
        The number of columns of Y.

    Attributes
    ----------
    n_rows : int
        The number of rows seen, whatever their weights.
    count : float
        The sum of their weights, n.
    feature_mean : ndarray of shape (n_features,)
        Weighted mean m of the features.
    target_mean : ndarray of shape (n_targets,)
        Weighted mean of the targets.
    gram : PackedSymmetric of order n_features
        G, the weighted sum of (z - m)(z - m)'; ``gram.full()`` is its lower triangle.
    cross : ndarray of shape (n_features, n_targets)
        The same products of features and targets.
    target_gram : ndarray of shape (n_targets, n_targets)
        The same products of targets.
    single : bool
        Whether some features came as float32.

    See Also
    --------
    sklearn.linear_model.Ridge : The same weights from all rows at once.

    Notes
    -----
    *The problem.* ``solve(alpha)`` minimises the sum over the rows of
    weight * (y - c - w' z)^2, plus alpha |w|^2, as `sklearn.linear_model.Ridge` does. The
    intercept c is not penalised. A row of weight 2 counts as two rows, in everything.

    *Accuracy.* A batch is centred at its own mean before anything is multiplied, and the
    difference of the means enters as one more row (Chan, Golub and LeVeque 1979). So large
    means cost no digits, and no difference of large numbers is ever formed. float32 rows are
    multiplied and summed in float32, two thousand at a time, and sums are added in float64.
    Relative to the lengths of its two columns, an entry of G has an error of about 1e-7 at
    20,000 rows, which falls as 1 / sqrt(rows). Features with few different values, such as
    indicators, make rounding errors that repeat: 1e-6, however many rows there are.
    Predictions agree with a float64 solution to about 1e-8 times the condition of
    G + alpha I. Give float64 features if that is not enough; they are multiplied in float64,
    in twice the time.

    *Cost.* n_features^2 operations per row, on one triangle, which is stored in
    rectangular full packed format: 4 n_features^2 bytes in all, and a block of 4096 rows and
    tiles of products while updating. A batch should have some hundred rows, because each
    batch goes through the whole Gram matrix once. A solution takes n_features^3 / 3 operations
    and as many bytes again; choosing alpha takes one to three of them. With AVX2 or AVX-512 the
    products are our own; elsewhere they are SciPy's BLAS, which is kept to one thread while
    rows are added, because as many as there are call it for tiles of their own.

    *Downdating* loses the digits by which the removed rows outweigh those that stay.

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

    def __init__(self, n_features: int, n_targets: int = 1):
        self.n_features = check_count("n_features", n_features)
        self.n_targets = check_count("n_targets", n_targets)
        self._forget()

    def _forget(self) -> None:
        self.n_rows = 0
        self.count = 0.0
        self.single = False
        self.feature_mean = np.zeros(self.n_features)
        self.target_mean = np.zeros(self.n_targets)
        self.gram = PackedSymmetric(self.n_features)
        self.cross = np.zeros((self.n_features, self.n_targets))
        self.target_gram = np.zeros((self.n_targets, self.n_targets))

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
            Features, multiplied in their precision: float32, or float64 for all others.
        Y : array-like of shape (n_rows, n_targets) or (n_rows,)
            Targets.
        sample_weight : array-like of shape (n_rows,), optional
            Weights, not negative; 1 if not given.

        Returns
        -------
        self : LeastSquares
            This object.
        """
        batch = Batch(self, Z, Y, sample_weight)
        self._update(batch, WaitingRows(self, batch.n_rows + 1, batch.dtype), at_once=True)
        return self

    def _update(self, batch: Batch, waiting: WaitingRows, *, at_once: bool = False) -> None:
        """Add rows to those that wait; until they are multiplied, products are missing.

        If that is to happen at once, it does so before anything else changes: it can run out
        of memory.
        """
        self._own_arrays()
        if batch.count > 0:
            part = batch.count / (self.count + batch.count)
            waiting.add(batch, self.count * part)
            if at_once:
                waiting.multiply()
            self._move_means(batch.feature_step, batch.target_step, part)
            self.count += batch.count
            self.single = self.single or batch.single
        self.n_rows += batch.n_rows

    def downdate(self, Z: ArrayLike, Y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Remove rows that were added before, with the weights they had.

        Parameters
        ----------
        Z, Y, sample_weight
            As in `update`. That these rows were seen is not checked, only that there were
            enough.

        Returns
        -------
        self : LeastSquares
            This object.
        """
        batch = Batch(self, Z, Y, sample_weight)
        n = self.count - batch.count
        nothing_left = abs(n) <= 1e-12 * self.count
        if batch.n_rows > self.n_rows or (n < 0 and not nothing_left):
            raise ValueError(
                f"Cannot remove {batch.n_rows} rows of total weight {batch.count:g}: only "
                f"{self.n_rows} rows of total weight {self.count:g} were added."
            )
        self._own_arrays()
        n_rows = self.n_rows - batch.n_rows
        if nothing_left or n_rows == 0:
            self._forget()
        elif batch.count > 0:
            part = batch.count / n
            waiting = WaitingRows(self, batch.n_rows + 1, batch.dtype, sign=-1.0)
            waiting.add(batch, self.count * part)
            waiting.multiply()
            self._move_means(batch.feature_step, batch.target_step, -part)
            self.count = n
        self.n_rows = n_rows
        return self

    def merge(self, other: LeastSquares) -> Self:
        """Add the rows that other statistics have seen; those do not change.

        Parameters
        ----------
        other : LeastSquares
            Statistics of other rows, with the same features and targets.

        Returns
        -------
        self : LeastSquares
            This object.
        """
        if not isinstance(other, LeastSquares):
            raise ValueError(f"merge takes a LeastSquares object; got {type(other).__name__}.")
        if (self.n_features, self.n_targets) != (other.n_features, other.n_targets):
            raise ValueError(
                f"Cannot merge statistics of {other.n_features} features and {other.n_targets} "
                f"targets into those of {self.n_features} and {self.n_targets}."
            )
        self._own_arrays()
        if other.count > 0:
            n = self.count + other.count
            feature_step = other.feature_mean - self.feature_mean
            target_step = other.target_mean - self.target_mean
            between = self.count * (other.count / n)
            self.gram.values += other.gram.values
            self.gram.add_outer(feature_step, between)
            self.cross += other.cross + between * np.outer(feature_step, target_step)
            self.target_gram += other.target_gram + between * np.outer(target_step, target_step)
            self._move_means(feature_step, target_step, other.count / n)
            self.count = n
            self.single = self.single or other.single
        self.n_rows += other.n_rows
        return self

    def _with_targets(self, columns: NDArray[np.intp], n_targets: int) -> Self:
        """The same rows with more targets, all zero but those at ``columns``.

        The Gram matrix is shared, not copied: of the two statistics, go on with one.
        """
        wider = type(self).__new__(type(self))
        vars(wider).update(vars(self), n_targets=n_targets)
        wider.target_mean = np.zeros(n_targets)
        wider.target_mean[columns] = self.target_mean
        wider.cross = np.zeros((self.n_features, n_targets))
        wider.cross[:, columns] = self.cross
        wider.target_gram = np.zeros((n_targets, n_targets))
        wider.target_gram[np.ix_(columns, columns)] = self.target_gram
        return wider

    def _own_arrays(self) -> None:
        """Copy arrays that cannot be written to, such as those of a file mapped to memory."""
        if not self.gram.values.flags.writeable:
            self.gram = self.gram.copy()
        for name in ("cross", "target_gram"):
            if not getattr(self, name).flags.writeable:
                setattr(self, name, getattr(self, name).copy())

    def _move_means(self, feature_step: Array, target_step: Array, part: float) -> None:
        # New arrays: solutions keep the old ones.
        self.feature_mean = self.feature_mean + part * feature_step
        self.target_mean = self.target_mean + part * target_step

    def solve(
        self,
        alpha: float | str | ArrayLike = "gcv",
        *,
        fit_intercept: bool = True,
        criterion: str = "gcv",
    ) -> Solution:
        """The weights for one penalty, given or chosen.

        Parameters
        ----------
        alpha : float, {"gcv", "evidence"} or array-like, default="gcv"
            The penalty; or the criterion that chooses it among all positive numbers; or
            several penalties, of which ``criterion`` chooses one. "gcv" minimises generalised
            cross-validation and "evidence" maximises the marginal likelihood. Both need
            no data, and serve all targets with one penalty; see Notes.
        fit_intercept : bool, default=True
            Whether to add a constant that is not penalised.
        criterion : {"gcv", "evidence"}, default="gcv"
            How to choose among several penalties.

        Returns
        -------
        solution : Solution
            Weights, intercept, penalty, residuals, evidence and uncertainty.

        Warns
        -----
        ConvergenceWarning
            If G + alpha I is singular; the solution has the least norm then.

        Notes
        -----
        Up to 1024 features the criteria are exact, and searched between 1e-8 (float64
        features: 1e-13 or so) and 1000 times the trace of G. From there on Newton's method goes
        downhill, by a Cholesky factor for each penalty it tries, one to three usually, to
        within a tenth of a decade. The evidence is exact there as well; the effective number
        of parameters in "gcv" is estimated with a standard error of sqrt(edf) / 4 at most.
        See `kitchenette.learning.regularisation`.
        """
        alpha = checked_alpha(alpha)
        if isinstance(alpha, str):
            return self._chosen(alpha, None, fit_intercept)
        check_choice("criterion", criterion, CRITERIA)
        if alpha.ndim == 0:
            equations = self._equations(fit_intercept)
            return solution(equations, shifted_inverse(equations, float(alpha)))
        return self._chosen(criterion, alpha, fit_intercept)

    def path(self, alphas: ArrayLike, *, fit_intercept: bool = True) -> list[Solution]:
        """The solutions for several penalties.

        From 24 penalties on, one eigendecomposition serves all of them; for fewer, as many
        Cholesky factors are faster. Each solution then keeps its own factor, as large
        as the statistics.

        Parameters
        ----------
        alphas : array-like of shape (n_penalties,)
            Penalties.
        fit_intercept : bool, default=True
            Whether to add a constant that is not penalised.

        Returns
        -------
        solutions : list of Solution
            In the order of the penalties.
        """
        penalties = np.atleast_1d(checked_penalties("alphas", alphas, "a list of numbers"))
        equations = self._equations(fit_intercept)
        if penalties.size < CHEAPER_FACTORS:
            return [solution(equations, shifted_inverse(equations, float(a))) for a in penalties]
        spectrum = Spectrum(equations)
        return [solution(equations, ShiftedSpectrum(spectrum, float(a))) for a in penalties]

    def _chosen(self, criterion: str, alphas: Array | None, fit_intercept: bool) -> Solution:
        equations = self._equations(fit_intercept)
        return solution(equations, choose(equations, criterion, alphas))

    def _equations(self, fit_intercept: bool) -> NormalEquations:
        if self.count == 0:
            raise ValueError(
                "There is nothing to solve: no rows were added, or all weights are zero."
            )
        eps = max(self.n_features, 100) * float(np.finfo(np.float64).eps)
        resolution = eps
        if self.single:
            # Errors are independent: with few features or rows they do not average out.
            resolution = SINGLE_RESOLUTION * max(1.0, SINGLE_FEATURES / self.n_features)
            resolution *= max(1.0, np.sqrt(SINGLE_ROWS / self.n_rows))
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
            fit_intercept=bool(fit_intercept),
            resolution=resolution,
        )

    def state(self) -> dict[str, Any]:
        """Everything, as numbers and arrays, for `from_state`.

        Returns
        -------
        state : dict
            The numbers ``n_features``, ``n_targets``, ``n_rows``, ``count`` and ``single``, and
            the float64 arrays ``feature_mean``, ``target_mean``, ``gram`` (one triangle, in
            rectangular full packed format), ``cross`` and ``target_gram``. The arrays are
            those in use, not copies.
        """
        state = {name: getattr(self, name) for name in (*_NUMBERS, *_ARRAYS)}
        state["gram"] = self.gram.values
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The statistics that `state` describes; the arrays are copied.

        Parameters
        ----------
        state : mapping
            What `state` returned. Everything in it is checked.

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
        statistics = cls.__new__(cls)
        statistics.n_features = D = check_count("n_features", state["n_features"])
        statistics.n_targets = k = check_count("n_targets", state["n_targets"])
        statistics.n_rows = check_count("n_rows", state["n_rows"], 0)
        count = state["count"]
        if not isinstance(count, int | float) or not 0 <= count < np.inf:
            raise ValueError(f"count must be a finite number and not negative; got {count!r}.")
        statistics.count = float(count)
        if not isinstance(state["single"], bool | np.bool_):
            raise ValueError(f"single must be True or False; got {state['single']!r}.")
        statistics.single = bool(state["single"])
        statistics.feature_mean = _state_array(state, "feature_mean", (D,))
        statistics.target_mean = _state_array(state, "target_mean", (k,))
        statistics.gram = PackedSymmetric(D, _state_array(state, "gram", (D * (D + 1) // 2,)))
        statistics.cross = _state_array(state, "cross", (D, k))
        statistics.target_gram = _state_array(state, "target_gram", (k, k))
        if not np.allclose(statistics.target_gram, statistics.target_gram.T):
            raise ValueError("target_gram must be symmetric.")
        for name, diagonal in (
            ("gram", statistics.gram.diagonal()),
            ("target_gram", np.diagonal(statistics.target_gram)),
        ):
            # Downdating leaves rounding errors.
            if diagonal.min() < -1e-6 * np.abs(diagonal).max():
                raise ValueError(f"{name} has a negative number on its diagonal.")
        return statistics


_NUMBERS = ("n_features", "n_targets", "n_rows", "count", "single")
_ARRAYS = ("feature_mean", "target_mean", "gram", "cross", "target_gram")


def checked_alpha(alpha: Any) -> str | Array:
    """A criterion, a penalty (an array without axes), or several."""
    if isinstance(alpha, str) and alpha in CRITERIA:
        return alpha
    criteria = " or ".join(map(repr, CRITERIA))
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


def _state_array(state: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> Array:
    array = np.array(state[name], dtype=np.float64, order="C")
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}; got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite.")
    return array
