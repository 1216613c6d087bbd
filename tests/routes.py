"""The same rows by every route into a model: arrays, frames, files, batches, shards, clusters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import kitchenette
from kitchenette.data import source
from kitchenette.jobs import Checkpoint, merge_shards
from kitchenette.training import Hooks, Model, Partial, partial, prepare, train

TARGET, WEIGHT, FOLDER = "target", "weight", "region"  # FOLDER is a column of hive folders
N_PARTITIONS = 7


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as a data frame whose last column is FOLDER, with targets and perhaps weights."""

    frame: pd.DataFrame
    y: Any
    weights: Any = None

    @property
    def is_numeric(self) -> bool:
        """Whether all columns are numbers, so that the rows can be an array."""
        return all(dtype.kind in "iuf" for dtype in self.frame.dtypes)

    @property
    def array(self) -> np.ndarray:
        return self.frame.to_numpy(np.float64)

    @property
    def table(self) -> pd.DataFrame:
        """Columns, targets and weights in one frame."""
        others = {TARGET: self.y} | ({} if self.weights is None else {WEIGHT: self.weights})
        return self.frame.assign(**others)

    @property
    def roles(self) -> dict[str, str]:
        """The options of `source` for the table."""
        return {"target": TARGET} | ({} if self.weights is None else {"weight": WEIGHT})

    def part(self, which: Any) -> Rows:
        weights = None if self.weights is None else self.weights[which]
        return Rows(self.frame.iloc[which].reset_index(drop=True), self.y[which], weights)

    def parts(self, n_parts: int) -> list[Rows]:
        cuts = np.linspace(0, len(self.y), n_parts + 1).astype(int)
        return [self.part(slice(*cut)) for cut in pairwise(cuts)]


def numbers(n_rows: int, seed: int, gaps: float = 0.0) -> Rows:
    """Columns of numbers, many of them zero, and some rows repeated; some values may be missing."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n_rows, 4)) < [0, 0.3, 0.3, 0.6], 0.0, rng.normal(size=(n_rows, 4)))
    frame = pd.DataFrame(X, columns=[*"abcd"])
    frame[FOLDER] = rng.integers(3, size=n_rows)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + frame[FOLDER].to_numpy()
    y += 0.3 * rng.normal(size=n_rows)
    frame = frame.mask(rng.random(frame.shape) < [0, *[gaps] * 3, 0]) if gaps else frame
    return Rows(frame, y).part(repeated(n_rows, rng))


def strings(n_rows: int, seed: int) -> Rows:
    """Columns of numbers, strings and booleans, with missing values, and some rows repeated."""
    rng = np.random.default_rng(seed)
    price = rng.lognormal(size=n_rows)
    size, color = rng.normal(size=n_rows), rng.integers(4, size=n_rows)
    region = rng.integers(3, size=n_rows)
    frame = pd.DataFrame(
        {
            "price": price,
            "size": np.where(rng.random(n_rows) < 0.1, np.nan, size),
            "count": rng.integers(9, size=n_rows),
            "color": np.where(
                rng.random(n_rows) < 0.05, None, np.array(["red", "green", "blue", "gray"])[color]
            ),
            "wet": rng.random(n_rows) < 0.5,
            FOLDER: np.array(["north", "south", "west"])[region],
        }
    )
    y = np.sin(2 * size) + np.log(price) + color + region * frame["wet"] + 0.1 * frame["count"]
    y = y.to_numpy() + 0.3 * rng.normal(size=n_rows)
    return Rows(frame, y).part(repeated(n_rows, rng))


def categories(n_rows: int, seed: int) -> Rows:
    """Strings and whole numbers alone, rows of which repeat by nature, and three classes."""
    rows = strings(n_rows, seed)
    return with_labels(replace(rows, frame=rows.frame.drop(columns=["price", "size"])))


def repeated(n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of rows, a tenth of which are copies of others."""
    indices = np.arange(n_rows)
    indices[::10] = rng.integers(n_rows, size=indices[::10].size)
    return indices


def with_labels(rows: Rows) -> Rows:
    """The same rows with three classes of strings."""
    cuts = np.quantile(rows.y, [0.3, 0.6])
    return replace(rows, y=np.array(["low", "middle", "high"])[np.digitize(rows.y, cuts)])


def with_weights(rows: Rows) -> Rows:
    """The same rows with whole weights, some of which are zero."""
    weights = np.random.default_rng(9).integers(0, 4, size=len(rows.y)).astype(float)
    return replace(rows, weights=weights)


# ---------------------------------------------------------------- in memory


def of_array(model: Any, rows: Rows, folder: Path) -> Any:
    return model.fit(rows.array, rows.y, rows.weights)


def of_columns(model: Any, rows: Rows, folder: Path) -> Any:
    return model.fit(np.asfortranarray(rows.array), rows.y, rows.weights)


def of_sparse(model: Any, rows: Rows, folder: Path) -> Any:
    return model.fit(sp.csr_array(rows.array), rows.y, rows.weights)


def of_pandas(model: Any, rows: Rows, folder: Path) -> Any:
    return model.fit(rows.frame, rows.y, rows.weights)


