"""The same rows from every format, in blocks of any size, and the same models."""

from __future__ import annotations

import functools
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from tables_of_all_formats import FEATURES, FORMATS, table

import kitchenette
from kitchenette import AutoMap, Fastfood, KernelClassifier, KernelPCA, KernelRegressor
from kitchenette.data import DataError, sampled_rows, source
from kitchenette.training import combine, finish, partial, prepare

FRAME = table()
MAP = Fastfood(n_components=64, random_state=0)


@pytest.fixture(params=FORMATS)
def stored(request, tmp_path):
    make, options = FORMATS[request.param]
    return make(FRAME, tmp_path), options


def test_every_format_has_the_same_rows(stored):
    data, options = stored
    rows = source(data, target="price", weight="weight", ignore="label", **options)
    assert rows.features == FEATURES
    kinds = [rows.schema[name].kind for name in FEATURES]
    assert kinds == ["number", "number", "category", "boolean"]
    blocks = list(rows.blocks(128))
    assert [block.n_rows for block in blocks] == [128, 128, 128, 16]
    assert rows.n_rows == rows.count() == 400
    assert_allclose(np.concatenate([block.y for block in blocks]), FRAME["price"])
    assert_allclose(np.concatenate([block.weight for block in blocks]), FRAME["weight"])
    resumed = list(rows.blocks(128, start=256))
    assert [block.start for block in resumed] == [256, 384]
    for again, before in zip(resumed, blocks[2:], strict=True):
        assert again.X.equals(before.X)
        assert np.array_equal(again.y, before.y)
    y, weight = rows.targets()
    assert_allclose(y, FRAME["price"])
    assert_allclose(weight, FRAME["weight"])


def test_every_format_has_the_same_sample(stored):
    data, options = stored
    rows = source(data, target="price", ignore=["label", "weight"], **options)
    sample = rows.sample(50, seed=3)
    expected = FRAME.iloc[sampled_rows(400, 50, 3)]
    assert_allclose(sample.y, expected["price"])
    colors = [None if value is None else str(value) for value in sample.X["color"].to_pylist()]
    assert colors == [None if pd.isna(word) else word for word in expected["color"]]
    assert rows.n_rows == 400  # all rows were seen
    assert_allclose(rows.sample(50, seed=3).y, sample.y)  # and now it is known beforehand
    assert rows.sample(1000).n_rows == 400


def test_every_format_gives_the_same_model(stored):
    data, options = stored
    features = FRAME[FEATURES]
    rows = source(data, target="label", ignore=["price", "weight"], **options)
    model = KernelClassifier(MAP, random_state=0).fit(rows)
    expected = KernelClassifier(MAP, random_state=0).fit(features, FRAME["label"])
    assert model.classes_.tolist() == ["cheap", "dear"]
    assert_allclose(model.predict_proba(features), expected.predict_proba(features), atol=1e-6)
    assert_allclose(model.predict_proba(rows), expected.predict_proba(features), atol=1e-6)
    assert model.score(features, FRAME["label"]) > 0.84


def test_estimators_take_the_path_of_files(tmp_path):
    path = tmp_path / "a.parquet"
    FRAME.drop(columns=["price"]).to_parquet(path)
    model = KernelClassifier(MAP, random_state=0).fit(path, "label", "weight")
    rows = source(path, target="label", weight="weight")
    expected = KernelClassifier(MAP, random_state=0).fit(rows)
    assert_allclose(model.predict_proba(str(path)), expected.predict_proba(FRAME), rtol=1e-12)
    assert model.score(path, "label", "weight") == expected.score(rows)
    continued = KernelClassifier(MAP, random_state=0)
    continued.partial_fit(str(path), "label", sample_weight="weight")
    assert_allclose(continued.predict_proba(path), model.predict_proba(path), rtol=1e-9)
    with pytest.raises(DataError, match="There is no file nowhere"):
        KernelClassifier(MAP).fit("nowhere", "label")
    with pytest.raises(DataError, match=r"no column 'labels'.*Did you mean 'label'"):
        KernelClassifier(MAP).fit(path, "labels")
    with pytest.raises(DataError, match="name the column to be predicted"):
        KernelClassifier(MAP).fit(path)


