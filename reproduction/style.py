"""One style for all pictures, safe for color-blind readers.

The colors are those of Okabe and Ito; markers and dashes tell the lines apart without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from reproduction.samples import Sample

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C8C")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 3)))

SETTINGS: Any = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    # Text stays text and identifiers do not change, so that files are small and comparable.
    "svg.fonttype": "none",
    "svg.hashsalt": "kitchenette",
}


def panels(rows: int = 1, columns: int = 1, *, width: float = 3.6, height: float = 3.0) -> Any:
    """A figure and the two-dimensional array of its axes."""
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False)


def curve(
    axes: Any, x: Sequence[float], samples: Sequence[Sample], label: str, number: int
) -> None:
    """Means over seeds with their spread as error bars; `number` chooses color and marker."""
    there = [(at, sample) for at, sample in zip(x, samples, strict=True) if sample]
    if not there:
        return
    axes.errorbar(
        [at for at, _ in there],
        [sample.mean for _, sample in there],
        yerr=[np.nan_to_num(sample.spread) for _, sample in there],
        label=label,
        color=COLORS[number % len(COLORS)],
        marker=MARKERS[number % len(MARKERS)],
        linestyle=DASHES[number % len(DASHES)],
        capsize=2,
    )


def level(axes: Any, value: float, label: str) -> None:
    """A horizontal line, for an exact or a printed figure."""
    axes.axhline(value, color="#000000", linestyle=":", linewidth=1, label=label)


def save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(SETTINGS):
        figure.savefig(path, format="svg", metadata={"Date": None})
