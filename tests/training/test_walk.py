"""The walk of one row through `fit` as `docs/architecture.md` tells it, each step once."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kitchenette import AutoMap, Fastfood, KernelClassifier
from kitchenette.data import source
from kitchenette.kernels import Gaussian
from kitchenette.learning import partial
from kitchenette.learning.target_coding import ClassCoding
from kitchenette.maps.base import RowMap
from kitchenette.maps.table_map import TableMap
from kitchenette.training import prepared

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
N_ROWS = 600
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N_ROWS, 3))
LABELS = np.where(X[:, 0] + 0.3 * RNG.normal(size=N_ROWS) > 0, "far", "near")


def steps():
    """The steps of the walk: for each one the functions of Python that are named."""
    text = PAGE.read_text(encoding="utf-8").split("## The walk of one row")[1]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", text.split("\n\n")[2], flags=re.MULTILINE)
    found = {}
    for step, functions in rows[1:]:
        # What comes after a colon is the way of other rows, or of other maps.
        here = re.sub(r"; [^;]*: .*", "", re.sub(r"native `[^`]*`", "", functions))
        found[step] = re.findall(r"`([^`]+)`", here)
    return found


def calls(function):
    """The names of all functions of the package that are called, in the order of their calls."""
    found = []

    def note(frame, event, _):
        if event == "call" and "kitchenette" in frame.f_code.co_filename:
            found.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return found


def fit_and_predict():
    feature_map = AutoMap(32, kernel=Gaussian(), scales="columns")
    model = KernelClassifier(feature_map, random_state=0).fit(X, LABELS)
    model.predict(X[:5])
    model.predictor()(X[0])


def test_the_walk_of_one_row_is_as_the_page_tells_it():
    walk, called = steps(), calls(fit_and_predict)
    assert 5 <= len(walk) <= 10
    at = -1
    for step, functions in walk.items():
        assert functions, step
        places = [called.index(name) for name in functions if name in called]
        assert len(places) == len(functions), f"{step}: {[f for f in functions if f not in called]}"
        assert places == sorted(places), step
        assert places[0] > at, step
        at = places[0]


# ---------------------------------------------------------------- each row once


@pytest.fixture
def touched(monkeypatch):
    """How many rows went through each function."""
    counts = Counter()

    def counting(owner, name, rows):
        function = getattr(owner, name)

        def counted(*given, **options):
            counts[name] += rows(*given)
            return function(*given, **options)

        monkeypatch.setattr(owner, name, counted)

    def n_rows(*given):
        return next(one.shape[0] for one in given if hasattr(one, "shape"))

    counting(
        sys.modules["kitchenette.training.train"],
        "checked_first_rows",
        lambda estimator, feature_map, X: X.shape[0],
    )
    counting(prepared.Prepared, "checked", n_rows)
    counting(RowMap, "rows", n_rows)
    counting(TableMap, "rows", n_rows)
    counting(ClassCoding, "encoded", lambda coding, y: len(y))
    monkeypatch.setattr(ClassCoding, "of", counted_labels(ClassCoding.of, counts))
    for module in (sys.modules["kitchenette.data.drawing"], partial):
        counting(module, "row_keys", n_rows)
    return counts


def counted_labels(function, counts):
    def counted(y, *others):
        counts["encoded"] += len(y)
        return function(y, *others)

    return staticmethod(counted)


@pytest.mark.parametrize("feature_map", [Fastfood(n_components=32), AutoMap(32, kernel=Gaussian())])
def test_rows_of_an_array_are_checked_hashed_and_encoded_once(touched, feature_map):
    KernelClassifier(feature_map, random_state=0).fit(X, LABELS)
    assert touched["checked_first_rows"] == N_ROWS  # their columns and types
    assert touched["checked"] == 0
    assert touched["rows"] == N_ROWS  # their values, and one row to ask for the precision
    assert touched["row_keys"] == N_ROWS
    assert touched["encoded"] == N_ROWS


@pytest.mark.parametrize("feature_map", [Fastfood(n_components=32), AutoMap(32, kernel=Gaussian())])
def test_rows_of_a_file_are_checked_and_encoded_once_and_those_of_the_sample_once_more(
    touched, feature_map, tmp_path, monkeypatch
):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=[*"abc"]).assign(target=LABELS)
    frame.to_parquet(tmp_path / "rows.parquet")
    n_sampled = 100
    module = sys.modules["kitchenette.data.source"]
    monkeypatch.setattr(module, "sample_size", lambda n_columns: n_sampled)
    KernelClassifier(feature_map, random_state=0).fit(
        source(tmp_path / "rows.parquet", target="target")
    )
    assert touched["checked_first_rows"] == n_sampled  # on which the map is fitted
    assert touched["checked"] == N_ROWS
    assert touched["rows"] == N_ROWS + n_sampled
    assert touched["encoded"] == N_ROWS + n_sampled
    # Once for the sample and once for the validation rows, as two passes read them; an `AutoMap`
    # of a table compares its prepared rows, of which some may be equal.
    assert touched["row_keys"] in (2 * N_ROWS, 2 * N_ROWS + n_sampled)
