"""What maps over other maps share: a wide map inside, squeezed into fewer features."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from kitchenette.data.rows import sample_rows, table, validated
from kitchenette.kernels import Kernel, ShiftInvariantKernel
from kitchenette.maps.base import RowMap
from kitchenette.maps.protocol import fit_map, specification_of
from kitchenette.maps.registry import make_map
from kitchenette.maps.specification import Specification
from kitchenette.parameters import check_count, unchanged_on_error
from kitchenette.sketching.random import Stream, seed_from


class CompactMap(RowMap):
    """A map over another map, which is a parameter and, fitted, an attribute."""

    inner_name: ClassVar[str]  # of that parameter; the attribute has an underscore more
    inner_factor: ClassVar[int]  # inner features per output, if the inner map leaves them open

    @property
    def kernel_(self) -> Kernel:
        """The kernel of the map inside."""
        kernel: Kernel = vars(self)[f"{self.inner_name}_"].kernel_
        return kernel

    def fit_rows(self, X: Any, sample_weight: NDArray[np.float64] | None = None) -> Self:
        with unchanged_on_error(self):
            self._fit(X, sample_weight)
        return self

    def _fit(self, X: Any, sample_weight: Any) -> None:
        """Fit the map inside, and this one from it."""
        self.check_parameters()
        X = table(X)
        seed = seed_from(self.random_state)
        sample, _ = sample_rows(X, seed, sample_weight)
        sample = validated(self, sample, reset=True)
        inner = self._unfitted_inner(seed)
        if not isinstance(inner, RowMap) and hasattr(X, "columns"):
            X = validated(self, X, reset=False)  # it will meet arrays without names later
        inner = fit_map(inner, X, None, sample_weight)
        specification = specification_of(inner, sample)
        if specification.n_components < self.n_components:
            raise ValueError(
                f"{type(self).__name__} squeezes the features of another map into fewer: "
                f"n_components must be at most {specification.n_components}; got "
                f"{self.n_components}."
            )
        self.__dict__.update(
            {f"{self.inner_name}_": inner}, **self.specify(specification, seed, X, sample.dtype)
        )
        self.fitted().operator(sample.dtype)

    def choose(
        self, sample: Any, seed: int, sample_weight: Any = None, observed: Any = None
    ) -> Specification:
        """The specification if the sample is all there is."""
        inner = fit_map(self._unfitted_inner(seed), sample, None, sample_weight)
        specified = self.specify(specification_of(inner, sample), seed, sample, sample.dtype)
        specification: Specification = specified["specification_"]
        return specification

    @abstractmethod
    def specify(self, inner: Specification, seed: int, X: Any, dtype: Any) -> dict[str, Any]:
        """The fitted attributes over a map inside that was fitted on the rows of a table."""

    def _unfitted_inner(self, seed: int) -> Any:
        """The map that the parameter stands for, with its size and seed filled in."""
        given = getattr(self, self.inner_name)
        size = self.inner_factor * check_count("n_components", self.n_components)
        if isinstance(given, Kernel):
            shift_invariant = isinstance(given, ShiftInvariantKernel)
            name = "RandomKitchenSinks" if shift_invariant else "RandomMaclaurin"
            given = make_map(name, given, size)
        if isinstance(given, type) or not hasattr(given, "transform"):
            raise ValueError(
                f"{type(self).__name__} needs a feature map, such as RandomMaclaurin(), or a "
                f"kernel as {self.inner_name}; got {given!r}."
            )
        made = clone(given)
        open_ended = {
            "n_components": size,
            "random_state": int(Stream(seed, "wide map").words(1, 1)[0, 0]),
        }
        if not isinstance(made, RowMap):
            open_ended["random_state"] %= 2**32  # all that NumPy's RandomState takes
        parameters = made.get_params(deep=False)
        made.set_params(
            **{name: value for name, value in open_ended.items() if parameters.get(name, 0) is None}
        )
        return made

    def fitted_to_file(self) -> dict[str, Any]:
        name = f"{self.inner_name}_"
        return {**super().fitted_to_file(), name: vars(self)[name]}

    def restore(self, fitted: dict[str, Any]) -> None:
        name = f"{self.inner_name}_"
        inner = fitted.pop(name, None)
        super().restore(fitted)
        stored = getattr(self.specification_, self.inner_name)
        if not isinstance(inner, RowMap) or vars(inner).get("specification_") is not stored:
            raise ValueError(f"{name} must be a map that was fitted.")
        setattr(self, name, inner)


def check_inner(name: str, inner: Specification, n_columns: int) -> None:
    """Refuse an inner map that was not fitted on rows of this width."""
    if inner.n_columns != n_columns:
        raise ValueError(f"{name} must be a map that was fitted on rows of {n_columns} columns.")
