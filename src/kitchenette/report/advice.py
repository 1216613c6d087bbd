"""The recommendation, as sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kitchenette.quantities import of_bytes, of_seconds
from kitchenette.report.comparison import Measurement, of_error

CLOSE = 1.0  # standard errors within which errors count as equal: the one-standard-error rule
OTHERS = ("linear", "trees", "exact kernel")  # families that maps are compared with


def recommended(measurements: Sequence[Measurement], maps: Sequence[str]) -> Measurement:
    """The smallest and then fastest of the maps with these names whose error is near the best."""
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
    model: Any,
) -> tuple[str, ...]:
    """Sentences: the recommended map, and how it compares with the other models.

    The first one names another model before the map if that has a lower error by more than chance.
    """
    rows = [row for row in measurements if row.family in maps and row.error is not None]
    lowest, automatic = min(rows, key=_error), best.family == "AutoMap"
    others = [row for row in measurements if row.family in OTHERS and row.error is not None]
    winner = min(others, key=_error, default=best)
    take = f"Take {best.name}"
    if _error(winner) < _error(best) - _noise(winner, best):
        take = (
            f"{_subject(winner)} has a lower error, {of_error(winner, task)}. Among the maps, take "
            f"{best.name}"
        )
    sentences = [
        f"{take}: its error on the test rows is {of_error(best, task)}, it is fitted in "
        f"{of_seconds(best.fit_seconds)} and predicts a row in {of_seconds(best.predict_seconds)}, "
        f"and the model takes {of_bytes(best.model_bytes)}.",
        f"In Python it is `{in_python(model)}`, after `{imports_of(model)}`"
        + (f"; for the command it is `--components {best.n_components}`." if automatic else "."),
    ]
    if lowest.name != best.name:
        sentences.append(
            f"{lowest.name} has the lowest error of the maps, {of_error(lowest, task)}, but that "
            "is within one standard error, and it is larger or slower."
        )
    for row in measurements:
        if row.family in OTHERS:
            sentences.append(_beside(row, best, task))
    return tuple(sentences)


def in_python(model: Any) -> str:
    """The call that makes a model with a map of this package, or a pipeline that ends with one.

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
    seed = "" if model.random_state is None else f", random_state={model.random_state!r}"
    return f"{type(model).__name__}({' '.join(call.split())}{seed})"


def imports_of(model: Any) -> str:
    """The statements that import what the call of `in_python` names, separated by semicolons.

    Examples
    --------
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.kernels import Matern
    >>> from kitchenette.report.advice import imports_of
    >>> imports_of(KernelRegressor(Fastfood(Matern(nu=1.5))))
    'from kitchenette import Fastfood, KernelRegressor; from kitchenette.kernels import Matern'
    """
    call = in_python(model)
    kinds = {type(part) for part in (model, *model.get_params().values())}
    modules: dict[str, list[str]] = {}
    for kind in kinds:
        if f"{kind.__name__}(" in call and kind.__name__ != "Pipeline":
            modules.setdefault(_public_module(kind), []).append(kind.__name__)
    if "make_pipeline(" in call:
        modules["sklearn.pipeline"] = ["make_pipeline"]
    return "; ".join(
        f"from {name} import {', '.join(sorted(modules[name]))}" for name in sorted(modules)
    )


def _public_module(kind: type) -> str:
    """The module that users import a class from."""
    first, second, *_ = kind.__module__.split(".")
    if first == "kitchenette":
        return "kitchenette.kernels" if second == "kernels" else "kitchenette"
    return f"{first}.{second}"  # as in sklearn.preprocessing._data


def _beside(row: Measurement, best: Measurement, task: str) -> str:
    if row.extrapolated:
        return (
            f"On all {row.n_rows:,} rows the exact kernel machine would take about "
            f"{of_seconds(row.fit_seconds)} by its measured growth."
        )
    error, seconds = of_error(row, task), of_seconds(row.fit_seconds)
    costs = (
        f"an error of {error} after {seconds}, and {of_seconds(row.predict_seconds)} per prediction"
    )
    difference = _error(row) - _error(best)
    fewer = row.n_rows < best.n_rows
    if (fewer or row.unfinished) and difference >= -_noise(row, best):
        # With all rows or rounds it could be better.
        return f"{_subject(row)} has {costs}; that is no verdict, as it was not fitted " + (
            f"to all {best.n_rows:,} rows." if fewer else "with all rounds."
        )
    verdict = (
        "as good as"
        if abs(difference) <= _noise(row, best)
        else ("worse than" if difference > 0 else "better than")
    )
    return f"{_subject(row)} is {verdict} {best.name}, with {costs}."


def _subject(row: Measurement) -> str:
    """The name of a model at the beginning of a sentence."""
    return row.name if row.family == "trees" else f"The {row.name}"


def _noise(one: Measurement, other: Measurement) -> float:
    """The difference of errors that chance explains."""
    return CLOSE * max(one.standard_error or 0.0, other.standard_error or 0.0)


def _error(row: Measurement) -> float:
    assert row.error is not None
    return row.error
