"""How much the predictions of a model change with each column, from statistics of its features.

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

from kitchenette.columns.categories import OneHot
from kitchenette.columns.preparation import Columns, LinearColumns, Preparation, Sequence
from kitchenette.data.border import as_source
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.maps.fourier import FourierSpecification
from kitchenette.maps.prepared import PreparedSpecification
from kitchenette.maps.protocol import FittedMap
from kitchenette.sketching.specification import Specification

Array = NDArray[np.float64]
COLUMN_NUMBERS = 1 << 20  # the size of a block of columns of the frequencies
SPREAD_ROWS = 8000  # the rows from which spreads are computed


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

    It is the diagonal of `gradient_outer_product`. An odd last feature, which has no sine, is
    ignored.
    """
    return mean_squared_derivatives(specification, [(statistics, coef)])


def mean_squared_derivatives(
    specification: FourierSpecification, models: list[tuple[LeastSquares, Array]]
) -> Array:
    """The mean of `squared_derivatives` of several models of the same features."""
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

    For a unit vector u, u' outer u is the average square of the derivative in the direction u.
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


def importance(fitted: FittedMap, statistics: LeastSquares, coef: Array, X: Any = None) -> Array:
    """The importance of every column; see `KernelRegressor.importance`.

    The spreads of the columns are those of the rows ``X``, by default those known to the map.
    """
    specification: Any = getattr(fitted, "specification_", None)
    _fourier(specification)
    inner = getattr(fitted, "map_", None)  # a map of prepared columns, such as AutoMap
    spreads = getattr(fitted if inner is None else inner, "column_spreads_", None)
    if X is not None:
        rows = as_source(X).without_targets().sample(SPREAD_ROWS).X
        spreads = prepared_spreads(specification, fitted.rows(rows))
    return importances(specification, statistics, coef, spreads)


def importances(
    specification: Any, statistics: LeastSquares, coef: Array, spreads: Array | None = None
) -> Array:
    """The importance of every column, from the map, the statistics and the weights.

    ``spreads`` are those of the prepared columns, by default the length scales.
    """
    inner = _fourier(specification)
    steps, mixing = _steps_and_mixing(specification)
    n_prepared = steps[-1].n_outputs if steps else specification.n_columns
    if spreads is None:
        spreads = np.broadcast_to(inner.kernel.length_scale, n_prepared)
    prepared = Sequence(steps=tuple(steps), n_columns=specification.n_columns)
    owners, indicators = prepared.owners(), prepared.indicators()
    if mixing is None and not indicators.any():
        squares = squared_derivatives(inner, statistics, coef)
    else:
        outer = gradient_outer_product(inner, statistics, coef)
        squares = np.diagonal(outer) if mixing is None else unmixed(mixing, outer)
    # The derivatives in several columns that were made from one are added in square.
    sizes = squares * np.square(spreads)
    found = np.bincount(owners, sizes, minlength=specification.n_columns)
    if indicators.any():
        changes, most = _changes(steps), variance_of_predictions(statistics, coef)
        for column in np.unique(owners[indicators]):
            categories = np.flatnonzero(indicators & (owners == column))
            moves = _moves(steps, column)
            if moves is None or len(moves) != categories.size:
                moves = np.zeros((categories.size, owners.size))
                moves[np.arange(categories.size), categories] = changes[categories]
            # A number that has categories as well moves together with them.
            moving = indicators | (np.ptp(moves, axis=0) > 0)
            own = np.flatnonzero(moving & (owners == column))
            rows = np.eye(own.size) if mixing is None else mixing[own]
            block = outer[np.ix_(own, own)] if mixing is None else rows @ outer @ rows.T
            # Between two categories a model may swing in ways that no row shows, so that the
            # derivatives are bounded by what the predictions vary in all.
            of_column = _of_categories(
                block, moves[:, own], changes[categories], spreads[categories]
            )
            found[column] += min(of_column, most) - sizes[own].sum()
    return normalized(np.sqrt(np.maximum(found, 0)))


def variance_of_predictions(statistics: LeastSquares, coef: Array) -> float:
    """The variance of the predictions of the rows that were learned, summed over the targets."""
    return max(float(np.vdot(coef, statistics.gram.product(coef))) / statistics.count, 0.0)


