"""A sample of rows on which candidates are fitted and compared by their errors on rows held out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kitchenette.learning.gradients import gradient_outer_product, squared_derivatives
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.solution import Solution
from kitchenette.maps.fourier import FourierSpecification
from kitchenette.selection.candidates import Candidate
from kitchenette.selection.targets import Targets
from kitchenette.sketching.random import Stream

Array = NDArray[np.float64]
Thing = TypeVar("Thing")
PENALTIES = 10.0 ** np.arange(0.5, -8.1, -0.75)  # relative to the trace of the Gram matrix
FIRST_PENALTY = 5
FAR = 3  # the steps between penalties that are tried first
MANY_ROWS, FOLDS = 2000, 3  # from many rows on one split suffices
TIE = 1e-4  # losses that differ by a smaller part are equal: rounding must not decide
HELD_OUT, MOST_HELD_OUT = 0.3, 2500  # the share of many rows that is held out, and its limit


@dataclass(frozen=True)
class Trial:
    """The result of one candidate.

    Attributes
    ----------
    losses : ndarray
        The squared error of every row held out, relative to the variance of the targets.
    weights : ndarray
        The weights of these rows.
    wrong : ndarray
        Whether the class of every row held out is wrong, or its loss for regression.
    penalty : float
        The best penalty, relative to the trace of the Gram matrix.
    solutions : list of tuples
        Statistics and solution of each fold.
    """

    losses: Array
    weights: Array
    wrong: Array
    penalty: float
    solutions: list[tuple[LeastSquares, Solution]] = field(repr=False)

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
        return gain > max(caution * deviation, TIE * other.loss) and (
            worse <= tolerance * uncertainty
        )

    def _gain(self, difference: Array) -> tuple[float, float]:
        """The mean of a difference, and its standard error."""
        share = self.weights / self.weights.sum()
        mean = float(share @ difference)
        return mean, float(np.sqrt(np.sum(np.square(share * (difference - mean)))))

    def squared_derivatives(self, specification: FourierSpecification) -> Array:
        """The average square of the derivative in each column, over the folds."""
        squares = [
            squared_derivatives(specification, statistics, solution.coef)
            for statistics, solution in self.solutions
        ]
        return np.asarray(np.mean(squares, axis=0))

    def gradient_outer_product(self, specification: FourierSpecification) -> Array:
        """The average outer product of gradients, over the folds."""
        products = [
            gradient_outer_product(specification, statistics, solution.coef)
            for statistics, solution in self.solutions
        ]
        return np.asarray(np.mean(products, axis=0))


class Pilot:
    """Rows, targets and weights of a sample, and which of them are held out.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n_rows, n_columns)
        Checked rows.
    targets : Targets
        What is to be predicted.
    weights : ndarray of shape (n_rows,) or None
        Weights of the rows; only their ratios matter.
    seed : int
        The seed of the splits.
    """

    def __init__(self, rows: Any, targets: Targets, weights: Array | None, seed: int):
        n = rows.shape[0]
        self.rows, self.targets = rows, targets
        self.weights = np.ones(n) if weights is None else weights / weights.mean()
        self.folds = _folds(n, seed)
        self._place = FIRST_PENALTY  # of the best penalty of the last trial

    @property
    def precision(self) -> str:
        """The precision of the rows."""
        return str(self.rows.dtype.name)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.rows.shape[0])

    def trial(self, candidate: Candidate, n_components: int, seed: int) -> Trial:
        """Fit so many features of a candidate, and predict the rows held out."""
        return self.curve(candidate, [n_components], seed)[0]

    def curve(self, candidate: Candidate, sizes: list[int], seed: int) -> list[Trial]:
        """Trials of the first features of a candidate, for ascending numbers of them."""
        inner = candidate.inner(sizes[-1], seed, self.precision)
        Z = np.empty((self.n_rows, inner.n_components), dtype=np.float32)
        if not inner.operator(Z.dtype).write(candidate.prepared(self.rows), Z):
            raise ValueError("Features of a sample of the rows overflowed. Scale the data down.")
        fitted = [self._statistics(Z, held_out) for held_out in self.folds]
        whole = Z.shape[1]
        return [
            self._best(Z[:, :m], fitted if m == whole else [one.leading(m) for one in fitted])
            for m in sizes
        ]

    def _statistics(self, Z: NDArray[Any], held_out: NDArray[np.bool_]) -> LeastSquares:
        kept, Y = ~held_out, self.targets.columns
        return LeastSquares(Z.shape[1], Y.shape[1]).update(Z[kept], Y[kept], self.weights[kept])

    def _best(self, Z: NDArray[Any], fitted: list[LeastSquares]) -> Trial:
        """The trial with the best penalty, which is searched from that of the last trial on."""
        tried: dict[int, Trial] = {}
        tests = [Z[held_out].astype(np.float64) for held_out in self.folds]

        def loss(place: int) -> float:
            if not 0 <= place < PENALTIES.size:
                return np.inf
            if place not in tried:
                tried[place] = self._with_penalty(tests, fitted, float(PENALTIES[place]))
            return tried[place].loss

        # Far steps first, because the loss may have several minima.
        place = first_best((self._place, self._place + FAR, self._place - FAR), loss)
        step = 1 if is_better(loss(place + 1), loss(place)) else -1
        while is_better(loss(place + step), loss(place)):
            place += step
        self._place = place
        return tried[place]

    def _with_penalty(
        self, tests: list[Array], fitted: list[LeastSquares], penalty: float
    ) -> Trial:
        losses, solutions = np.zeros(self.n_rows), []
        wrong, tested = np.zeros(self.n_rows), np.zeros(self.n_rows, dtype=bool)
        for statistics, Z, held_out in zip(fitted, tests, self.folds, strict=True):
            trace = float(statistics.gram.diagonal().sum())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                solution = statistics.solve(penalty * trace if trace > 0 else 1.0)
            predicted = solution.predict(Z)
            losses[held_out], wrong[held_out] = self.targets.compared(predicted, held_out)
            tested |= held_out
            solutions.append((statistics, solution))
        weights = self.weights[tested]
        return Trial(losses[tested], weights, wrong[tested], penalty, solutions)


def is_better(one: float, other: float) -> bool:
    """Whether a loss is smaller than another one, and not a tie with it."""
    return one < (1 - TIE) * other


def first_best(things: Iterable[Thing], loss: Callable[[Thing], float]) -> Thing:
    """The first one, unless a later one has a smaller loss that is not a tie."""
    best, *others = things
    for other in others:
        if is_better(loss(other), loss(best)):
            best = other
    return best


def _folds(n_rows: int, seed: int) -> list[NDArray[np.bool_]]:
    """Which rows are held out: once if there are many, else each row in one of several folds."""
    order = np.argsort(Stream(seed, "folds").uniforms(1, n_rows)[0])
    if n_rows >= MANY_ROWS:
        parts = [order[: min(int(HELD_OUT * n_rows), MOST_HELD_OUT)]]
    else:
        parts = np.array_split(order, min(n_rows, FOLDS))
    folds = []
    for part in parts:
        held_out = np.zeros(n_rows, dtype=bool)
        held_out[part] = True
        folds.append(held_out)
    return folds
