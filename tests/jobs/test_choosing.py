"""Samples of a source as numbers, whose columns keep their names."""

from __future__ import annotations

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
from kitchenette.data import source  # noqa: E402 - needs pyarrow
from kitchenette.jobs import prepared_sample  # noqa: E402


def test_prepared_columns_say_what_they_are():
    frame = pd.DataFrame({"city": ["Oslo", "Rome", None, "Lima"] * 300, "y": np.arange(1200.0)})
    frame["size"] = frame["y"].where(frame["y"] % 7 > 0)
    frame.loc[:1, "city"] = ["Bergen", "Turin"]  # rare
    frame["user"] = [f"user {i}" for i in range(1100)] + ["user 0"] * 100
    sample = prepared_sample(source(frame, target="y"))
    names = ["size", "size is missing", "city = Lima", "city = Oslo", "city = Rome"]
    names += ["city = others", "city is missing", *(f"user, hash {j}" for j in range(64))]
    assert sample.names == names
    assert sample.owners.tolist() == [1, 1, *[0] * 5, *[2] * 64]
    columns = dict(zip(sample.names, sample.X.T, strict=True))
    for word in ("Lima", "Oslo", "Rome"):
        np.testing.assert_array_equal(columns[f"city = {word}"], frame["city"] == word)
    np.testing.assert_array_equal(columns["city is missing"], frame["city"].isna())
    np.testing.assert_array_equal(columns["size is missing"], frame["size"].isna())
    assert columns["city = others"].sum() == 2


def test_arrays_have_no_names():
    sample = prepared_sample(source(np.ones((5, 2)), target=np.arange(5)))
    assert (sample.names, sample.owners) == (None, None)
