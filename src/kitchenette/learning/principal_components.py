"""Principal components of features as an immutable value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from kitchenette.files.budget import Budget
from kitchenette.files.fields import from_fields
from kitchenette.files.registry import storable
from kitchenette.learning.eigenvectors import leading_eigenvectors
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.linear_model import Array, LinearFunction


@storable
@dataclass(frozen=True, eq=False)
class PrincipalComponents(LinearFunction):
    """The leading eigenvectors of a centered Gram matrix, as a linear function of features.

    Attributes
    ----------
    components : ndarray of shape (n_components, n_features)
        The eigenvectors.
    mean : ndarray of shape (n_features,)
        The mean of the features.
    eigenvalues : ndarray of shape (n_components,)
        In descending order.
    total : float
        The sum of all eigenvalues.
    divisor : float
        Eigenvalues divided by it are variances.
    whiten : bool
        Whether the components are scaled to a variance of one.
    """

    components: Array
    mean: Array
    eigenvalues: Array
    total: float
    divisor: float
    whiten: bool

    @classmethod
    def of(cls, statistics: LeastSquares, n_components: int, whiten: bool) -> Self:
        """The components of the rows seen, of which there must be at least two."""
        gram, n_rows = statistics.gram, statistics.n_rows
        total = float(gram.diagonal().sum())
        values, vectors = leading_eigenvectors(gram, n_components)
        # Eigenvalues below the rounding errors of the Gram matrix, or of the subtraction of the
        # mean, are zero.
        eps = np.finfo(np.float32 if statistics.has_float32 else np.float64).eps
        shift = statistics.count * np.square(4 * eps * statistics.feature_mean).sum()
        cutoff = max(statistics.equations(True).resolution * total, float(shift))
        return cls(
            components=np.ascontiguousarray(vectors.T),
            mean=statistics.feature_mean.copy(),
            eigenvalues=np.where(values > cutoff, values, 0.0),
            total=total,
            divisor=statistics.count * (n_rows - 1) / n_rows,
            whiten=whiten,
        )

    def __post_init__(self) -> None:
        for array in (self.components, self.mean, self.eigenvalues):
            array.flags.writeable = False

    @property
    def explained_variance(self) -> Array:
        """The variance of the rows in the direction of each component."""
        return self.eigenvalues / self.divisor

    @property
    def explained_variance_ratio(self) -> Array:
        """The variance in the direction of each component, divided by that in all directions."""
        return self.eigenvalues / self.total if self.total > 0 else np.zeros_like(self.eigenvalues)

    @cached_property
    def coef(self) -> Array:
        if not self.whiten:
            return self.components.T
        scales = np.zeros_like(self.eigenvalues)
        positive = self.eigenvalues > 0
        scales[positive] = 1 / np.sqrt(self.explained_variance[positive])
        return self.components.T * scales

    @cached_property
    def intercept(self) -> Array:
        return -self.mean @ self.coef

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """Components from the untrusted values of a model file."""
        made = from_fields(cls, state)
        made.check_arrays(components=2, mean=1, eigenvalues=1)
        if made.components.shape != (made.eigenvalues.size, made.mean.size):
            raise ValueError("components must have an eigenvalue for each row.")
        if made.eigenvalues.min(initial=0) < 0:
            raise ValueError("eigenvalues must not be negative.")
        if not (0 <= made.total < np.inf and 0 < made.divisor < np.inf):
            raise ValueError("total and divisor must be finite and positive.")
        return made