def of_polars(model: Any, rows: Rows, folder: Path) -> Any:
    return model.fit(pl.from_pandas(rows.frame), rows.y, rows.weights)


def of_arrow(model: Any, rows: Rows, folder: Path) -> Any:
    return model.fit(pa.Table.from_pandas(rows.frame), rows.y, rows.weights)


def of_dict(model: Any, rows: Rows, folder: Path) -> Any:
    """Columns by name in a dictionary."""
    columns = {name: rows.frame[name].to_numpy() for name in rows.frame}
    return model.fit(columns, rows.y, rows.weights)


def of_permuted(model: Any, rows: Rows, folder: Path) -> Any:
    return of_pandas(model, rows.part(np.random.default_rng(5).permutation(len(rows.y))), folder)


def of_array_source(model: Any, rows: Rows, folder: Path) -> Any:
    return model.fit(source(rows.array, target=rows.y, weight=rows.weights))


def of_frame_source(model: Any, rows: Rows, folder: Path) -> Any:
    return model.fit(source(rows.table, **rows.roles))


# ---------------------------------------------------------------- files


def of_mapped_file(model: Any, rows: Rows, folder: Path) -> Any:
    """A file of NumPy, which is mapped into memory."""
    np.save(folder / "rows.npy", rows.array)
    return model.fit(source(folder / "rows.npy", target=rows.y, weight=rows.weights))


