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

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.learning.least_squares import LeastSquares
from kitchenette.maps.fourier import FourierSpecification

Array = NDArray[np.float64]


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
    squares = np.zeros(specification.n_columns)
    for left, right in _factors(specification, statistics, coef):
        squares += np.einsum("ij,ij->j", left, right)
    return np.maximum(squares, 0)


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
    outer = np.zeros((specification.n_columns, specification.n_columns))
    for left, right in _factors(specification, statistics, coef):
        outer += left.T @ right
    return (outer + outer.T) / 2


def _factors(
    specification: FourierSpecification, statistics: LeastSquares, coef: Array
) -> Iterator[tuple[Array, Array]]:
    """Pairs of matrices whose products left' right add up to the average outer product."""
    if not has_gradients(specification):
        raise ValueError(
            "Derivatives follow from statistics if every cosine has its sine: use Fourier features "
            "with features='sincos'."
        )
    n = specification.n_components // 2 * 2
    v = np.empty((n, coef.shape[1]))
    v[0::2], v[1::2] = coef[1:n:2], -coef[0:n:2]
    mean = statistics.feature_mean[:n]
    frequencies = specification.frequencies()[: n // 2].astype(np.float64)
    twice = np.repeat(frequencies, 2, axis=0)
    for rows, block in statistics.gram.blocks_of_rows():
        rows = slice(rows.start, min(rows.stop, n))
        second = block[: rows.stop - rows.start, :n] / statistics.count
        second += np.outer(mean[rows], mean)
        second *= v[rows] @ v.T  # summed over the targets
        yield twice[rows], second @ twice
