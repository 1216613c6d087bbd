"""A comparison as one HTML page, with nothing from anywhere else."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files

from kitchenette.quantities import of_bytes, of_seconds, of_share
from kitchenette.report.advice import OTHERS
from kitchenette.report.boosting import LEAF_PENALTY, ROUNDS
from kitchenette.report.comparison import Comparison, Measurement, of_error
from kitchenette.report.pictures import Series, bars, chart, histogram, shades

CODE = re.compile("`([^`]+)`")  # in sentences
MOST_BARS = 20
MOST_COLUMNS = 40
# A page may load nothing and run nothing; the style is part of it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
NOT_THERE = "What is not in the table, or not of all rows and rounds; more time allows more:"
HEADINGS = (
    "model",
    "rows",
    "error",
    "kernel error",
    "fit",
    "prediction",
    "memory",
    "size",
)


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
    style = files("kitchenette.report").joinpath("page.css").read_text(encoding="utf-8")
    title = escape(comparison.title)
    sections = [
        _advice(comparison),
        _models(comparison),
        _error_against(comparison, "fit_seconds", "the time of the fit", of_seconds),
        _error_against(comparison, "model_bytes", "the size of the model", of_bytes),
        _predictions(comparison),
        _importances(comparison),
        _data(comparison),
        _how(comparison),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{title}</title><style>{style}</style></head>\n<body><main><h1>{title}</h1>\n"
        + "\n".join(section for section in sections if section)
        + "\n</main></body></html>\n"
    )


# ------------------------------------------------------------ sections


def _advice(comparison: Comparison) -> str:
    first, *rest = comparison.advice
    return (
        f'<section><h2>Which map to take</h2><p class="lead">{escape(first)}</p>'
        f"{_paragraph(rest)}</section>"
    )


def _models(comparison: Comparison) -> str:
    rows = []
    for row in comparison.measurements:
        name = escape(row.name) + (" <em>(extrapolated)</em>" if row.extrapolated else "")
        kind = ' class="chosen"' if row.name == comparison.recommended else ""
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in _figures(row, comparison.task))
        rows.append(f'<tr{kind}><th scope="row">{name}</th>{cells}</tr>')
    head = "".join(f'<th scope="col">{heading}</th>' for heading in HEADINGS)
    notes = "".join(f"<li>{escape(note)}</li>" for note in comparison.left_out)
    notes = f"<p>{NOT_THERE}</p><ul>{notes}</ul>" if notes else ""
    return (
        "<section><h2>All models</h2>"
        f"<p>The error is the {escape(comparison.error_name)}, on {comparison.n_test_rows:,} rows "
        "that no model has learned from, with its standard error. The kernel error is that of the "
        "features' inner products, relative to the exact kernel. The prediction is that of one row "
        "among many, memory what the fit took beyond the data, and the size that of a file for "
        "predictions. The recommended model is marked.</p>"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{notes}</section>"
    )


def _figures(row: Measurement, task: str) -> list[str]:
    error = "" if row.error is None else of_error(row, task)
    if error and row.standard_error is not None:
        error += f" ± {of_share(row.standard_error, task)}"
    about = "about " if row.extrapolated else ""
    return [
        f"{row.n_rows:,}",
        error,
        "" if row.kernel_error is None else f"{row.kernel_error:.3f}",
        about + of_seconds(row.fit_seconds) if row.fit_seconds is not None else "",
        of_seconds(row.predict_seconds) if row.predict_seconds is not None else "",
        of_bytes(row.fit_bytes) if row.fit_bytes is not None else "",
        of_bytes(row.model_bytes) if row.model_bytes is not None else "",
    ]


def _error_against(
    comparison: Comparison, quantity: str, name: str, text: Callable[[float | None], str]
) -> str:
    """The picture and the table of errors against something that models take."""
    svg = chart(
        _series(comparison, quantity),
        title=f"Error against {name}",
        description="Each point is a model; the lower and the further left, the better. "
        + _best_in_words(comparison),
        x_label=name.removeprefix("the "),
        y_label="error",
        x_text=text,
        y_text=_error_text(comparison.task),
        x_logarithmic=True,
    )
    rows = [
        (row.name, text(getattr(row, quantity)), of_error(row, comparison.task))
        for row in _shown(comparison)
    ]
    headings = ("model", name.removeprefix("the "), "error")
    return _figure(f"Error against {name}", svg, _table(headings, rows))


def _predictions(comparison: Comparison) -> str:
    return _reliability(comparison) + _confusion(comparison) + _residuals(comparison)


def _reliability(comparison: Comparison) -> str:
    found = comparison.reliability
    if found is None:
        return ""
    points = list(zip(found.predicted, found.observed, strict=True))
    svg = chart(
        [Series(comparison.recommended, points, 0, joined=True)],
        title="Calibration of probabilities",
        description="Points on the dashed line mean that probabilities are what they say.",
        x_label="probability of the predicted class",
        y_label="share that is right",
        x_text=_percent,
        y_text=_percent,
        diagonal=True,
    )
    rows = [
        (f"{predicted:.1%}", f"{observed:.1%}", f"{count:,}")
        for predicted, observed, count in zip(
            found.predicted, found.observed, found.counts, strict=True
        )
    ]
    return _figure(
        f"Calibration of {comparison.recommended}",
        svg,
        _table(("mean probability", "share that is right", "test rows"), rows),
    )


def _confusion(comparison: Comparison) -> str:
    found = comparison.confusion
    if found is None:
        return ""
    shares = [[count / max(1, sum(row)) for count in row] for row in found.counts]
    svg = shades(
        found.labels,
        shares,
        title="Confusion of classes",
        description="For each true class, the percentage of its test rows predicted as each class.",
        row_label="true class",
        column_label="predicted class",
    )
    rows = [
        (label, *(f"{count:,}" for count in row))
        for label, row in zip(found.labels, found.counts, strict=True)
    ]
    return _figure(
        f"Confusions of {comparison.recommended}",
        svg,
        _table(("true class \\ predicted", *found.labels), rows),
    )


def _residuals(comparison: Comparison) -> str:
    found = comparison.residuals
    if found is None:
        return ""
    covered = (
        ""
        if found.coverage is None
        else f"{found.coverage:.1%} of the test rows lie within 1.96 predicted deviations; "
        "95% would be right."
    )
    svg = histogram(
        found.edges,
        found.counts,
        title="Residuals",
        description="Targets minus predictions on the test rows; the extreme half percent on each "
        "side is in the outer bins. " + covered,
        x_label="target minus prediction",
        y_label="test rows",
        x_text=lambda value: f"{value:.4g}",
    )
    rows = [
        (f"{low:.4g} to {high:.4g}", f"{count:,}")
        for low, high, count in zip(found.edges, found.edges[1:], found.counts, strict=False)
    ]
    table = _table(("target minus prediction", "test rows"), rows)
    return _figure(f"Residuals of {comparison.recommended}", svg, table, covered)


def _importances(comparison: Comparison) -> str:
    known = [
        (column.name, column.importance)
        for column in comparison.columns
        if column.importance is not None
    ]
    if not known:
        return ""
    shown = sorted(known, key=lambda item: -item[1])[:MOST_BARS]
    svg = bars(
        shown,
        title="Importance of columns",
        description=f"The predictions change most with {shown[0][0]}.",
        text=_percent,
    )
    more = len(known) - len(shown)
    note = "How much the predictions change with each column, relative to all of them." + (
        f" {more} columns with less importance are not shown." if more else ""
    )
    table = _table(("column", "importance"), [(name, f"{value:.1%}") for name, value in shown])
    return _figure(f"Columns that matter to {comparison.recommended}", svg, table, note)


def _data(comparison: Comparison) -> str:
    columns = comparison.columns[:MOST_COLUMNS]
    table = ""
    if columns:
        rows = []
        for column in columns:
            values = (column.mean, column.spread, column.least, column.median, column.greatest)
            rows.append((column.name, column.kind, *(f"{value:.4g}" for value in values)))
        headings = ("column", "kind", "mean", "spread", "least", "median", "greatest")
        table = _table(headings, rows)
        more = len(comparison.columns) - len(columns)
        table += f"<p>{more} more columns are not shown.</p>" if more else ""
    return f"<section><h2>The data</h2>{_paragraph(comparison.data)}{table}</section>"


def _how(comparison: Comparison) -> str:
    return (
        '<section class="how"><h2>How this was measured</h2><p>'
        f"By Kitchenette {escape(comparison.version)} in {of_seconds(comparison.seconds)}, seed "
        f"{comparison.seed}. All models learned from the same {comparison.n_rows:,} rows unless "
        "the table says otherwise, one after the other on this machine. The linear model is ridge "
        "regression of the columns. LightGBM and XGBoost, or where neither is installed "
        "HistGradientBoosting of scikit-learn, are gradient-boosted trees with their default "
        f"parameters and {ROUNDS} rounds, without early stopping, and with an L2 penalty of at "
        f"least {LEAF_PENALTY:g} on leaves, which rare classes need. They had at least the time of "
        "the slowest map. The exact kernel machine is scikit-learn's support vector machine with "
        "C=10 on columns of unit spread. Maps are followed by least squares, whose penalty is "
        "chosen without the test rows. Extrapolated figures continue the growth between the "
        "smallest and the largest number of rows that were measured.</p></section>"
    )


# ------------------------------------------------------------ parts


def _shown(comparison: Comparison) -> list[Measurement]:
    """The models with an error, but the trivial one, which would squeeze the others together."""
    return [
        row for row in comparison.measurements if row.error is not None and row.family != "trivial"
    ]


def _series(comparison: Comparison, quantity: str) -> list[Series]:
    shown = _shown(comparison)
    families = list(dict.fromkeys(row.family for row in shown))
    maps = [family for family in families if family not in OTHERS]
    found = []
    for style, family in enumerate([*maps, *(name for name in families if name in OTHERS)]):
        rows = [row for row in shown if row.family == family]
        points = [
            (value, row.error)
            for row in rows
            if (value := getattr(row, quantity)) and row.error is not None
        ]
        if points:
            found.append(Series(family, points, style % 8, joined=family in maps))
    return found


def _best_in_words(comparison: Comparison) -> str:
    lowest = min(_shown(comparison), key=lambda row: row.error or 0.0)
    return f"The lowest error has {lowest.name}, {of_error(lowest, comparison.task)}."


def _error_text(task: str) -> Callable[[float], str]:
    return _percent if task == "classification" else lambda value: f"{value:.3g}"


def _percent(value: float) -> str:
    return f"{100 * value:.3g}%"


def _paragraph(sentences: Sequence[str]) -> str:
    text = CODE.sub(r"<code>\1</code>", escape(" ".join(sentences)))
    return f"<p>{text}</p>" if sentences else ""


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def _figure(heading: str, svg: str, table: str, note: str = "") -> str:
    caption = f"<figcaption>{escape(note)}</figcaption>" if note else ""
    return (
        f"<section><h2>{escape(heading)}</h2><figure>{svg}{caption}</figure>"
        f"<details open><summary>The same as a table</summary>{table}</details></section>"
    )
