"""Predictions of sampled rows by models without them, and the penalty that they suggest.

If a row has the residual r in the model of all rows, its residual in the model without an
observation of weight v is r / (1 - h) with the leverage
h = v ((z - m)' (G + alpha I)^-1 (z - m) + 1 / n), where n is the sum of the weights; 1 / n and the
mean m of the features belong to the intercept. This is exact, so one factor of the Gram matrix
predicts every sampled row by a model that has not seen it. Equal rows with equal targets are
sampled as one. Where each of them is an observation, one is left out and the others are not; see
`kitchenette.data.observations`.

The score is that of models without a third of the sampled rows. Without one row, the majority
among noise would hardly ever change, and its share among few rows is larger than among new ones.
If rows F of weights V are left out, their residuals solve (I - H V) r = r_F, with the leverages
H = (Z - m) (G + alpha I)^-1 (Z - m)' + 1 / n of the model of all rows.

The penalty "auto" is that of the largest evidence, unless another penalty predicts the sampled rows
better by more than two standard errors of the difference. What is better, a `Measure` says: squared
errors for numbers, and for classes log losses of calibrated scores, of which one standard error
suffices. Errors with heavy tails have large standard errors even where much is gained. So if the
error falls by a quarter, one standard error suffices, or that clearly more than half of the rows
are predicted better, which a few large errors cannot bring about. A model that predicts the sampled
rows no better than their mean is not taken: the penalty is then so large that nothing but the mean
is predicted. The evidence assumes that the kernel is right and the noise Gaussian; the sampled rows
need no assumption, but they are few.
Generalized cross-validation assumes that all rows have the same leverage, so it fails with
outlying or repeated rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import DTypeLike, NDArray

from kitchenette.data.drawing import BottomK
from kitchenette.data.keys import LARGEST_KEY, Keys
from kitchenette.data.observations import folds, observation_rule
from kitchenette.data.rows import slices
from kitchenette.files.fields import Shape
from kitchenette.files.registry import storable
from kitchenette.learning.gram import Array
from kitchenette.learning.least_squares import WEIGHT_TOLERANCE
from kitchenette.learning.penalty import (
    DECADE,
    LARGEST_PENALTY,
    SMALLEST_PART,
    PenaltyPath,
    RotatedRows,
    left_out_residuals,
)
from kitchenette.learning.solution import ShiftedCholesky, Solution
from kitchenette.resources import one_blas_thread

LEAST_ROWS = 20  # the error of fewer rows is known to a third at best
PER_DECADE = 4  # penalties whose evidence is computed: its maximum is wider
SPARSER = 2  # errors on the sampled rows are computed for every second one of these
MUCH = 0.25  # if the error falls by this fraction, half as many standard errors suffice
MOST = 3.0  # standard errors by which the share of rows that are predicted better is above a half
CONTRADICTED = 2.0, 0.05  # standard errors, and part of the error, that are worth a warning
FURTHEST = 8  # decades from the penalty of the largest evidence, as many as float32 has digits
MANY_FEATURES, SOME_ROWS = 16_384, 128  # above which rows come in blocks of this size, 16 MB
UNSURE = 0.01  # a smaller 1 - leverage needs a factor in float64
SCREENING_ROWS = 500  # a quarter of the default sample: standard errors are twice as large
ALL = slice(None)
N_FOLDS, LARGEST_FOLD = 3, 1000  # parts of the sample, and the most rows of one
MOST_LEFT_OUT = 2 * LARGEST_FOLD  # rows that are left out together, by an equation of this order
SMALL_FOLD = 0.02  # leaving out a smaller part of all observations is like leaving out one


class Measure(ABC):
    """How badly rows are predicted."""

    convincing: ClassVar[float]  # standard errors by which a penalty must be better
    # Of the penalties whose error exceeds the least one by this part at most, the one nearest to
    # that of the largest evidence is taken.
    tie: ClassVar[float]

    @abstractmethod
    def __call__(self, outputs: Array, targets: Array, weights: Array) -> Array:
        """The error of each row, from predicted columns and true ones."""


@dataclass(frozen=True, eq=False)
class SquaredErrors(Measure):
    """Squared errors in units of a variance of each target, summed over the targets."""

    variances: Array
    convincing: ClassVar[float] = 2.0
    tie: ClassVar[float] = 0.0

    def __call__(self, outputs: Array, targets: Array, weights: Array) -> Array:
        errors: Array = np.square(targets - outputs) @ (1 / self.variances)
        return errors


@dataclass(frozen=True, eq=False)
class RowErrors:
    """Errors of rows in a model without them, with the keys of the rows and their weights."""

    keys: Keys
    weights: Array
    errors: Array

    def clearly_less(self, others: RowErrors, convincing: float) -> bool:
        """Whether they are less than others by so many standard errors, on rows of both."""
        _, mine, theirs = np.intersect1d(self.keys, others.keys, return_indices=True)
        weights = self.weights[mine]
        if mine.size < LEAST_ROWS or not weights.any():
            return False
        shares = weights / weights.sum()
        differences = others.errors[theirs] - self.errors[mine]
        mean = float(shares @ differences)
        squares = float(np.square(shares) @ np.square(differences - mean))
        return mean > convincing * np.sqrt(squares)


@storable
@dataclass(frozen=True, eq=False, kw_only=True)
class RowSample(BottomK):
    """The features of the distinct rows with the smallest keys; immutable."""

    # the features of the rows; shape (n_sampled, n_features)
    features: Annotated[NDArray[np.float32] | NDArray[np.float64], Shape("keys", None)]
    # the target columns; shape (n_sampled, n_targets)
    targets: Annotated[Array, Shape("keys", None)]
    row_attributes: ClassVar[tuple[str, ...]] = (*BottomK.row_attributes, "features", "targets")

    @classmethod
    def empty(cls, size: int, n_features: int, n_targets: int, dtype: DTypeLike) -> Self:
        """The sample of no rows."""
        nothing = np.empty((0, n_features), dtype)
        return cls.of(size, np.empty(0, np.uint64), nothing, np.empty((0, n_targets)), None)

    @classmethod
    def of(
        cls,
        size: int,
        keys: Keys,
        features: NDArray[Any],
        targets: Array,
        weights: Array | None,
        last_key: int = LARGEST_KEY,
    ) -> Self:
        """The sample of those of these rows whose keys are at most ``last_key``."""
        return cls(
            size=size,
            last_key=last_key,
            keys=keys,
            features=features,
            targets=targets,
            weights=np.ones(keys.size) if weights is None else weights,
            copies=np.ones(keys.size, np.int64),
        ).distinct()

    def observation_rule(self, n_rows: int) -> str:
        """What repeated rows count for, as far as rows and targets say without columns."""
        share = min(1.0, float(self.copies.sum()) / n_rows)
        given = self.features, self.targets, self.weights, self.copies, share
        return observation_rule(*given, of_features=True)

    def n_observations(self, n_rows: int, rule: str) -> float:
        """The number of observations in all rows, estimated unless the sample is complete."""
        if self.n_sampled == 0:
            return float(n_rows)
        return max(1.0, n_rows * float(self.counts(rule).sum()) / float(self.copies.sum()))

    def without(self, keys: Keys, weights: Array | None) -> Self:
        """The sample after these rows were removed; those beyond its last key are not known.

        All other rows that were learned are in the sample, so that it refuses those that are not.
        """
        within = np.flatnonzero(keys <= np.uint64(self.last_key))
        unit = np.ones(within.size) if weights is None else weights[within]
        here = np.searchsorted(self.keys, keys[within])
        is_sampled = here < self.n_sampled
        is_sampled[is_sampled] = self.keys[here[is_sampled]] == keys[within[is_sampled]]
        if not is_sampled.all():
            raise _not_in_sample(keys.size, within[~is_sampled], "were not learned")
        gone = np.bincount(here, minlength=self.n_sampled)
        weight_gone = np.bincount(here, unit, self.n_sampled)
        copies, left = self.copies - gone, self.weights - weight_gone
        rounding = WEIGHT_TOLERANCE * self.weights
        wrong = (copies < 0) | (left < -rounding) | ((copies == 0) & (left > rounding))
        if wrong.any():
            raise _not_in_sample(
                keys.size,
                within[wrong[here]],
                "were not learned so often, or not with these weights",
            )
        changed = replace(self, weights=np.maximum(left, 0), copies=copies)
        return changed.rows(copies > 0)

    def reweighted(self, factors: Array) -> Self:
        """The same rows with their weights multiplied by factors."""
        return replace(self, weights=factors * self.weights)

    def with_targets(self, columns: NDArray[np.intp], n_targets: int) -> Self:
        """The same rows with more targets: the present ones at ``columns``, the others zero."""
        targets = np.zeros((self.n_sampled, n_targets))
        targets[:, columns] = self.targets
        return replace(self, targets=targets)

    def check(self) -> None:
        """Refuse keys of a model file in another order, or too many."""
        if self.n_sampled > self.size or np.any(self.keys[1:] <= self.keys[:-1]):
            raise ValueError("keys must increase, and must not be more than the size.")


def _not_in_sample(n_rows: int, which: NDArray[np.intp], how: str) -> ValueError:
    """The error for removed rows that are not in the sample."""
    rows = ", ".join(map(str, which[:5])) + (", ..." if which.size > 5 else "")
    return ValueError(
        f"Cannot remove {n_rows} rows: those with the indices {rows} {how}. Remove rows as they "
        "were learned, with the same targets and weights."
    )


class LeaveOneOut:
    """Sampled rows, each predicted by the model of all other rows.

    The counts are the numbers of observations that the sampled rows stand for, by default one.
    The measure chooses the penalty, by default squared errors.
    """

    def __init__(
        self,
        path: PenaltyPath,
        rows: RowSample,
        counts: Array | None = None,
        measure: Measure | None = None,
    ):
        self.path, self.rows = path, rows
        self.counts = np.ones(rows.n_sampled) if counts is None else counts
        self._equations = equations = path.equations
        variances = equations.target_squares / equations.count
        self._squared = SquaredErrors(np.where(variances > 0, variances, 1.0))
        self.measure = self._squared if measure is None else measure
        self.favored = 0.0  # the penalty of the largest evidence, once one was chosen
        self._rotated: RotatedRows | None = None  # once penalties were compared by eigenvectors
        self._known: dict[float, Array] = {}  # the predictions for each penalty
        self._kept: dict[tuple[float, int], Array] = {}  # whitened blocks of rows for some of them

    def _centered(self, rows: Any = ALL) -> Array:
        centered = self.rows.features[rows].astype(np.float64)
        centered -= self._equations.feature_mean
        return centered

    @property
    def enough(self) -> bool:
        """Whether there are enough observations for their errors to say something."""
        return float(self.counts.sum()) >= LEAST_ROWS and bool(self.rows.weights.any())

    def outputs(self, alpha: float) -> Array:
        """The predictions, shape (n_sampled, n_targets)."""
        with one_blas_thread(self._equations.gram.order):
            if self._rotated is not None:
                return next(self._by_eigenvectors([alpha]))
            if alpha not in self._known:
                self._known[alpha] = self._by_factor(self.path.compared(alpha))
            return self._known[alpha]

    def _by_eigenvectors(self, alphas: Sequence[float]) -> Iterator[Array]:
        """The predictions for several penalties."""
        if self._rotated is None:
            path = self.path
            self._rotated = RotatedRows(self._centered() @ path.eigen.vectors, path.rotated_cross)
        for fitted, lengths in self._rotated.fitted(self.path.diagonals(alphas)):
            yield self._left_out(fitted, lengths)

    def _by_factor(self, solution: Solution, rows: slice = ALL) -> Array:
        """The predictions of some rows for the penalty of a solution."""
        solution = self.path.most_exact(solution)
        lengths = self.squared_lengths(solution, rows)
        if _is_rough(solution) and self._leverages(lengths, rows).max() > 1 - UNSURE:
            self._keep_only({alpha for alpha, _ in self._kept} - {solution.alpha})
            return self._by_factor(self.path.solution(solution.alpha), rows)
        return self._left_out(self._centered(rows) @ solution.coef, lengths, rows)

    def squared_lengths(self, solution: Solution, rows: slice = ALL) -> Array:
        """The squared lengths c' (G + alpha I)^-1 c of some centered rows c."""
        blocks = [self._whitened(solution, some) for some in self._blocks(rows)]
        return np.concatenate([np.einsum("ij,ij->j", V, V, dtype=np.float64) for V in blocks])

    def _blocks(self, rows: slice = ALL) -> list[slice]:
        n_rows = len(range(self.rows.n_sampled)[rows])
        if self._equations.gram.order > MANY_FEATURES:
            return list(slices(n_rows, SOME_ROWS))
        ends = sorted({0, min(SCREENING_ROWS, n_rows), n_rows})
        return [slice(start, end) for start, end in pairwise(ends)]

    def _whitened(self, solution: Solution, rows: slice) -> Array:
        """Rows of which the leverages are inner products, as columns; kept if they are few."""
        key = solution.alpha, rows.start
        found = self._kept.get(key)
        if found is None:
            found = solution.inverse.whitened(self._centered(rows))
            if self._equations.gram.order <= MANY_FEATURES:
                self._kept[key] = found
        return found

    def _keep_only(self, alphas: Collection[float]) -> None:
        """Free the whitened rows for all other penalties."""
        self._kept = {key: rows for key, rows in self._kept.items() if key[0] in alphas}

    def _left_out(self, fitted: Array, lengths: Array, rows: slice = ALL) -> Array:
        """Predictions by models without the row, from fitted values and squared lengths."""
        equations, targets = self._equations, self.rows.targets[rows]
        residuals = targets - equations.target_mean - fitted
        return targets - left_out_residuals(residuals, self._leverages(lengths, rows))

    def _leverages(self, lengths: Array, rows: slice = ALL) -> Array:
        """The leverages of one observation of each row."""
        equations = self._equations
        units = (self.rows.weights / self.counts)[rows]
        return units * (lengths + equations.fit_intercept / equations.count)

    def without_folds(self, solution: Solution) -> tuple[NDArray[np.intp], Array, Array]:
        """Predictions by models without a fold of the sample.

        Returns the places of the rows in the sample, of which those of several observations
        come repeatedly, the weights of the observations, and the predictions of the models
        without them.
        """
        n_sampled, sampled = self.rows.n_sampled, float(self.counts.sum())
        if sampled < N_FOLDS * SMALL_FOLD * self._equations.n_observations:
            return np.arange(n_sampled), self.rows.weights, self.outputs(solution.alpha)
        units, pieces = self.rows.weights / self.counts, []
        n_folds = max(N_FOLDS, -(-n_sampled // LARGEST_FOLD))
        # The rows are in the order of their hash values, which is random.
        for left_out in folds(self.counts, n_folds, np.arange(n_sampled), seed=0):
            rows = np.flatnonzero(left_out)
            weights = units[rows] * left_out[rows]
            with one_blas_thread(self._equations.gram.order):
                pieces.append((rows, weights, self._without(solution, rows, weights)))
        rows, weights, outputs = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        return rows, weights, outputs

    def errors_without(self, solution: Solution, keys: Keys, weights: Array) -> RowErrors:
        """Errors of the rows with these keys in the model without all of them.

        The weights are those of the observations that are left out. Only some rows are if many
        are given.
        """
        _, rows, given = np.intersect1d(self.rows.keys, keys, return_indices=True)
        rows, given = rows[:MOST_LEFT_OUT], given[:MOST_LEFT_OUT]
        weights = weights[given]
        with one_blas_thread(self._equations.gram.order):
            outputs = self._without(solution, rows, weights)
        errors = self.measure(outputs, self.rows.targets[rows], weights)
        return RowErrors(keys[given], weights, errors)

    def _without(self, solution: Solution, rows: NDArray[np.intp], weights: Array) -> Array:
        """Predictions of rows by the model without them."""
        equations, targets = self._equations, self.rows.targets[rows]
        centered = self._centered(rows)
        residuals = targets - equations.target_mean - centered @ solution.coef
        roots = np.sqrt(weights)[:, None]

        def left_out(whitened: NDArray[Any], least: float) -> Array:
            leverages = (whitened.T @ whitened).astype(np.float64, copy=False)
            leverages += equations.fit_intercept / equations.count
            left = np.eye(rows.size) - leverages * (roots * roots.T)
            return targets - _solved(left, roots * residuals, least) / roots

        keys = [(solution.alpha, some.start) for some in self._blocks()]
        if all(key in self._kept for key in keys):
            with suppress(np.linalg.LinAlgError):
                kept = np.concatenate([self._kept[key] for key in keys], axis=1)
                return left_out(kept[:, rows], UNSURE)
        return left_out(solution.inverse.whitened(centered), 0.0)

    def errors(self, alpha: float) -> Array:
        """The errors of the rows by the measure."""
        return self._errors(self.outputs(alpha))

    def _errors(self, outputs: Array, rows: slice = ALL) -> Array:
        return self.measure(outputs, self.rows.targets[rows], self.rows.weights[rows])

    def difference(self, errors: Array, others: Array, rows: slice = ALL) -> tuple[float, float]:
        """The weighted mean of errors - others of some rows, and its standard error."""
        difference = errors - others
        weights = self.rows.weights[rows]
        mean = float(weights @ difference / weights.sum())
        squares = self._squared_shares(rows) @ np.square(difference - mean)
        return mean, float(np.sqrt(squares))

    def _squared_shares(self, rows: slice = ALL) -> Array:
        """What the deviation of each row adds to the variance of a mean.

        The observations of a row deviate independently; but in an incomplete sample it was left
        to chance whether all of them are there.
        """
        weights = self.rows.weights[rows]
        shares = np.square(weights / weights.sum())
        return shares / self.counts[rows] if self.rows.is_complete else shares

    # ------------------------------------------------------------ the choice of the penalty

    def chosen(self) -> float:
        """The penalty of the largest evidence, unless the rows contradict it."""
        chosen, self.favored = self._chosen()
        nothing, targets = np.zeros((self.rows.n_sampled, 1)), self.rows.targets
        of_mean = self._squared(self._left_out(nothing, nothing[:, 0]), targets, self.rows.weights)
        for alpha in (chosen, self.favored):
            errors = self._squared(self.outputs(alpha), targets, self.rows.weights)
            if float(self.rows.weights @ (errors - of_mean)) < 0:
                return alpha
        return LARGEST_PENALTY * self._equations.trace

    def _chosen(self) -> tuple[float, float]:
        """The best penalty, and the one that the evidence favors."""
        if not self.path.is_exact:
            return self._chosen_by_steps()
        with one_blas_thread(self._equations.gram.order):
            alphas, criterion = self._grid(), self.path.criterion("evidence")
            favored = int(np.argmin([criterion(alpha) for alpha in alphas]))
            # Errors take longer than evidences and are known less exactly, so they are sparser.
            tried = alphas[favored % SPARSER :: SPARSER]
            errors = [self._errors(outputs) for outputs in self._by_eigenvectors(tried)]
        favored //= SPARSER
        return tried[self._corrected(favored, errors)], tried[favored]

    def _grid(self) -> list[float]:
        """Penalties at fixed ratios to the trace, so that rounding errors do not move them."""
        trace, step = self._equations.trace, DECADE / PER_DECADE
        low, high = ((limit - np.log(trace)) / step for limit in self.path.bounds)
        numbers = np.arange(int(np.ceil(low)), int(np.floor(high)) + 1)
        return [float(alpha) for alpha in trace * np.exp(step * numbers)]

    def _corrected(self, favored: int, errors: Sequence[Array]) -> int:
        """The favored penalty, or the one of the least error if that is clearly less.

        The errors are in the order of their penalties.
        """
        sums = [float(self.rows.weights @ error) for error in errors]
        best = int(np.argmin(sums))
        if not self._clearly_less(errors[best], errors[favored]):
            return favored
        between = range(favored, best, 1 if favored < best else -1)
        most = (1 + self.measure.tie) * sums[best]
        return next((place for place in between if sums[place] <= most), best)

    def _clearly_less(self, errors: Array, others: Array) -> bool:
        mean, deviation = self.difference(others, errors)
        total = float(self.rows.weights @ others) / float(self.rows.weights.sum())
        convincing = self.measure.convincing
        if mean > MUCH * total:
            return mean > convincing / 2 * deviation or self._mostly_less(errors, others)
        return mean > convincing * deviation

    def _mostly_less(self, errors: Array, others: Array) -> bool:
        """A sign test: whether more than half of the rows have less error, beyond chance."""
        shares = self.rows.weights / self.rows.weights.sum()
        return bool(
            shares @ np.sign(others - errors) > MOST * np.sqrt(self._squared_shares().sum())
        )

    def _chosen_by_steps(self) -> tuple[float, float]:
        """From the penalty of the largest evidence by whole decades, while the error falls.

        Each step takes a Cholesky factor.
        """
        solution = self.path.favored("evidence")
        start = solution.alpha
        with one_blas_thread(self._equations.gram.order):
            self._known[start] = self._by_factor(solution)
        self._drop_factor(solution)
        tried = {0: self.errors(start)}
        for direction in (1, -1):
            step = 0
            while abs(step) < FURTHEST:
                step += direction
                errors = self._errors_unless_larger(start * 10.0**step, tried[step - direction])
                if errors is None:
                    break
                tried[step] = errors
                sums = {one: float(self.rows.weights @ tried[one]) for one in tried}
                self._keep_only({start, start * 10.0 ** min(sums, key=sums.__getitem__)})
                less = self._clearly_less(tried[step], tried[step - direction])
                if not less or sums[step - direction] <= (1 + self.measure.tie) * sums[step]:
                    break
            if step != direction:
                break  # it fell in this direction, so it rises in the other one
        steps = sorted(tried)
        best = steps[self._corrected(steps.index(0), [tried[step] for step in steps])]
        self._keep_only({start * 10.0**best})
        return start * 10.0**best, start

    def _errors_unless_larger(self, alpha: float, others: Array) -> Array | None:
        """The errors for a penalty, or None if a few rows show that they are larger than others.

        The few rows take a quarter of the time. A penalty that is clearly better for all rows is
        worse for the few by a standard error once in a hundred times.
        """
        with one_blas_thread(self._equations.gram.order):
            solution, few = self.path.compared(alpha), slice(0, SCREENING_ROWS)
            if self.rows.n_sampled >= 2 * SCREENING_ROWS:
                errors = self._errors(self._by_factor(solution, few), few)
                mean, deviation = self.difference(errors, others[few], few)
                if mean > deviation:
                    self._drop_factor(solution)
                    return None
            self._known[alpha] = self._by_factor(solution)
        self._drop_factor(solution)
        return self.errors(alpha)

    def _drop_factor(self, solution: Solution) -> None:
        for inverse in (solution.inverse, self.path.most_exact(solution).inverse):
            if isinstance(inverse, ShiftedCholesky):
                inverse.drop_factor(self._equations)

    def contradiction(self, alpha: float) -> float | None:
        """A larger penalty that predicts the rows clearly better than the given one, or None."""
        errors = least = self.errors(alpha)
        total = float(self.rows.weights @ errors) / float(self.rows.weights.sum())
        best = None
        for larger in (1e2 * alpha, 1e4 * alpha, 1e3 * self._equations.trace):
            candidate = self.errors(larger)
            mean, deviation = self.difference(errors, candidate)
            clearly = mean > CONTRADICTED[0] * deviation and mean > CONTRADICTED[1] * total
            if clearly and self.difference(least, candidate)[0] > 0:
                best, least = larger, candidate
        return best


def _is_rough(solution: Solution) -> bool:
    return isinstance(solution.inverse, ShiftedCholesky) and solution.inverse.is_rough


def _solved(matrix: Array, right: Array, least: float) -> Array:
    """The solution of equations whose matrix has eigenvalues from 0 to 1.

    Raises LinAlgError if it has, beyond doubt, one below ``least``, unless that is zero.
    """
    try:
        factor = scipy.linalg.cho_factor(matrix, lower=True, check_finite=False)
        if np.square(np.diagonal(factor[0])).min() < least:
            raise np.linalg.LinAlgError("the matrix is nearly singular")
        solution: Array = scipy.linalg.cho_solve(factor, right, check_finite=False)
        return solution
    except np.linalg.LinAlgError:
        if least > 0:
            raise
        values, vectors = np.linalg.eigh(matrix)
        weighted: Array = (vectors.T @ right) / np.maximum(values, SMALLEST_PART)[:, None]
        return vectors @ weighted
