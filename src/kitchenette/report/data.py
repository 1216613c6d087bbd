"""Descriptions of data: statistics of columns, and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.report.comparison import ColumnSummary

MOST_DESCRIBED = 100_000  # rows, whose means have errors of 0.3 % of the spread
SKEWED = 5.0  # distance of the greatest or least value from the median, in interquartile ranges
RARE = 0.02  # share of a class below which it is called rare


def described_columns(X: Any, names: Sequence[str] | None) -> tuple[ColumnSummary, ...]:
    """The columns of an array; none for sparse rows, which may have any number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette.report.data import described_columns
    >>> described_columns(np.array([[0.0], [1.0], [1.0]]), ["flag"])[0].kind
    'two values'
    """
    if not isinstance(X, np.ndarray):
        return ()
    X = X[:MOST_DESCRIBED]
    names = [f"column {i}" for i in range(X.shape[1])] if names is None else names
    return tuple(_column(str(name), X[:, i]) for i, name in enumerate(names))


def _column(name: str, values: NDArray[Any]) -> ColumnSummary:
    values = values.astype(np.float64)
    least, median, greatest = np.quantile(values, [0.0, 0.5, 1.0])
    two = bool(np.all((values == least) | (values == greatest)))
    kind = "constant" if least == greatest else "two values" if two else "numbers"
    numbers = (values.mean(), values.std(), least, median, greatest)
    return ColumnSummary(name, kind, *(float(number) for number in numbers))


def described_data(
    X: Any, y: NDArray[Any], task: str, columns: Sequence[ColumnSummary]
) -> tuple[str, ...]:
    """Sentences about rows and targets."""
    n_rows, n_columns = X.shape
    sentences = [f"There are {n_rows:,} rows of {n_columns:,} columns to learn from."]
    if not isinstance(X, np.ndarray):
        filled = X.nnz / max(1, n_rows * n_columns)
        sentences.append(f"They are sparse: {filled:.2%} of the entries are not zero.")
    else:
        sentences += _about_columns(X[:MOST_DESCRIBED], columns)
    sentences += _about_classes(y) if task == "classification" else _about_numbers(y)
    return tuple(sentences)


def _about_columns(X: NDArray[Any], columns: Sequence[ColumnSummary]) -> list[str]:
    sentences = []
    for kind, words in (("two values", "have only two values"), ("constant", "are constant")):
        count = sum(column.kind == kind for column in columns)
        if count:
            sentences.append(f"{count} of the columns {words}." if count > 1 else _one(words))
    quartiles = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    box = quartiles[2] - quartiles[0]
    reach = np.maximum(X.max(axis=0) - quartiles[1], quartiles[1] - X.min(axis=0))
    tails = int(np.count_nonzero((box > 0) & (reach > SKEWED * box)))
    if tails:
        sentences.append(
            f"{tails} {'have' if tails > 1 else 'has'} heavy tails: values more than {SKEWED:.0f} "
            "interquartile ranges from the median, for which AutoMap compresses or ranks columns."
        )
    spreads = np.array([column.spread for column in columns if column.spread > 0])
    ratio = spreads.max() / spreads.min() if spreads.size else 1.0
    if ratio > 10:
        sentences.append(
            f"The spreads of the columns differ by a factor of {ratio:.2g}, "
            "so that kernels of distances need scales for each of them."
        )
    distinct = np.unique(X, axis=0).shape[0] if X.shape[0] <= 20_000 else None
    if distinct is not None and distinct < X.shape[0]:
        sentences.append(f"{X.shape[0] - distinct:,} rows repeat others.")
    return sentences


def _one(words: str) -> str:
    return "One of the columns " + words.replace("have", "has").replace("are", "is") + "."


def _about_classes(y: NDArray[Any]) -> list[str]:
    labels, counts = np.unique(y, return_counts=True)
    shares = counts / counts.sum()
    sentences = [
        f"There are {labels.size} classes; the most frequent one, {labels[counts.argmax()]}, has "
        f"{shares.max():.1%} of the rows and the rarest one, {labels[counts.argmin()]}, "
        f"{shares.min():.1%}."
    ]
    rare = int(np.count_nonzero(shares < RARE))
    if rare and labels.size <= 1 / RARE:
        sentences.append(
            f"{rare} of the classes {'are' if rare > 1 else 'is'} rare: errors on "
            f"{'them' if rare > 1 else 'it'} hardly count in the share of wrong predictions."
        )
    return sentences


def _about_numbers(y: NDArray[Any]) -> list[str]:
    if y.ndim == 2:
        return [f"There are {y.shape[1]} targets."]
    low, median, high = np.quantile(y, [0.0, 0.5, 1.0])
    return [f"The target lies between {low:.4g} and {high:.4g}, with a median of {median:.4g}."]
