"""Preconditioned L-BFGS for any smooth convex loss of a linear model of features.

Each step takes one pass over the rows unless it must be shortened, which is rare. The
preconditioner, the inverse of the penalized matrix of the squared loss for a sample of the rows,
stands where plain L-BFGS has a multiple of the identity; without it hundreds of steps are needed.

References
----------
Nocedal and Wright, Numerical optimization, 2006, algorithms 7.4 and 7.5.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kitchenette.learning.losses import Loss
from kitchenette.learning.passes import FeatureRows
from kitchenette.learning.threads import SMALL_ORDER, one_blas_thread

Array = NDArray[np.float64]
MEMORY = 10  # pairs of steps and changes of the gradient
SUFFICIENT = 1e-4  # the part of the decrease promised by the slope that a step must achieve
HALVINGS = 30  # of a step, after which the solver gives up


class QuasiNewton:
    """A model that improves with every step.

    Its outputs are (z - mean)' W + c; the penalty is alpha / 2 |W|^2.

    Parameters
    ----------
    rows : FeatureRows
        The rows.
    mean : ndarray of shape (n_features,)
        The weighted mean of the features.
    loss : Loss
        What is minimized.
    alpha : float
        The penalty.
    inverse : callable
        The preconditioner: approximately the inverse of the matrix of second derivatives.
    flatness : float
        The inverse of the second derivative in the intercept; 0 to keep it as it is.
    coef, intercept : ndarrays of shape (n_features, n_outputs) and (n_outputs,)
        Where to start.
    watched : ndarray of shape (n_rows,), optional
        Which rows are to be predicted after each step.
    scale : float, optional
        The norm of a gradient of which others are fractions; by default that of the first one.

    Attributes
    ----------
    coef, intercept : ndarrays
        The model.
    objective : float
        The loss plus the penalty.
    residual : float
        The norm of the gradient as a fraction of ``scale``.
    outputs : ndarray of shape (n_watched, n_outputs)
        The outputs of the watched rows.
    """

    def __init__(
        self,
        rows: FeatureRows,
        mean: Array,
        loss: Loss,
        alpha: float,
        inverse: Callable[[Array], Array],
        flatness: float,
        coef: Array,
        intercept: Array,
        watched: NDArray[np.bool_] | None = None,
        scale: float | None = None,
    ):
        self._rows, self._mean, self._loss, self._alpha = rows, mean, loss, alpha
        self._inverse, self._flatness, self._watched = inverse, flatness, watched
        self._pairs: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)
        self._factor = 1.0
        self._adopt(np.vstack([coef, intercept]), *self._at(np.vstack([coef, intercept])))
        self.scale = float(np.linalg.norm(self._gradient)) if scale is None else scale

    @property
    def coef(self) -> Array:
        return self._point[:-1]

    @property
    def intercept(self) -> Array:
        return self._point[-1]

    @property
    def residual(self) -> float:
        return float(np.linalg.norm(self._gradient)) / self.scale if self.scale > 0 else 0.0

    def step(self) -> bool:
        """Improve the model; False if rounding errors forbid any improvement."""
        with one_blas_thread(SMALL_ORDER):  # more threads would mostly wait
            return self._step()

    def _step(self) -> bool:
        direction = -self._inverse_hessian(self._gradient)
        slope = float(np.vdot(direction, self._gradient))
        if not slope < 0:
            return False
        length = 1.0
        for _ in range(HALVINGS):
            point = self._point + length * direction
            objective, gradient, outputs = self._at(point)
            if objective <= self.objective + SUFFICIENT * length * slope:
                break
            length /= 2
        else:
            return False
        step, change = point - self._point, gradient - self._gradient
        curvature = float(np.vdot(step, change))
        if curvature > 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self._pairs.append((step, change, 1 / curvature))
            # The preconditioner is scaled to the curvature along the last step.
            length = float(np.vdot(change, self._preconditioned(change)))
            self._factor = curvature / length if length > 0 else 1.0
        self._adopt(point, objective, gradient, outputs)
        return True

    def _adopt(self, point: Array, objective: float, gradient: Array, outputs: Array) -> None:
        self._point, self.objective, self._gradient = point, objective, gradient
        self.outputs = outputs

    def _at(self, point: Array) -> tuple[float, Array, Array]:
        """The objective, its gradient, and the outputs of the watched rows."""
        W, c = point[:-1], point[-1]
        found = self._rows.gradient(self._loss, W, c - self._mean @ W, self._watched)
        gradient = np.empty_like(point)
        gradient[:-1] = found.weights - np.outer(self._mean, found.intercept) + self._alpha * W
        gradient[-1] = found.intercept if self._flatness > 0 else 0.0
        objective = found.loss + self._alpha / 2 * float(np.vdot(W, W))
        return objective, gradient, found.outputs

    def _inverse_hessian(self, gradient: Array) -> Array:
        """The product with the inverse Hessian, by the two-loop recursion of L-BFGS."""
        found, parts = gradient.copy(), []
        for step, change, scale in reversed(self._pairs):
            part = scale * float(np.vdot(step, found))
            found -= part * change
            parts.append(part)
        found = self._factor * self._preconditioned(found)
        for (step, change, scale), part in zip(self._pairs, reversed(parts), strict=True):
            found += (part - scale * float(np.vdot(change, found))) * step
        return found

    def _preconditioned(self, gradient: Array) -> Array:
        found = np.empty_like(gradient)
        found[:-1] = self._inverse(np.ascontiguousarray(gradient[:-1]))
        found[-1] = self._flatness * gradient[-1]
        return found
