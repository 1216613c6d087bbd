"""What all feature maps have in common."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from kitchenette._params import ValueParameters
from kitchenette.kernels import Kernel
from kitchenette.kernels._base import canonical, native_order
from kitchenette.sketching.random import Stream, seed_from

FLOATS: list[type] = [np.float64, np.float32]
SAMPLE_ROWS = 1000  # that data-dependent choices look at


class RowTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ValueParameters, ABC):
    """A transformer of single rows: what it makes of a row depends on that row alone.

    A subclass sets ``_n_features_out`` in ``fit`` and writes the output of checked rows in
    `_write`.
    """

    n_components: Any
    random_state: Any
    _n_features_out: int
    _overflow_advice = "Scale the data down or pass float64."

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def transform(self, X: Any) -> NDArray[Any]:
        """Features of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns)
            float32 rows give float32 features, all others float64.

        Returns
        -------
        Z : ndarray of shape (n_rows, n_components)
            Features; ``Z @ Z.T`` approximates the kernel matrix.
        """
        X = self._checked(X)
        out = np.empty((X.shape[0], self._n_features_out), dtype=X.dtype)
        if not self._write(X, out):
            raise ValueError(
                f"{type(self).__name__} overflowed {X.dtype} on these rows, whose largest entry is "
                f"{abs(X).max():g}. {self._overflow_advice}"
            )
        return out

    def _checked(self, X: Any) -> Any:
        """Rows as `validate_data` gives them, at once if they are a plain matrix already.

        Its general checks take longer than the features of a row.
        """
        if (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == vars(self).get("n_features_in_")
            and X.dtype in FLOATS
            and "feature_names_in_" not in vars(self)
        ):
            with np.errstate(over="ignore", invalid="ignore"):
                if np.isfinite(X.sum()):
                    return X
        check_is_fitted(self)
        return self._validated(X, reset=False)

    def _validated(self, X: Any, reset: bool) -> Any:
        X = validate_data(self, native_order(X), accept_sparse="csr", dtype=FLOATS, reset=reset)
        return canonical(X)

    def _check_parameters(self) -> None:
        check_count("n_components", self.n_components)

    @abstractmethod
    def _write(self, X: Any, out: NDArray[Any]) -> bool:
        """Features of checked rows; False if a number overflowed."""


class FeatureMap(RowTransformer):
    """A map to explicit features whose inner products approximate a kernel.

    A subclass draws its random numbers in `_draw`, from ``seed_``, ``kernel_`` and the
    width of the data alone (and from a sample of rows if it must).
    """

    kernel: Kernel
    _overflow_advice = "Scale the data down or use a larger length_scale."

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the map.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns)
            Only the number of columns and the precision matter, and a sample of rows if
            the kernel has a length scale "median".
        y : ignored

        Returns
        -------
        self : object
            The fitted map.
        """
        with unchanged_on_error(self):
            X = self._validated(X, reset=True)
            self._check_parameters()
            self.seed_ = seed_from(self.random_state)
            sample = X[Stream(self.seed_, "sample").sample(X.shape[0], SAMPLE_ROWS)]
            # A copy: the kernel, or an array that is its parameter, may be changed later.
            self.kernel_ = clone(self.kernel).resolve(sample)
            # What transform needs is kept apart from the parameters, which may be set anew.
            self._n_features_out = int(self.n_components)
            self._draw(X, sample)
        return self

    def _check_parameters(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise ValueError(
                "kernel must be a kernel from kitchenette.kernels, such as Gaussian(); "
                f"got {self.kernel!r}."
            )
        super()._check_parameters()

    @abstractmethod
    def _draw(self, X: Any, sample: Any) -> None:
        """Set the random parameters for checked rows, of which ``sample`` is a sample."""


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was if the body fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse a word that is not among the choices."""
    if not isinstance(value, str) or value not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {allowed}; got {value!r}.")


def check_count(name: str, value: Any) -> None:
    """Refuse what is no whole number of at least one."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}.")
