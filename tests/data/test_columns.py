"""Columns of all kinds as numbers of the model, found by name, in memory and in files."""

from __future__ import annotations

import datetime
import pickle
from math import inf

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables_of_all_formats import FEATURES, table

import kitchenette
from kitchenette import AutoMap, Fastfood, KernelClassifier, KernelPCA, KernelRegressor
from kitchenette.columns.codings import Categories, Days, HashedCategories
from kitchenette.data import ColumnRules, DataError, source
from kitchenette.files import Budget
from kitchenette.files.fields import from_fields
from kitchenette.maps.table_map import TableMap

FRAME = table()
MAP = Fastfood(n_components=64, random_state=0)


def prepared_columns(data, **options):
    """The prepared columns of the rows of a source."""
    rows = source(data, **options)
    fitted = TableMap.fitted_on(MAP, rows.schema, rows.sample(), rules=rows.rules)
    return fitted, fitted.prepared_rows(next(rows.blocks()).X)


def test_numbers_and_booleans_pass_and_gaps_are_filled():
    _, P = prepared_columns(FRAME[["size", "wet"]])
    gaps = FRAME["size"].isna()
    assert_allclose(P[~gaps, 0], FRAME["size"][~gaps])
    assert_allclose(P[gaps, 0], FRAME["size"].median())
    assert np.array_equal(P[:, 1], FRAME["wet"])
    assert np.array_equal(P[:, 2], gaps)  # the indicator
    assert P.shape[1] == 3


def test_categories_have_a_column_each_and_gaps_one_of_their_own():
    _, P = prepared_columns(FRAME[["color"]])
    words = ["blue", "gray", "green", "red"]
    for j, word in enumerate(words):
        assert np.array_equal(P[:, j], FRAME["color"] == word)
    assert np.array_equal(P[:, 4], FRAME["color"].isna())


def test_rare_categories_share_a_column_and_unseen_ones_have_none():
    words = ["a"] * 10 + ["b"] * 10 + ["c", "d"]
    fitted, P = prepared_columns({"word": words})
    assert P.shape[1] == 3
    assert np.array_equal(P[-2:], [[0, 0, 1], [0, 0, 1]])
    unseen = fitted.prepared_rows({"word": ["z", "c", "a", None]})
    assert np.array_equal(unseen, [[0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 0, 0]])


def test_the_number_of_columns_is_limited():
    words = np.repeat([f"w{i:03}" for i in range(100)], 5)
    _, P = prepared_columns({"word": words}, most_categories=10)
    assert P.shape[1] == 10
    assert P[:, -1].sum() == 500 - 9 * 5  # the most frequent ones, then the first of the alphabet
    assert np.array_equal(P.sum(axis=1), np.ones(500))


@pytest.mark.filterwarnings("ignore:Nearly all values of all columns are different")
def test_many_categories_are_hashed():
    words = np.array([f"id{i}" for i in range(5000)])
    fitted, P = prepared_columns({"word": words}, most_categories=32)
    assert isinstance(fitted.specification_.vocabularies[0], HashedCategories)
    assert P.shape[1] == 32
    assert np.array_equal(P.sum(axis=1), np.ones(5000))
    # A fair hash function: the counts of 32 columns are within 5 standard deviations.
    assert abs(P.sum(axis=0) - 5000 / 32).max() < 5 * np.sqrt(5000 / 32)
    again = fitted.prepared_rows({"word": ["id7", "never seen"]})
    assert np.array_equal(again[0], P[7])
    assert again[1].sum() == 1


def test_dates_are_days_since_1970_or_refused():
    times = pd.to_datetime(["1970-01-02 00:00", "2024-02-29 12:00", None])
    frame = pd.DataFrame({"when": times, "long": pd.to_timedelta(["1D", "6h", None])})
    with pytest.raises(DataError, match=r"'when' has dates or times .*dates='days'"):
        source(frame)
    fitted, P = prepared_columns(frame, dates="days")
    assert_allclose(P[:2, 0], [1, 19782.5])
    assert_allclose(P[:2, 1], [1, 0.25])
    row = {"when": datetime.datetime(2024, 2, 29, 12), "long": datetime.timedelta(hours=6)}
    assert_allclose(fitted.coder(row), [19782.5, 0.25])
    code = Days(0).code
    assert code(datetime.date(1970, 1, 3)) == 2
    assert code(np.datetime64("1970-01-03T06:00")) == 2.25
    assert code("1970-01-03T06:00:00+06:00") == 2
    assert code(datetime.time(18)) == 0.75
    assert np.isnan(code(None))
    assert np.isnan(code(pd.NaT))
    with pytest.raises(ValueError, match="5 is not a date or a time"):
        code(5)
    zoned = pd.DataFrame({"when": times.tz_localize("Asia/Tokyo"), "long": frame["long"]})
    assert_allclose(fitted.rows(zoned)[0, 0], 1 - 9 / 24)


