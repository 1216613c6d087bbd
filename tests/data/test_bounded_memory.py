"""The memory of a fit does not grow with the rows of its files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from peak_memory import SOURCE
from programs import printed_by
from pyarrow import parquet

resource = pytest.importorskip("resource", reason="peak memory is read with resource, on Unix only")
pytestmark = pytest.mark.slow

FIT = (
    SOURCE
    + """
import sys
from kitchenette import Fastfood, KernelRegressor
from kitchenette.data import source

rows = source(sys.argv[1], target="y")
model = KernelRegressor(Fastfood(n_components=64, random_state=0), random_state=0).fit(rows)
for block in rows.blocks():
    model.predict(block.X)
assert model.statistics_.n_rows == rows.n_rows
print(peak())
"""
)


def write(folder, n_rows):
    """Files of so many rows in all, of 10 numbers and a word."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(n_rows // 100_000):
        X = rng.normal(size=(100_000, 10)).astype(np.float32)
        columns = {f"x{j}": X[:, j] for j in range(10)}
        words = np.array(["a", "b", "c"])[rng.integers(0, 3, 100_000)]
        rows = pa.table({**columns, "word": words, "y": X[:, 0]})
        parquet.write_table(rows, folder / f"{number:05}.parquet", row_group_size=50_000)
    return str(folder / "*.parquet")


def peak_of_a_fit(path):
    """The least of several peaks: what allocators and threads keep differs from run to run."""
    return min(int(printed_by(FIT, path)) for _ in range(3))


def test_peak_memory_does_not_grow_with_the_rows(tmp_path):
    few, many = (
        peak_of_a_fit(write(tmp_path / str(n_rows), n_rows)) for n_rows in (200_000, 1_000_000)
    )
    assert many < 1.1 * few
