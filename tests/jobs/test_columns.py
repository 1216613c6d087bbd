"""Columns are read as the model has them, whatever the file or frame that they come from."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kitchenette
from kitchenette import Fastfood, KernelClassifier, KernelRegressor
from kitchenette.data import DataError, source
from kitchenette.jobs import FitSettings, evaluate_rows, fit_rows, predict_rows

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
pytest.importorskip("typer")
from pyarrow import csv, dataset, feather, parquet  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from kitchenette.cli.app import app  # noqa: E402

MAP = Fastfood(n_components=64, random_state=0)
TEXTS = ["00501", "2.50", "1e5", "True", "NA", "", "10115", "501"]
QUICK = ("--map", "Fastfood", "--components", "64")


def frame_of(texts, n_rows=400, seed=0, name="code"):
    """A column of strings, and a target that follows from them alone."""
    rng = np.random.default_rng(seed)
    places = rng.integers(len(texts), size=n_rows)
    made = pd.DataFrame({name: np.array(texts, dtype=object)[places], "x": rng.normal(size=n_rows)})
    levels = np.random.default_rng(1).permutation(len(texts)).astype(float)
    return made.assign(y=levels[places] + 0.25)


def run(*arguments):
    """What the command prints, in this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # the command prints them
        done = CliRunner().invoke(app, [str(one) for one in arguments])
    assert done.exit_code == 0, done.output
    return done


# ---------------------------------------------------------------- strings that look like others


def test_codes_told_to_be_categories_are_read_as_strings_by_all_commands(tmp_path):
    data, model, out = tmp_path / "zips.csv", tmp_path / "model", tmp_path / "out.parquet"
    frame = frame_of(["00501", "501", "10115", "20095"], name="zip")
    frame.to_csv(data, index=False)
    run("fit", data, "--target", "y", "--kind", "zip=category", "--out", model, *QUICK)
    assert json.loads(run("evaluate", model, data, "--json").stdout)["r2"][0] > 0.98
    run("predict", model, data, "--out", out)
    assert_allclose(pd.read_parquet(out)["prediction"], kitchenette.load(model).predict(frame))


@pytest.mark.parametrize("text", [*TEXTS[:6], None])
def test_models_of_strings_predict_the_same_from_csv_files(tmp_path, text):
    others = ["9", "17.5", "8"] if text in ("00501", "2.50", "1e5") else ["False", "words"]
    frame = frame_of([text, *others])
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    model = KernelRegressor(MAP).fit(source(tmp_path / "a.parquet", target="y"))
    expected = model.predict(frame)
    assert evaluate_rows(model, source(frame, target="y")).r2[0] > 0.98
    rows = source(tmp_path / "a.csv", target="y", like=model)
    assert_allclose(model.predict(rows), expected)
    assert evaluate_rows(model, rows).r2[0] > 0.98
    kitchenette.save(model, tmp_path / "model")
    out = tmp_path / "out.parquet"
    run("predict", tmp_path / "model", tmp_path / "a.csv", "--out", out)
    assert_allclose(pd.read_parquet(out)["prediction"], expected)


def test_a_source_that_was_opened_without_the_model_is_read_as_the_model_has_it(tmp_path):
    frame = frame_of(TEXTS)
    frame.to_csv(tmp_path / "a.csv", index=False)
    numeric = frame_of(["00501", "501", "2.50"])
    numeric.to_csv(tmp_path / "b.csv", index=False)
    for number, (table, name) in enumerate([(frame, "a.csv"), (numeric, "b.csv")]):
        model = KernelRegressor(MAP).fit(table[["code", "x"]], table["y"])
        rows = source(tmp_path / name, target="y")
        assert rows.schema["code"].kind == ("category", "number")[number]
        assert_allclose(model.predict(rows), model.predict(table))
        assert_allclose(model.feature_map_.transform(rows), model.feature_map_.transform(table))
        assert evaluate_rows(model, rows).r2[0] > 0.98
        predict_rows(model, rows, tmp_path / "out.parquet")
        assert_allclose(pd.read_parquet(tmp_path / "out.parquet").iloc[:, 0], model.predict(table))
        more = KernelRegressor(MAP).fit(table[["code", "x"]], table["y"]).partial_fit(rows)
        assert more.score(table[["code", "x"]], table["y"]) > 0.98


