"""The marginal likelihood of very many features, by stochastic Lanczos quadrature.

Minus twice the log marginal likelihood is, up to a constant, the sum over the targets of

    N log(loss / N) + log |I + G / alpha|,  loss = y'y - b' (G + alpha I)^-1 b,

with G = C' V C the matrix of centered features and b = C' V y. Lanczos's method needs products
with G only. Begun with a vector v, m steps give Gauss's quadrature with m nodes of v' f(G) v for
every function f, so the same steps serve all penalties. Begun with b they give the loss; begun with
random vectors of signs, the mean of which estimates a trace, they give the determinant as the trace
of log(I + G / alpha). All vectors share the passes over the rows.

Steps end when they no longer change the chosen penalty and the criterion. There is no
preconditioner, because each penalty would need its own, so small penalties take many steps. Vectors
are not orthogonalized again: some nodes are then found repeatedly, but their weights are divided
among the copies, so that the quadratures do not change.

References
----------
Golub and Meurant, Matrices, moments and quadrature, 2010.
Ubaru, Chen and Saad, Fast estimation of tr(f(A)) via stochastic Lanczos quadrature, SIAM Journal on
Matrix Analysis and Applications 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from kitchenette.learning.passes import FeatureRows, Moments
from kitchenette.learning.pilot import CONSTANT
from kitchenette.learning.regularization import (
    LARGEST_PENALTY,
    SINGULAR_PENALTY,
    check_observations,
    minimum,
)
from kitchenette.learning.solution import log_evidence
from kitchenette.sketching.random import Stream

Array = NDArray[np.float64]
PROBES = 16  # vectors of signs
LEAST_STEPS = 4
STEADY_STEPS = 2  # consecutive steps with small changes, after which the method stops
STEADY_PENALTY = 0.03  # a small change of log(alpha)
STEADY_VALUE = 1e-4  # a small change of the criterion, per observation and target
BREAKDOWN = 1e-12  # a vector of smaller relative length consists of rounding errors


class Lanczos:
    """Lanczos's method for several vectors at once.

    Parameters
    ----------
    product : callable
        The product of the symmetric matrix with columns.
    start : ndarray of shape (n, n_vectors)
        The vectors; those of zeros have quadratures of zero.
    """

    def __init__(self, product: Callable[[Array], Array], start: Array):
        self._product = product
        self.lengths = np.linalg.norm(start, axis=0)
        self._vectors = start / np.where(self.lengths > 0, self.lengths, 1.0)
        self._before = np.zeros_like(start)
        self._diagonals: list[Array] = []
        self._beside: list[Array] = []  # the other diagonals of the tridiagonal matrices
        self._sizes = np.zeros(start.shape[1])

    @property
    def n_steps(self) -> int:
        return len(self._diagonals)

    def step(self) -> None:
        """One more node of all quadratures; takes one product."""
        image = self._product(self._vectors)
        diagonal = np.einsum("ij,ij->j", self._vectors, image)
        image -= diagonal * self._vectors
        if self._beside:
            image -= self._beside[-1] * self._before
        beside = np.linalg.norm(image, axis=0)
        self._sizes = np.maximum(self._sizes, np.abs(diagonal) + beside)
        beside = np.where(beside > BREAKDOWN * self._sizes, beside, 0.0)
        self._before = self._vectors
        self._vectors = np.where(beside > 0, image / np.where(beside > 0, beside, 1.0), 0.0)
        self._diagonals.append(diagonal)
        self._beside.append(beside)

    def quadratures(self) -> tuple[Array, Array]:
        """Nodes and weights, each of shape (n_vectors, n_steps).

        v' f(G) v is the sum of f(nodes) times weights.
        """
        diagonals, beside = np.array(self._diagonals), np.array(self._beside)[:-1]
        nodes, weights = np.empty((2, self.lengths.size, self.n_steps))
        for i, length in enumerate(self.lengths):
            values, vectors = eigh_tridiagonal(diagonals[:, i], beside[:, i])
            nodes[i], weights[i] = np.maximum(values, 0), np.square(length * vectors[0])
        return nodes, weights


@dataclass(frozen=True)
class Evidence:
    """The marginal likelihood of some rows as a function of the penalty.

    Attributes
    ----------
    moments : Moments
        The moments of features and targets.
    n_observations : float
        How many observations the rows stand for.
    fit_intercept : bool
        Whether there is an intercept.
    resolution : float
        The relative rounding error of the features.
    nodes, weights : ndarrays of shape (n_targets + n_probes, n_steps)
        Quadratures of the right-hand sides, and of random vectors after them.
    """

    moments: Moments
    n_observations: float
    fit_intercept: bool
    resolution: float
    nodes: Array
    weights: Array

    @property
    def degrees_of_freedom(self) -> float:
        return self.n_observations - self.fit_intercept

    def loss(self, alpha: float) -> Array:
        """The sum of squares of each target's residuals, plus the penalty."""
        squares = self.moments.target_squares
        nodes, weights = self.nodes[: squares.size], self.weights[: squares.size]
        explained = (weights / (nodes + alpha)).sum(axis=1)
        return np.maximum(squares - explained, self.resolution * squares)

    def log_determinant(self, alpha: float) -> float:
        """The logarithm of |I + G / alpha|."""
        n_targets = self.moments.target_squares.size
        probes = self.weights[n_targets:] * np.log1p(self.nodes[n_targets:] / alpha)
        return float(probes.sum(axis=1).mean())

    def criterion(self, alpha: float) -> float:
        """Minus twice the log marginal likelihood, up to a constant."""
        N, varying = self.degrees_of_freedom, self.moments.target_squares > 0
        terms = N * np.log(self.loss(alpha)[varying] / N) + self.log_determinant(alpha)
        return float(terms.sum())

    def log_marginal_likelihood(self, alpha: float) -> float:
        """The log density of the targets."""
        scale = self.n_observations / self.moments.count
        return log_evidence(
            scale * self.loss(alpha),
            self.log_determinant(alpha),
            self.n_observations,
            self.fit_intercept,
        )

    def best_penalty(self) -> float:
        """The penalty of the largest marginal likelihood."""
        n_features, n_targets = self.moments.cross.shape
        trace = float((self.nodes * self.weights)[n_targets:].sum(axis=1).mean())
        size = trace + self.moments.count * float(np.square(self.moments.mean).sum())
        if not trace > CONSTANT**2 * size or not self.moments.target_squares.any():
            return max(1.0, size)  # features or targets are constant up to rounding
        smallest = self.resolution
        if self.degrees_of_freedom <= n_features:
            smallest = max(smallest, SINGULAR_PENALTY)
        low, high = np.log(smallest * trace), np.log(LARGEST_PENALTY * trace)
        found = minimum(self.criterion, float(low), float(high), trace)
        assert found is not None
        return found


