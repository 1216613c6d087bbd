"""A number measured with several seeds: its mean, its spread, and comparisons that know both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Sample:
    """The values of one number over seeds; it may be empty."""

    values: Sequence[float]

    def __bool__(self) -> bool:
        return len(self.values) > 0

    @property
    def mean(self) -> float:
        return float(np.mean(self.values)) if self else math.nan

    @property
    def median(self) -> float:
        return float(np.median(self.values)) if self else math.nan

    @property
    def spread(self) -> float:
        """The standard deviation of one value; unknown for fewer than two."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else math.nan

    @property
    def standard_error(self) -> float:
        """The standard deviation of the mean."""
        return self.spread / math.sqrt(len(self.values)) if self else math.nan

    def scaled(self, factor: float) -> Sample:
        return Sample([factor * value for value in self.values])

    def show(self, digits: int = 3) -> str:
        """Mean and spread as text; a dash if nothing was measured."""
        if not self:
            return "-"
        if math.isnan(self.spread):
            return f"{self.mean:.{digits}f}"
        return f"{self.mean:.{digits}f} ± {self.spread:.{digits}f}"


def binomial_error(share: float, n_rows: float) -> float:
    """The standard error of a share that was counted on so many independent test rows."""
    return math.sqrt(max(share * (1 - share), 0.0) / n_rows)


def show_percent(share: Sample, n_test: Sample, digits: int = 2) -> str:
    """A share of test rows in percent: mean ± spread over seeds (binomial error of one seed)."""
    if not share:
        return "-"
    binomial = 100 * binomial_error(share.mean, n_test.mean)
    return f"{share.scaled(100).show(digits)} ({binomial:.{digits}f})"


def clearly_less(a: Sample, b: Sample, errors: float = 3.0) -> bool:
    """Whether the mean of a lies below that of b by several standard errors of the difference.

    A sample of one value, such as a constant, adds nothing to the error: its spread is unknown.
    """
    known = [error for error in (a.standard_error, b.standard_error) if not math.isnan(error)]
    return a.mean + errors * math.hypot(*known) < b.mean


def not_clearly_more(a: Sample, b: Sample, tolerance: float = 0.0, errors: float = 3.0) -> bool:
    """Whether the mean of a exceeds that of b by no more than the tolerance and the noise."""
    return not clearly_less(Sample([value + tolerance for value in b.values]), a, errors)


def at_most(a: Sample, b: Sample, mode: str, tolerance: float = 0.0) -> bool:
    """Whether the mean of a exceeds that of b by no more than the tolerance.

    That of a quick run, whose tests must not fail by chance, may exceed it by the noise as well.
    """
    return not_clearly_more(a, b, tolerance, errors=3.0 if mode == "quick" else 0.0)
