"""Iterative refinement of solutions beyond the precision of the factor.

A Cholesky factor in float32 of A = G + alpha I has the rounding errors of float32, about six digits
less than the statistics say of the weights if A is ill-conditioned. But it is an excellent
preconditioner: a few steps of conjugate gradients, whose products with A are computed in float64,
find the solution that belongs to the stored statistics.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kitchenette.learning.packed import Array

EXACT = 1e-9  # the norm of a residual, relative to that of the right-hand side
POOR = 1e-4  # a larger one is worth a warning
STEPS = 30


def refined(
    product: Callable[[Array], Array], approximate: Callable[[Array], Array], B: Array, X: Array
) -> Array:
    """The solution of A X = B by preconditioned conjugate gradients.

    Parameters
    ----------
    product : callable
        The product of A, which is positive definite, and a matrix.
    approximate : callable
        The product of an approximate inverse of A, also positive definite, and a matrix.
    B : ndarray of shape (order, n_columns)
        The right-hand sides; each column is a problem of its own.
    X : ndarray of shape (order, n_columns)
        An approximate solution.

    Returns
    -------
    X : ndarray of shape (order, n_columns)

    Warns
    -----
    ConvergenceWarning
        If the residual is still large after 30 steps.
    """
    X, R = X.copy(), B - product(X)
    sizes = np.linalg.norm(B, axis=0)
    P, squares = np.zeros_like(X), np.zeros(B.shape[1])
    for _ in range(STEPS):
        if np.all(np.linalg.norm(R, axis=0) <= EXACT * sizes):
            return X
        S = approximate(R)
        before, squares = squares, _dots(R, S)
        P = S + _ratios(squares, before) * P
        Q = product(P)
        step = _ratios(squares, _dots(P, Q))
        X += step * P
        R -= step * Q
    worst = float(_ratios(np.linalg.norm(R, axis=0), sizes).max())
    if worst > POOR:
        warnings.warn(
            f"The normal equations are solved with a relative residual of {worst:.1g} only: alpha "
            "is too small for statistics in float32. Use a larger alpha, or float64 features.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return X


def _dots(A: Array, B: Array) -> Array:
    return np.einsum("ij,ij->j", A, B)


def _ratios(a: Array, b: Array) -> Array:
    """A / b, or zero where b is."""
    ratios: Array = np.divide(a, b, out=np.zeros_like(a), where=b > 0)
    return ratios
