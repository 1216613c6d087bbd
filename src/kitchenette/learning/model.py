"""A solved model as an immutable value."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kitchenette.files.registry import Budget, checked_state, storable
from kitchenette.learning.solution import Solution
from kitchenette.maps.protocol import FittedMap

Array = NDArray[np.float64]


@storable
@dataclass(frozen=True, eq=False)
class LinearModel:
    """The weights of a linear model of features, and the penalty they were computed with.

    Attributes
    ----------
    coef : ndarray of shape (n_features, n_targets)
        The weights.
    intercept : ndarray of shape (n_targets,)
        The constants.
    alpha : float
        The penalty.
    log_marginal_likelihood : float
        The log marginal likelihood (evidence).
    fit_intercept : bool
        Whether there is an intercept.
    has_float32 : bool
        Whether some features were learned in single precision.
    version : int
        The version of the statistics that were solved, to recognise an outdated model.
    """

    coef: Array
    intercept: Array
    alpha: float
    log_marginal_likelihood: float
    fit_intercept: bool
    has_float32: bool
    version: int

    @classmethod
    def of(cls, solution: Solution, has_float32: bool, version: int) -> Self:
        """The model of a solution, without its factorisation of the Gram matrix."""
        return cls(
            solution.coef,
            solution.intercept,
            solution.alpha,
            solution.log_marginal_likelihood,
            solution.fit_intercept,
            has_float32,
            version,
        )

    def renumbered(self, version: int) -> Self:
        """The same model for statistics with another version number."""
        return replace(self, version=version)

    def predict(self, fitted: FittedMap, rows: Any, out: Array) -> bool:
        """Features times weights, plus the intercept; False if a number is not finite."""
        operator = fitted.operator(rows)
        known, linear = self._linear.get(operator.dtype.name, (None, None))
        if known is not operator:
            cheaper, weights = operator.collapse(self.coef)
            linear = cheaper.linear(weights, self.intercept)
            self._linear[operator.dtype.name] = operator, linear
        return bool(linear.write(rows, out))

    @cached_property
    def _linear(self) -> dict[str, tuple[Any, Any]]:
        return {}

    def __post_init__(self) -> None:
        for array in (self.coef, self.intercept):
            array.flags.writeable = False

    def __getstate__(self) -> dict[str, Any]:
        return self.to_file()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def to_file(self) -> dict[str, Any]:
        """All values, for a model file."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """A model from the untrusted values of a model file."""
        types = {
            "coef": np.ndarray,
            "intercept": np.ndarray,
            "alpha": float,
            "log_marginal_likelihood": float,
            "fit_intercept": bool,
            "has_float32": bool,
            "version": int,
        }
        made = cls(**checked_state(state, types))
        for name, array, n_axes in (("coef", made.coef, 2), ("intercept", made.intercept, 1)):
            if array.dtype != np.float64 or array.ndim != n_axes or not np.isfinite(array).all():
                raise ValueError(f"{name} must be finite, of type float64, with {n_axes} axes.")
        if made.intercept.size != made.coef.shape[1]:
            raise ValueError("intercept must have a number for each target.")
        if not 0 <= made.alpha < np.inf:
            raise ValueError("alpha must be finite and not negative.")
        return made
