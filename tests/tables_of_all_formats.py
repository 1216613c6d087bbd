"""A small table with columns of all kinds, and the same in every format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def table(n_rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """Numbers with gaps, whole numbers, booleans, strings with gaps; two targets and weights."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n_rows),
            "count": rng.integers(0, 9, n_rows),
            "color": rng.choice(["red", "green", "blue", "gray"], n_rows, p=[0.4, 0.3, 0.2, 0.1]),
            "wet": rng.random(n_rows) > 0.5,
        }
    )
    frame["price"] = (
        np.sin(2 * frame["size"]) + 2.0 * (frame["color"] == "red") + 0.1 * frame["count"]
    )
    frame["label"] = np.where(frame["price"] > 1, "dear", "cheap")
    frame["weight"] = rng.integers(1, 4, n_rows).astype(float)
    frame.loc[::7, "size"] = np.nan
    frame.loc[::11, "color"] = None
    return frame


FEATURES = ["size", "count", "color", "wet"]
OTHERS = ["price", "label", "weight"]


def _parquet(frame: pd.DataFrame, folder: Path) -> str:
    for number, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].to_parquet(folder / f"part{number}.parquet", row_group_size=50)
    return str(folder / "*.parquet")


def _directory(frame: pd.DataFrame, folder: Path) -> str:
    (folder / "all").mkdir()
    _parquet(frame, folder / "all")
    (folder / "all" / "_SUCCESS").write_text("")
    return str(folder / "all")


def _csv(frame: pd.DataFrame, folder: Path) -> str:
    frame.to_csv(folder / "table.csv", index=False)
    return str(folder / "table.csv")


def _german(frame: pd.DataFrame, folder: Path) -> str:
    path = folder / "german.csv"
    frame.to_csv(
        path, index=False, sep=";", decimal=",", encoding="utf-8-sig", lineterminator="\r\n"
    )
    return str(path)


def _compressed(frame: pd.DataFrame, folder: Path) -> str:
    frame.to_csv(folder / "table.csv.gz", index=False)
    return str(folder / "table.csv.gz")


def _feather(frame: pd.DataFrame, folder: Path) -> str:
    frame.to_feather(folder / "table.feather")
    return str(folder / "table.feather")


def _stream(frame: pd.DataFrame, folder: Path) -> str:
    import pyarrow as pa

    found = pa.Table.from_pandas(frame, preserve_index=False)
    with pa.ipc.new_stream(folder / "table.arrow", found.schema) as writer:
        writer.write_table(found, max_chunksize=70)
    return str(folder / "table.arrow")


def _categories(frame: pd.DataFrame, folder: Path) -> Any:
    return frame.astype({"color": "category"})


def _polars(frame: pd.DataFrame, folder: Path) -> Any:
    import polars as pl

    return pl.from_pandas(frame)


def _arrow(frame: pd.DataFrame, folder: Path) -> Any:
    import pyarrow as pa

    return pa.Table.from_pandas(frame)


def _duckdb(frame: pd.DataFrame, folder: Path) -> Any:
    import duckdb

    return duckdb.from_df(frame)


FORMATS: dict[str, tuple[Callable[[pd.DataFrame, Path], Any], dict[str, Any]]] = {
    "pandas": (lambda frame, folder: frame, {}),
    "pandas categories": (_categories, {}),
    "polars": (_polars, {}),
    "lazy polars": (lambda frame, folder: _polars(frame, folder).lazy(), {}),
    "pyarrow": (_arrow, {}),
    "duckdb": (_duckdb, {}),
    "parquet": (_parquet, {}),
    "directory": (_directory, {}),
    "csv": (_csv, {}),
    "german csv": (_german, {"decimal": ","}),
    "compressed csv": (_compressed, {}),
    "feather": (_feather, {}),
    "arrow stream": (_stream, {}),
}
