"""Which columns matter, alone or by interactions, told from tables of counts instead of a model.

A kernel of many columns sees nothing of a function of two or three of them that oscillates or has
no main effects: all rows are about equally far apart. Tables of binned columns do see it.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import chdtri

from kitchenette.selection.settings import SEARCH

Array = NDArray[np.float64]


def screened_columns(rows: NDArray[Any], targets: Array, weights: Array) -> Array:
    """The part of the variance of the targets that effects of each column explain.

    Three kinds of effects are tested, each at a level divided by the number of its tests: the means
    in fine bins of one column; of what an additive model of the bins leaves, the means in the cells
    of two columns, up to 512; and the products of three columns, cut at their medians, up to 100.
    An effect that is not significant counts as zero, and that of several columns counts for each of
    them. Columns of far weaker effects than others count as zero, too, and so do rows of weight
    zero. Only the order of the numbers in a column matters.
    """
    used = weights > 0
    rows, targets, weights = rows[used], targets[used], weights[used] / weights[used].mean()
    varying = np.flatnonzero(rows.max(axis=0) > rows.min(axis=0))
    residuals = targets - np.average(targets, axis=0, weights=weights)
    residuals = residuals / (np.abs(residuals).max() or 1.0)  # squares of tiny numbers underflow
    explained = np.zeros(rows.shape[1])
    n_rows, n_columns = rows.shape[0], varying.size
    if n_columns < 2 or not residuals.any():
        return explained
    n_bins = min(SEARCH.screening_bins, int(np.sqrt(n_rows / SEARCH.screening_cell)))
    if n_bins < 2:
        return explained
    columns = rows[:, varying].T
    fine = [bins_by_rank(column, n_bins**2) for column in columns]
    found = main_effects(fine, residuals * weights[:, None])
    n_bins = min(n_bins, SEARCH.screening_cells // n_columns)
    if n_bins >= 2:
        coarse = [bins_by_rank(column, n_bins) for column in columns]
        indicators, starts = indicator_columns(coarse)
        counts = (indicators.T @ indicators).astype(np.float64)
        left = weights[:, None] * additive_residuals(indicators, counts, residuals)
        found += pair_effects(indicators, starts, counts, left)
        if n_columns <= SEARCH.screening_triples:
            found += triple_effects([bins_by_rank(column, 2) for column in columns], left)
    found /= np.square(residuals * weights[:, None]).sum()
    found[found < SEARCH.screening_least * found.max()] = 0.0
    explained[varying] = found
    return explained


def bins_by_rank(column: NDArray[Any], n_bins: int) -> NDArray[np.intp]:
    """Bins of about equally many rows, from 0 on; columns of few numbers keep them.

    Equal numbers are in the same bin.
    """
    values, places, counts = np.unique(column, return_inverse=True, return_counts=True)
    if values.size <= n_bins:
        return places
    middles = (np.cumsum(counts) - counts / 2) / column.size
    return np.unique((n_bins * middles).astype(np.intp), return_inverse=True)[1][places]


def indicator_columns(bins: list[NDArray[np.intp]]) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """A column of zeros and ones for each bin, and the first of these for each column."""
    sizes = [int(column.max()) + 1 for column in bins]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    indicators = np.zeros((bins[0].size, starts[-1]), dtype=np.float32)
    for start, column in zip(starts, bins, strict=False):
        indicators[np.arange(column.size), start + column] = 1
    return indicators, starts[:-1]


def main_effects(bins: list[NDArray[np.intp]], residuals: Array) -> Array:
    """The sum of squares explained by the means of each column's bins; zero if insignificant."""
    variances = np.mean(np.square(residuals), axis=0)
    found = np.zeros(len(bins))
    for j, column in enumerate(bins):
        counts = np.bincount(column)
        squares = [np.sum(np.square(np.bincount(column, r)) / counts) for r in residuals.T]
        found[j] = significant(np.array(squares), variances, np.array(counts.size - 1), len(bins))
    return found


def additive_residuals(indicators: NDArray[np.float32], counts: Array, residuals: Array) -> Array:
    """What an additive model of the bins leaves of the targets, by ridge regression."""
    penalty = SEARCH.screening_cell * np.eye(counts.shape[0])
    sums = indicators.T.astype(np.float64) @ residuals
    return residuals - indicators @ cho_solve(cho_factor(counts + penalty), sums)


def pair_effects(
    indicators: NDArray[np.float32], starts: NDArray[np.intp], counts: Array, residuals: Array
) -> Array:
    """The sum of squares explained by the cells of pairs, for each column."""
    sizes = np.diff(np.append(starts, indicators.shape[1]))
    squares = []
    for residual in residuals.T.astype(np.float32):
        sums = (indicators.T @ (residual[:, None] * indicators)).astype(np.float64)
        cells = np.divide(np.square(sums), counts, out=np.zeros_like(sums), where=counts > 0)
        squares.append(np.add.reduceat(np.add.reduceat(cells, starts, axis=0), starts, axis=1))
    freedom = np.outer(sizes - 1, sizes - 1)
    variances = np.mean(np.square(residuals), axis=0)
    n_pairs = starts.size * (starts.size - 1) // 2
    found = significant(np.array(squares), variances, freedom, n_pairs)
    np.fill_diagonal(found, 0)
    return found.sum(axis=0)


def triple_effects(columns: list[NDArray[np.intp]], residuals: Array) -> Array:
    """The sum of squares explained by products of three centered columns, for each of them."""
    found = np.zeros(len(columns))
    signs = np.array(columns, dtype=np.float32)
    signs -= signs.mean(axis=1)[:, None]
    variances = np.mean(np.square(residuals), axis=0)
    spreads = np.mean(np.square(signs), axis=1)
    n_triples = max(comb(len(columns), 3), 1)
    for i in np.flatnonzero(spreads):
        later = i + 1 + np.flatnonzero(spreads[i + 1 :])
        products = [(signs[later] * (signs[i] * r)) @ signs[later].T for r in residuals.T]
        sizes = signs.shape[1] * spreads[i] * np.outer(spreads[later], spreads[later])
        squares = np.triu(np.square(np.array(products, dtype=np.float64)) / sizes, 1)
        explained = significant(squares, variances, np.ones(sizes.shape), n_triples)
        found[i] += explained.sum()
        found[later] += explained.sum(axis=0) + explained.sum(axis=1)
    return found


def significant(squares: Array, variances: Array, freedom: Array, n_tests: int) -> Array:
    """The sum over targets of squares less those expected by chance; zero if insignificant.

    Squares over the variance have a chi-squared distribution where there is no effect.
    """
    level = chdtri(freedom, SEARCH.screening_level / (n_tests * variances.size))
    chance = np.multiply.outer(variances, freedom)
    found = squares > np.multiply.outer(variances, level)
    return np.asarray(np.where(found, squares - chance, 0.0).sum(axis=0))
