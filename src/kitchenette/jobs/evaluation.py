"""`evaluate_rows`: the errors of a model on any number of rows, in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from kitchenette.data import DataError, Source
from kitchenette.estimators import KernelClassifier
from kitchenette.jobs.columns import counted_blocks, source_for
from kitchenette.learning.losses import LOSSES

LEAST_PROBABILITY = 1e-15  # so that the log loss is finite


@dataclass(frozen=True)
class Evaluation:
    """The errors of predictions.

    Attributes
    ----------
    task : str
        "classification" or "regression".
    n_rows : int
        The number of rows.
    error : float
        The share of wrong predictions, or the root mean square error over the standard deviation
        of the targets, averaged over targets.
    trivial_error : float
        The error of predicting the most frequent class of these rows, or their mean.
    log_loss : float or None
        The negative mean log-probability of the true class.
    rmse, mae, r2 : tuple of float or None
        For each target, the root mean square error, the mean absolute error and the
        coefficient of determination.
    labels : tuple or None
        The classes, including those that the model does not have.
    confusion : tuple of tuple of int or None
        For each true class, how often each class was predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.data import source
    >>> from kitchenette.jobs import evaluate_rows
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(X, X[:, 0])
    >>> evaluate_rows(model, source(X, target=X[:, 0])).r2[0] > 0.99
    True
    """

    task: str
    n_rows: int
    error: float
    trivial_error: float
    log_loss: float | None = None
    rmse: tuple[float, ...] | None = None
    mae: tuple[float, ...] | None = None
    r2: tuple[float, ...] | None = None
    labels: tuple[Any, ...] | None = None
    confusion: tuple[tuple[int, ...], ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """The same as a dictionary."""
        return asdict(self)


def evaluate_rows(
    model: Any, source: Source, *, progress: Callable[[int], None] | None = None
) -> Evaluation:
    """Compare predictions with the targets of a source.

    Parameters
    ----------
    model : KernelClassifier or KernelRegressor
        A fitted model.
    source : Source
        Rows with targets.
    progress : callable, optional
        Called with the number of rows that are done.

    Returns
    -------
    evaluation : Evaluation

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelClassifier
    >>> from kitchenette.data import source
    >>> from kitchenette.jobs import evaluate_rows
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = KernelClassifier(Fastfood(n_components=64, random_state=0)).fit(X, X[:, 0] > 0)
    >>> evaluate_rows(model, source(X, target=X[:, 0] > 0)).error < 0.1
    True
    """
    source = source_for(model, source)
    tally: Any = _Classes(model) if isinstance(model, KernelClassifier) else _Numbers(model)
    n_rows = 0
    for block in counted_blocks(source, progress):
        if block.y is None:
            raise DataError("Give the target column, as target='name'.")
        tally.add(block.X, block.y)
        n_rows = block.stop
    evaluation: Evaluation = tally.finish(n_rows)
    return evaluation


class _Classes:
    def __init__(self, model: Any):
        self._model = model
        self._counts: Counter[tuple[Any, Any]] = Counter()
        self._log_loss = 0.0
        self._probabilities = model.validation_rows > 0 or LOSSES[model.loss_].link == "softmax"

    def add(self, X: Any, y: Any) -> None:
        classes = self._model.classes_
        if (y.dtype.kind in "OUS") != (classes.dtype.kind in "OUS"):
            raise DataError(
                f"The model has labels such as {classes.tolist()[0]!r}, but the target has values "
                f"such as {y.tolist()[0]!r}."
            )
        if not self._counts and not np.isin(y, classes).any():
            raise DataError(
                f"The model has classes such as {classes.tolist()[0]!r}, but none of these is in "
                f"the first {len(y):,} rows of the target, which has values such as "
                f"{y.tolist()[0]!r}."
            )
        if self._probabilities:
            probabilities = self._model.predict_proba(X)
            predicted = classes[probabilities.argmax(axis=1)]
            has_class = np.isin(y, classes)
            places = np.searchsorted(classes, y[has_class])
            of_truth = np.zeros(len(y))
            of_truth[has_class] = probabilities[np.flatnonzero(has_class), places]
            self._log_loss -= float(np.log(np.maximum(of_truth, LEAST_PROBABILITY)).sum())
        else:
            predicted = self._model.predict(X)
        self._counts.update(zip(y.tolist(), predicted.tolist(), strict=True))

    def finish(self, n_rows: int) -> Evaluation:
        labels = sorted({*self._model.classes_.tolist(), *(true for true, _ in self._counts)})
        confusion = tuple(tuple(self._counts[true, guess] for guess in labels) for true in labels)
        right = sum(confusion[i][i] for i in range(len(labels)))
        frequent = max(sum(row) for row in confusion)
        return Evaluation(
            "classification",
            n_rows,
            1 - right / n_rows,
            1 - frequent / n_rows,
            log_loss=self._log_loss / n_rows if self._probabilities else None,
            labels=tuple(labels),
            confusion=confusion,
        )


class _Numbers:
    def __init__(self, model: Any):
        self._model = model
        self._squares: Any = 0.0
        self._absolute: Any = 0.0
        self._mean: Any = 0.0
        self._spread: Any = 0.0
        self._n_rows = 0

    def add(self, X: Any, y: Any) -> None:
        if y.dtype.kind in "OUS":
            raise DataError(
                f"The model predicts numbers, but the target has strings such as {y[0]!r}."
            )
        y = y.reshape(len(y), -1).astype(np.float64)
        predicted = self._model.predict(X).reshape(len(y), -1)
        if predicted.shape != y.shape:
            raise DataError(f"The model has {predicted.shape[1]} targets, the data {y.shape[1]}.")
        errors = y - predicted
        self._squares = self._squares + np.square(errors).sum(axis=0)
        self._absolute = self._absolute + np.abs(errors).sum(axis=0)
        # Means and squared deviations of two parts are combined as in Chan et al., 1979.
        n_rows, mean = len(y), y.mean(axis=0)
        total, difference = self._n_rows + n_rows, mean - self._mean
        self._spread = self._spread + np.square(y - mean).sum(axis=0)
        self._spread = self._spread + np.square(difference) * self._n_rows * n_rows / total
        self._mean = self._mean + difference * n_rows / total
        self._n_rows = total

    def finish(self, n_rows: int) -> Evaluation:
        varying = self._spread > 0
        rmse = np.sqrt(self._squares / n_rows)
        ratio = np.divide(
            self._squares, self._spread, out=np.full_like(self._squares, np.inf), where=varying
        )
        error = float(np.sqrt(ratio[varying]).mean()) if varying.any() else float(rmse.mean())
        r2 = tuple((1 - ratio[varying]).tolist()) if varying.all() else None
        return Evaluation(
            "regression",
            n_rows,
            error,
            1.0 if varying.any() else 0.0,
            rmse=tuple(rmse.tolist()),
            mae=tuple((self._absolute / n_rows).tolist()),
            r2=r2,
        )
