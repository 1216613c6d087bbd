"""`predict_rows`: predictions of any number of rows, written to a file in constant memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kitchenette.data import DataError, Source
from kitchenette.data.tables import arrow
from kitchenette.estimators import KernelClassifier, KernelRegressor
from kitchenette.files.container import replacement
from kitchenette.jobs.columns import counted_blocks, source_for
from kitchenette.jobs.outputs import refuse_input
from kitchenette.parameters import check_choice

FORMATS = (".parquet", ".csv")


def predict_rows(
    model: KernelClassifier | KernelRegressor,
    source: Source,
    out: str | os.PathLike[str],
    *,
    std: bool = False,
    proba: bool = False,
    keep: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write the predictions of all rows of a source to a file.

    Parameters
    ----------
    model : KernelClassifier or KernelRegressor
        A fitted model.
    source : Source
        The rows; columns are matched by name, if the model has names.
    out : str or path-like
        A ``.parquet`` or ``.csv`` file; an existing file is replaced atomically at the end.
    std : bool, default=False
        Whether to add standard deviations, for regression.
    proba : bool, default=False
        Whether to add the probabilities of all classes.
    keep : sequence of str, optional
        Columns of the source to copy to the file.
    progress : callable, optional
        Called with the number of predicted rows.

    Returns
    -------
    n_rows : int
        The number of predictions.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.data import source
    >>> from kitchenette.jobs import predict_rows
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(X, X[:, 0])
    >>> out = Path(tempfile.mkdtemp(), "predictions.csv")
    >>> predict_rows(model, source(X), out, std=True)
    500
    >>> out.read_text().splitlines()[0]
    '"prediction","std"'
    """
    check_wanted(model, out, std=std, proba=proba)
    refuse_input(out, source.paths)
    if keep and not source.is_table:
        raise DataError("There are no columns with names to keep.")
    source = source_for(model, source, keep)
    n_rows = 0
    with writer(Path(out)) as write:
        for block in counted_blocks(source.without_targets(), progress):
            kept = {name: block.X.column(name) for name in keep}
            predicted = predicted_columns(model, block.X, std=std, proba=proba)
            if kept.keys() & predicted.keys():
                name = min(kept.keys() & predicted.keys())
                raise DataError(f"There is a column {name!r} already: do not keep it.")
            write({**kept, **predicted})
            n_rows = block.stop
    return n_rows


def predicted_columns(model: Any, X: Any, *, std: bool, proba: bool) -> dict[str, Any]:
    """Predictions of a block of rows, by column name."""
    columns: dict[str, Any] = {}
    if proba:
        probabilities = model.predict_proba(X)
        columns["prediction"] = model.classes_[probabilities.argmax(axis=1)]
        for label, column in zip(model.classes_.tolist(), probabilities.T, strict=True):
            columns[f"probability_{label}"] = column
        return columns
    targets = getattr(model, "target_names_", None)
    if std:
        mean, deviation = model.predict(X, return_std=True)
        return {**_named("prediction", mean, targets), **_named("std", deviation, targets)}
    return _named("prediction", model.predict(X), targets)


def _named(name: str, values: Any, targets: Any) -> dict[str, Any]:
    """One column per target, by its name or its number."""
    if values.ndim == 1:
        return {name: values}
    labels = range(1, values.shape[1] + 1) if targets is None else targets
    return {f"{name}_{label}": column for label, column in zip(labels, values.T, strict=True)}


def check_wanted(
    model: Any, out: str | os.PathLike[str], *, std: bool = False, proba: bool = False
) -> None:
    """Refuse predictions that a model does not have, and other file formats; see `predict_rows`."""
    check_choice("the ending of the output", Path(out).suffix, FORMATS)
    classifies = isinstance(model, KernelClassifier)
    if std and classifies:
        raise DataError("Standard deviations are for regression; for classes, use probabilities.")
    if proba and not classifies:
        raise DataError("Probabilities are for classes; for numbers, use standard deviations.")
    if std and model.statistics_ is None:
        raise DataError(
            "This model was saved without the statistics that standard deviations need."
        )


@contextmanager
def writer(out: Path) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that writes columns to a file, which appears when it is complete."""
    pa = arrow()
    opened: list[Any] = []
    with replacement(out) as file:

        def write(columns: dict[str, Any]) -> None:
            table = pa.table({name: _array(values) for name, values in columns.items()})
            if not opened:
                opened.append(_opened(out.suffix, file, table.schema))
            opened[0].write_table(table)

        try:
            yield write
        finally:
            for one in opened:
                one.close()


def _opened(suffix: str, file: Any, schema: Any) -> Any:
    if suffix == ".csv":
        from pyarrow.csv import CSVWriter

        return CSVWriter(file, schema)
    from pyarrow.parquet import ParquetWriter

    return ParquetWriter(file, schema)


def _array(values: Any) -> Any:
    if isinstance(values, np.ndarray) and values.dtype.kind == "O":
        return arrow().array(values.tolist())
    return values
