"""Preconditioned conjugate gradients for ridge regression with several targets and penalties.

The normal equations (C' V C + alpha I) w = C' V y of centered features C are solved for every
target and penalty in the same passes over the rows, because computing the features is what takes
the time. The primal equations are solved also if there are fewer rows than features: a step needs
one pass, in which every feature is computed once, while the dual equations need two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from kitchenette.learning.passes import FeatureRows
from kitchenette.learning.threads import SMALL_ORDER, one_blas_thread

Array = NDArray[np.float64]
Inverse = Callable[[Array], Array]
SMALLEST = 1e-14  # smaller residuals, relative to the right-hand side, are rounding errors


class ConjugateGradients:
    """A solution that improves with every step.

    Parameters
    ----------
    rows : FeatureRows
        The rows.
    mean : ndarray of shape (n_features,)
        The weighted mean of the features.
    cross : ndarray of shape (n_features, n_targets)
        C' V Y, the right-hand side.
    alphas : sequence of float
        The penalties.
    inverses : sequence of callables
        A preconditioner for each penalty: approximately the inverse of the matrix.
    watched : ndarray of shape (n_rows,), optional
        Which rows are to be predicted after each step.
    start : ndarray of shape (n_features, n_targets), optional
        Weights to begin with, for all penalties; zero by default.

    Attributes
    ----------
    coef : ndarray of shape (n_penalties, n_features, n_targets)
        The weights.
    residuals : ndarray of shape (n_penalties,)
        The largest norm of a target's residual relative to its right-hand side.
    outputs : ndarray of shape (n_penalties, n_watched, n_targets)
        Centered features of the watched rows times weights.
    """

    def __init__(
        self,
        rows: FeatureRows,
        mean: Array,
        cross: Array,
        alphas: Sequence[float],
        inverses: Sequence[Inverse],
        watched: NDArray[np.bool_] | None = None,
        start: Array | None = None,
    ):
        self._rows, self._mean, self._watched = rows, mean, watched
        self._alphas = np.asarray(alphas, dtype=np.float64)[:, None, None]
        self._inverses = inverses
        shape = len(alphas), *cross.shape
        n_watched = 0 if watched is None else int(np.count_nonzero(watched))
        self.coef = np.zeros(shape)
        self.outputs = np.zeros((shape[0], n_watched, shape[2]))
        self._residual = np.broadcast_to(cross, shape).copy()
        if start is not None:
            self.coef += start
            product, outputs = rows.normal_product(start, mean, watched)
            self._residual -= product + self._alphas * start
            self.outputs += outputs
        norms = np.linalg.norm(cross, axis=0)
        self._norms = np.where(norms > 0, norms, 1.0)
        self._direction = self._preconditioned()
        self._products = self._dot(self._residual, self._direction)

    def step(self) -> None:
        """Improve the weights; takes one pass over the rows."""
        with one_blas_thread(SMALL_ORDER):  # more threads would mostly wait
            self._step()

    def _step(self) -> None:
        direction = self._direction
        columns = np.ascontiguousarray(np.concatenate(list(direction), axis=1))
        product, outputs = self._rows.normal_product(columns, self._mean, self._watched)
        n_penalties = direction.shape[0]
        image = np.stack(np.split(product, n_penalties, axis=1)) + self._alphas * direction
        lengths = self._divided(self._products, self._dot(direction, image))
        self.coef += lengths * direction
        self._residual -= lengths * image
        self.outputs += lengths * np.stack(np.split(outputs, n_penalties, axis=1))
        improved = self._preconditioned()
        products = self._dot(self._residual, improved)
        self._direction = improved + self._divided(products, self._products) * direction
        self._products = products

    def keep(self, which: NDArray[np.bool_]) -> None:
        """Go on with some of the penalties only."""
        self._alphas = self._alphas[which]
        self._inverses = [
            inverse for inverse, kept in zip(self._inverses, which, strict=True) if kept
        ]
        self.coef, self.outputs = self.coef[which], self.outputs[which]
        self._residual, self._direction = self._residual[which], self._direction[which]
        self._products = self._products[which]

    @property
    def residuals(self) -> Array:
        sizes: Array = (np.linalg.norm(self._residual, axis=1) / self._norms).max(axis=1)
        return sizes

    def _preconditioned(self) -> Array:
        return np.stack(
            [inverse(part) for inverse, part in zip(self._inverses, self._residual, strict=True)]
        )

    @staticmethod
    def _dot(a: Array, b: Array) -> Array:
        return np.einsum("pft,pft->pt", a, b)[:, None, :]

    def _divided(self, a: Array, b: Array) -> Array:
        """Ratios; zero for targets that are solved to rounding."""
        sizes = np.linalg.norm(self._residual, axis=1, keepdims=True)
        unfinished = (sizes > SMALLEST * self._norms) & (b > 0)
        return np.where(unfinished, a / np.where(unfinished, b, 1.0), 0.0)