def test_paths_are_opened_as_the_model_has_their_columns(tmp_path):
    # CSV readers take these strings for dates, which are refused where nobody knows better.
    table = frame_of(["2020-01-01", "2020-01-02"])
    path = tmp_path / "a.csv"
    table.to_csv(path, index=False)
    with pytest.raises(DataError, match="dates"):
        KernelRegressor(MAP).fit(path, "y")
    model = KernelRegressor(MAP).fit(table[["code", "x"]], table["y"])
    assert_allclose(model.predict(path), model.predict(table))
    assert model.score(path, "y") > 0.98
    assert model.partial_fit(path, "y").statistics_.n_rows == 2 * len(table)


def test_a_fit_like_another_model_reads_columns_as_it_has_them(tmp_path):
    frame = frame_of(["00501", "501", "10115", "20095"], n_rows=600)
    frame[:300].to_parquet(tmp_path / "a.parquet")
    frame[300:].to_csv(tmp_path / "b.csv", index=False)
    first, second, both = (tmp_path / name for name in ("first", "second", "both"))
    run("fit", tmp_path / "a.parquet", "--target", "y", "--out", first, *QUICK)
    run("fit", tmp_path / "b.csv", "--target", "y", "--out", second, "--like", first)
    run("merge", first, second, "--out", both)
    for path in (second, both):
        assert kitchenette.load(path).score(frame[["code", "x"]], frame["y"]) > 0.98
    fit_rows(
        source(tmp_path / "b.csv", target="y"), tmp_path / "third", like=kitchenette.load(first)
    )
    again = kitchenette.load(tmp_path / "third")
    assert_allclose(again.predict(frame), kitchenette.load(second).predict(frame))


def test_labels_of_strings_are_read_as_strings(tmp_path):
    frame = frame_of(["a", "b", "c"])
    frame["label"] = np.array(["00501", "NA", "True"])[frame["y"].astype(int)]
    frame = frame.drop(columns="y")
    frame.to_parquet(tmp_path / "a.parquet")
    model = KernelClassifier(MAP).fit(source(tmp_path / "a.parquet", target="label"))
    for kept in (["NA"], ["00501"], ["True"], ["00501", "NA", "True"]):
        some = frame[frame["label"].isin(kept)]
        some.to_csv(tmp_path / "some.csv", index=False)
        rows = source(tmp_path / "some.csv", target="label", like=model)
        assert evaluate_rows(model, rows).error < 0.05
    kitchenette.save(model, tmp_path / "model")
    frame.to_csv(tmp_path / "a.csv", index=False)
    found = json.loads(run("evaluate", tmp_path / "model", tmp_path / "a.csv", "--json").stdout)
    assert found["error"] < 0.05
    assert found["labels"] == ["00501", "NA", "True"]


