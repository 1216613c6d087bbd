"""A preparation of columns followed by a map, as one specification and one fitted map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from kitchenette.columns.codings import Coding
from kitchenette.columns.preparation import Preparation
from kitchenette.files.fields import Shape, checked
from kitchenette.files.registry import storable
from kitchenette.kernels import Kernel, Laplacian, RadialKernel
from kitchenette.sketching.operators import (
    Chain,
    Linear,
    NativeChain,
    NativeOperator,
    Operator,
    affine,
)
from kitchenette.sketching.specification import Cost, Specification


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedSpecification(Specification):
    """Prepared columns, and the features of a map of them."""

    preparation: Preparation  # the preparation of the columns
    inner: Specification | None  # the map of the prepared columns; None if they are the features
    # The columns that are strings or dates in the data and numbers in the rows of the operator
    vocabularies: tuple[Coding, ...] = ()
    # (2, n_prepared_columns): the smallest and the largest number of each prepared column of the
    # data, if it is known
    ranges: Annotated[NDArray[np.float64] | None, Shape(2, "preparation.n_outputs")] = None

    @classmethod
    def of(
        cls,
        preparation: Preparation,
        inner: Specification | None = None,
        vocabularies: tuple[Coding, ...] = (),
        ranges: NDArray[np.float64] | None = None,
    ) -> Self:
        """The specification of these parts."""
        made = cls(
            n_columns=preparation.n_columns,
            n_components=preparation.n_outputs if inner is None else inner.n_components,
            seed=0 if inner is None else inner.seed,
            precision="float64" if inner is None else inner.precision,
            preparation=preparation,
            inner=inner,
            vocabularies=vocabularies,
            ranges=ranges,
        )
        return checked(made)

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        first, n = self.preparation.operator(dtype), self.preparation.n_outputs
        # Without a map, copying the columns checks that no number is missing or infinite.
        second = affine(n, 0.0, 1.0, dtype) if self.inner is None else self.inner.operator(dtype)
        return prepared_operator(self.preparation, first, second)

    @cached_property
    def beyond(self) -> PreparedSpecification:
        """The same for rows beyond the data, whose features are then unlike those of the data."""
        inner = self.inner
        if isinstance(inner, PreparedSpecification):
            inner = inner.beyond
        return replace(self, preparation=self.preparation.beyond(), inner=inner)

    def distances(self, rows: Any) -> tuple[Kernel, NDArray[np.float64]] | None:
        """The kernel, and how far checked rows are from the box of the data, in length scales.

        None if the ranges are not known, or the kernel is not one of distances.
        """
        prepared = self.preparation.prepared(rows)
        prepared = prepared.toarray() if sp.issparse(prepared) else prepared
        if isinstance(self.inner, PreparedSpecification):
            return self.inner.distances(prepared)
        kernel = getattr(self.inner, "kernel", None)
        if self.ranges is None or not isinstance(kernel, RadialKernel | Laplacian):
            return None
        low, high = self.ranges
        outside = prepared.astype(np.float64) - np.clip(prepared, low, high)
        if isinstance(kernel, Laplacian):
            return kernel, np.abs(outside).sum(axis=1)
        return kernel, np.linalg.norm(outside, axis=1)

    def cost(self) -> Cost:
        return Cost(0, 0)  # all parts are counted as objects of their own

    def fingerprint(self) -> list[float]:
        """That of the map; the preparation consists of numbers that files contain."""
        return [] if self.inner is None else self.inner.fingerprint()

    def check(self) -> None:
        super().check()
        n_outputs = self.preparation.n_outputs
        if self.preparation.n_columns != self.n_columns:
            raise ValueError("the preparation must have as many columns as the map.")
        if self.inner is not None and self.inner.n_columns != n_outputs:
            raise ValueError(f"the inner map must have {n_outputs} columns.")
        if self.n_components != (n_outputs if self.inner is None else self.inner.n_components):
            raise ValueError("n_components must be those of the inner map.")
        if self.ranges is not None and np.any(self.ranges[0] > self.ranges[1]):
            raise ValueError("ranges must have a smallest and a largest number per column.")
        columns = [vocabulary.column for vocabulary in self.vocabularies]
        inside = all(0 <= column < self.n_columns for column in columns)
        if not inside or len({*columns}) < len(columns):
            raise ValueError("there must be one vocabulary at most for each column.")


class Coder:
    """Turns rows of strings and numbers, with their columns in order, into numbers.

    Unlike the checks of scikit-learn it takes a few microseconds for a row. Columns that are not
    read become zeros.
    """

    def __init__(self, specification: PreparedSpecification, names: Sequence[str] | None = None):
        self._names = [""] * specification.n_columns if names is None else [*names]
        self._n_columns = specification.n_columns
        self._codings = specification.vocabularies
        read = specification.preparation.reads()
        read[[coding.column for coding in self._codings]] = False
        self._numeric = np.flatnonzero(read)

    def __call__(self, X: Any) -> NDArray[np.float64]:
        """Numbers for one row, of shape (n_columns,), or several."""
        X = np.asarray(X, dtype=object)
        if X.ndim not in (1, 2) or X.shape[-1] != self._n_columns:
            raise ValueError(
                f"A row must have {self._n_columns} columns; got an array of shape {X.shape}."
            )
        rows = np.zeros(X.shape)
        rows[..., self._numeric] = X[..., self._numeric].astype(np.float64)
        for coding in self._codings:
            name = self._names[coding.column]
            if X.ndim == 1:
                rows[coding.column] = coding.code(X[coding.column], name)
            else:
                rows[:, coding.column] = coding.codes(X[:, coding.column], name)
        return rows


# ---------------------------------------------------------------- operators


def prepared_operator(preparation: Preparation, first: Operator, second: Operator) -> Operator:
    """``second`` applied to prepared rows; sparse rows stay sparse where the preparation can."""
    if isinstance(first, NativeOperator) and isinstance(second, NativeOperator):
        return NativePreparedChain(preparation, first, second)
    return PreparedChain(preparation, first, second)


class _Prepared(Operator):
    """What the two chains below have in common."""

    first: Any
    second: Any

    def __init__(self, preparation: Preparation, first: Operator, second: Operator):
        super().__init__(first, second)  # type: ignore[call-arg]  # of a chain
        self.preparation = preparation

    def write(self, rows: Any, out: NDArray[Any]) -> bool:
        if sp.issparse(rows) and self.preparation.keeps_zeros:
            return self.second.write(self.preparation.sparse_rows(rows), out)
        return super().write(rows, out)  # type: ignore[safe-super]

    def linear(self, weights: ArrayLike, intercept: ArrayLike) -> Linear:
        dense = super().linear(weights, intercept)
        if not self.preparation.keeps_zeros:
            return dense
        return PreparedLinear(self.preparation, dense, self.second.linear(weights, intercept))

    def add_transposed(self, rows: Any, factors: NDArray[Any], out: NDArray[np.float64]) -> bool:
        if sp.issparse(rows) and self.preparation.keeps_zeros:
            prepared = self.preparation.sparse_rows(rows)
            return self.second.add_transposed(prepared, factors, out)
        return super().add_transposed(rows, factors, out)

    def gradient(self, rows: Any, *args: Any) -> float:
        if sp.issparse(rows) and self.preparation.keeps_zeros:
            return self.second.gradient(self.preparation.sparse_rows(rows), *args)
        return super().gradient(rows, *args)

    def collapse(self, weights: NDArray[Any]) -> tuple[Operator, NDArray[Any]]:
        cheaper, weights = self.second.collapse(weights)
        if cheaper is self.second:
            return self, weights
        return prepared_operator(self.preparation, self.first, cheaper), weights


class NativePreparedChain(_Prepared, NativeChain):
    """A preparation and a map, both in native code."""


class PreparedChain(_Prepared, Chain):
    """A preparation and a map that is not native."""


class PreparedLinear(Linear):
    """A linear function of the features of prepared rows, dense or sparse."""

    def __init__(self, preparation: Preparation, dense: Linear, prepared: Linear):
        self._preparation, self._dense, self._prepared = preparation, dense, prepared
        self.n_targets = dense.n_targets

    def write(self, rows: Any, out: NDArray[np.float64]) -> bool:
        if sp.issparse(rows):
            return self._prepared.write(self._preparation.sparse_rows(rows), out)
        return self._dense.write(rows, out)
