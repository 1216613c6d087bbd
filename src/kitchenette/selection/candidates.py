"""What is compared: a kernel, the scales of the columns, their weights and a width."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from kitchenette.columns.preparation import LinearColumns, Sequence, UnitRows
from kitchenette.kernels import (
    Cauchy,
    Gaussian,
    Kernel,
    Laplacian,
    Matern,
    Polynomial,
    RadialKernel,
    RationalQuadratic,
    ShiftInvariantKernel,
)
from kitchenette.maps.fastfood import Fastfood
from kitchenette.maps.kitchen_sinks import RandomKitchenSinks
from kitchenette.maps.prepared import PreparedSpecification
from kitchenette.maps.tensor_sketch import TensorSketch
from kitchenette.selection.columns import ColumnScales
from kitchenette.selection.settings import SEARCH
from kitchenette.sketching.specification import Specification

Array = NDArray[np.float64]
KERNELS: dict[str, ShiftInvariantKernel] = {
    "Matern 3/2": Matern(1.5, 1.0),
    "Gaussian": Gaussian(1.0),
    "Matern 5/2": Matern(2.5, 1.0),
    "rational quadratic": RationalQuadratic(1.0, 1.0),
    "Matern 1/2": Matern(0.5, 1.0),
    "Laplacian": Laplacian(1.0),
}


@dataclass(frozen=True)
class FourierCandidate:
    """Cosines and sines of weighted columns."""

    kernel: ShiftInvariantKernel  # the kernel, with a length scale of one
    scales: ColumnScales  # how columns are brought to comparable sizes
    weights: Array  # the weight of each column
    width: float  # the length scale, in units of the median distance of weighted rows
    unit: float  # this median distance
    steps: int = 0  # how often the weights were learned
    # A linear map of the weighted columns; None leaves them as they are
    mixing: Array | None = None

    @property
    def factors(self) -> Array:
        """What scaled columns are multiplied with, for a length scale of one."""
        return self.weights / (self.unit * self.width)

    def prepared(self, rows: Any) -> Any:
        """The rows of the pilot, prepared for `inner`, in float32."""
        return mixed(self.scales.weighted(self.factors), self.mixing)

    def inner(self, n_components: int, seed: int, precision: str) -> Specification:
        """The map of prepared columns with so many features."""
        # Only the width and the precision of these rows are used.
        sample = np.zeros((1, self.weights.size), dtype=precision)
        if isinstance(self.kernel, RadialKernel) and sample.size > SEARCH.dense_frequencies:
            return Fastfood(clone(self.kernel), n_components).choose(sample, seed)
        sinks = RandomKitchenSinks(clone(self.kernel), n_components, frequencies="orthogonal")
        return sinks.choose(sample, seed)

    def specification(self, n_components: int, seed: int, precision: str) -> PreparedSpecification:
        """The map of this candidate with so many features."""
        preparation = self.scales.preparation(self.factors)
        if self.mixing is not None:
            preparation = Sequence.of(preparation, LinearColumns.of(self.mixing))
        inner, rows = self.inner(n_components, seed, precision), self.prepared(None)
        ranges = None
        if not sp.issparse(rows):
            ranges = np.array([rows.min(axis=0), rows.max(axis=0)], dtype=np.float64)
        return PreparedSpecification.of(preparation, inner, ranges=ranges)

    def wider(self, factor: float) -> FourierCandidate:
        """The same with another width."""
        return replace(self, width=self.width * factor)

    @property
    def is_linear(self) -> bool:
        """Whether it is as good as linear in the rows."""
        return self.kernel == KERNELS["Gaussian"] and self.width >= SEARCH.linear_width

    def described(self) -> dict[str, Any]:
        """What a table says of this candidate."""
        scales = self.scales.name
        if self.mixing is not None:
            scales = f"full metric from {scales}"
        elif self.steps:
            scales = f"learned from {scales}"
        elif np.any(self.weights != self.weights[0]):
            scales = f"screened from {scales}"
        if self.scales.before is not None:
            scales += ", placeholders moved"
        kernel = "linear" if self.is_linear else kernel_name(self.kernel)
        return {"kernel": kernel, "scales": scales, "width": self.width}


@dataclass(frozen=True)
class PolynomialCandidate:
    """Sketches of polynomials of unit rows, for wide sparse rows."""

    degree: int
    coef0: float
    n_columns: int

    def prepared(self, rows: Any) -> Any:
        """The rows of the pilot, prepared for `inner`, in float32."""
        return UnitRows(n_columns=self.n_columns).sparse_rows(rows).astype(np.float32)

    def inner(self, n_components: int, seed: int, precision: str) -> Specification:
        """The map of unit rows with so many features."""
        kernel = Polynomial(self.degree, self.coef0)
        sample = sp.csr_matrix((1, self.n_columns), dtype=precision)
        return TensorSketch(kernel, n_components).choose(sample, seed)

    def specification(self, n_components: int, seed: int, precision: str) -> PreparedSpecification:
        """The map of this candidate with so many features."""
        inner = self.inner(n_components, seed, precision)
        return PreparedSpecification.of(UnitRows(n_columns=self.n_columns), inner)

    def described(self) -> dict[str, Any]:
        """What a table says of this candidate."""
        kernel = f"polynomial of degree {self.degree}" if self.degree > 1 else "linear"
        return {"kernel": kernel, "scales": "unit rows", "width": self.coef0}


Candidate = FourierCandidate | PolynomialCandidate


def kernel_name(kernel: Kernel) -> str:
    """The name of a kernel in tables."""
    return next((name for name, known in KERNELS.items() if known == kernel), repr(kernel))


def weighted_candidate(
    kernel: ShiftInvariantKernel,
    scales: ColumnScales,
    weights: Array,
    width: float,
    steps: int = 0,
    mixing: Array | None = None,
) -> FourierCandidate:
    """A candidate whose unit is measured on the rows of the sample."""
    unit = median_distance(kernel, mixed(scales.weighted(weights), mixing))
    return FourierCandidate(kernel, scales, weights, width, unit, steps, mixing)


def mixed(rows: Any, mixing: Array | None) -> Any:
    """Rows times a matrix in the precision of the rows; dense, unless there is no matrix."""
    return rows if mixing is None else np.asarray(rows @ mixing.astype(rows.dtype))


def median_distance(kernel: ShiftInvariantKernel, rows: Any) -> float:
    """The median distance of different rows; 1 if all rows are equal."""
    rows = rows[:: -(-rows.shape[0] // SEARCH.paired_rows)]
    rows = (rows.toarray() if sp.issparse(rows) else rows).astype(np.float64)
    a, b = rows[0::2], rows[1::2]
    if isinstance(kernel, Laplacian | Cauchy):
        distances = np.abs(a[:, None] - b[None]).sum(axis=2)
    else:
        squares = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2 * a @ b.T
        distances = np.sqrt(np.maximum(squares, 0))
    different = distances[distances > 1e-6 * distances.max(initial=0)]
    return float(np.median(different)) if different.size else 1.0
