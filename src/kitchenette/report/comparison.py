"""The result of a comparison: a frozen value that is also JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from kitchenette.quantities import of_share


@dataclass(frozen=True)
class Measurement:
    """One model: its error, its times and its sizes.

    Attributes
    ----------
    name : str
        The model, as in "Fastfood, 1024 features".
    family : str
        The name of the map, or "exact kernel", "trees", "linear" or "trivial".
    n_rows : int
        The number of its training rows.
    n_components : int or None
        The number of features of a map.
    error : float or None
        The error on the test rows; None if it was not measured.
    standard_error : float or None
        The standard error of the error.
    kernel_error : float or None
        The error of the map's inner products, relative to the exact kernel.
    fit_seconds, predict_seconds : float or None
        The time of the fit, and of the prediction of one row among many.
    fit_bytes : int or None
        The additional memory of the fit; None where it is not known.
    model_bytes : int or None
        The size of the model for predictions, in a file.
    extrapolated : bool
        Whether times and sizes were not measured but follow from those of fewer rows.
    unfinished : bool
        Whether the time limit ended the fit: boosted trees with only some of their rounds.

    Examples
    --------
    >>> from kitchenette.report import Measurement
    >>> Measurement("trivial model", "trivial", 100, error=0.5).extrapolated
    False
    """

    name: str
    family: str
    n_rows: int
    n_components: int | None = None
    error: float | None = None
    standard_error: float | None = None
    kernel_error: float | None = None
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    fit_bytes: int | None = None
    model_bytes: int | None = None
    extrapolated: bool = False
    unfinished: bool = False


@dataclass(frozen=True)
class ColumnSummary:
    """A column of the data.

    Attributes
    ----------
    name : str
        Its name.
    kind : str
        "numbers", "two values" or "constant".
    mean, spread, least, median, greatest : float
        Statistics of its values; the spread is the standard deviation.
    importance : float or None
        How much the recommended model's predictions change with it; all columns add up to one.

    Examples
    --------
    >>> from kitchenette.report import ColumnSummary
    >>> ColumnSummary("age", "numbers", 40.0, 12.0, 18.0, 39.0, 90.0).importance is None
    True
    """

    name: str
    kind: str
    mean: float
    spread: float
    least: float
    median: float
    greatest: float
    importance: float | None = None


@dataclass(frozen=True)
class Reliability:
    """A calibration curve of the probabilities of predicted classes.

    Attributes
    ----------
    predicted, observed : tuple of float
        For each bin, the mean probability of the predicted class, and how often it was right.
    counts : tuple of int
        The number of test rows in each bin.

    Examples
    --------
    >>> from kitchenette.report import Reliability
    >>> Reliability((0.6, 0.9), (0.5, 0.95), (20, 80)).counts
    (20, 80)
    """

    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix.

    Attributes
    ----------
    labels : tuple of str
        The classes.
    counts : tuple of tuple of int
        For each true class, how many test rows were predicted as each class.

    Examples
    --------
    >>> from kitchenette.report import Confusion
    >>> Confusion(("cat", "dog"), ((9, 1), (0, 10))).counts[0]
    (9, 1)
    """

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Residuals:
    """A histogram of residuals.

    Attributes
    ----------
    edges : tuple of float
        The ends of the bins of the residuals, targets minus predictions.
    counts : tuple of int
        The number of test rows in each bin.
    coverage : float or None
        The share of test rows within 1.96 predicted standard deviations; 0.95 is right.

    Examples
    --------
    >>> from kitchenette.report import Residuals
    >>> Residuals((-1.0, 0.0, 1.0), (50, 50), 0.95).coverage
    0.95
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    coverage: float | None = None


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`: measurements of models, the data, and a recommendation.

    Attributes
    ----------
    title : str
        What was compared.
    task : str
        "classification" or "regression".
    error_name : str
        What the errors are.
    n_rows, n_test_rows, n_columns : int
        The number of rows to learn from, of test rows and of columns.
    measurements : tuple of Measurement
        All models.
    recommended : str
        The name of the recommended model.
    advice : tuple of str
        Sentences: which map to take, and why.
    data : tuple of str
        Sentences: a description of the data.
    columns : tuple of ColumnSummary
        The columns.
    left_out : tuple of str
        Sentences: models without time.
    reliability : Reliability or None
        The calibration of the recommended model's probabilities.
    confusion : Confusion or None
        Its confusions of classes.
    residuals : Residuals or None
        Its errors in regression.
    seconds : float
        The time that the comparison took.
    seed : int
        The seed of the split and of the maps.
    version : str
        The version of this package.

    Examples
    --------
    >>> import json
    >>> from sklearn.datasets import load_diabetes
    >>> from kitchenette.report import Comparison, compare
    >>> X, y = load_diabetes(return_X_y=True)
    >>> found = compare(X, y, maps=("Fastfood",), sizes=(64,), budget=2, random_state=0)
    >>> Comparison.from_json(json.loads(json.dumps(found.to_json()))) == found
    True
    """

    title: str
    task: str
    error_name: str
    n_rows: int
    n_test_rows: int
    n_columns: int
    measurements: tuple[Measurement, ...]
    recommended: str
    advice: tuple[str, ...]
    data: tuple[str, ...]
    columns: tuple[ColumnSummary, ...]
    left_out: tuple[str, ...] = ()
    reliability: Reliability | None = None
    confusion: Confusion | None = None
    residuals: Residuals | None = None
    seconds: float = 0.0
    seed: int = 0
    version: str = ""

    def to_json(self) -> dict[str, Any]:
        """The comparison as dictionaries, lists, strings and numbers.

        Returns
        -------
        document : dict
            For `json.dumps`.
        """
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`.

        Parameters
        ----------
        document : mapping
            What `json.loads` returns.

        Returns
        -------
        comparison : Comparison
        """
        values = {name: _immutable(value) for name, value in document.items()}
        values["measurements"] = tuple(Measurement(**row) for row in document["measurements"])
        values["columns"] = tuple(ColumnSummary(**row) for row in document["columns"])
        parts = {"reliability": Reliability, "confusion": Confusion, "residuals": Residuals}
        for name, part in parts.items():
            listed = document.get(name)
            if listed is not None:
                values[name] = part(**{key: _immutable(value) for key, value in listed.items()})
        return cls(**values)


def _immutable(value: Any) -> Any:
    """Lists as tuples, at every depth."""
    return tuple(map(_immutable, value)) if isinstance(value, list | tuple) else value


def of_error(row: Measurement, task: str) -> str:
    """An error: a percentage of wrong classes, or a number."""
    return "unknown" if row.error is None else of_share(row.error, task)