def test_test_rows_are_read_as_those_of_the_fit(tmp_path):
    frame = frame_of(["00501", "501", "Rome"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame[frame["code"] != "Rome"].to_csv(tmp_path / "test.csv", index=False)
    done = run(
        *("fit", tmp_path / "a.csv", "--target", "y", "--out", tmp_path / "m", "--json"),
        *("--kind", "code=category", "--test", tmp_path / "test.csv", *QUICK),
    )
    assert json.loads(done.stdout)["errors"]["model"] < 0.1
    fitted = fit_rows(
        source(tmp_path / "a.csv", target="y", kinds={"code": "category"}),
        tmp_path / "m",
        FitSettings(map="Fastfood", components=64),
        test=source(tmp_path / "test.csv", target="y"),
    )
    assert fitted.errors["model"] < 0.1


def test_hashed_strings_keep_what_csv_files_have_for_missing_values(tmp_path):
    rng = np.random.default_rng(0)
    words = np.array(["NA"] * 1000 + [f"w{i % 1500}" for i in range(4500)], dtype=object)
    frame = pd.DataFrame({"word": words, "x": rng.normal(size=5500)})
    frame["y"] = (frame["word"] == "NA") * 1.0
    model = KernelRegressor(MAP).fit(frame[["word", "x"]], frame["y"])
    frame[900:1100].to_csv(tmp_path / "a.csv", index=False)
    rows = source(tmp_path / "a.csv", target="y")
    assert_allclose(model.predict(rows), model.predict(frame[900:1100]))
    kitchenette.save(model, tmp_path / "model")
    assert_allclose(kitchenette.load(tmp_path / "model").predict(rows), model.predict(rows))


def test_numbers_and_booleans_as_categories_have_one_spelling(tmp_path):
    frame = frame_of(["1", "2", "3"])
    for values in ([1, 2, 3], [1.0, 2.5, 3.0], [True, False, True]):
        column = np.array(values)[frame["code"].astype(int) - 1]
        told = pd.DataFrame({"code": column, "x": frame["x"]}).assign(y=1.0 * column)
        model = KernelRegressor(MAP).fit(source(told, target="y", kinds={"code": "category"}))
        expected = model.predict(told)
        texts = told.assign(code=told["code"].astype(str))
        padded = told.assign(code=["0" + text for text in texts["code"]])
        told.to_csv(tmp_path / "a.csv", index=False)
        for other in (texts, *(() if values[0] is True else (padded,))):
            assert_allclose(model.predict(other), expected)
            row = other.iloc[7].to_dict()
            assert_allclose(model.predictor()(row), expected[7])
        assert_allclose(model.predict(source(tmp_path / "a.csv", target="y")), expected)


# ---------------------------------------------------------------- columns of another type


def routes(frame, folder):
    """The same rows of a column of numbers, by every route."""
    import dask.dataframe as dd

    frame.to_parquet(folder / "n.parquet")
    frame.to_feather(folder / "n.feather")
    return {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "arrow": pa.Table.from_pandas(frame),
        "categories": frame.astype({"code": "category"}),
        "parquet": source(folder / "n.parquet", target="y"),
        "feather": source(folder / "n.feather", target="y"),
        "lazy": source(pl.from_pandas(frame).lazy()),
        "dask": dd.from_pandas(frame, npartitions=2),
    }


@pytest.mark.slow
def test_numbers_are_refused_where_the_model_has_strings(tmp_path):
    frame = frame_of(["00501", "501"])
    model = KernelRegressor(MAP).fit(frame[["code", "x"]], frame["y"])
    numbers = frame.assign(code=501)
    for rows in routes(numbers, tmp_path).values():
        with pytest.raises(ValueError, match=r"'code' has .*int64.*strings such as '00501'"):
            model.predict(rows)
    with pytest.raises(ValueError, match=r"'code' has the number 501.*strings such as '00501'"):
        model.predictor()({"code": 501, "x": 0.1})
    with pytest.raises(ValueError, match="strings such as '00501'"):
        model.feature_map_.rows(np.array([[501, 0.1]], dtype=object))
    done = CliRunner().invoke(
        app, ["predict", str(save(model, tmp_path)), str(tmp_path / "n.parquet"), "--out", "o.csv"]
    )
    assert done.exit_code == 3
    missing = frame.assign(code=np.nan)  # as a frame has a column of strings that are all missing
    assert model.predict(missing).shape == (400,)
    assert np.isfinite(model.predictor()({"code": np.nan, "x": 0.1}))


def save(model, folder):
    kitchenette.save(model, folder / "model")
    return folder / "model"


def test_a_column_of_unknown_values_alone_is_noted_once(tmp_path):
    frame = frame_of(["00501", "501"])
    model = KernelRegressor(MAP).fit(frame[["code", "x"]], frame["y"])
    others = frame.assign(code="90210")
    with pytest.warns(UserWarning, match=r"'code' has no value that the model knows.*'00501'"):
        model.predict(others)
    others.to_csv(tmp_path / "a.csv", index=False)
    done = run("evaluate", save(model, tmp_path), tmp_path / "a.csv", "--target", "y")
    assert done.stderr.count("'code' has no value that the model knows") == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(others[:3])  # a few new values are no mistake
        model.predict(pd.concat([others, frame]))
        model.predictor()({"code": "90210", "x": 0.1})


def test_kinds_that_contradict_the_model_are_refused(tmp_path):
    frame = frame_of(["00501", "501"])
    model = KernelRegressor(MAP).fit(frame[["code", "x"]], frame["y"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(DataError, match="'code' is a category of the model, not a number"):
        source(tmp_path / "a.csv", target="y", kinds={"code": "number"}, like=model)


# ---------------------------------------------------------------- names of directories


def hive(frame, folder, months=("01", "02", "12")):
    for number, month in enumerate(months):
        (folder / f"month={month}").mkdir(parents=True)
        frame[number :: len(months)].to_parquet(folder / f"month={month}" / "a.parquet")
    return folder


@pytest.fixture
def months(tmp_path):
    """Rows whose target depends on the month, which is in the names of directories alone."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=600)})
    frame["y"] = np.tile([3.0, -2.0, 0.5], 200)
    return hive(frame, tmp_path / "months")


def readings(folder):
    arrow = dataset.dataset(folder, partitioning="hive").to_table()
    return {
        "command": source(folder, target="y"),
        "dataset": arrow,
        "table": parquet.read_table(folder),
        "pandas": pd.read_parquet(folder),
        "polars": pl.read_parquet(folder / "**" / "*.parquet", hive_partitioning=True),
        "strings": arrow.set_column(2, "month", pa.array(["01", "02", "12"] * 200).sort()),
    }


@pytest.mark.parametrize("learned", ["command", "dataset", "table", "pandas", "polars"])
def test_columns_of_directories_are_the_same_for_everyone(months, tmp_path, learned):
    rows = readings(months)
    given = rows[learned] if learned == "command" else source(rows[learned], target="y")
    model = KernelRegressor(MAP).fit(given)
    for other in rows.values():
        some = other if other is rows["command"] else source(other, target="y")
        assert evaluate_rows(model, some).r2[0] > 0.99
    found = run("evaluate", save(model, tmp_path), months, "--target", "y", "--json")
    assert json.loads(found.stdout)["r2"][0] > 0.99


def test_values_of_directories_are_numbers_if_all_of_them_are_whole_numbers(tmp_path):
    frame = pd.DataFrame({"x": np.arange(6.0), "y": np.arange(6.0)})
    numbers = source(hive(frame, tmp_path / "a"))
    assert numbers.schema["month"].kind == "number"
    assert sorted({*next(numbers.blocks()).X["month"].to_pylist()}) == [1, 2, 12]
    told = source(tmp_path / "a", kinds={"month": "category"})
    assert sorted({*next(told.blocks()).X["month"].to_pylist()}) == ["01", "02", "12"]
    words = source(hive(frame, tmp_path / "b", ("01", "may", "__HIVE_DEFAULT_PARTITION__")))
    assert words.schema["month"].kind == "category"
    assert {*next(words.blocks()).X["month"].to_pylist()} == {"01", "may", None}


# ---------------------------------------------------------------- what pandas adds to files


@pytest.mark.parametrize("end", ["parquet", "feather"])
def test_categories_that_are_numbers_stay_categories_in_files(tmp_path, end):
    frame = frame_of(["1", "2", "3", "4"])
    frame["code"] = pd.Categorical(frame["code"].astype(int))
    path = tmp_path / f"a.{end}"
    frame.to_parquet(path) if end == "parquet" else frame.to_feather(path)
    assert source(path).schema["code"].kind == "category"
    model = KernelRegressor(MAP).fit(source(path, target="y"))
    of_frame = KernelRegressor(MAP).fit(source(frame, target="y"))
    assert evaluate_rows(model, source(frame, target="y")).r2[0] > 0.98
    assert_allclose(model.predict(frame), of_frame.predict(source(path)), atol=0.05)
    table = parquet.read_table(path) if end == "parquet" else feather.read_table(path)
    assert KernelRegressor(MAP).fit(table.select(["code", "x"]), frame["y"]).score(
        frame, frame["y"]
    ) == pytest.approx(of_frame.score(frame, frame["y"]), abs=0.01)


@pytest.mark.parametrize("index", ["id", None])
def test_the_index_of_pandas_is_no_column_to_predict_from(tmp_path, index):
    frame = frame_of(["a", "b"])[::2]  # so that the index is stored
    frame.index = pd.Index(frame.index.to_numpy()[::-1].copy(), name=index)
    frame.to_parquet(tmp_path / "a.parquet")
    rows = source(tmp_path / "a.parquet", target="y")
    name = index or "__index_level_0__"
    assert name in rows.schema
    assert rows.features == ["code", "x"]
    run("fit", tmp_path / "a.parquet", "--target", "y", "--out", tmp_path / "m", *QUICK)
    model, out = kitchenette.load(tmp_path / "m"), tmp_path / "out.csv"
    assert model.feature_names_in_.tolist() == ["code", "x"]
    plain = frame.reset_index(drop=True)
    plain.to_csv(tmp_path / "plain.csv", index=False)
    assert run("predict", tmp_path / "m", tmp_path / "plain.csv", "--out", out).stderr == ""
    done = run("predict", tmp_path / "m", tmp_path / "a.parquet", "--out", out, "--keep", name)
    assert done.stderr == ""
    assert pd.read_csv(out)[name].tolist() == frame.index.tolist()
    table = parquet.read_table(tmp_path / "a.parquet")
    fitted = KernelRegressor(MAP).fit(table.drop_columns("y"), frame["y"])
    assert fitted.feature_names_in_.tolist() == ["code", "x"]


# ---------------------------------------------------------------- identifiers


def people(n_rows=400):
    rng = np.random.default_rng(0)
    made = pd.DataFrame(
        {
            "customer_id": rng.permutation(n_rows) + 1000,
            "name": [f"n{i}" for i in rng.permutation(n_rows)],
            "text": [f"I bought {i} and liked it, but {i % 7}" for i in range(n_rows)],
            "city": rng.choice(["Oslo", "Rome"], n_rows),
            "step": np.arange(n_rows),
            "x": rng.normal(size=n_rows),
        }
    )
    return made.assign(y=np.sin(made["x"]) + (made["city"] == "Rome") + made["step"] / n_rows)


def test_identifiers_are_ignored_with_a_note():
    frame = people()
    X = frame.drop(columns="y")
    with pytest.warns(UserWarning, match=r"ignored.*'customer_id', 'name', 'text'"):
        model = KernelRegressor(MAP).fit(X, frame["y"])
    kept = ["city", "step", "x"]
    plain = KernelRegressor(MAP).fit(frame[kept], frame["y"])
    assert model.score(X, frame["y"]) == pytest.approx(plain.score(frame[kept], frame["y"]), 0.01)
    assert_allclose(model.predict(frame[kept]), model.predict(X))  # nobody asks for them
    assert model.predictor()(frame.loc[3, kept].to_dict()) == pytest.approx(
        model.predict(X[3:4])[0]
    )
    assert np.array_equal(model.importance() == 0, [True, True, True, False, False, False])
    assert model.n_features_in_ == 6


@pytest.mark.slow
def test_what_became_of_every_column_is_told_by_fit_and_inspect(tmp_path):
    frame = people(3000).assign(
        size=lambda made: made["x"].where(made["x"] > -1), word=lambda made: made["step"] // 2
    )
    frame["word"] = "w" + frame["word"].astype(str)
    frame.to_csv(tmp_path / "a.csv", index=False)
    done = run("fit", tmp_path / "a.csv", "--target", "y", "--out", tmp_path / "m", *QUICK)
    assert done.stderr.count("note:") == 1
    for text in (done.stdout, run("inspect", tmp_path / "m").stdout):
        said = " ".join(text.split())
        for name in frame.columns.drop("y"):
            assert name in said
        for words in ("ignored", "hashed into 64 columns", "2 categories", "median"):
            assert words in said
    found = json.loads(run("inspect", tmp_path / "m", "--json").stdout)["column_summary"]
    assert [*found] == frame.columns.drop("y").tolist()
    assert found["name"].startswith("ignored")
    assert found["step"] == found["x"] == "a number"
    run("predict", tmp_path / "m", write(frame[["city", "step", "x", "size", "word"]], tmp_path),
        "--out", tmp_path / "out.csv")  # fmt: skip
    run("fit", write(frame.drop(columns=["name", "text"]), tmp_path), "--target", "y",
        "--out", tmp_path / "more", "--like", tmp_path / "m")  # fmt: skip
    run("merge", tmp_path / "m", tmp_path / "more", "--out", tmp_path / "both")


def write(frame, folder):
    frame.to_csv(folder / "some.csv", index=False)
    return folder / "some.csv"


@pytest.mark.parametrize(
    ("name", "values", "ignored"),
    [
        ("id", lambda n: np.arange(n), True),
        ("Unnamed: 0", lambda n: np.arange(n), True),
        ("userId", lambda n: np.arange(n)[::-1] * 3, True),
        ("step", lambda n: np.arange(n), False),  # an order may be a trend
        ("id", lambda n: np.arange(n) // 2, False),
        ("id", lambda n: np.arange(n) + 0.5, False),
        ("humid", lambda n: np.arange(n), False),
        ("name", lambda n: [f"n{i}" for i in range(n)], True),
        ("name", lambda n: [f"n{i // 2}" for i in range(n)], False),
        ("name", lambda n: [f"n{i}" if i % 10 else "-" for i in range(n)], False),
    ],
)
@pytest.mark.filterwarnings("ignore:Columns are ignored")
def test_which_columns_are_identifiers(name, values, ignored):
    frame = people().assign(**{name: values(400)})[["x", name, "y"]]
    model = KernelRegressor(MAP).fit(source(frame, target="y"))
    assert model.feature_map_.ignored_names == ([name] if ignored else [])


@pytest.mark.parametrize("most_categories", [64, 3])
def test_words_for_missing_values_are_missing_where_they_were_so_in_the_data(
    most_categories, tmp_path
):
    frame = frame_of(["u", "v", "w", "x", ""])
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    rows = source(tmp_path / "a.csv", target="y", most_categories=most_categories)
    model = KernelRegressor(MAP).fit(rows)
    expected = model.predict(tmp_path / "a.csv")
    assert_allclose(model.predict(tmp_path / "a.parquet"), expected)
    assert_allclose(model.predict(frame), expected)
    first = frame.iloc[0].to_dict()
    assert_allclose(model.predictor()({"code": "", "x": first["x"]}),
                    model.predictor()({"code": None, "x": first["x"]}))  # fmt: skip


def test_the_score_of_a_source_reads_columns_as_the_model_has_them(tmp_path):
    frame = frame_of(["u", "v", "", "00501"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    model = KernelRegressor(MAP).fit(frame[["code", "x"]], frame["y"])
    assert model.score(source(tmp_path / "a.csv", target="y")) > 0.99
    assert model.score(tmp_path / "a.csv", "y") > 0.99


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame, pa.table, dict])
@pytest.mark.parametrize("name", ["id", "step"])
@pytest.mark.filterwarnings("ignore:Columns are ignored")
def test_frames_of_numbers_have_the_identifiers_that_files_have(made, name, tmp_path):
    frame = people(400).assign(**{name: np.arange(400.0)})[[name, "x", "y"]]
    frame.to_parquet(tmp_path / "a.parquet")
    X = frame[[name, "x"]]
    model = KernelRegressor(MAP).fit(
        made({column: X[column].to_numpy() for column in X}), frame["y"]
    )
    of_file = KernelRegressor(MAP).fit(source(tmp_path / "a.parquet", target="y"))
    assert_allclose(model.predict(X), of_file.predict(X), rtol=1e-9)
    moved = model.predict(X.assign(**{name: 7.0}))
    assert np.array_equal(moved, model.predict(X)) == (name == "id")


def test_the_advice_on_an_ignored_column_without_a_name_can_be_followed(tmp_path):
    people()[["x", "y"]].sample(400, random_state=0).to_csv(tmp_path / "a.csv")  # with the index
    fit = ("fit", tmp_path / "a.csv", "--target", "y", "--out", tmp_path / "m", *QUICK)
    assert "as in --kind =category." in run(*fit).stderr
    assert "ignored" not in run(*fit, "--kind", "=category").stderr
    assert kitchenette.load(tmp_path / "m").feature_map_.ignored_names == []


def test_identifiers_are_kept_if_their_kind_is_told_or_nothing_else_is_there():
    frame = people(1200)
    rows = source(frame[["name", "x", "y"]], target="y", kinds={"name": "category"})
    assert KernelRegressor(MAP).fit(rows).feature_map_.ignored_names == []
    with pytest.warns(UserWarning, match="Nearly all values of all columns are different"):
        alone = KernelRegressor(MAP).fit(source(frame[["name", "y"]], target="y"))
    assert alone.feature_map_.ignored_names == []
    few = KernelRegressor(MAP).fit(source(frame[["name", "x", "y"]][:30], target="y"))
    assert few.feature_map_.ignored_names == []


def test_csv_files_written_by_arrow_quote_their_strings(tmp_path):
    frame = frame_of(TEXTS)
    csv.write_csv(pa.Table.from_pandas(frame), tmp_path / "a.csv")
    model = KernelRegressor(MAP).fit(frame[["code", "x"]], frame["y"])
    rows = source(tmp_path / "a.csv", target="y", like=model)
    assert_allclose(model.predict(rows), model.predict(frame))
