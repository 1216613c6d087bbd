"""Ways to bring columns of any unit to comparable sizes, learned from a sample of rows.

Tables often have a number far from all others where a measurement is missing, such as 100 for a
signal that was not received. It is then the largest distance of all, although it may mean "less
than the smallest". Whether such a placeholder should rather be next to the smallest or next to the
largest other number is decided on rows held out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kitchenette.columns.categories import Substitute
from kitchenette.columns.preparation import ColumnAffine, PiecewiseLinear, Preparation, Sequence
from kitchenette.selection.settings import SEARCH

Array = NDArray[np.float64]
SCALES = ("common", "columns", "compressed", "ranks")
LEARNED = ("learned", "full")  # what follows from derivatives of a model
KNOTS = 65  # the most knots of a column in "compressed" and "ranks"
NEAR = 0.1  # beyond the data that is near, relative to how far they reach from the median
DISTANT = 1000.0  # spreads beyond the data from where on functions are constant: none overflows
FAR = 10.0  # robust spreads from the median, to which numbers further away are moved
ROUNDING = 4.0  # spreads of so many units in the last place of a column are rounding errors
TINY_SPREAD = 1e-30  # below, one over the spread could overflow float32
LARGEST_TINY = 1e-20  # columns of larger numbers with a spread below that are constant
EPS = {name: float(np.finfo(name).eps) for name in ("float32", "float64")}


@dataclass(frozen=True)
class ColumnScales:
    """One way to scale columns; prepared columns are about centered."""

    # "common": the same factor for all columns. "columns": each column is divided by its spread.
    # "compressed": the inverse hyperbolic sine of that, which is linear near the median and
    # logarithmic far away. "ranks": the part of the rows that are smaller.
    name: str
    spread: Array  # the spread of each column after scaling; zero for constant columns
    # The functions of the columns; those of "compressed" and "ranks" have knots beyond the data
    scaling: ColumnAffine | PiecewiseLinear
    rows: Any = field(default=None, repr=False)  # the rows of the sample after scaling
    before: Substitute | None = None  # what is done to the columns before they are scaled

    def weighted(self, weights: Array) -> Any:
        """The rows of the sample after scaling and weighting, in float32."""
        factors = weights.astype(np.float32)
        if sp.issparse(self.rows):
            return sp.csr_matrix(self.rows.multiply(factors))
        return self.rows * factors

    def preparation(self, weights: Array) -> Preparation:
        """The scaled columns times these weights; a weight of zero ignores a column."""
        scaling: Preparation
        if isinstance(self.scaling, ColumnAffine):
            scaling = ColumnAffine.of(self.scaling.offset, self.scaling.factor * weights)
        else:
            of_knots = np.repeat(weights, np.diff(self.scaling.starts))
            limits = {name: getattr(self.scaling, name) for name in ("below", "at", "above")}
            scaling = replace(self.scaling, **{k: of_knots * v for k, v in limits.items()})
        return scaling if self.before is None else Sequence.of(self.before, scaling)


def column_scales(name: str, rows: Any, before: Substitute | None = None) -> ColumnScales:
    """The scales of this name for a sample of rows, after what is done to dense rows before."""
    if sp.issparse(rows):
        scales = _sparse_scales(name, rows)
        scaled = scales.preparation(np.ones(rows.shape[1])).prepared(rows)
        return replace(scales, rows=scaled.astype(np.float32))
    plain = rows if before is None else before.prepared(rows)
    scales = replace(_dense_scales(name, plain), before=before)
    scaled = scales.preparation(np.ones(rows.shape[1])).prepared(rows)
    return replace(scales, rows=scaled.astype(np.float32))


def _dense_scales(name: str, rows: Any) -> ColumnScales:
    spread = robust_spread(rows)
    rows = rows.astype(np.float64)
    if name in ("common", "columns"):
        return _affine_scales(name, spread, np.median(rows, axis=0))
    knots, values, outside = [], [], []
    for column, unit in zip(rows.T, spread, strict=True):
        x, y = (_compressed if name == "compressed" else _ranked)(column, bool(unit > 0))
        inside = np.interp(column, x, y)
        deviation = inside.std()
        y = (y - inside.mean()) / deviation if deviation > 0 else np.zeros_like(y)
        wider = x
        if deviation > 0:
            wider, y = extended(x, y, float(np.median(column)), float(unit))
        outside.append((wider.size - x.size) // 2)
        knots.append(wider)
        values.append(y)
    functions = PiecewiseLinear.of(knots, values, outside=outside)
    return ColumnScales(name, (spread > 0).astype(float), functions)


def _sparse_scales(name: str, rows: Any) -> ColumnScales:
    """Factors without offsets, so that zeros stay zeros."""
    mean_square = np.asarray(rows.multiply(rows).mean(axis=0), dtype=np.float64).ravel()
    mean = np.asarray(rows.mean(axis=0), dtype=np.float64).ravel()
    spread = np.sqrt(np.maximum(mean_square - mean**2, 0))
    eps = EPS["float32" if _is_float32(rows.data) else "float64"]
    spread = _beyond_rounding(spread, np.sqrt(mean_square), eps)
    return _affine_scales(name, spread, np.zeros_like(spread))


def _affine_scales(name: str, spread: Array, offset: Array) -> ColumnScales:
    """Factors that bring the spread of all columns together, or that of each of them, to one."""
    varying = spread > 0
    if name != "common":
        scaling = ColumnAffine.of(offset, _inverse(spread))
        return ColumnScales(name, varying.astype(float), scaling)
    # One spread for all columns, so that weights are of order one in any unit.
    unit = _root_mean_square(spread[varying]) if varying.any() else 1.0
    return ColumnScales(name, spread / unit, ColumnAffine.of(offset, varying / unit))


def _root_mean_square(numbers: Array) -> float:
    """Of numbers whose squares may overflow: they are divided by a power of two, exactly."""
    power = int(np.frexp(np.abs(numbers).max())[1])
    return float(np.ldexp(np.sqrt(np.mean(np.square(np.ldexp(numbers, -power)))), power))


def robust_spread(rows: NDArray[Any]) -> Array:
    """The standard deviation of each column after far numbers are moved nearer; 0 if constant.

    Numbers further from the median than ten times the range from the 5th to the 95th percentile
    are moved to that distance, unless this range is zero.
    """
    rows = rows.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        low, middle, high = np.percentile(rows, [5, 50, 95], axis=0)
        reach = np.where(high > low, FAR * (high - low), np.inf)
        near = np.clip(rows, middle - reach, middle + reach)
        size = np.abs(near).max(axis=0)
        unit = np.where(size > 0, size, 1.0)  # divided by it, numbers have squares that are finite
        spread = (near / unit).std(axis=0) * unit
    eps = np.array([EPS["float32" if _is_float32(column) else "float64"] for column in rows.T])
    return _beyond_rounding(spread, size, eps)


def too_small_columns(rows: Any) -> NDArray[np.intp]:
    """The columns that vary, but by so little that `ColumnScales` takes them for constant."""
    size = abs(rows).max(axis=0)
    size = size.toarray().ravel() if sp.issparse(size) else size
    small = np.flatnonzero((size > 0) & (size < LARGEST_TINY))
    some = rows[:, small].toarray() if sp.issparse(rows) else rows[:, small]
    if small.size == 0:
        return small
    varying = robust_spread(some / size[small]) > 0
    return small[varying & (robust_spread(some) == 0)]


def _is_float32(numbers: Array) -> bool:
    """Whether numbers have been rounded to float32; whole numbers have not been rounded at all."""
    with np.errstate(over="ignore"):
        rounded = numbers.astype(np.float32)
    return bool(np.all(rounded == numbers) and np.any(rounded != np.rint(rounded)))


def _beyond_rounding(spread: Array, size: Array, eps: Any) -> Array:
    """The spreads, or zero where they cannot be told from rounding errors of this size."""
    return np.where(spread > np.maximum(ROUNDING * eps * size, TINY_SPREAD), spread, 0.0)


def _inverse(spread: Array) -> Array:
    return np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)


def extended(x: Array, y: Array, middle: float, spread: float) -> tuple[Array, Array]:
    """An increasing function on the data, of standard deviation one, with two more knots per end.

    Just beyond the data the slope is that at the end, at most that of "columns", so that a new
    extreme number of a heavy tail is near the old ones. Further out it is that of "columns", so
    that predictions are as uncertain there as with these scales.
    """
    with np.errstate(over="ignore"):
        near = NEAR * np.maximum(np.abs(x[[0, -1]] - middle), spread)
        far = near + DISTANT * spread
        slopes = np.minimum((np.diff(y) / np.diff(x))[[0, -1]], 1 / spread)
        outside = x[0] - far[0], x[0] - near[0], x[-1] + near[1], x[-1] + far[1]
    wider = np.concatenate([outside[:2], x, outside[2:]])
    if not np.isfinite(wider).all() or np.any(np.diff(wider) <= 0):
        return x, y  # numbers so large or so close that the steps cannot be represented
    low, high = [y[0], y[-1]] + near * slopes * [-1, 1]
    return wider, np.concatenate([[low - DISTANT, low], y, [high, high + DISTANT]])


def _compressed(column: Array, varies: bool) -> tuple[Array, Array]:
    """asinh((x - median) / robust spread) between the smallest and the largest number seen."""
    middle = float(np.median(column))
    if not varies:
        return np.array([middle]), np.zeros(1)
    # The narrowest of these ranges that is not zero; for a column of zeros with a few others the
    # spread of the others.
    for share in (25, 10, 2.5):
        low, high = np.percentile(column, [share, 100 - share])
        if high > low:
            break
    else:
        low, high = -float(np.std(column)), float(np.std(column))
    unit = (high - low) / 2
    ends = np.arcsinh((np.array([column.min(), column.max()]) - middle) / unit)
    y = np.linspace(ends[0], ends[1], KNOTS)
    x = middle + unit * np.sinh(y)
    x[0], x[-1] = column.min(), column.max()
    keep = np.concatenate([[True], np.diff(x) > 0])
    return x[keep], y[keep]


def _ranked(column: Array, varies: bool) -> tuple[Array, Array]:
    """The share of smaller numbers, plus half the share of equal ones."""
    if not varies:
        return np.array([float(np.median(column))]), np.zeros(1)
    ordered = np.sort(column)
    x = np.unique(ordered)
    if x.size > KNOTS:
        x = np.unique(np.quantile(ordered, np.linspace(0, 1, KNOTS)))
    smaller = np.searchsorted(ordered, x, side="left")
    not_larger = np.searchsorted(ordered, x, side="right")
    return x, (smaller + not_larger) / (2 * column.size)


@dataclass(frozen=True)
class Placeholders:
    """Placeholders of some columns, with the range of the other numbers there."""

    n_columns: int
    columns: NDArray[np.int64]  # the columns that have one
    values: Array  # the placeholder of each of them
    low: Array  # the smallest other number
    high: Array  # the largest one

    def moved(self) -> tuple[Substitute, Substitute]:
        """The substitution by numbers below the others, and by numbers above them."""
        margin = SEARCH.placeholder_margin * (self.high - self.low)
        return self._by(self.low - margin), self._by(self.high + margin)

    def _by(self, substitute: Array) -> Substitute:
        return Substitute(
            n_columns=self.n_columns,
            columns=self.columns,
            replaced=self.values,
            substitute=substitute,
        )


def find_placeholders(rows: Any) -> Placeholders | None:
    """The placeholders of a sample of rows, or None if there are none or the rows are sparse.

    A placeholder is the smallest or the largest number of a column, many rows have it, and it is
    far from the others. Where these are too few to tell, a number is a placeholder if it is one in
    most columns of which it is the smallest or largest number and that can tell.
    """
    if sp.issparse(rows):
        return None
    found: dict[int, tuple[float, float, float]] = {}
    for largest in (False, True):
        value, low, high, far = np.array([_end(column, largest) for column in rows.T]).T
        candidates = np.isfinite(low)
        placeholders = candidates & (far > 0)
        for number in np.unique(value[placeholders]):
            having = candidates & (value == number)
            if np.nanmean(far[having]) > 0.5:
                placeholders |= having
        for place in np.flatnonzero(placeholders & ~(far == 0)).tolist():
            found[place] = value[place], low[place], high[place]
    if not found:
        return None
    numbers = np.array([found[place] for place in sorted(found)])
    return Placeholders(rows.shape[1], np.array(sorted(found), dtype=np.int64), *numbers.T.copy())


def _end(column: Array, largest: bool) -> tuple[float, float, float, float]:
    """The smallest or largest number of a column, the range of the others, and if it is far.

    The range is infinite if too few rows have the number, or all of them. Far is 1 or 0, and NaN
    where the others are too few to tell.
    """
    value = column.max() if largest else column.min()
    others = column[column != value]
    frequent = max(SEARCH.placeholder_rows, SEARCH.placeholder_share * column.size)
    if others.size == 0 or column.size - others.size < frequent:
        return value, np.inf, -np.inf, 0.0
    low, high = others.min(), others.max()
    far = float((value - high if largest else low - value) >= SEARCH.placeholder_gap * (high - low))
    if far and np.unique(others).size < SEARCH.placeholder_others:
        far = np.nan
    return value, low, high, far
