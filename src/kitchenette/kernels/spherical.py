"""Averages of powers over the unit sphere."""

from __future__ import annotations

from math import comb, factorial, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from kitchenette.files.registry import storable
from kitchenette.kernels.base import Kernel
from kitchenette.kernels.dot_product import check_coefficients


@storable
class SphericalPolynomial(Kernel):
    """The sum of coefficients[p] times the mean of (<x, v> <y, v>)^p over unit vectors v.

    The kernel of Fastfood's eq. 28, whose features are powers of projections. It depends on the
    norms as well as on the inner product. With d columns, the mean for p is

        1 / (d (d + 2) ... (d + 2p - 2)) times the sum over j = p, p - 2, ... >= 0 of
        C(p, j)^2 j! ((p - j - 1)!!)^2 <x, y>^j (|x| |y|)^(p - j)

    Parameters
    ----------
    coefficients : array-like of shape (n_terms,), default=(0.0, 0.0, 1.0)
        Not negative, at least one positive.

    Examples
    --------
    In two dimensions the mean of v_1^2 v_1^2 is 3/8, and that of v_1^2 v_2^2 is 1/8:

    >>> from kitchenette.kernels import SphericalPolynomial
    >>> SphericalPolynomial([0.0, 0.0, 1.0])([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    array([[0.375, 0.125]])
    """

    def __init__(self, coefficients: ArrayLike = (0.0, 0.0, 1.0)):
        self.coefficients = coefficients

    def check_parameters(self, n_columns: int) -> None:
        check_coefficients(self, self.coefficients)

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        t = safe_sparse_dot(X, Y.T, dense_output=True)
        norms = row_norms(X)[:, None] * row_norms(Y)[None, :]
        K = np.zeros_like(t)
        for p, c in enumerate(np.asarray(self.coefficients, dtype=np.float64)):
            if c > 0:
                for j, weight in zip(range(p, -1, -2), moment_weights(p, X.shape[1]), strict=True):
                    K += t.dtype.type(c * weight) * t**j * norms ** (p - j)
        return K


def moment_weights(p: int, n_columns: int) -> list[float]:
    """The coefficients of <x, y>^j (|x| |y|)^(p - j) for j = p, p - 2, ... (Isserlis' theorem).

    Of 2p normal numbers, p along x and p along y, j of each are paired with each other in
    C(p, j)^2 j! ways, and the others among themselves in (p - j - 1)!! ways on each side. The
    denominator is the moment of order 2p of the norm of a normal vector.
    """
    denominator = prod(range(n_columns, n_columns + 2 * p, 2))
    return [
        comb(p, j) ** 2 * factorial(j) * prod(range(p - j - 1, 0, -2)) ** 2 / denominator
        for j in range(p, -1, -2)
    ]