def choose_by_evidence(
    rows: FeatureRows,
    moments: Moments,
    n_observations: float,
    *,
    fit_intercept: bool,
    max_steps: int,
    report: Callable[[int, float], None],
) -> tuple[float, float]:
    """The penalty of the largest marginal likelihood, and the logarithm of this likelihood.

    Parameters
    ----------
    rows : FeatureRows
        The rows.
    moments : Moments
        Their moments; uncentered ones without an intercept.
    n_observations : float
        How many observations the rows stand for.
    fit_intercept : bool
        Whether there is an intercept.
    max_steps : int
        The largest number of passes over the rows.
    report : callable
        Called after each step with its number and the penalty.
    """
    check_observations("evidence", n_observations, fit_intercept)
    n_features, n_targets = moments.cross.shape
    signs = Stream(0, "trace").signs(PROBES, n_features).T.astype(np.float64)
    lanczos = Lanczos(
        lambda V: rows.normal_product(np.ascontiguousarray(V), moments.mean)[0],
        np.concatenate([moments.cross, signs], axis=1),
    )
    resolution = float(np.finfo(rows.some(np.arange(1)).features().dtype).eps)
    tolerance = STEADY_VALUE * n_observations * n_targets
    position, value, steady = np.inf, np.inf, 0
    while True:
        lanczos.step()
        evidence = Evidence(
            moments, n_observations, fit_intercept, resolution, *lanczos.quadratures()
        )
        alpha = evidence.best_penalty()
        report(lanczos.n_steps, alpha)
        before, position = position, float(np.log(alpha))
        value_before, value = value, evidence.criterion(alpha)
        same = abs(position - before) <= STEADY_PENALTY
        steady = steady + 1 if same and abs(value - value_before) <= tolerance else 0
        enough = lanczos.n_steps >= LEAST_STEPS and steady >= STEADY_STEPS
        if enough or lanczos.n_steps >= min(max_steps, n_features):
            return alpha, evidence.log_marginal_likelihood(alpha)