def test_numbers_of_every_format_give_the_model_of_the_array(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    y = X[:, 0] + np.square(X[:, 1])
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(y=y)
    frame.to_parquet(tmp_path / "a.parquet")
    np.save(tmp_path / "X.npy", X)
    np.savez(tmp_path / "both.npz", X=X, y=y)
    sp.save_npz(tmp_path / "sparse.npz", sp.csr_matrix(X))
    dump_svmlight_file(X, y, str(tmp_path / "a.svm"), zero_based=False)
    sources = {
        "array": source(X, target=y),
        "csr": source(sp.csr_matrix(X), target=y),
        "npy": source(tmp_path / "X.npy", target=y),
        "npz": source(tmp_path / "both.npz", target="y"),
        "sparse npz": source(tmp_path / "sparse.npz", target=y),
        "parquet": source(tmp_path / "a.parquet", target="y"),
        "svmlight": source(tmp_path / "a.svm", precision="float32"),
    }
    expected = KernelRegressor(MAP).fit(X, y).predict(X)
    for name, rows in sources.items():
        assert rows.shape == (300, 3), name
        assert_allclose(KernelRegressor(MAP).fit(rows).predict(rows), expected, atol=2e-5)


def test_svmlight_files_are_read_in_pieces(tmp_path, monkeypatch):
    from kitchenette.data import svmlight

    X = sp.random(500, 40, density=0.1, format="csr", random_state=0)
    y = np.arange(500.0)
    for number, part in enumerate((slice(0, 200), slice(200, 500))):
        dump_svmlight_file(X[part], y[part], str(tmp_path / f"{number}.svm"))
    monkeypatch.setattr(svmlight, "PIECE_BYTES", 1000)
    rows = source(tmp_path / "*.svm")
    blocks = list(rows.blocks(64, start=30))
    assert blocks[0].start == 30
    assert_allclose(sp.vstack([block.X for block in blocks]).toarray(), X[30:].toarray())
    assert np.array_equal(np.concatenate([block.y for block in blocks]), y[30:])
    assert np.array_equal(rows.take([3, 250, 499]).y, [3.0, 250.0, 499.0])


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 500), st.integers(0, 420), st.integers(0, 50))
def test_block_sizes_do_not_matter(tmp_path_factory, size, start, seed):
    folder = tmp_path_factory.mktemp("blocks")
    make, options = FORMATS["parquet"]
    rows = source(make(FRAME, folder), target="price", ignore=["label"], **options)
    blocks = list(rows.blocks(size, start=start))
    assert all(block.n_rows == size for block in blocks[:-1])
    y = np.concatenate([np.empty(0), *(block.y for block in blocks)])
    assert np.array_equal(y, FRAME["price"].to_numpy()[start:])
    assert np.array_equal(rows.sample(40, seed).y, FRAME["price"][sampled_rows(400, 40, seed)])


@functools.cache
def learned_at_once():
    rows = source(FRAME, target="price", ignore=["label", "weight"])
    prepared = prepare(KernelRegressor(MAP, alpha=1e-3, random_state=0), rows)
    return rows, prepared, finish(prepared, partial(prepared, rows)).predict(rows)


@settings(deadline=None, max_examples=10)
@given(st.integers(20, 450))
def test_a_model_does_not_depend_on_the_blocks(size):
    rows, prepared, expected = learned_at_once()
    total = None
    for block in rows.blocks(size):
        part = partial(prepared, block.X, block.y, block.weight)
        total = part if total is None else combine(total, part)
    assert_allclose(finish(prepared, total).predict(rows), expected, atol=1e-8)