def test_kinds_as_told():
    frame = pd.DataFrame({"zip": [10115, 20095] * 10, "text": ["1.5", "2.5"] * 10})
    fitted, P = prepared_columns(frame, kinds={"zip": "category", "text": "number"})
    assert fitted.specification_.vocabularies == (Categories(0, ("10115", "20095"), "number"),)
    assert_allclose(P[:2], [[1.5, 1, 0], [2.5, 0, 1]])
    assert_allclose(fitted.coder({"zip": 20095.0, "text": 1}), [1, 1])


def test_missing_values_are_refused_on_demand():
    with pytest.raises(DataError, match=r"missing values in 'size'.*missing='refuse'"):
        KernelRegressor(MAP).fit(source(FRAME, target="price", missing="refuse"))
    full = FRAME.dropna().reset_index(drop=True)
    rows = source(full, target="price", ignore="label", missing="refuse")
    model = KernelRegressor(MAP).fit(rows)
    for name in ("size", "color"):
        with pytest.raises(ValueError, match=f"missing values in '{name}'"):
            model.predict(full.assign(**{name: None}))


def test_late_gaps_are_filled_without_an_indicator():
    full = FRAME.dropna().reset_index(drop=True)
    model = KernelRegressor(MAP).fit(source(full, target="price", ignore="label"))
    medians = full.assign(size=full["size"].median())
    gaps = full.assign(size=np.nan)
    assert_allclose(model.predict(gaps), model.predict(medians))


