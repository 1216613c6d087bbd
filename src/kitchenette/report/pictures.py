"""The geometry of the page's pictures, which `templates/pictures.svg.jinja` draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

# In pixels: the size of a picture, the edges of the area between its axes, the height of a bar and
# the gap below it, and the width of a character of the labels.
WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 76, 624, 16, 312
BAR, GAP = 16, 6
CHARACTER = 6.6
TICKS = 5  # about so many on a linear axis, so that their labels do not touch
LONGEST_LABEL = 28  # characters of a bar's label, so that bars keep half of the width


@dataclass(frozen=True)
class NamedPoints:
    """Points with a name, for the legend."""

    name: str
    points: Sequence[tuple[float, float]]
    style: int  # the number of the color and of the shape, from 0 to 7
    joined: bool = False  # by lines


@dataclass(frozen=True)
class Axis:
    """The scale of an axis, from values between low and high to pixels from start to end."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    @classmethod
    def around(
        cls, values: Sequence[float], start: float, end: float, *, logarithmic: bool = False
    ) -> Axis:
        """An axis that contains some values, with a margin.

        Examples
        --------
        >>> from kitchenette.report.pictures import Axis
        >>> axis = Axis.around([1.0, 100.0], 0, 300, logarithmic=True)
        >>> axis.low < 1.0 < 100.0 < axis.high
        True
        """
        if not values:
            values = [1.0]
        low, high = min(values), max(values)
        if logarithmic:
            return cls(low / 1.5, high * 1.5, start, end, logarithmic=True)
        margin = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
        lowest = 0.0 if 0 <= low <= 0.3 * high else low - margin
        return cls(lowest, high + margin, start, end)

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        if self.logarithmic:
            share = log10(value / self.low) / log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round values on the axis."""
        if self.logarithmic:
            powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
            factors = (1, 2, 5) if log10(self.high / self.low) < 2.5 else (1,)
            values = [factor * 10.0**power for power in powers for factor in factors]
        else:
            step = 10.0 ** floor(log10((self.high - self.low) / TICKS))
            step *= min(
                (1, 2, 5, 10), key=lambda k: abs((self.high - self.low) / (k * step) - TICKS)
            )
            first = ceil(self.low / step)
            values = [(first + i) * step for i in range(4 * TICKS)]
        return [value for value in values if self.low <= value <= self.high]


def axes_of(
    series: Sequence[NamedPoints], x_logarithmic: bool = False, square: bool = False
) -> tuple[Axis, Axis]:
    """The axes around all points; those of a square picture have the same values."""
    xs = [x for one in series for x, _ in one.points]
    ys = [y for one in series for _, y in one.points]
    if square:
        xs = ys = [*xs, *ys]
    return Axis.around(xs, LEFT, RIGHT, logarithmic=x_logarithmic), Axis.around(ys, BOTTOM, TOP)


def shortened(text: str) -> str:
    """A label that is not too long for a picture."""
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"
