"""A comparison as one HTML page, by the templates in `templates`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kitchenette.quantities import of_bytes, of_seconds, of_share
from kitchenette.report import pictures
from kitchenette.report.advice import OTHERS
from kitchenette.report.boosting import LEAF_PENALTY, ROUNDS
from kitchenette.report.comparison import Comparison, Measurement
from kitchenette.report.pictures import NamedPoints

# What fits on a screen; more columns than these rarely tell more.
MOST_BARS = 20  # of columns on a page; the other importances hardly differ from zero
MOST_COLUMNS = 40


def page(comparison: Comparison) -> str:
    """The HTML page of a comparison.

    One file that loads nothing: pictures are inline SVG with alternative texts and tables below
    them. It follows the light or dark setting of the reader, and prints well.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.

    Returns
    -------
    html : str
        The text of the page.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kitchenette.report import compare, page
    >>> X, y = load_diabetes(return_X_y=True)
    >>> found = compare(X, y, maps=("Fastfood",), sizes=(64,), budget=2, random_state=0)
    >>> html = page(found)
    >>> html.startswith("<!doctype html>"), "http://" in html
    (True, False)
    """
    environment = Environment(
        loader=PackageLoader("kitchenette.report"),
        autoescape=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "bytes": of_bytes,
        "error": lambda error: of_share(error, comparison.task),
        "paragraph": _paragraph,
        "percent": _percent,
        "px": "{:.1f}".format,
        "seconds": of_seconds,
        "shortened": pictures.shortened,
    }
    environment.globals |= {"zip": zip, **vars(pictures)}
    shown = _shown(comparison)
    important = [column for column in comparison.columns if column.importance is not None]
    return environment.get_template("page.html.jinja").render(
        comparison=comparison,
        shown=shown,
        series_of=lambda quantity: _series(shown, quantity),
        error_tick=_percent if comparison.task == "classification" else "{:.3g}".format,
        important=sorted(important, key=lambda column: -(column.importance or 0.0))[:MOST_BARS],
        n_important=len(important),
        of_bytes=of_bytes,
        of_seconds=of_seconds,
        of_percent=_percent,
        LEAF_PENALTY=LEAF_PENALTY,
        MOST_COLUMNS=MOST_COLUMNS,
        ROUNDS=ROUNDS,
    )


def _shown(comparison: Comparison) -> list[Measurement]:
    """The models with an error, but the trivial one, which would squeeze the others together."""
    return [
        row for row in comparison.measurements if row.error is not None and row.family != "trivial"
    ]


def _series(shown: Sequence[Measurement], quantity: str) -> list[NamedPoints]:
    """The errors against a quantity: a line for the sizes of each map, points for other models."""
    families = dict.fromkeys(row.family for row in shown)
    maps_first = sorted(families, key=lambda family: family in OTHERS)
    series = []
    for style, family in enumerate(maps_first):
        rows = [row for row in shown if row.family == family]
        points = [(value, row.error or 0.0) for row in rows if (value := getattr(row, quantity))]
        if points:
            series.append(NamedPoints(family, points, style % 8, joined=family not in OTHERS))
    return series


def _percent(value: float) -> str:
    return f"{100 * value:.3g}%"


def _paragraph(sentences: Sequence[str]) -> Markup:
    """Sentences as a paragraph, in which backquotes stand around code."""
    text = re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(" ".join(sentences))))
    return Markup(f"<p>{text}</p>" if sentences else "")
