"""Average squared derivatives of a model, from the statistics of its features.

The gradient of a linear model of cosines and sines is linear in the same features:

    f(x) = c + sum of a_i cos <w_i, x> + b_i sin <w_i, x>
    grad f(x) = sum of w_i (b_i cos <w_i, x> - a_i sin <w_i, x>) = W' diag(v) z(x)

where v exchanges the weights of each cosine and its sine and negates one of them, and W has each
frequency twice. The average of grad f grad f' over the rows is therefore W' diag(v) M diag(v) W
with M = E[z z'] = G / n + m m', and G, m and n are what `LeastSquares` holds.

References
----------
Radhakrishnan et al., Mechanism for feature learning in neural networks and backpropagation-free
machine learning models, Science 2024.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.learning.least_squares import LeastSquares
from kitchenette.maps.fourier import FourierSpecification

Array = NDArray[np.float64]
COLUMN_NUMBERS = 1 << 20  # the size of a block of columns of the frequencies


def has_gradients(specification: Any) -> bool:
    """Whether a specification is of cosines and sines of projections."""
    return (
        isinstance(specification, FourierSpecification)
        and specification.features == "sincos"
        and not getattr(specification, "polynomial", False)
    )


def squared_derivatives(
    specification: FourierSpecification, statistics: LeastSquares, coef: Array
) -> Array:
    """The average square of each partial derivative, summed over the targets.

    Parameters
    ----------
    specification : FourierSpecification
        The features, cosines and sines of projections. An odd last feature, which has no sine, is
        ignored.
    statistics : LeastSquares
        The statistics of these features; the average is over their rows.
    coef : ndarray of shape (n_features, n_targets)
        The weights of the features.

    Returns
    -------
    squares : ndarray of shape (n_columns,)
        The diagonal of the average outer product of gradients.
    """
    return mean_squared_derivatives(specification, [(statistics, coef)])


def mean_squared_derivatives(
    specification: FourierSpecification, models: Sequence[tuple[LeastSquares, Array]]
) -> Array:
    """The mean of `squared_derivatives` of several models of the same features.

    Parameters
    ----------
    specification : FourierSpecification
        The features.
    models : sequence of pairs
        Statistics and weights of each model.

    Returns
    -------
    squares : ndarray of shape (n_columns,)
    """
    W, squares = _frequencies(specification), np.zeros(specification.n_columns)
    size = max(1, COLUMN_NUMBERS // max(1, W.shape[0]))
    for statistics, coef in models:
        for rows, product in _products(W.shape[0], statistics, coef):
            for start in range(0, squares.size, size):
                some = W[:, start : start + size].astype(np.float64, copy=False)
                squares[start : start + size] += np.einsum("ij,ij->j", some[rows], product @ some)
    return np.maximum(squares / len(models), 0)


def gradient_outer_product(
    specification: FourierSpecification, statistics: LeastSquares, coef: Array
) -> Array:
    """The average outer product of gradients, summed over the targets.

    Parameters
    ----------
    specification, statistics, coef
        As in `squared_derivatives`.

    Returns
    -------
    outer : ndarray of shape (n_columns, n_columns)
        Symmetric and, up to rounding, positive semidefinite. For a unit vector u, u' outer u is
        the average square of the derivative in the direction u.
    """
    W = _frequencies(specification).astype(np.float64, copy=False)
    outer = np.zeros((W.shape[1], W.shape[1]))
    for rows, product in _products(W.shape[0], statistics, coef):
        outer += W[rows].T @ (product @ W)
    return (outer + outer.T) / 2


def _frequencies(specification: FourierSpecification) -> NDArray[Any]:
    """The frequencies of the cosines that have a sine."""
    if not has_gradients(specification):
        raise ValueError(
            "Derivatives follow from statistics if every cosine has its sine: use Fourier features "
            "with features='sincos'."
        )
    return specification.frequencies()[: specification.n_components // 2]


def _products(
    n_pairs: int, statistics: LeastSquares, coef: Array
) -> Iterator[tuple[NDArray[np.intp], Array]]:
    """Rows of a matrix P, and of which frequencies they are; the outer product is W' P W.

    The products of a cosine and of its sine are not added up for the rows: each has its own row.
    """
    n = 2 * n_pairs
    v = np.empty((n, coef.shape[1]))
    v[0::2], v[1::2] = coef[1:n:2], -coef[0:n:2]
    mean = statistics.feature_mean[:n]
    for rows, block in statistics.gram.blocks_of_rows():
        rows = slice(rows.start, min(rows.stop, n))
        second = block[: rows.stop - rows.start, :n] / statistics.count
        second += np.outer(mean[rows], mean)
        second *= v[rows] @ v.T  # summed over the targets
        yield np.arange(rows.start, rows.stop) // 2, second[:, 0::2] + second[:, 1::2]
