"""What all feature maps have in common."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from kitchenette._params import ValueParameters
from kitchenette.kernels import Kernel
from kitchenette.sketching.random import Stream, seed_from

FLOATS: list[type] = [np.float64, np.float32]
SAMPLE_ROWS = 1000  # that data-dependent choices look at


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ValueParameters, ABC):
    """A map to explicit features whose inner products approximate a kernel.

    A subclass draws its random numbers in `_draw`, from ``seed_``, ``kernel_`` and the
    width of the data alone (and from a sample of rows if it must), and writes features of
    checked rows in `_write`. A row's features depend on that row alone.
    """

    kernel: Kernel
    n_components: int
    random_state: Any
    _overflow_advice = "Scale the data down or use a larger length_scale."

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

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
            X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS)
            self._check_parameters()
            self.seed_ = seed_from(self.random_state)
            sample = X[Stream(self.seed_, "sample").sample(X.shape[0], SAMPLE_ROWS)]
            self.kernel_ = self.kernel.resolve(sample)
            self.kernel_.check_parameters(X.shape[1])
            # What transform needs is kept apart from the parameters, which may be set anew.
            self._n_features_out = int(self.n_components)
            self._draw(X, sample)
        return self

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
        return self._transform_into(X, None)

    def _transform_into(self, X: Any, memory: NDArray[Any] | None) -> NDArray[Any]:
        """`transform`, written to the beginning of ``memory`` if its precision is right."""
        X = self._checked(X)
        if memory is None or memory.dtype != X.dtype:
            memory = np.empty((X.shape[0], self._n_features_out), dtype=X.dtype)
        out = memory[: X.shape[0]]
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
        return validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)

    def _check_parameters(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise ValueError(
                "kernel must be a kernel from kitchenette.kernels, such as Gaussian(); "
                f"got {self.kernel!r}."
            )
        n = self.n_components
        if not isinstance(n, numbers.Integral) or isinstance(n, bool) or n < 1:
            raise ValueError(f"n_components must be a whole number of at least 1; got {n!r}.")

    @abstractmethod
    def _draw(self, X: Any, sample: Any) -> None:
        """Set the random parameters for checked rows, of which ``sample`` is a sample."""

    @abstractmethod
    def _write(self, X: Any, out: NDArray[Any]) -> bool:
        """Features of checked rows; False if a number overflowed."""

    def _writer(self, dtype: DTypeLike) -> Callable[[NDArray[Any], NDArray[Any]], object]:
        """`_write`, prepared for dense rows of this precision and without checks of them.

        For rows that come one at a time, where preparing takes as long as writing.
        """
        return self._write


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
    if value not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {allowed}; got {value!r}.")
