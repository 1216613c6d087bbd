"""Arrays and data frames behave alike: missing values, the order of columns, further columns."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kitchenette
from kitchenette import Fastfood, KernelClassifier, KernelPCA, KernelRegressor
from kitchenette.data import source
from kitchenette.kernels import Gaussian

MAP = Fastfood(Gaussian(1.5), n_components=32, random_state=0)
SCALED = make_pipeline(StandardScaler(), MAP)
NAMES = ["a", "b", "c"]
X = np.random.default_rng(0).normal(size=(90, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1]
FRAME = pd.DataFrame(X, columns=NAMES)
WORDS = np.array(["u", "v", "w"])[np.arange(90) % 3]
GAPS = X.copy()
GAPS[::7, 1] = np.nan
GAPS[3, 0] = np.nan

FORMATS = {
    "list": lambda rows: rows.tolist(),
    "objects": lambda rows: np.where(np.isnan(rows), None, rows.astype(object)),
    "pandas": lambda rows: pd.DataFrame(rows, columns=NAMES),
    "nullable": lambda rows: pd.DataFrame(rows, columns=NAMES).astype("Float64"),
    "pandas objects": lambda rows: (
        pd.DataFrame(rows, columns=NAMES).astype(object).where(~np.isnan(rows), pd.NA)
    ),
    "polars": lambda rows: pl.DataFrame(rows, schema=NAMES),
    "polars nulls": lambda rows: pl.DataFrame(rows, schema=NAMES).fill_nan(None),
    "arrow": lambda rows: pa.table(dict(zip(NAMES, rows.T, strict=True))),
    "columns": lambda rows: dict(zip(NAMES, rows.T, strict=True)),
}


def regressor(feature_map=MAP):
    return KernelRegressor(feature_map, alpha=0.1, random_state=0)


# ---------------------------------------------------------------- missing values


@pytest.mark.parametrize("feature_map", [MAP, SCALED], ids=["map", "scaler"])
@pytest.mark.parametrize("name", FORMATS)
def test_missing_values_in_fit_are_filled_alike(name, feature_map):
    expected = regressor(feature_map).fit(GAPS, Y)
    rows = FORMATS[name](GAPS)
    model = regressor(feature_map).fit(rows, Y)
    for later in (X, GAPS):
        np.testing.assert_allclose(
            model.predict(FORMATS[name](later)), expected.predict(later), rtol=1e-6, atol=1e-9
        )


@pytest.mark.parametrize("feature_map", [MAP, SCALED], ids=["map", "scaler"])
@pytest.mark.parametrize("name", FORMATS)
def test_missing_values_of_later_rows_are_filled_with_medians(name, feature_map):
    model = regressor(feature_map).fit(FORMATS[name](X), Y)
    filled = np.where(np.isnan(GAPS), np.median(X, axis=0), GAPS)
    np.testing.assert_allclose(
        model.predict(FORMATS[name](GAPS)), model.predict(FORMATS[name](filled)), rtol=1e-9
    )


def test_a_column_of_strings_does_not_change_what_becomes_of_missing_values():
    with_strings = regressor().fit(FRAME.assign(s=WORDS), Y)
    gaps = pd.DataFrame(GAPS, columns=NAMES).assign(s=WORDS)
    filled = gaps.fillna(FRAME.median())
    np.testing.assert_allclose(with_strings.predict(gaps), with_strings.predict(filled), rtol=1e-9)


@pytest.mark.parametrize("rows", [X, GAPS], ids=["known", "missing"])
def test_missing_values_survive_files_copies_and_updates(rows, tmp_path):
    model = regressor().fit(rows, Y)
    expected = model.predict(GAPS)
    kitchenette.save(model, tmp_path / "model")
    loaded = kitchenette.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(GAPS), expected)
    kitchenette.save(model, tmp_path / "small", statistics=False)
    assert np.array_equal(kitchenette.load(tmp_path / "small").predict(GAPS), expected)
    once = regressor().fit(np.r_[rows, GAPS], np.r_[Y, Y])
    updated = clone(model).set_params(feature_map=FrozenEstimator(model.feature_map_))
    updated.fit(rows, Y).partial_fit(GAPS, Y)
    assert updated.statistics_.n_rows == once.statistics_.n_rows
    assert np.isfinite(updated.predict(GAPS)).all()


@pytest.mark.parametrize("rows", [X, GAPS], ids=["known", "missing"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictors_fill_as_predict_does(rows, dtype):
    model = regressor().fit(rows.astype(dtype), Y)
    predict = model.predictor()
    expected = model.predict(GAPS.astype(dtype))
    np.testing.assert_allclose(predict(GAPS.astype(dtype)), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        [predict(row) for row in GAPS[:9].astype(dtype)], expected[:9], rtol=1e-5, atol=1e-6
    )
    assert predict([None, *X[0, 1:]]) == predict([np.nan, *X[0, 1:]])


def test_sources_of_arrays_fill_as_arrays_do(tmp_path):
    np.save(tmp_path / "rows.npy", GAPS)
    expected = regressor().fit(GAPS, Y).predict(GAPS)
    for rows in (GAPS, tmp_path / "rows.npy"):
        model = regressor().fit(source(rows, target=Y))
        np.testing.assert_allclose(model.predict(source(rows)), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="missing='refuse' does not allow"):
        regressor().fit(source(GAPS, target=Y, missing="refuse"))


def test_the_order_of_rows_does_not_change_what_is_filled():
    order = np.random.default_rng(1).permutation(90)
    one, other = regressor().fit(GAPS, Y), regressor().fit(GAPS[order], Y[order])
    np.testing.assert_allclose(one.predict(GAPS), other.predict(GAPS), rtol=1e-9, atol=1e-9)


def test_a_column_without_any_number_is_no_error():
    empty = np.c_[X, np.full(90, np.nan)]
    frame = pd.DataFrame(empty, columns=[*NAMES, "d"])
    np.testing.assert_allclose(
        regressor().fit(empty, Y).predict(empty), regressor().fit(frame, Y).predict(frame)
    )


def test_components_of_rows_with_missing_values():
    one = KernelPCA(2, MAP).fit(GAPS).transform(GAPS)
    other = KernelPCA(2, MAP).fit(FORMATS["pandas"](GAPS)).transform(FORMATS["pandas"](GAPS))
    np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize(
    ("learn", "sentence"),
    [
        (lambda: clone(MAP).fit(GAPS), "NaN.*columns 0, 1, which Fastfood does not take"),
        (
            lambda: clone(MAP).fit(FORMATS["pandas"](GAPS)),
            "NaN.*columns 'a', 'b', which Fastfood does not take",
        ),
        (lambda: clone(MAP).fit(X).transform(GAPS), "NaN.*columns 0, 1"),
        (lambda: regressor().fit(sp.csr_array(GAPS), Y), "NaN in a sparse matrix"),
        (lambda: regressor().fit(X, Y).predict(sp.csr_array(GAPS)), "NaN in a sparse matrix"),
        (lambda: regressor(RBFSampler()).fit(GAPS, Y), "which RBFSampler does not take"),
        (lambda: regressor(RBFSampler()).fit(X, Y).predict(GAPS), "which RBFSampler does not"),
        (lambda: kitchenette.choose(GAPS, Y), "which AutoMap does not take"),
    ],
)
def test_other_missing_values_are_refused_without_advice_for_trees(learn, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        learn()
    assert "HistGradientBoosting" not in str(caught.value)


# ---------------------------------------------------------------- columns


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow", "columns"])
@pytest.mark.parametrize("strings", [False, True], ids=["numbers", "strings"])
def test_columns_are_found_by_name_among_others(strings, library):
    def rows(names):
        chosen = FRAME.assign(s=WORDS, other=0.5)[names]
        if library == "columns":
            return chosen.to_dict("list")
        made = {"pandas": lambda f: f, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}
        return made[library](chosen)

    names = [*NAMES, "s"] if strings else NAMES
    model = regressor().fit(rows(names), Y)
    expected = model.predict(rows(names))
    assert np.array_equal(model.predict(rows(names[::-1])), expected)
    assert np.array_equal(model.predict(rows(["other", *names[::-1]])), expected)
    for call in (model.predict, model.predictor()):
        with pytest.raises(ValueError, match=r"columns are missing: b\. There are a, c"):
            call(rows([name for name in names if name != "b"]))


@pytest.mark.parametrize("strings", [False, True], ids=["numbers", "strings"])
def test_further_columns_may_be_of_any_kind(strings):
    frame = FRAME.assign(s=WORDS) if strings else FRAME
    model = regressor().fit(frame, Y)
    others = frame.assign(when=pd.Timestamp("2020-02-01"), z=1j, o=[object()] * 90)
    assert np.array_equal(model.predict(others), model.predict(frame))


@pytest.mark.parametrize("strings", [False, True], ids=["numbers", "strings"])
def test_names_that_are_numbers_among_strings_become_strings(strings):
    frame = FRAME.assign(s=WORDS if strings else 0.0).rename(columns={"c": 3})
    model = regressor().fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "3", "s"]
    assert np.array_equal(model.predict(frame[["s", 3, "b", "a"]]), model.predict(frame))


# ---------------------------------------------------------------- JSON


@pytest.mark.parametrize(
    "labels",
    [
        np.arange(90) % 3,
        (np.arange(90) % 3).astype(np.int8),
        np.arange(90) % 2 == 0,
        WORDS,
        WORDS.astype(object),
        (np.arange(90) % 3).astype(object),
        pd.Series(np.arange(90) % 3, dtype="Int64"),
        pd.Series(WORDS, dtype="category"),
    ],
    ids=lambda labels: str(labels.dtype),
)
@pytest.mark.parametrize("rows", [X, FRAME.assign(s=WORDS)], ids=["array", "strings"])
def test_a_predicted_label_can_be_written_as_json(labels, rows):
    model = KernelClassifier(MAP, alpha=0.1).fit(rows, labels)
    row = rows[0] if isinstance(rows, np.ndarray) else rows.iloc[0].to_dict()
    answer = model.predictor()(row)
    assert json.loads(json.dumps(answer)) == model.predict(rows[:1])[0]


def test_a_predicted_number_can_be_written_as_json():
    model = regressor().fit(X, Y)
    assert json.loads(json.dumps(model.predictor()(X[0]))) == pytest.approx(model.predict(X[:1])[0])