def test_larger_samples_contain_smaller_ones():
    few, more = sampled_rows(200_000, 10, 1), sampled_rows(200_000, 500, 1)
    assert {*few} <= {*more}
    assert len({*more}) == 500
    assert not np.array_equal(sampled_rows(200_000, 10, 2), few)
    # Uniform: the mean of 500 numbers below 200,000 is within 4.5 standard errors of the middle.
    assert abs(more.mean() - 1e5) < 4.5 * 2e5 / np.sqrt(12 * 500)


def test_only_needed_columns_are_read(tmp_path):
    FRAME.assign(broken=[[1]] * 400).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="'broken' has values of the type list"):
        source(tmp_path / "a.parquet", target="price")
    rows = source(tmp_path / "a.parquet", target="price", ignore=["broken", "label"])
    assert next(rows.blocks()).X.column_names == [*FEATURES, "weight"]


def test_a_changed_file_has_another_fingerprint(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,y\n" + "1.0,2.0\n" * 100)
    before = source(path, target="y").fingerprint()
    assert source(path, target="y").fingerprint() == before
    assert source(path, target="a").fingerprint() != before
    path.write_text("a,y\n" + "1.0,2.0\n" * 99 + "1.0,3.0\n")
    assert source(path, target="y").fingerprint() != before
    arrays = [source(np.full((5, 2), value)).fingerprint() for value in (1.0, 1.0, 2.0)]
    assert arrays[0] == arrays[1] != arrays[2]
    frames = [source(FRAME.assign(size=value)).fingerprint() for value in (1.0, 1.0, 2.0)]
    assert frames[0] == frames[1] != frames[2]


@pytest.mark.parametrize("end", ["csv", "arrow"])
def test_files_of_unknown_length_are_resumed_anywhere(tmp_path, end):
    """Neither CSV files nor streams tell how many rows they have."""
    import pyarrow as pa

    for number, part in enumerate((slice(0, 150), slice(150, 180), slice(180, 400))):
        some = pa.Table.from_pandas(FRAME[["count", "price"]][part], preserve_index=False)
        path = tmp_path / f"{number}.{end}"
        if end == "csv":
            some.to_pandas().to_csv(path, index=False)
        else:
            with pa.ipc.new_stream(path, some.schema) as writer:
                writer.write_table(some, max_chunksize=40)
    for start in (0, 100, 150, 170, 200, 399):
        rows = source(str(tmp_path / f"*.{end}"), target="price")
        y = np.concatenate([block.y for block in rows.blocks(64, start=start)])
        assert_allclose(y, FRAME["price"][start:])
    rows = source(str(tmp_path / f"*.{end}"), target="price")
    assert_allclose(rows.take([3, 160, 333]).y, FRAME["price"][[3, 160, 333]])


def test_columns_in_the_names_of_directories(tmp_path):
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        FRAME[:50].to_parquet(tmp_path / f"year={year}" / "a.parquet")
    rows = source(tmp_path, target="price")
    assert rows.schema["year"].kind == "number"
    assert rows.sample(100).X["year"].to_pylist() == [2023] * 50 + [2024] * 50
    told = source(tmp_path, target="price", kinds={"year": "category"})
    assert told.sample(100).X["year"].to_pylist() == ["2023"] * 50 + ["2024"] * 50
    assert source(str(tmp_path / "**" / "*.parquet")).n_rows == 100


def test_several_targets_and_weights():
    frame = FRAME.assign(other=FRAME["count"] + FRAME["price"])
    rows = source(frame, target=["price", "other"], weight="weight", ignore="label")
    model = KernelRegressor(MAP).fit(rows)
    plain = KernelRegressor(MAP).fit(
        frame[FEATURES], frame[["price", "other"]], sample_weight=frame["weight"]
    )
    assert_allclose(model.predict(rows), plain.predict(frame), atol=1e-8)
    mean, std = model.predict(rows, return_std=True)
    assert mean.shape == std.shape == (400, 2)


def test_models_keep_the_names_of_targets_and_weights(tmp_path):
    rows = source(FRAME, target=["price", "count"], weight="weight", ignore="label")
    model = KernelRegressor(MAP).fit(rows)
    kitchenette.save(model, tmp_path / "m", statistics=False)
    for one in (model, kitchenette.load(tmp_path / "m"), KernelRegressor(MAP).partial_fit(rows)):
        assert (one.target_names_.tolist(), one.weight_name_) == (["price", "count"], "weight")
    kitchenette.save(KernelRegressor(MAP).fit(FRAME[["count"]], FRAME["price"]), tmp_path / "m")
    assert not hasattr(kitchenette.load(tmp_path / "m"), "target_names_")
    prepared = replace(model.model_.prepared, target_names=np.array([1.0, 2.0]))
    model.model_ = replace(model.model_, prepared=prepared)
    kitchenette.save(model, tmp_path / "m")
    with pytest.raises(kitchenette.ModelFileError, match="target_names cannot be an array"):
        kitchenette.load(tmp_path / "m")


def test_the_rules_of_columns_belong_to_the_fingerprint():
    prints = [
        source(FRAME, target="price", **options).fingerprint()
        for options in ({}, {"missing": "refuse"}, {"passes": 1}, {"most_categories": 3})
    ]
    assert len({*prints}) == 4


def test_all_estimators_take_sources():
    numbers = source(FRAME[["count", "wet", "price"]], target="price")
    matrix = FRAME[["count", "wet"]].to_numpy(dtype=float)
    fitted = Fastfood(n_components=8, random_state=0).fit(numbers)
    assert_allclose(fitted.transform(numbers), fitted.transform(FRAME[["count", "wet"]]))
    auto = AutoMap(16, random_state=0).fit(numbers)
    assert auto.transform(numbers).shape == (400, 16)
    rows = source(FRAME, target="price", ignore="label")
    pca = KernelPCA(2, MAP).fit(rows)
    assert pca.transform(rows).shape == (400, 2)
    assert pca.partial_fit(rows).statistics_.n_rows == 800
    model = KernelRegressor(MAP).partial_fit(rows)
    before = model.predict(rows)
    assert model.partial_fit(rows).statistics_.n_rows == 800
    assert_allclose(model.predict(rows), before, atol=0.05)
    choice = kitchenette.choose(rows, n_components=32, random_state=0)
    assert KernelRegressor(choice.feature_map).fit(rows).score(FRAME, FRAME["price"]) > 0.7
    arrays = source(matrix, target=FRAME["price"].to_numpy())
    model = KernelRegressor(MAP).fit(matrix, FRAME["price"])
    assert_allclose(model.predict(arrays), model.predict(matrix))
    assert_allclose(model.predict(numbers), model.predict(matrix))  # a table of two numbers


@pytest.mark.parametrize(
    "model",
    [
        KernelRegressor(MAP, solver="iterative", random_state=0),
        KernelRegressor(MAP, loss="huber", random_state=0),
        KernelClassifier(MAP, loss="logistic", random_state=0),
        KernelClassifier(MAP, loss="auto", random_state=0),
    ],
    ids=repr,
)
def test_iterative_solvers_make_passes_over_a_source(model, tmp_path):
    make, options = FORMATS["parquet"]
    target = "label" if isinstance(model, KernelClassifier) else "price"
    others = [name for name in ("label", "price", "weight") if name != target]
    rows = source(make(FRAME, tmp_path), target=target, ignore=others, **options)
    found = clone(model).fit(rows).predict(FRAME)
    expected = model.fit(FRAME[FEATURES], FRAME[target]).predict(FRAME)
    if target == "label":
        assert np.array_equal(found, expected)
    else:
        assert_allclose(found, expected, atol=1e-6)


def test_labels_beyond_the_sample_are_learned():
    n_rows = 30_000
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=n_rows)})
    frame["k"] = np.where(frame["a"] > 0, "up", "down")
    outside = np.setdiff1d(np.arange(n_rows), sampled_rows(n_rows, 20_000, 0))[:40]
    frame.loc[outside, ["a", "k"]] = [7.0, "far"]
    model = KernelClassifier(Fastfood(n_components=64, random_state=0), random_state=0)
    model.fit(source(frame, target="k"))
    assert model.classes_.tolist() == ["down", "far", "up"]
    assert model.predict(pd.DataFrame({"a": [7.0, -1.0, 1.0]})).tolist() == ["far", "down", "up"]