def _changes(steps: list[Preparation]) -> Array:
    """How far each prepared column of a category is moved when its zero becomes a one."""
    ends = np.zeros((2, steps[0].n_columns))
    for step in steps:
        made, following = step.indicators(), np.zeros((2, step.n_outputs))
        step.operator(ends.dtype).write(ends, following)
        following[:, made] = [[0.0], [1.0]]
        ends = following
    return np.asarray(ends[1] - ends[0])


def _moves(steps: list[Preparation], column: int) -> Array | None:
    """The prepared columns of a row of each category of a column; all other columns are zero.

    None if the column has no indicators, or if they are part of several steps in a row.
    """
    owners = np.arange(steps[0].n_columns)
    for i, step in enumerate(steps):
        parts = [(step, np.arange(step.n_columns))]
        if isinstance(step, Columns):
            parts = list(zip(step.parts, step.selections(), strict=True))
        for part, columns in parts:
            places = np.flatnonzero(owners[columns] == column)
            if isinstance(part, OneHot) and places.size == 1:
                rows = np.zeros((part.widths[places[0]], step.n_columns))
                rows[:, columns[places[0]]] = part.examples(int(places[0]))
                for following in steps[i:]:
                    rows = following.prepared(rows)
                return rows
        owners = owners[step.owners()]
    return None


def _of_categories(outer: Array, moves: Array, changes: Array, spreads: Array) -> float:
    """The average square of the change of predictions with the category of a column.

    With a category, prepared columns are at its row of ``moves``, and one indicator changes by its
    ``changes``. Exactly one of the indicators z is one, so that they vary with the covariance
    diag(p) - p p', where p are the shares of the categories. The derivative in the direction in
    which all indicators grow, which no row can go, does not count.
    """
    varying = (spreads > 0) & (changes != 0)
    if not varying.any():
        return 0.0
    shares = _shares(np.minimum(np.square(spreads[varying] / changes[varying]), 0.25))
    covariance = np.diag(shares) - np.outer(shares, shares)
    return float(np.sum(outer * (moves[varying].T @ covariance @ moves[varying])))


def _shares(variances: Array) -> Array:
    """The shares p of categories, of which p (1 - p) are given; at most one is more than half."""
    smaller = (1 - np.sqrt(1 - 4 * variances)) / 2
    other = smaller.copy()
    other[smaller.argmax()] = 1 - smaller.max()
    best = min(smaller, other, key=lambda shares: abs(shares.sum() - 1))
    return best / best.sum()


def unmixed(mixing: Array, outer: Array) -> Array:
    """The average squares of the derivatives in columns x, given the outer product for x M.

    The gradient in x of a function of x M is M times the gradient in x M.
    """
    return np.asarray(np.maximum(np.einsum("ij,ij->i", mixing @ outer, mixing), 0))


def prepared_spreads(specification: Specification, rows: Any) -> Array:
    """The standard deviations of the columns of rows, after the preparation if there is one.

    A linear map at the end of the preparation is left out, because it mixes the columns.
    """
    _fourier(specification)
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    for step in _steps_and_mixing(specification)[0]:
        prepared = np.empty((rows.shape[0], step.n_outputs), rows.dtype)
        step.operator(rows.dtype).write(np.ascontiguousarray(rows), prepared)
        rows = prepared
    return np.asarray(rows.std(axis=0, dtype=np.float64))


def _fourier(specification: Any) -> Any:
    inner = specification
    while isinstance(inner, PreparedSpecification):
        inner = inner.inner
    if not has_gradients(inner):
        raise ValueError(
            "Importances are derivatives of cosines and sines of the columns: the feature map must "
            "be AutoMap, Fastfood or RandomKitchenSinks with features='sincos', or one of these "
            "after scalers, imputers and encoders."
        )
    return inner


def _steps_and_mixing(specification: Any) -> tuple[list[Preparation], Array | None]:
    """The preparations of the columns, and the matrix that mixes the prepared columns at last."""
    steps: list[Preparation] = []
    while isinstance(specification, PreparedSpecification):
        preparation = specification.preparation
        steps += preparation.steps if isinstance(preparation, Sequence) else (preparation,)
        specification = specification.inner
    if steps and isinstance(steps[-1], LinearColumns):
        return steps[:-1], steps[-1].matrix
    return steps, None


def normalized(sizes: Array) -> Array:
    """Numbers with a sum of one; equal ones if all are zero."""
    total = sizes.sum()
    return sizes / total if total > 0 else np.full(sizes.size, 1 / sizes.size)
