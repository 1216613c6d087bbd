"""Functions of kernels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from kitchenette.files.registry import storable
from kitchenette.kernels.base import Kernel
from kitchenette.kernels.dot_product import DotProductKernel, Polynomial
from kitchenette.kernels.shift_invariant import Gaussian


@storable
class Composition(Kernel):
    """f(k(x, y)): the function of a dot-product kernel applied to another kernel.

    Parameters
    ----------
    outer : DotProductKernel, default=Polynomial()
        The kernel f(<x, y>) that defines f.
    inner : Kernel, default=Gaussian()
        The kernel k.

    Examples
    --------
    >>> from kitchenette.kernels import Composition, Gaussian, Polynomial
    >>> k = Composition(Polynomial(degree=2), Gaussian(1.0))
    >>> k([[0.0]], [[0.0]])
    array([[4.]])
    """

    def __init__(self, outer: DotProductKernel = Polynomial(), inner: Kernel = Gaussian()):
        self.outer = outer
        self.inner = inner

    def check_parameters(self, n_columns: int) -> None:
        if not isinstance(self.outer, DotProductKernel):
            raise ValueError(
                "Composition needs a dot-product kernel outside, such as Polynomial or "
                f"Exponential; got {self.outer!r}."
            )
        if not isinstance(self.inner, Kernel):
            raise ValueError(f"Composition needs a kernel inside; got {self.inner!r}.")
        self.outer.check_parameters(n_columns)
        self.inner.check_parameters(n_columns)

    def needs_sample(self) -> bool:
        return self.inner.needs_sample()

    def _resolved(self, rows: Any, weights: NDArray[np.float64] | None) -> Self:
        return clone(self).set_params(inner=self.inner.resolve(rows, weights))

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        return self.outer.function(self.inner._gram(X, Y))