def test_wrong_names_and_values_get_a_sentence():
    with pytest.raises(
        DataError, match=r"no column 'prize'; there are size.*Did you mean 'price'\?"
    ):
        source(FRAME, target="prize")
    with pytest.raises(DataError, match="array with a value for each of the 400 rows"):
        source(FRAME, target=np.ones(3))
    with pytest.raises(DataError, match="no column to predict from"):
        source(FRAME[["price"]], target="price")
    with pytest.raises(DataError, match=r"There is no file nowhere.csv"):
        source("nowhere.csv")
    with pytest.raises(DataError, match=r"No file matches .*\*.parquet"):
        source("nowhere/*.parquet")
    with pytest.raises(ValueError, match="missing must be one of 'median', 'refuse'"):
        source(FRAME, missing="mean")
    with pytest.raises(ValueError, match="passes must be 1, 2 or 3"):
        source(FRAME, passes=4)
    with pytest.raises(ValueError, match="kind of 'size' must be one of"):
        source(FRAME, kinds={"size": "color"})
    with pytest.raises(DataError, match=r"has no target"):
        KernelRegressor(MAP).fit(source(FRAME))
    with pytest.raises(ValueError, match="has its own targets"):
        KernelRegressor(MAP).fit(source(FRAME, target="price"), FRAME["price"])
    gaps = FRAME.assign(price=FRAME["price"].where(FRAME.index != 17))
    with pytest.raises(DataError, match=r"'price' is a target.* value is missing in row 17"):
        KernelRegressor(MAP).fit(source(gaps, target="price", ignore="label"))
    with pytest.raises(DataError, match="A source is an array of numbers"):
        source(5)


