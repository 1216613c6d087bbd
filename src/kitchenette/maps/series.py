"""Base classes of the maps that expand a kernel in powers of inner products."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kitchenette.kernels import DotProductKernel, Kernel
from kitchenette.maps.base import KernelMap, check_resolved
from kitchenette.maps.degrees import (
    MOST_TERMS,
    TOLERANCE,
    Series,
    check_counts,
    cut_series,
    missing_share,
    series_up_to,
)
from kitchenette.sketching.specification import Specification

# The truncation error above which longer rows are warned of. Where rows seen in `fit` have a larger
# one, degrees were left out on purpose.
ACCEPTED_SHARE = 1000 * TOLERANCE


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesSpecification(Specification):
    """Features of several degrees, which estimate the terms of a series."""

    kernel: Kernel
    last_degree: int  # the highest degree of the series that has features
    largest: float  # the largest argument of the series, k(x, x) at the longest row seen in `fit`
    # The number of features of each degree and its expectation, if chosen from a sample
    counts: NDArray[np.int64] | None = None
    expected: NDArray[np.float64] | None = None

    @property
    @abstractmethod
    def function(self) -> DotProductKernel:
        """The function that is expanded."""

    @abstractmethod
    def largest_argument(self, rows: Any) -> float:
        """The largest argument of the function over pairs of these rows."""

    @property
    def series(self) -> Series:
        """The terms that have features."""
        return series_up_to(self.function, self.last_degree, self.largest)

    @cached_property
    def truncation(self) -> float:
        """The share of the series that is missing at ``largest``."""
        return missing_share(self.function, self.last_degree, self.largest)

    @cached_property
    def may_miss_more(self) -> bool:
        """Whether rows may be so long that more is missing for them than degrees that were chosen.

        Not if degrees have been left out on purpose, unless the series does not converge for all.
        """
        whole = self.function.last_degree
        if whole is not None and whole <= self.last_degree:
            return False
        return self.truncation <= ACCEPTED_SHARE or self.function.radius < np.inf

    def check(self) -> None:
        super().check()
        check_resolved(self.kernel, self.n_columns)

    def check_series(self) -> None:
        """Refuse degrees that do not belong to the kernel, without computing the series."""
        whole = self.function.last_degree
        most = MOST_TERMS if whole is None else min(MOST_TERMS, whole)
        if not 0 <= self.last_degree <= most:
            raise ValueError(f"last_degree must be from 0 to {most}; got {self.last_degree}.")
        if not 0 < self.largest < min(np.inf, self.function.radius):
            raise ValueError(f"largest is out of range; got {self.largest!r}.")

    def check_counts(self, series: Series, n_features: int) -> None:
        """Refuse counts that do not match these terms."""
        n_counted = n_features if series.degrees.size else 0
        if check_counts(self.counts, self.expected, n_counted).size != series.degrees.size:
            raise ValueError("there must be a count for each degree of the series.")


class SeriesMap(KernelMap):
    """Base class of the estimators; it warns of rows for which the truncation error is large."""

    overflow_advice = "Scale the data down or pass float64."

    @property
    def degrees_(self) -> NDArray[np.int32]:
        """The degree of each feature."""
        return self.fitted().feature_degrees()

    @property
    def truncation_(self) -> float:
        """The relative truncation error at the longest row seen in `fit`."""
        specification: SeriesSpecification = self.fitted()
        return specification.truncation

    def has_row_checks(self) -> bool:
        return self.fitted().may_miss_more

    def check_rows(self, rows: Any) -> None:
        """Warn of rows so long that the truncation error of the series is large."""
        specification: SeriesSpecification = self.fitted()
        if not specification.may_miss_more:
            return
        largest = specification.largest_argument(rows)
        if largest <= specification.largest:
            return
        function = specification.function
        if largest >= function.radius:
            cut_series(function, largest)  # raises the error for a series that diverges
        missing = missing_share(function, specification.last_degree, largest)
        if missing > ACCEPTED_SHARE and specification.truncation <= ACCEPTED_SHARE:
            warnings.warn(
                f"These rows are longer than those seen in fit: of the series of {function!r}, cut "
                f"after degree {specification.last_degree}, a share of {missing:.1g} is missing "
                "for the longest of them. Fit on rows that are as long.",
                UserWarning,
                stacklevel=4,
            )


def check_range(kernel: Kernel, series: Series, dtype: DTypeLike) -> None:
    """Refuse a kernel whose values on the longest rows overflow their precision."""
    limit = np.log(np.finfo(dtype).max)
    if series.logs.max() + np.log(series.logs.size) > limit:
        raise ValueError(
            f"{kernel!r} overflows {np.dtype(dtype)} for rows of norm {series.largest**0.5:g}; "
            "scale the rows down or pass float64."
        )
