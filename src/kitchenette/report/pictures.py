"""Pictures as SVG text: points and lines on two axes, bars, and a table of shades.

Colors are names of CSS classes, so that the page decides them for light and dark. Series differ
by the shapes of their points as well as by colors, which are those of Okabe and Ito.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 76, 16, 16, 48
TICKS = 5  # about so many on a linear axis
BAR, GAP = 16, 6
LONGEST_LABEL = 28
CHARACTER = 6.6  # the width of a character of the labels, in pixels


@dataclass(frozen=True)
class Series:
    """Points with a name.

    Attributes
    ----------
    name : str
        For the legend.
    points : sequence of (float, float)
        Their places.
    style : int
        The number of the color and of the shape.
    joined : bool
        Whether lines join the points.
    hollow : bool
        Whether points are drawn as outlines, for values that were not measured.
    """

    name: str
    points: Sequence[tuple[float, float]]
    style: int
    joined: bool = False
    hollow: bool = False


@dataclass(frozen=True)
class Axis:
    """The scale of an axis, from values to pixels.

    Attributes
    ----------
    low, high : float
        The values at its ends.
    start, end : float
        Their pixels.
    logarithmic : bool
        Whether equal factors have equal distances.
    """

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
            found = [factor * 10.0**power for power in powers for factor in factors]
        else:
            step = 10.0 ** floor(log10((self.high - self.low) / TICKS))
            step *= min(
                (1, 2, 5, 10), key=lambda k: abs((self.high - self.low) / (k * step) - TICKS)
            )
            first = ceil(self.low / step)
            found = [(first + i) * step for i in range(4 * TICKS)]
        return [value for value in found if self.low <= value <= self.high]


def chart(
    series: Sequence[Series],
    *,
    title: str,
    description: str,
    x_label: str,
    y_label: str,
    x_text: Callable[[float], str],
    y_text: Callable[[float], str],
    x_logarithmic: bool = False,
    diagonal: bool = False,
) -> str:
    """Points, and lines between them, on two axes with a legend.

    Parameters
    ----------
    series : sequence of Series
        What is drawn.
    title, description : str
        The alternative text.
    x_label, y_label : str
        The names of the axes.
    x_text, y_text : callable
        Make the labels of ticks.
    x_logarithmic : bool, default=False
        Whether the horizontal axis is logarithmic.
    diagonal : bool, default=False
        Whether to draw the line on which both values are equal.

    Returns
    -------
    svg : str
        An ``svg`` element.

    Examples
    --------
    >>> from kitchenette.report.pictures import Series, chart
    >>> svg = chart([Series("one", [(1, 2), (2, 3)], 0, joined=True)], title="A line",
    ...             description="It rises.", x_label="x", y_label="y", x_text=str, y_text=str)
    >>> svg.count("<circle"), "It rises." in svg
    (3, True)
    """
    xs = [x for one in series for x, _ in one.points]
    ys = [y for one in series for _, y in one.points]
    if diagonal:
        xs = ys = [*xs, *ys]
    legend_rows = -(-len(series) // 3)
    height = HEIGHT + 20 * legend_rows
    x_axis = Axis.around(xs, LEFT, WIDTH - RIGHT, logarithmic=x_logarithmic)
    y_axis = Axis.around(ys, HEIGHT - BOTTOM, TOP)
    parts = _axes(x_axis, y_axis, x_label, y_label, x_text, y_text)
    if diagonal:
        ends = max(x_axis.low, y_axis.low), min(x_axis.high, y_axis.high)
        parts.append(
            f'<line class="guide" x1="{x_axis(ends[0]):.1f}" y1="{y_axis(ends[0]):.1f}" '
            f'x2="{x_axis(ends[1]):.1f}" y2="{y_axis(ends[1]):.1f}"/>'
        )
    for one in series:
        places = [(x_axis(x), y_axis(y)) for x, y in one.points]
        if one.joined and len(places) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            parts.append(f'<polyline class="line s{one.style}" points="{path}"/>')
        parts += [_mark(x, y, one) for x, y in places]
    for position, one in enumerate(series):
        x = LEFT + (position % 3) * (WIDTH - LEFT - RIGHT) / 3
        y = HEIGHT + 6 + 20 * (position // 3)
        parts.append(_mark(x + 6, y, one))
        parts.append(f'<text x="{x + 16:.1f}" y="{y + 4:.1f}">{escape(one.name)}</text>')
    return _svg(WIDTH, height, title, description, parts)


def bars(
    items: Sequence[tuple[str, float]],
    *,
    title: str,
    description: str,
    text: Callable[[float], str],
) -> str:
    """Horizontal bars with a label and a value each.

    Parameters
    ----------
    items : sequence of (str, float)
        Labels and values that are not negative, from top to bottom.
    title, description : str
        The alternative text.
    text : callable
        Makes the text of a value.

    Returns
    -------
    svg : str
        An ``svg`` element.

    Examples
    --------
    >>> from kitchenette.report.pictures import bars
    >>> svg = bars([("a", 1.0), ("b", 0.5)], title="Bars", description="Two.", text=str)
    >>> svg.count('<rect class="bar')
    2
    """
    labels = [_shortened(name) for name, _ in items]
    left = 12 + CHARACTER * max(map(len, labels), default=1)
    right = 14 + CHARACTER * max((len(text(value)) for _, value in items), default=1)
    greatest = max((value for _, value in items), default=0.0) or 1.0
    parts = []
    for position, ((_, value), label) in enumerate(zip(items, labels, strict=True)):
        y = 4 + position * (BAR + GAP)
        length = (WIDTH - left - right) * value / greatest
        parts.append(
            f'<text class="end" x="{left - 6:.1f}" y="{y + 12.5:.1f}">{escape(label)}</text>'
            f'<rect class="bar s0" x="{left:.1f}" y="{y}" width="{length:.1f}" height="{BAR}"/>'
            f'<text x="{left + length + 6:.1f}" y="{y + 12.5:.1f}">{escape(text(value))}</text>'
        )
    return _svg(WIDTH, 8 + len(items) * (BAR + GAP), title, description, parts)


def histogram(
    edges: Sequence[float],
    counts: Sequence[int],
    *,
    title: str,
    description: str,
    x_label: str,
    y_label: str,
    x_text: Callable[[float], str],
) -> str:
    """Columns over the bins of an axis.

    Parameters
    ----------
    edges : sequence of float
        The ends of the bins.
    counts : sequence of int
        Their heights.
    title, description : str
        The alternative text.
    x_label, y_label : str
        The names of the axes.
    x_text : callable
        Makes the labels of ticks.

    Returns
    -------
    svg : str
        An ``svg`` element.

    Examples
    --------
    >>> from kitchenette.report.pictures import histogram
    >>> svg = histogram([0, 1, 2], [3, 4], title="Two", description="Bins.", x_label="x",
    ...                 y_label="rows", x_text=str)
    >>> svg.count('<rect class="bar')
    2
    """
    x_axis = Axis.around(edges, LEFT, WIDTH - RIGHT)
    x_axis = Axis(edges[0], edges[-1], x_axis.start, x_axis.end)
    y_axis = Axis(0.0, 1.06 * max(max(counts), 1), HEIGHT - BOTTOM, TOP)
    parts = _axes(x_axis, y_axis, x_label, y_label, x_text, lambda value: f"{value:,.0f}")
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        x, y = x_axis(low), y_axis(count)
        parts.append(
            f'<rect class="bar s0" x="{x + 0.5:.1f}" y="{y:.1f}" '
            f'width="{x_axis(high) - x - 1:.1f}" height="{y_axis(0) - y:.1f}"/>'
        )
    return _svg(WIDTH, HEIGHT, title, description, parts)


def shades(
    labels: Sequence[str],
    shares: Sequence[Sequence[float]],
    *,
    title: str,
    description: str,
    row_label: str,
    column_label: str,
) -> str:
    """A square table of shares as shades.

    Parameters
    ----------
    labels : sequence of str
        Of the rows and columns.
    shares : sequence of sequences of float
        From 0 to 1.
    title, description : str
        The alternative text.
    row_label, column_label : str
        What rows and columns are.

    Returns
    -------
    svg : str
        An ``svg`` element.

    Examples
    --------
    >>> from kitchenette.report.pictures import shades
    >>> svg = shades(["a", "b"], [[1, 0], [0.5, 0.5]], title="Four", description="Squares.",
    ...              row_label="true", column_label="predicted")
    >>> svg.count('<rect class="shade"')
    4
    """
    cell = max(14.0, min(44.0, 420 / max(1, len(labels))))
    short = [_shortened(label)[:12] for label in labels]
    left = 30 + CHARACTER * max(map(len, short))
    size = cell * len(labels)
    parts = [
        f'<text class="axis middle" x="{left + size / 2:.1f}" y="12">{escape(column_label)}</text>',
        f'<text class="axis middle" transform="translate(12 {36 + size / 2:.1f}) rotate(-90)">'
        f"{escape(row_label)}</text>",
    ]
    for i, label in enumerate(short):
        y = 36 + i * cell
        middle = y + cell / 2 + 4
        parts.append(
            f'<text class="end" x="{left - 6:.1f}" y="{middle:.1f}">{escape(label)}</text>'
            f'<text class="middle" x="{left + (i + 0.5) * cell:.1f}" y="30">'
            f"{escape(label[: max(1, int(cell / CHARACTER))])}</text>"
        )
        for j, share in enumerate(shares[i]):
            x = left + j * cell
            parts.append(
                f'<rect class="shade" x="{x:.1f}" y="{y:.1f}" width="{cell - 1:.1f}" '
                f'height="{cell - 1:.1f}" fill-opacity="{share:.3f}"/>'
            )
            if cell >= 30 and share >= 0.005:
                contrast = "on-dark" if share > 0.5 else "on-light"
                parts.append(
                    f'<text class="middle {contrast}" x="{x + cell / 2:.1f}" '
                    f'y="{y + cell / 2 + 4:.1f}">{100 * share:.0f}</text>'
                )
    return _svg(max(WIDTH, ceil(left + size + 8)), ceil(size + 44), title, description, parts)


def _svg(width: float, height: float, title: str, description: str, parts: Sequence[str]) -> str:
    return (
        f'<svg role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'aria-label="{escape(title, quote=True)}. {escape(description, quote=True)}">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
        + "".join(parts)
        + "</svg>"
    )


def _axes(
    x_axis: Axis,
    y_axis: Axis,
    x_label: str,
    y_label: str,
    x_text: Callable[[float], str],
    y_text: Callable[[float], str],
) -> list[str]:
    bottom = HEIGHT - BOTTOM
    parts = []
    for value in x_axis.ticks():
        x = x_axis(value)
        parts.append(
            f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}"/>'
            f'<text class="middle" x="{x:.1f}" y="{bottom + 16}">{escape(x_text(value))}</text>'
        )
    for value in y_axis.ticks():
        y = y_axis(value)
        parts.append(
            f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
            f'<text class="end" x="{LEFT - 6}" y="{y + 4:.1f}">{escape(y_text(value))}</text>'
        )
    middle = (TOP + bottom) / 2
    parts.append(
        f'<text class="axis middle" x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{bottom + 36}">'
        f"{escape(x_label)}</text>"
        f'<text class="axis middle" transform="translate(14 {middle:.1f}) rotate(-90)">'
        f"{escape(y_label)}</text>"
    )
    return parts


PLUS = tuple(
    (float(x), float(y))
    for x, y in zip(
        (-2, 2, 2, 6, 6, 2, 2, -2, -2, -6, -6, -2),
        (-6, -6, -2, -2, 2, 2, 6, 6, 2, 2, -2, -2),
        strict=True,
    )
)
# The corners of the shapes after the circle, around the origin.
SHAPES: tuple[tuple[tuple[float, float], ...], ...] = (
    ((-4.5, -4.5), (4.5, -4.5), (4.5, 4.5), (-4.5, 4.5)),  # square
    ((0, -6), (5.5, 4.5), (-5.5, 4.5)),  # triangle
    ((0, -6.5), (6, 0), (0, 6.5), (-6, 0)),  # diamond
    ((0, 6), (5.5, -4.5), (-5.5, -4.5)),  # triangle that points down
    PLUS,
    ((-6, -3), (-3, -6), (3, -6), (6, -3), (6, 3), (3, 6), (-3, 6), (-6, 3)),  # octagon
    ((0, -7), (2, -2), (7, 0), (2, 2), (0, 7), (-2, 2), (-7, 0), (-2, -2)),  # star
)


def _mark(x: float, y: float, series: Series) -> str:
    style = f"point s{series.style}" + (" hollow" if series.hollow else "")
    if series.style == 0:
        return f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
    corners = SHAPES[(series.style - 1) % len(SHAPES)]
    path = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon class="{style}" points="{path}"/>'


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"