def test_sources_can_be_pickled(tmp_path):
    FRAME.to_parquet(tmp_path / "a.parquet")
    rows = source(tmp_path / "a.parquet", target="price")
    again = pickle.loads(pickle.dumps(rows))
    assert again.fingerprint() == rows.fingerprint()
    assert np.array_equal(again.sample(9).y, rows.sample(9).y)


def test_roles_that_do_not_fit_get_a_sentence():
    table = pd.DataFrame({"a": [1.0, 2.0], "word": ["x", "y"], "y": [0.0, 1.0]})
    table["when"] = pd.to_datetime(["2024-02-29", "2024-03-01"])
    for options, sentence in (
        ({"target": ["y", "y"]}, "'y' is named twice"),
        ({"target": "y", "weight": "y"}, "'y' is named twice"),
        ({"target": "y", "weight": "word"}, "'word' has no numbers"),
        ({"target": "when"}, "dates='days'"),
        ({"target": "y", "kinds": {"b": "number"}}, "there is no column 'b'"),
    ):
        with pytest.raises(DataError, match=sentence):
            source(table.drop(columns="when") if options["target"] != "when" else table, **options)
    days = source(table, target="when", dates="days")
    assert next(days.blocks()).y.tolist() == [19782.0, 19783.0]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_targets_that_are_not_finite_are_refused_in_every_block(value):
    polars = pytest.importorskip("polars")
    columns = np.ones((10, 2))
    columns[7, 1] = value  # NaN is not a missing value for polars and Arrow
    frame = polars.DataFrame(columns, schema=["a", "y"])
    rows = source(frame, target="y")
    with pytest.raises(DataError, match="in row 7"):
        list(rows.blocks(5))
    with pytest.raises(DataError, match="in row 7"):
        rows.take([2, 7])
