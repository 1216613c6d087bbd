"""The test or validation error of a fit, beside the errors of simple models.

Test rows are not in the fit. Without them, errors are those of validation rows: rows of the
sample on which the estimator was prepared, those with the smallest keys, as in the estimator
itself. Each is predicted by a model without it (`LeaveOneOut`), and the simple models predict
a third of the sample from the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.pipeline import Pipeline

from kitchenette.baselines import CHANCE, error_of, is_better, linear, relative_errors, trivial
from kitchenette.data import Block, DataError, Source, sampled_rows
from kitchenette.data.drawing import DrawnRows
from kitchenette.data.keys import LARGEST_KEY
from kitchenette.data.rows import is_table, take
from kitchenette.data.tables import kind_of, numbers_of
from kitchenette.jobs.settings import FitSettings
from kitchenette.learning.leave_one_out import LeaveOneOut, RowSample
from kitchenette.learning.passes import FeatureRows
from kitchenette.maps.table_map import TableMap
from kitchenette.training.model import Model
from kitchenette.training.prepared import Prepared

Array = NDArray[np.float64]
MOST_TEST_ROWS = 20_000  # an error of 10 % is known to 0.2 points
TEST_SEED = 1  # added to the seed, so that test rows are not those of the sample
MOST_COLUMNS_OF_LINEAR = 2000  # more take longer than the model that it is compared with
N_FOLDS = 3  # parts of the sample


@dataclass(frozen=True)
class Errors:
    """The errors of a model and of simple models on the same rows."""

    by_model: dict[str, float]  # of "model", "linear" and "trivial", those that could be computed
    not_beaten: list[str]  # the simple models that the model does not beat by more than chance
    n_rows: int


NO_ERRORS = Errors({}, [], 0)

# ---------------------------------------------------------------- test rows


def test_rows(n_rows: int, settings: FitSettings) -> NDArray[np.int64]:
    """The indices of the rows that are held back for a test."""
    size = min(MOST_TEST_ROWS, int(settings.test * n_rows))
    if size == 0:
        return np.empty(0, np.int64)
    return sampled_rows(n_rows, size, settings.seed + TEST_SEED)


def rows_to_learn(source: Source, settings: FitSettings) -> Source:
    """A source in which rows that are held back for a test have no weight."""
    if not settings.test:
        return source
    weights = source.given_values()[1]
    if isinstance(source.weight, str):
        weights = source.targets()[1]
    weights = np.ones(source.count()) if weights is None else weights.copy()
    weights[test_rows(source.count(), settings)] = 0.0
    return source.with_weights(weights)


def tested_rows(source: Source, test: Source | None, settings: FitSettings) -> Block | None:
    """The rows to test on, if there are any; rows that cannot be used are refused."""
    if test is not None:
        block = test.sample(MOST_TEST_ROWS, settings.seed)
    elif settings.test:
        numbers = test_rows(source.count(), settings)
        if numbers.size == 0:
            raise DataError(f"{source.count()} rows are too few to hold some back for a test.")
        block = source.take(numbers)
    else:
        return None
    if block.y is None:
        raise DataError("The test rows have no target.")
    _refuse_infinite(block.X)
    return block


def _refuse_infinite(X: Any) -> None:
    """Refuse rows that no model can predict, before the work of a fit is done."""
    if not is_table(X):
        if np.isinf(X.data if sp.issparse(X) else X).any():
            raise DataError("The rows to test on have infinite numbers.")
        return
    for name, values in zip(X.column_names, X.columns, strict=True):
        if kind_of(values.type) == "number" and np.isinf(numbers_of(values, "number", name)).any():
            raise DataError(f"The column {name!r} has infinite numbers in the rows to test on.")


def errors_on_test_rows(model: Any, sample: Block, tested: Block) -> Errors:
    """Errors on test rows, of the model and of simple models of the sample."""
    task, prepared = model.task, model.prepared
    assert tested.y is not None
    predicted = {"model": model.predict(tested.X)}
    weighted = sample.of_positive_weight()
    columns = _columns(prepared, prepared.checked(weighted.X))
    new = _columns(prepared, prepared.checked(tested.X))
    for name, other in _simple_models(task, columns).items():
        other.fit(columns, weighted.y, **_fit_parameters(other, weighted.weight))
        predicted[name] = other.predict(new)
    return _compared(predicted, tested.y, task)


# ---------------------------------------------------------------- validation rows


def errors_on_validation_rows(model: Any, sample: Block) -> Errors:
    """Errors on rows of the sample, each predicted by models without it; none if they are few."""
    task, prepared = model.task, model.prepared
    rows = prepared.encoded(sample, extend=True)
    X, targets, weights = rows.X, rows.targets, rows.weights
    y = rows.coding.decoded(targets)
    # By these keys the estimator chooses its validation rows.
    keys = FeatureRows(prepared.fitted, X, targets, rows.coding, np.ones(len(y))).keys()
    others = _predicted_by_simple_models(task, _columns(prepared, X), y, weights, keys)
    if model.model_.partial is None or model.loss_ != "squared":
        return _compared_by_score(model, others, y, weights)
    copies = sample.copies
    if copies is None or copies.size != keys.size:
        copies = np.ones(keys.size, np.int64)
    sampled = DrawnRows(
        size=prepared.validation_rows,
        last_key=LARGEST_KEY,
        keys=keys,
        weights=np.ones(keys.size) if weights is None else weights,
        copies=copies,
        X=np.arange(keys.size),
        y=None,
    ).distinct()
    held_out = _held_out(model.model_, sampled, X, targets)
    if not held_out.enough:
        return NO_ERRORS
    rows, weights, outputs = held_out.without_folds(model.model_.posterior)
    places = sampled.X[rows]
    predicted = {name: part[places] for name, part in others.items()}
    predicted["model"] = _decoded(model.model_, outputs)
    return _compared(predicted, y[places], task, weights)


def _held_out(model: Model, sampled: DrawnRows, X: Any, targets: NDArray[Any]) -> LeaveOneOut:
    """Rows with the statistics of all rows, by which they are predicted without themselves."""
    prepared, partial, problem = model.prepared, model.partial, model.problem
    assert partial is not None
    assert partial.statistics is not None
    batch = prepared.batch(take(X, sampled.X), targets[sampled.X], None)
    rows = RowSample(
        size=sampled.size,
        last_key=sampled.last_key,
        keys=sampled.keys,
        weights=sampled.weights,
        copies=sampled.copies,
        features=batch.Z,
        targets=batch.Y,
    )
    return LeaveOneOut(problem.path(prepared, partial), rows, rows.counts(prepared.rule))


def _decoded(model: Model, outputs: Array) -> NDArray[Any]:
    """Predictions as users see them."""
    coding, problem = model.prepared.coding, model.problem
    if problem.task == "regression":
        return np.asarray(coding.decoded(outputs))
    scores = coding.scores("squared", problem.decoding).of_all_classes(outputs)
    return np.asarray(coding.decoded(scores.argmax(axis=1)))


def _compared_by_score(
    model: Any, others: dict[str, NDArray[Any]], y: NDArray[Any], weights: Array | None
) -> Errors:
    """The same for an iterative solver, of whose validation rows the score alone is known."""
    validation, task = model.model_.solution.validation, model.task
    if validation.score is None:
        return NO_ERRORS
    own = 1.0 - validation.score
    errors = {"model": own if task == "classification" else float(np.sqrt(max(0.0, own)))}
    not_beaten = []
    n_validation = min(model.validation_rows, y.shape[0])
    for name, predicted in others.items():
        errors[name] = error_of(predicted, y, task, weights)[0]
        relative = relative_errors(predicted, y, task, weights).mean(axis=1)
        deviation = float(np.sqrt(relative.var() * (1 / relative.size + 1 / n_validation)))
        if not np.average(relative, weights=weights) - own > CHANCE * deviation:
            not_beaten.append(name)
    return Errors(errors, not_beaten, n_validation)


# ---------------------------------------------------------------- simple models


def _columns(prepared: Prepared, X: Any) -> Any:
    """Checked rows as numbers; those of tables are prepared as for the map."""
    fitted: Any = prepared.fitted
    return fitted.prepared_rows(X) if isinstance(fitted, TableMap) else fitted.rows(X)


def _simple_models(task: str, X: Any) -> dict[str, Any]:
    """A linear model, if there are not too many columns, and a trivial one."""
    models = {}
    if isinstance(X, np.ndarray) and X.shape[1] <= MOST_COLUMNS_OF_LINEAR:
        filled = SimpleImputer(keep_empty_features=True)
        models["linear"] = Pipeline([("filled", filled), *linear(task).steps])
    models["trivial"] = trivial(task)
    return models


def _fit_parameters(model: Any, weights: Array | None) -> dict[str, Array]:
    """The weights as keywords of `fit`."""
    if weights is None:
        return {}
    step = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    return {f"{step}sample_weight": weights}


def _predicted_by_simple_models(
    task: str, X: Any, y: NDArray[Any], weights: Array | None, keys: NDArray[np.uint64]
) -> dict[str, NDArray[Any]]:
    """Cross-validated predictions of all rows, in which equal rows are in the same fold."""
    fold = np.unique(keys, return_inverse=True)[1] % N_FOLDS  # keys are random
    if np.unique(fold).size < N_FOLDS:
        return {}
    split = PredefinedSplit(fold)
    return {
        name: cross_val_predict(model, X, y, cv=split, params=_fit_parameters(model, weights))
        for name, model in _simple_models(task, X).items()
    }


def _compared(
    predicted: dict[str, NDArray[Any]], y: NDArray[Any], task: str, weights: Array | None = None
) -> Errors:
    """The errors of the model and of others on the same rows."""
    order = ["model", "linear", "trivial"]
    names = sorted(predicted, key=order.index)
    errors = {name: error_of(predicted[name], y, task, weights)[0] for name in names}
    by_row = {name: relative_errors(predicted[name], y, task, weights) for name in names}
    not_beaten = [
        name for name in names[1:] if not is_better(by_row["model"], by_row[name], weights)
    ]
    return Errors(errors, not_beaten, len(y))
