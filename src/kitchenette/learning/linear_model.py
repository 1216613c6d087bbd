"""Linear functions of features as immutable values: solved models and principal components."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from kitchenette.files.fields import Interval, Shape, field_values
from kitchenette.files.registry import storable
from kitchenette.learning.calibration import Calibration
from kitchenette.learning.gram import leading_eigenvectors
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.solution import Solution
from kitchenette.maps.protocol import FittedMap

Array = NDArray[np.float64]


@storable
@dataclass(frozen=True, eq=False)
class Validation:
    """What validation rows say about a model; each is None without such rows."""

    # the accuracy of a classifier or the R^2 of a regressor on these rows
    score: float | None = None
    calibration: Calibration | None = None  # the probabilities of classes
    # factors by which the standard deviations of predictions are too small; shape (n_targets,)
    spread: Annotated[Array | None, Shape(None), Interval(0)] = None

    def check_targets(self, n_targets: int) -> None:
        """Refuse values for another number of targets."""
        if self.calibration is not None and self.calibration.biases.size != n_targets:
            raise ValueError("calibration must be of as many classes as there are.")
        if self.spread is not None and self.spread.size != n_targets:
            raise ValueError("spread must be a number for each target.")


class LinearFunction(ABC):
    """A linear function of features. Subclasses are frozen dataclasses."""

    coef: Any  # the weights, shape (n_features, n_targets)
    intercept: Any  # the constants, shape (n_targets,)

    def predict(self, fitted: FittedMap, rows: Any, out: Array) -> bool:
        """Features times weights, plus the intercept; False if a number is not finite."""
        operator = fitted.operator(rows)
        cached_operator, linear = self._linear.get(operator.dtype.name, (None, None))
        if cached_operator is not operator:
            cheaper, weights = operator.collapse(self.coef)
            linear = cheaper.linear(weights, self.intercept)
            self._linear[operator.dtype.name] = operator, linear
        return bool(linear.write(rows, out))

    @cached_property
    def _linear(self) -> dict[str, tuple[Any, Any]]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return field_values(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


@storable
@dataclass(frozen=True, eq=False)
class LinearModel(LinearFunction):
    """The weights of a linear model of features, and the penalty they were computed with."""

    coef: Annotated[Array, Shape(None, "intercept")]  # the weights; shape (n_features, n_targets)
    intercept: Annotated[Array, Shape(None)]  # the constants; shape (n_targets,)
    alpha: Annotated[float, Interval(0, np.inf, "left")]  # the penalty
    log_marginal_likelihood: float  # the log marginal likelihood (evidence)
    fit_intercept: bool  # whether there is an intercept
    has_float32: bool  # whether some features were learned in float32
    # what validation rows say about the model
    validation: Validation = field(default_factory=Validation)

    @classmethod
    def of(cls, solution: Solution, has_float32: bool, validation: Validation) -> Self:
        """The model of a solution, without its factorization of the Gram matrix."""
        return cls(
            solution.coef,
            solution.intercept,
            solution.alpha,
            solution.log_marginal_likelihood,
            solution.fit_intercept,
            has_float32,
            validation,
        )

    def __post_init__(self) -> None:
        for array in (self.coef, self.intercept):
            array.flags.writeable = False

    def check(self) -> None:
        """Refuse what another number of targets was checked with."""
        self.validation.check_targets(self.intercept.size)


@storable
@dataclass(frozen=True, eq=False)
class PrincipalComponents(LinearFunction):
    """The leading eigenvectors of a centered Gram matrix, as a linear function of features."""

    # the eigenvectors; shape (n_components, n_features)
    components: Annotated[Array, Shape("eigenvalues", "mean")]
    mean: Annotated[Array, Shape(None)]  # the mean of the features; shape (n_features,)
    # in descending order; shape (n_components,)
    eigenvalues: Annotated[Array, Shape(None), Interval(0)]
    total: Annotated[float, Interval(0, np.inf, "left")]  # the sum of all eigenvalues
    # eigenvalues divided by it are variances
    divisor: Annotated[float, Interval(0, np.inf, "neither")]
    whiten: bool  # whether the components are scaled to a variance of one

    @classmethod
    def of(cls, statistics: LeastSquares, n_components: int, whiten: bool) -> Self:
        """The components of at least two rows."""
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
