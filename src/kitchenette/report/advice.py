"""Which model to take, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kitchenette.report.comparison import Measurement
from kitchenette.report.words import of_bytes, of_error, of_seconds

CLOSE = 1.0  # standard errors within which errors count as equal


def recommended(measurements: Sequence[Measurement], maps: Sequence[str]) -> Measurement:
    """The smallest and then quickest of the maps whose error is as good as the best.

    Parameters
    ----------
    measurements : sequence of Measurement
        All models.
    maps : sequence of str
        The names of the maps.

    Returns
    -------
    measurement : Measurement
        One of them.
    """
    candidates = [row for row in measurements if row.family in maps and row.error is not None]
    if not candidates:
        raise ValueError("No map could be fitted on these data.")
    best = min(candidates, key=_error)
    limit = _error(best) + CLOSE * (best.standard_error or 0.0)
    good = [row for row in candidates if _error(row) <= limit]
    return min(good, key=lambda row: (row.n_components or 0, row.fit_seconds or 0.0))


def advised(
    measurements: Sequence[Measurement],
    best: Measurement,
    maps: Sequence[str],
    task: str,
    call: str,
) -> tuple[str, ...]:
    """Sentences: the recommendation, and how it compares with the other models.

    ``call`` makes the recommended model in Python.
    """
    rows = [row for row in measurements if row.family in maps and row.error is not None]
    lowest, automatic = min(rows, key=_error), best.family == "AutoMap"
    sentences = [
        f"Take {best.name}: its error on the test rows is {of_error(best, task)}, it learns in "
        f"{of_seconds(best.fit_seconds)} and predicts a row in {of_seconds(best.predict_seconds)}, "
        f"and the model takes {of_bytes(best.model_bytes)}.",
        f"In Python it is `{call}`"
        + (f", and for the command `--components {best.n_components}`." if automatic else "."),
    ]
    if lowest.name != best.name:
        sentences.append(
            f"{lowest.name} has the lowest error, {of_error(lowest, task)}, but that is within one "
            "standard error, and it is larger or slower."
        )
    for row in measurements:
        if row.family in ("linear", "trees", "exact kernel"):
            sentences.append(_beside(row, best, task))
    return tuple(sentences)


def in_python(model: Any) -> str:
    """The call that makes a model.

    Parameters
    ----------
    model : KernelClassifier or KernelRegressor
        With a map of this package, or a pipeline that ends with one.

    Returns
    -------
    call : str

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.report.advice import in_python
    >>> in_python(KernelRegressor(make_pipeline(StandardScaler(), Fastfood(n_components=64))))
    'KernelRegressor(make_pipeline(StandardScaler(), Fastfood(n_components=64)))'
    """
    steps = getattr(model.feature_map, "steps", None)
    call = repr(model.feature_map)
    if steps is not None:
        call = f"make_pipeline({', '.join(repr(step) for _, step in steps)})"
    return f"{type(model).__name__}({' '.join(call.split())})"


def _beside(row: Measurement, best: Measurement, task: str) -> str:
    if row.extrapolated:
        return (
            f"On all {row.n_rows:,} rows the exact kernel machine would take about "
            f"{of_seconds(row.fit_seconds)} by its measured growth."
            if row.family == "exact kernel"
            else f"On all {row.n_rows:,} rows trees would take about {of_seconds(row.fit_seconds)}."
        )
    error = of_error(row, task)
    noise = CLOSE * max(row.standard_error or 0.0, best.standard_error or 0.0)
    difference = _error(row) - _error(best)
    verdict = (
        "is as good as"
        if abs(difference) <= noise
        else ("is worse than" if difference > 0 else "is better than")
    )
    name = row.name.capitalize() if row.family == "trees" else f"The {row.name}"
    verdict = verdict.replace("is ", "are ", 1) if row.family == "trees" else verdict
    return (
        f"{name} {verdict} that, with an error of {error} after {of_seconds(row.fit_seconds)}, and "
        f"{of_seconds(row.predict_seconds)} per prediction."
    )


def _error(row: Measurement) -> float:
    assert row.error is not None
    return row.error