def one_parquet(rows: Rows, folder: Path) -> Path:
    rows.table.to_parquet(folder / "rows.parquet", row_group_size=1 + len(rows.y) // 3)
    return folder / "rows.parquet"


def of_parquet(model: Any, rows: Rows, folder: Path) -> Any:
    return model.fit(source(one_parquet(rows, folder), **rows.roles))


def of_parquets(model: Any, rows: Rows, folder: Path) -> Any:
    for number, part in enumerate(rows.parts(3)):
        part.table.to_parquet(folder / f"{number}.parquet")
    return model.fit(source(folder / "*.parquet", **rows.roles))


def of_hive_folders(model: Any, rows: Rows, folder: Path) -> Any:
    for value, part in rows.table.groupby(FOLDER):
        (folder / f"{FOLDER}={value}").mkdir()
        part.drop(columns=FOLDER).to_parquet(folder / f"{FOLDER}={value}" / "0.parquet")
    return model.fit(source(folder, **rows.roles))


def of_csv(model: Any, rows: Rows, folder: Path) -> Any:
    rows.table.to_csv(folder / "rows.csv", index=False)
    return model.fit(source(folder / "rows.csv", **rows.roles))


def of_svmlight(model: Any, rows: Rows, folder: Path) -> Any:
    is_text = rows.y.dtype.kind in "OU"  # the format has numbers only
    stored = np.unique(rows.y, return_inverse=True)[1] if is_text else rows.y
    lines = [  # `dump_svmlight_file` of scikit-learn rounds to 16 digits, of which 17 are needed
        " ".join([repr(y), *(f"{j}:{value!r}" for j, value in enumerate(row, start=1) if value)])
        for y, row in zip(stored.tolist(), rows.array.tolist(), strict=True)
    ]
    (folder / "rows.svmlight").write_text("\n".join(lines) + "\n")
    read = source(folder / "rows.svmlight")
    assert np.array_equal(read.targets()[0], stored)
    read = read.with_targets(rows.y) if is_text else read
    return model.fit(read if rows.weights is None else read.with_weights(rows.weights))


# ---------------------------------------------------------------- in parts


def of_batches(model: Any, rows: Rows, folder: Path) -> Any:
    """`partial_fit` in batches of an estimator that was prepared on all rows."""
    prepared = prepare(model, rows.frame, rows.y, rows.weights)
    for batch in rows.parts(5):
        prepared.partial_fit(batch.frame, batch.y, sample_weight=batch.weights)
    return prepared.solve()


def of_a_frozen_map(model: Any, rows: Rows, folder: Path) -> Any:
    """`partial_fit` in batches of an estimator that was given a fitted map."""
    fitted = prepare(model, rows.frame, rows.y, rows.weights).feature_map_
    model = clone(model).set_params(feature_map=FrozenEstimator(fitted))
    options = {} if rows.y.dtype.kind == "f" else {"classes": np.unique(rows.y)}
    for batch in rows.parts(5):
        model.partial_fit(batch.frame, batch.y, sample_weight=batch.weights, **options)
    return model.solve()


def stored_shards(model: Any, rows: Rows, folder: Path, n_shards: int) -> Iterator[Path]:
    """Files of the statistics of parts of the rows, as shards and checkpoints are stored."""
    read = source(one_parquet(rows, folder), **rows.roles)
    prepared = prepare(model, read)
    begun = Checkpoint(read.fingerprint(), {}, prepared, {"n_shards": n_shards}, len(rows.y))
    stop = 0
    for number, part in enumerate(rows.parts(n_shards), start=1):
        stop += len(part.y)
        path = folder / f"{number}.shard"
        learned = partial(prepared, part.frame, part.y, part.weights)
        facts = {**begun.facts, "shard": number}
        kitchenette.save(replace(begun, partial=learned, stop=stop, facts=facts), path)
        yield path


def of_shards(model: Any, rows: Rows, folder: Path) -> Any:
    return merge_shards([*stored_shards(model, rows, folder, 3)][::-1])


class StoppedError(Exception):
    """A fit is stopped in the midst."""


def of_a_resumed_fit(model: Any, rows: Rows, folder: Path) -> Any:
    """A fit that stored checkpoints and was stopped, and another one that goes on with them."""
    read = source(one_parquet(rows, folder), **rows.roles)
    read.block_rows = lambda: len(rows.y) // 3  # type: ignore[method-assign]
    state = Checkpoint(read.fingerprint(), {}, clone(model), {}, len(rows.y))

    def prepared(found: Model) -> None:
        state.prepared.model_ = found

    def stored(learned: Partial, stop: int) -> None:
        if stop > len(rows.y) // 2:
            raise StoppedError
        kitchenette.save(replace(state, partial=learned, stop=stop), folder / "checkpoint")

    with suppress(StoppedError):
        problem = state.prepared.checked_problem()
        train(read, problem, Hooks(prepared=prepared, checkpoint=stored))
    del state, read
    read = source(folder / "rows.parquet", **rows.roles)
    state = kitchenette.load(folder / "checkpoint")
    assert 0 < state.stop < len(rows.y)
    assert state.inputs == read.fingerprint()
    begun = state.prepared.model_.with_partial(state.partial)
    hooks = Hooks(resumed=begun, start=state.stop)
    state.prepared.model_ = train(read, begun.problem, hooks)
    return state.prepared.solve()


# ---------------------------------------------------------------- clusters


def slowly(part: Any, pause: float) -> Any:
    """A partition, after a pause in which somebody may kill the worker."""
    time.sleep(pause)
    return part


def of_dask_array(model: Any, rows: Rows, folder: Path, pause: float = 0.0) -> Any:
    import dask.array as da

    size = 1 + len(rows.y) // N_PARTITIONS
    X = da.from_array(rows.array, chunks=(size, 3)).rechunk({1: -1})
    y, weights = (
        None if values is None else da.from_array(values, chunks=size)
        for values in (rows.y, rows.weights)
    )
    return model.fit(X.map_blocks(slowly, pause, dtype=float) if pause else X, y, weights)


def of_dask_frame(model: Any, rows: Rows, folder: Path, pause: float = 0.0) -> Any:
    import dask.dataframe as dd

    from kitchenette.dask import source as dask_source

    frame = dd.from_pandas(rows.table, npartitions=N_PARTITIONS)
    frame = frame.map_partitions(slowly, pause, meta=frame._meta) if pause else frame
    return model.fit(dask_source(frame, **rows.roles))


def of_spark_frame(model: Any, rows: Rows, folder: Path) -> Any:
    """A frame of Spark in the session that is active."""
    from pyspark.sql import SparkSession

    from kitchenette.spark import frame_source

    frame = SparkSession.getActiveSession().createDataFrame(pa.Table.from_pandas(rows.table))
    frame = frame.repartition(N_PARTITIONS)
    return model.fit(frame_source(frame, [*rows.frame], *rows.roles.values()))


def of_spark_files(model: Any, rows: Rows, folder: Path) -> Any:
    """Files that the executors of Spark read."""
    from kitchenette.spark import over_files

    files = source(one_parquet(rows, folder), **rows.roles)
    with over_files(files, "local[2]") as there:
        return model.fit(there)


# ---------------------------------------------------------------- lists of routes

Route = Callable[[Any, Rows, Path], Any]
ARRAYS: dict[str, Route] = {
    "array": of_array,
    "Fortran array": of_columns,
    "source of an array": of_array_source,
    "mapped file": of_mapped_file,
}
SPARSE: dict[str, Route] = {"sparse": of_sparse, "SVMlight": of_svmlight}
DASK_ARRAYS: dict[str, Route] = {"Dask array": of_dask_array}
TABLES: dict[str, Route] = {
    "pandas": of_pandas,
    "polars": of_polars,
    "Arrow": of_arrow,
    "dict": of_dict,
    "permuted": of_permuted,
    "source of a frame": of_frame_source,
    "Parquet": of_parquet,
    "many Parquet files": of_parquets,
    "hive folders": of_hive_folders,
    "CSV": of_csv,
    "resumed": of_a_resumed_fit,
    "shards": of_shards,
    "batches": of_batches,
    "frozen map": of_a_frozen_map,
    "Dask frame": of_dask_frame,
}
SPARK: dict[str, Route] = {"Spark frame": of_spark_frame, "files on Spark": of_spark_files}
ROUTES: dict[str, Route] = {**ARRAYS, **SPARSE, **DASK_ARRAYS, **TABLES}


def can_go(rows: Rows, route: str) -> bool:
    """Whether these rows can be an array, and a sparse one, if the route needs that."""
    if route in SPARSE:
        return rows.is_numeric and not rows.frame.isna().any(axis=None)
    return rows.is_numeric or route not in {*ARRAYS, *DASK_ARRAYS}
