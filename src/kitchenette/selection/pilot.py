"""A sample on which candidates are fitted and compared by their errors on what is held out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.observations import divided, folds
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.partial import StatisticsBuilder
from kitchenette.learning.penalty import PenaltyPath
from kitchenette.maps.fourier import FourierSpecification
from kitchenette.selection.candidates import Candidate
from kitchenette.selection.importance import gradient_outer_product, mean_squared_derivatives
from kitchenette.selection.settings import SEARCH
from kitchenette.selection.targets import Targets
from kitchenette.sketching.random import Stream

Array = NDArray[np.float64]
Thing = TypeVar("Thing")
PENALTIES = 10.0 ** np.arange(0.5, -8.1, -0.75)  # relative to the trace of the Gram matrix
FIRST_PENALTY = 5  # 5.6e-4 of the trace, in the middle of what noisy and smooth targets want
FAR = 3  # the steps between penalties that are tried first


@dataclass(frozen=True)
class Trial:
    """The result of one candidate."""

    # The squared error of every pair held out, relative to the variance of the targets
    losses: Array
    weights: Array  # the weights of these pairs
    counts: Array  # the number of observations that each of them stands for in a standard error
    wrong: Array  # whether the class of every pair held out is wrong, or its loss for regression
    penalty: float  # the best penalty, relative to the trace of the Gram matrix
    models: list[tuple[LeastSquares, Array]] = field(repr=False)  # statistics and weights per fold

    @property
    def loss(self) -> float:
        """The mean loss."""
        return float(np.average(self.losses, weights=self.weights))

    @property
    def error(self) -> float:
        """The share of wrong classes, or the mean loss for regression."""
        return float(np.average(self.wrong, weights=self.weights))

    def beats(self, other: Trial, caution: float, tolerance: float) -> bool:
        """Whether the loss is smaller than that of another trial by more than chance.

        Chance is ``caution`` standard errors of the difference. The share of wrong classes must
        not be larger than that of the other trial by more than ``tolerance`` standard errors.
        """
        gain, deviation = self._gain(other.losses - self.losses)
        worse, uncertainty = self._gain(self.wrong - other.wrong)
        return gain > max(caution * deviation, SEARCH.tie * other.loss) and (
            worse <= tolerance * uncertainty
        )

    def _gain(self, difference: Array) -> tuple[float, float]:
        """The mean of a difference, and its standard error."""
        share = self.weights / self.weights.sum()
        mean = float(share @ difference)
        squares = np.square(share * (difference - mean)) / self.counts
        return mean, float(np.sqrt(squares.sum()))

    def squared_derivatives(self, specification: FourierSpecification) -> Array:
        """The average square of the derivative in each column, over the folds."""
        return mean_squared_derivatives(specification, self.models)

    def gradient_outer_product(self, specification: FourierSpecification) -> Array:
        """The average outer product of gradients, over the folds."""
        products = [
            gradient_outer_product(specification, statistics, coef)
            for statistics, coef in self.models
        ]
        return np.asarray(np.mean(products, axis=0))


@dataclass(frozen=True)
class Fold:
    """Observations that are held out, and the others."""

    kept: NDArray[np.intp]  # the pairs of which some observations are learned
    kept_weights: Array  # the weights of these observations
    held_out: NDArray[np.intp]  # the pairs of which some observations are held out
    weights: Array  # the weights of these observations
    counts: Array  # the number of observations that are held out

    @classmethod
    def of(cls, weights: Array, counts: Array, left_out: Array) -> Self:
        """The fold that holds out so many of the observations of each pair."""
        kept, held_out = np.flatnonzero(left_out < counts), np.flatnonzero(left_out > 0)
        units = weights / counts
        return cls(
            kept,
            units[kept] * (counts - left_out)[kept],
            held_out,
            units[held_out] * left_out[held_out],
            left_out[held_out],
        )


class Pilot:
    """A sample of distinct pairs of rows and targets, and which observations are held out.

    Each pair stands for a number of observations (``counts``), which are held out one by one; see
    `kitchenette.data.observations`. A complete sample has all pairs, so that nothing but the
    observations is left to chance. Of the weights only the ratios matter.
    """

    def __init__(
        self,
        rows: Any,
        targets: Targets,
        weights: Array | None,
        seed: int,
        counts: Array | None = None,
        complete: bool = True,
    ):
        n = rows.shape[0]
        self.rows, self.targets = rows, targets
        self.weights = np.ones(n) if weights is None else weights / weights.mean()
        counts = np.ones(n) if counts is None else counts
        self.n_observations = int(counts.sum())
        self.folds = [Fold.of(self.weights, counts, part) for part in _folds(counts, seed)]
        self.kept_weights = np.zeros(n)  # of each row among those that are learned, over the folds
        for fold in self.folds:
            self.kept_weights[fold.kept] += fold.kept_weights
        self._complete = complete
        self._place = FIRST_PENALTY  # of the best penalty of the last trial

    def with_rows(self, rows: Any) -> Pilot:
        """The same sample with other columns."""
        made = copy(self)
        made.rows = rows
        return made

    @property
    def precision(self) -> str:
        """The precision of the rows."""
        return str(self.rows.dtype.name)

    @property
    def n_rows(self) -> int:
        """The number of distinct rows with their targets."""
        return int(self.rows.shape[0])

    def trial(self, candidate: Candidate, n_components: int, seed: int) -> Trial:
        """Fit so many features of a candidate, and predict what is held out."""
        return self.curve(candidate, [n_components], seed)[0]

    def curve(self, candidate: Candidate, sizes: list[int], seed: int) -> list[Trial]:
        """Trials of the first features of a candidate, for ascending numbers of them."""
        inner = candidate.inner(sizes[-1], seed, self.precision)
        Z = np.empty((self.n_rows, inner.n_components), dtype=np.float32)
        if not inner.operator(Z.dtype).write(candidate.prepared(self.rows), Z):
            raise ValueError("Features of a sample of the rows overflowed. Scale the data down.")
        fitted = [self._statistics(Z, fold) for fold in self.folds]
        whole = Z.shape[1]
        return [
            self._best(Z[:, :m], fitted if m == whole else [one.leading(m) for one in fitted])
            for m in sizes
        ]

    def _statistics(self, Z: NDArray[Any], fold: Fold) -> LeastSquares:
        Y = self.targets.columns[fold.kept]
        builder = StatisticsBuilder(Z.shape[1], Y.shape[1], len(Y), Z.dtype, "float64")
        builder.add(Z[fold.kept], Y, fold.kept_weights)
        return builder.finish()

    def _best(self, Z: NDArray[Any], fitted: list[LeastSquares]) -> Trial:
        """The trial with the best penalty, which is searched from that of the last trial on."""
        tried: dict[int, Trial] = {}
        tests = [Z[fold.held_out].astype(np.float64) for fold in self.folds]
        paths = [PenaltyPath(statistics.equations(fit_intercept=True)) for statistics in fitted]

        def loss(place: int) -> float:
            if not 0 <= place < PENALTIES.size:
                return np.inf
            if place not in tried:
                tried[place] = self._with_penalty(tests, paths, fitted, float(PENALTIES[place]))
            return tried[place].loss

        # Far steps first, because the loss may have several minima.
        place = first_best((self._place, self._place + FAR, self._place - FAR), loss)
        step = 1 if is_better(loss(place + 1), loss(place)) else -1
        while is_better(loss(place + step), loss(place)):
            place += step
        self._place = place
        return tried[place]

    def _with_penalty(
        self,
        tests: list[Array],
        paths: list[PenaltyPath],
        fitted: list[LeastSquares],
        penalty: float,
    ) -> Trial:
        losses, wrong, models = [], [], []
        for path, statistics, Z, fold in zip(paths, fitted, tests, self.folds, strict=True):
            equations = path.equations
            coef = path.coef(penalty * equations.trace if equations.trace > 0 else 1.0)
            intercept = equations.target_mean - equations.feature_mean @ coef
            compared = self.targets.compared(Z @ coef + intercept, fold.held_out)
            losses.append(compared[0])
            wrong.append(compared[1])
            models.append((statistics, coef))
        weights, counts = (
            np.concatenate([getattr(fold, name) for fold in self.folds])
            for name in ("weights", "counts")
        )
        # Of an incomplete sample, pairs with all their observations were drawn by chance.
        counts = counts if self._complete else np.ones_like(counts)
        return Trial(
            np.concatenate(losses), weights, counts, np.concatenate(wrong), penalty, models
        )


def is_better(one: float, other: float) -> bool:
    """Whether a loss is smaller than another one, and not a tie with it."""
    return one < (1 - SEARCH.tie) * other


def first_best(things: Iterable[Thing], loss: Callable[[Thing], float]) -> Thing:
    """The first one, unless a later one has a smaller loss that is not a tie."""
    best, *others = things
    for other in others:
        if is_better(loss(other), loss(best)):
            best = other
    return best


def _folds(counts: Array, seed: int) -> list[Array]:
    """How many observations of each pair are held out in each fold.

    If there are many, some are held out once, else each of them in one of several folds.
    """
    n_rows, n_observations = counts.size, counts.sum()
    order = np.argsort(Stream(seed, "folds").uniforms(1, n_rows)[0])
    places = np.empty(n_rows)
    places[order] = (np.arange(n_rows) + 0.5) / n_rows
    if n_observations >= SEARCH.many_rows:
        most = min(int(SEARCH.held_out * n_observations), SEARCH.most_held_out)
        return [divided(counts, most / n_observations, places)]
    return folds(counts, int(min(n_observations, SEARCH.n_folds)), order, seed)
