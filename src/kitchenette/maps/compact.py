"""The base class of maps that project the features of a wide inner map down to fewer features."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from kitchenette.data.drawing import DrawnRows, FirstRows, sample_rows
from kitchenette.data.reduction import Reducible
from kitchenette.data.rows import validated
from kitchenette.kernels import Kernel, ShiftInvariantKernel
from kitchenette.maps.base import RowMap
from kitchenette.maps.prepared import PreparedSpecification
from kitchenette.maps.prepared_map import PreparedMap
from kitchenette.maps.protocol import fit_map, specification_of, thawed
from kitchenette.maps.registry import make_map
from kitchenette.parameters import check_count, shallow_copy
from kitchenette.sketching.random import Stream
from kitchenette.sketching.specification import Specification


class CompactMap(RowMap):
    """A map over another map, which is a parameter and, once fitted, an attribute."""

    inner_name: ClassVar[str]  # the parameter; the attribute is f"{inner_name}_"
    inner_factor: ClassVar[int]  # inner features per output, if n_components is None

    @property
    def kernel_(self) -> Kernel:
        """The kernel of the inner map."""
        self.fitted()
        return vars(self)[f"{self.inner_name}_"].kernel_

    @property
    def observes(self) -> bool:  # type: ignore[override]
        """Whether the inner map looks at all rows."""
        return bool(getattr(thawed(self._unfitted_inner(0)), "observes", False))

    def _fit_table(
        self,
        X: Any,
        sample_weight: Any,
        seed: int,
        drawn: DrawnRows | FirstRows | None,
        everything: Reducible | None,
    ) -> None:
        """Fit the inner map, then this map on its features."""
        sample, _ = sample_rows(X, seed, sample_weight, drawn)
        sample = validated(self, sample, reset=True)
        inner = self._unfitted_inner(seed)
        foreign = not isinstance(inner, RowMap | FrozenEstimator) and hasattr(X, "columns")
        # A map of another package will be given arrays without names later.
        rows = validated(self, X, reset=False) if foreign else X
        inner = fit_map(inner, rows, None, sample_weight, drawn=drawn, everything=everything)
        specification = specification_of(inner, sample)
        check_inner(self.inner_name, specification, sample.shape[1])
        if specification.n_components < self.n_components:
            raise ValueError(
                f"{type(self).__name__} squeezes the features of another map into fewer: "
                f"n_components must be at most {specification.n_components}; got "
                f"{self.n_components}."
            )
        setattr(self, f"{self.inner_name}_", inner)
        all_rows = X if everything is None else everything
        self.specification_ = self.specify(specification, seed, all_rows, sample)
        self.fitted().operator(sample.dtype)

    def has_row_checks(self) -> bool:
        inner = thawed(vars(self).get(f"{self.inner_name}_"))
        return isinstance(inner, RowMap) and inner.has_row_checks()

    def check_rows(self, rows: Any) -> None:
        inner = thawed(vars(self).get(f"{self.inner_name}_"))
        if isinstance(inner, RowMap):
            inner.check_rows(rows)

    def choose(
        self, sample: Any, seed: int, sample_weight: Any = None, observed: Any = None
    ) -> Specification:
        """The specification of a map fitted on the sample alone."""
        inner = fit_map(self._unfitted_inner(seed), sample, None, sample_weight)
        draft = shallow_copy(self)  # this map may be fitted, and stays as it is
        return draft.specify(specification_of(inner, sample), seed, sample, sample)

    @abstractmethod
    def specify(self, inner: Specification, seed: int, X: Any, sample: Any) -> Specification:
        """The specification, given that of the inner map; other fitted attributes are set.

        ``X`` is all rows: a table of them, or a `Reducible`. ``sample`` are checked rows.
        """

    def _unfitted_inner(self, seed: int) -> Any:
        """The inner map as an unfitted copy, with defaults for its size and its seed."""
        given = getattr(self, self.inner_name)
        size = self.inner_factor * check_count("n_components", self.n_components)
        if isinstance(given, Kernel):
            shift_invariant = isinstance(given, ShiftInvariantKernel)
            name = "RandomKitchenSinks" if shift_invariant else "RandomMaclaurin"
            given = make_map(name, given, size)
        if isinstance(given, type):
            raise ValueError(
                f"{self.inner_name} must be an object, not a class: write {given.__name__}() with "
                "parentheses."
            )
        if not hasattr(given, "transform"):
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
            open_ended["random_state"] %= 2**32  # the range of NumPy's RandomState
        parameters = made.get_params(deep=False)
        made.set_params(
            **{name: value for name, value in open_ended.items() if parameters.get(name, 0) is None}
        )
        return made

    def fitted_to_file(self) -> dict[str, Any]:
        name = f"{self.inner_name}_"
        inner = vars(self)[name]
        stored = getattr(self.fitted(), self.inner_name)
        if isinstance(stored, PreparedSpecification) and not isinstance(thawed(inner), RowMap):
            inner = PreparedMap.of(stored)  # a pipeline is stored as its numbers
        return {**super().fitted_to_file(), name: inner}

    def restore(self, fitted: dict[str, Any]) -> None:
        name = f"{self.inner_name}_"
        super().restore(fitted)
        stored = getattr(self.specification_, self.inner_name)
        fitted_inner = thawed(vars(self)[name])
        if (
            not isinstance(fitted_inner, RowMap)
            or vars(fitted_inner).get("specification_") is not stored
        ):
            raise ValueError(f"{name} must be a map that was fitted.")


def check_inner(name: str, inner: Specification, n_columns: int) -> None:
    """Refuse an inner map that was not fitted on rows of this width."""
    if inner.n_columns != n_columns:
        raise ValueError(
            f"{name} must be a map that was fitted on rows of {n_columns} columns, not "
            f"{inner.n_columns}."
        )