def test_a_second_pass_finds_what_the_sample_lacks(tmp_path):
    n_rows = 21_000
    frame = pd.DataFrame({"word": ["a", "b"] * (n_rows // 2), "y": 0.0})
    sampled = {*kitchenette.data.sampled_rows(n_rows, 20_000, 0).tolist()}
    outside = [row for row in range(n_rows) if row not in sampled][:10]
    frame.loc[outside, "word"] = "late"
    frame.loc[outside, "y"] = 1.0
    frame.to_parquet(tmp_path / "rows.parquet")  # in memory, rows are not drawn by their places
    widths = []
    for passes in (1, 2):
        rows = source(tmp_path / "rows.parquet", target="y", passes=passes)
        model = KernelRegressor(MAP, alpha=0.01, random_state=0)
        fitted = model.fit(rows).feature_map_
        widths.append(fitted.specification_.preparation.n_outputs)
    assert widths == [2, 3]
    assert model.predict({"word": ["late"]})[0] > 0.5


# ---------------------------------------------------------------- models


@pytest.fixture(scope="module")
def model():
    return KernelClassifier(MAP, random_state=0).fit(FRAME[FEATURES], FRAME["label"])


def test_data_frames_work_out_of_the_box(model):
    assert model.score(FRAME, FRAME["label"]) > 0.84
    assert isinstance(model.feature_map_, TableMap)
    assert model.feature_names_in_.tolist() == FEATURES
    auto = KernelClassifier(random_state=0).fit(FRAME[FEATURES], FRAME["label"])
    assert auto.score(FRAME, FRAME["label"]) > 0.9
    assert auto.feature_map_.map_.choice_.sentence
    assert KernelPCA(2, MAP).fit(FRAME[FEATURES]).transform(FRAME).shape == (400, 2)


def test_columns_are_found_by_name(model):
    expected = model.predict_proba(FRAME[FEATURES])
    shuffled = FRAME[["label", "wet", "price", "color", "size", "count"]]
    assert np.array_equal(model.predict_proba(shuffled), expected)
    assert np.array_equal(model.predict_proba(pl.from_pandas(shuffled)), expected)
    assert np.array_equal(model.predict_proba(pl.from_pandas(shuffled).to_arrow()), expected)
    assert np.array_equal(model.predict_proba(source(shuffled)), expected)
    with pytest.raises(ValueError, match=r"columns are missing: size, wet\."):
        model.predict(FRAME[["count", "color"]])
    with pytest.raises(ValueError, match="columns are missing: size"):
        model.predict(source(FRAME[["count", "color", "wet"]]))
    with pytest.raises(ValueError, match="'size' has no numbers"):
        model.predict(FRAME.assign(size="large"))


def test_a_row_may_be_a_dictionary(model):
    predict, scores = model.predictor(), model.predictor(scores=True)
    expected = model.decision_function(FRAME)
    for i in range(0, 120, 7):
        row = FRAME.iloc[i].to_dict()
        assert predict(row) == model.predict(FRAME.iloc[[i]])[0]
        assert scores(row) == pytest.approx(expected[i])
        assert scores(FRAME.iloc[i]) == pytest.approx(expected[i])  # a row of a data frame
        assert scores([row[name] for name in FEATURES]) == pytest.approx(expected[i])
    assert_allclose(scores(FRAME[:9]), expected[:9])
    with pytest.raises(ValueError, match="columns are missing: color"):
        predict({"size": 1.0, "count": 2, "wet": True})
    again = pickle.loads(pickle.dumps(predict))
    assert again(FRAME.iloc[3].to_dict()) == predict(FRAME.iloc[3].to_dict())


def test_model_files_contain_the_preparation(model, tmp_path):
    kitchenette.save(model, tmp_path / "m.safetensors", statistics=False)
    loaded = kitchenette.load(tmp_path / "m.safetensors")
    assert np.array_equal(loaded.predict_proba(FRAME), model.predict_proba(FRAME))
    row = FRAME.iloc[5].to_dict()
    assert loaded.predictor()(row) == model.predictor()(row)
    frame = FRAME.assign(when=pd.Timestamp("2024-01-01") + pd.to_timedelta(FRAME.index, "D"))
    frame["group"] = [f"group {i // 2}" for i in range(400)]
    rows = source(frame, target="price", ignore="label", dates="days")
    rows.rules = ColumnRules(dates="days", high_cardinality=50)
    dated = KernelRegressor(MAP, random_state=0).fit(rows)
    kitchenette.save(dated, tmp_path / "d.safetensors")
    assert np.array_equal(
        kitchenette.load(tmp_path / "d.safetensors").predict(frame), dated.predict(frame)
    )
    state = model.feature_map_.to_file()
    del state["fitted"]["feature_names_in_"]
    state["fitted"]["by_name_"] = False
    with pytest.raises(ValueError, match="must have names"):
        TableMap.from_file(state, Budget(1e9, 1e9))
    hashed = {"column": 0, "n_buckets": 8, "values": "string", "categories": ()}
    for cls, state in (
        (HashedCategories, {**hashed, "n_buckets": 2**40}),
        (HashedCategories, {"column": 0}),
        (HashedCategories, {**hashed, "values": "color"}),
        (HashedCategories, {**hashed, "categories": (1.0,)}),
        (Categories, {"column": 0, "categories": ("a",), "values": "color"}),
        (Days, {"column": "a"}),
        (Categories, {"column": 0, "categories": ("a", "a"), "values": "string"}),
    ):
        with pytest.raises(ValueError, match=r"at most|is missing|cannot be|must be"):
            from_fields(cls, state, Budget(1e9, 1e9))


def test_models_of_tables_go_on_learning_and_merge(model):
    shared = FrozenEstimator(model.feature_map_)
    here = KernelClassifier(shared).fit(FRAME[:150], FRAME["label"][:150])
    there = KernelClassifier(shared).fit(source(FRAME[150:], target="label"))
    merged = here.merge(there)
    assert_allclose(merged.predict_proba(FRAME), model.predict_proba(FRAME), atol=1e-6)
    more = KernelClassifier(shared).partial_fit(
        FRAME[:150], FRAME["label"][:150], ["cheap", "dear"]
    )
    more.partial_fit(FRAME[150:], FRAME["label"][150:])
    assert_allclose(more.predict_proba(FRAME), model.predict_proba(FRAME), atol=1e-6)
    assert more.downdate(FRAME[:10], FRAME["label"][:10]).statistics_.n_rows == 390


def test_pipelines_serve_as_maps_of_prepared_columns():
    rows = source(FRAME, target="price", ignore=["label", "weight"])
    pipeline = make_pipeline(StandardScaler(), Fastfood(n_components=64, random_state=0))
    model = KernelRegressor(pipeline).fit(rows)
    assert model.score(FRAME, FRAME["price"]) > 0.7


def test_importances_are_those_of_the_columns_of_the_data():
    rows = source(FRAME, target="price", ignore=["label", "weight"])
    model = KernelRegressor(AutoMap(128, random_state=0)).fit(rows)
    for found in (model.importance(), model.importance(rows), model.importance(FRAME)):
        assert found.shape == (4,)
        assert found.sum() == pytest.approx(1)
        assert {*np.argsort(found)[-2:]} == {0, 2}  # size and color
    assert_allclose(model.importance(), model.feature_importances_)


@pytest.mark.parametrize("scales", ["ranks", "full"])
def test_importances_of_categories_are_not_those_of_what_no_row_can_do(scales):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1200, 2)), columns=["a", "b"])
    frame["city"] = rng.choice(["Oslo", "Rome", "Lima"], 1200, p=[0.6, 0.3, 0.1])
    y = np.sin(2 * frame["a"]) + frame["b"] * (frame["city"] == "Rome")
    model = KernelRegressor(AutoMap(64, scales=scales, random_state=0), random_state=0)
    model.fit(frame, y)
    for found in (model.importance(), model.importance(frame)):
        assert np.argmax(found) == 0  # the derivatives between categories were 95 % of all
        assert 0.1 < found[2] < 0.4


def test_infinite_numbers_are_refused_by_name(model):
    with pytest.raises(ValueError, match="'size' has infinite numbers"):
        model.predict(FRAME.assign(size=inf))


def test_mixed_columns_get_a_sentence():
    with pytest.raises(DataError, match="several types"):
        KernelRegressor(MAP).fit(pd.DataFrame({"a": ["x", 1.0, "y"]}), [1.0, 2.0, 3.0])


def test_repeated_names_get_a_sentence():
    frame = pd.DataFrame([["a", "b"], ["c", "d"]], columns=["same", "same"])
    with pytest.raises(DataError, match=r"different names.*same"):
        KernelRegressor(MAP).fit(frame, [1.0, 2.0])
    with pytest.raises(DataError, match=r"different names.*same"):
        source(frame)
