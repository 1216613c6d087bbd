"""What all feature maps have in common."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from kitchenette._params import ValueParameters
from kitchenette.kernels import Kernel
from kitchenette.kernels._base import canonical, native_order
from kitchenette.sketching.random import Stream, seed_from

FLOATS: list[type] = [np.float64, np.float32]
SAMPLE_ROWS = 1000  # that data-dependent choices look at
PROBES = 8  # rows whose features tell maps apart


class RowTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ValueParameters, ABC):
    """A transformer of single rows: what it makes of a row depends on that row alone.

    A subclass chooses in `_choose` what depends on the data and keeps it in attributes that it
    adds to `_stored`. It draws its random numbers in `_draw`, from these, its parameters,
    ``seed_`` and the width of the data alone, and writes the output of checked rows in `_write`.
    So a model file stores what `_stored` names, and the rest is drawn again.
    """

    _stored: ClassVar[dict[str, Any]] = {
        "seed_": int,
        "n_features_in_": int,
        "feature_names_in_": np.ndarray,
        "_precision": str,
        "_drawn_with": dict,
    }
    n_components: int
    random_state: Any
    _n_features_out: int
    _overflow_advice = "Scale the data down or pass float64."

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
            Only the number of columns and the precision matter, unless the map has to choose
            something from data, such as a length scale "median".
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
            self._precision = X.dtype.name
            # The parameters may be set anew, but the map stays as it was drawn.
            self._drawn_with = {
                name: value
                for name, value in self.get_params(deep=False).items()
                if name not in ("kernel", "random_state")  # kernel_ and seed_ tell more
            }
            self._n_features_out = int(self.n_components)
            self._choose(X, sample)
            self._draw(X.shape[1], X.dtype)
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
        return self._validated(X, reset=False)

    def _validated(self, X: Any, reset: bool) -> Any:
        X = validate_data(self, native_order(X), accept_sparse="csr", dtype=FLOATS, reset=reset)
        return canonical(X)

    def _check_parameters(self) -> None:
        check_count("n_components", self.n_components)

    def _choose(self, X: Any, sample: Any) -> None:
        """Set what depends on checked rows, of which ``sample`` is a sample."""
        return

    @abstractmethod
    def _draw(self, n_columns: int, dtype: DTypeLike) -> None:
        """Set the random parameters, for rows of this width and precision."""

    @abstractmethod
    def _drawn_bytes(self, n_columns: int) -> int:
        """No less than the memory that `_draw` takes, for choices of unknown origin."""

    def _check_choices(self, n_columns: int) -> None:
        """Refuse choices that `_choose` cannot have made."""
        return

    def _restore(self, max_bytes: int) -> int:
        """Draw the map again from what `_stored` names, which may come from anywhere.

        Returns the memory that this may have taken, at most ``max_bytes``.
        """
        parameters = self.get_params(deep=False)
        drawn_with = {name: self._drawn_with[name] for name in {*self._drawn_with} & {*parameters}}
        drawn_with |= self._resolved_parameters()
        if drawn_with.keys() != parameters.keys():
            raise ValueError("The parameters that the map was drawn with are incomplete.")
        for name, value in drawn_with.items():
            setattr(self, name, value)
        self._check_parameters()
        seed_from(self.seed_)
        n_columns = self.n_features_in_
        if n_columns < 1:
            raise ValueError(f"n_features_in_ must be at least 1; got {n_columns}.")
        check_choice("the precision", self._precision, ("float32", "float64"))
        self._check_resolved_parameters(n_columns)
        needed = self._drawn_bytes(n_columns) + 32 * PROBES * (n_columns + self.n_components)
        if needed > max_bytes:
            raise ValueError(
                f"drawing {self.n_components} components for {n_columns} columns may take {needed} "
                f"bytes, and {max_bytes} are left. Load with a larger max_bytes if you trust it."
            )
        self._n_features_out = int(self.n_components)
        self._check_choices(n_columns)
        self._draw(n_columns, np.dtype(self._precision))
        for name, value in parameters.items():
            setattr(self, name, value)
        return needed

    def _fingerprint(self) -> list[float]:
        """Features of a few rows, summed with random signs: the same for the same map.

        For each row the sum is divided by the norm of the features.
        """
        probes = Stream(0, "probe rows").normals(PROBES, self.n_features_in_)
        probes *= self._probe_scale() / np.linalg.norm(probes, axis=1, keepdims=True)
        Z = np.empty((PROBES, self._n_features_out))
        self._write(probes, Z)
        signs = Stream(0, "probe signs").signs(*Z.shape)
        sums: list[float] = ((Z * signs).sum(axis=1) / np.linalg.norm(Z, axis=1)).tolist()
        return sums

    def _probe_scale(self) -> Any:
        """What unit vectors are multiplied with to be rows that the map is made for."""
        return 1.0

    def _resolved_parameters(self) -> dict[str, Any]:
        """Parameters of which ``fit`` made something more definite."""
        return {"random_state": self.seed_}

    def _check_resolved_parameters(self, n_columns: int) -> None:
        """Refuse what ``fit`` cannot have made of the parameters."""
        return

    @abstractmethod
    def _write(self, X: Any, out: NDArray[Any]) -> bool:
        """Features of checked rows; False if a number overflowed."""

    def _writer(self, dtype: DTypeLike) -> Callable[[NDArray[Any], NDArray[Any]], object]:
        """`_write`, prepared for dense rows of this precision and without checks of them.

        For rows that come one at a time, where preparing takes as long as writing.
        """
        return self._write


class FeatureMap(RowTransformer):
    """A map to explicit features whose inner products approximate a kernel."""

    _stored: ClassVar[dict[str, Any]] = {**RowTransformer._stored, "kernel_": Kernel}
    kernel: Kernel
    _overflow_advice = "Scale the data down or use a larger length_scale."

    def _check_parameters(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise ValueError(
                "kernel must be a kernel from kitchenette.kernels, such as Gaussian(); "
                f"got {self.kernel!r}."
            )
        super()._check_parameters()

    def _choose(self, X: Any, sample: Any) -> None:
        # A copy: the kernel, or an array that is its parameter, may be changed later.
        self.kernel_ = clone(self.kernel).resolve(sample)

    def _check_resolved_parameters(self, n_columns: int) -> None:
        self.kernel_.check_parameters(n_columns)
        if self.kernel_.needs_sample():
            raise ValueError(f"kernel_ must have all its parameters; got {self.kernel_!r}.")

    def _resolved_parameters(self) -> dict[str, Any]:
        return {**super()._resolved_parameters(), "kernel": self.kernel_}

    def _probe_scale(self) -> Any:
        return getattr(self.kernel_, "length_scale", 1.0)


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


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Refuse what is no whole number of at least ``least``."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)
