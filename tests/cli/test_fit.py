"""`kitchenette fit` and what uses its models, run on files as a user runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import MODULE, assert_one_sentence, environment, run, run_in_a_terminal
from sklearn.datasets import dump_svmlight_file

import kitchenette
from kitchenette.cli.outcome import ExitCode
from kitchenette.jobs import FitSettings
from kitchenette.jobs.held_out import test_rows as rows_held_out

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
resource = pytest.importorskip("resource")
from tables_of_all_formats import FORMATS  # noqa: E402 - needs pandas
from tables_of_all_formats import table as table_of_all_kinds  # noqa: E402

FILES = ("directory", "german csv", "compressed csv", "feather", "arrow stream")

QUICK = ("--map", "Fastfood", "--components", "64", "--json")
BLOCK_ROWS = 1 << 16  # of a narrow source


def frame(n_rows: int, seed: int = 0) -> Any:
    """Rows with numbers, categories and missing values."""
    rng = np.random.default_rng(seed)
    made = pd.DataFrame(rng.normal(size=(n_rows, 4)).astype(np.float32), columns=[*"abcd"])
    made["city"] = rng.choice(["Oslo", "Rome", "Lima"], n_rows)
    made["id"] = np.arange(n_rows)
    made["height"] = np.sin(2 * made["a"]) + (made["city"] == "Rome") * made["c"]
    made["kind"] = np.where(made["height"] > 0.3, "tall", "small")
    made.loc[::40, "b"] = np.nan
    return made


def fit(data: Path | str, out: Path, *options: str, **others: Any) -> Any:
    done = run(MODULE, "fit", data, "--out", out, *options, **others)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small table as CSV and Parquet."""
    made = tmp_path_factory.mktemp("tables")
    table = frame(3000)
    table.to_csv(made / "table.csv", index=False)
    table.to_parquet(made / "table.parquet")
    return made


CLASSES = ("--target", "kind", "--ignore", "height", "--ignore", "id")
NUMBERS = ("--target", "height", "--ignore", "kind", "--ignore", "id")


# ------------------------------------------------------------ from data to predictions


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_classes_from_file_to_predictions_and_evaluation(folder, tmp_path, ending):
    data, out = folder / f"table.{ending}", tmp_path / "model.safetensors"
    found = fit(data, out, *CLASSES, "--components", "256", "--json")
    assert found["task"] == "classification"
    assert "strings" in found["why_task"]
    assert (found["n_rows"], found["n_test_rows"], found["n_columns"]) == (3000, 0, 5)
    assert found["n_validation_rows"] == 2000
    assert found["errors"]["model"] == pytest.approx(1 - found["validation_score"])
    assert found["errors"]["model"] < 0.7 * found["errors"]["linear"]
    assert found["errors"]["linear"] < found["errors"]["trivial"]
    assert found["model_bytes"] == out.stat().st_size
    assert not out.with_name("model.safetensors.checkpoint").exists()

    predictions = tmp_path / "predictions.csv"
    done = run(MODULE, "predict", out, data, "--out", predictions, "--proba", "--keep", "id,city")
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.strip().endswith("ignored: height")  # it knows its target
    written = pd.read_csv(predictions)
    assert [*written] == ["id", "city", "prediction", "probability_small", "probability_tall"]
    table = pd.read_csv(data) if ending == "csv" else pd.read_parquet(data)
    model = kitchenette.load(out)
    np.testing.assert_array_equal(written["prediction"], model.predict(table))
    np.testing.assert_array_equal(written["id"], table["id"])
    np.testing.assert_allclose(written["probability_tall"], model.predict_proba(table)[:, 1])

    done = run(MODULE, "evaluate", out, data, "--json")  # the model knows its target
    evaluated = json.loads(done.stdout)
    assert evaluated["error"] == pytest.approx(np.mean(written["prediction"] != table["kind"]))
    assert sum(map(sum, evaluated["confusion"])) == 3000
    assert evaluated["labels"] == ["small", "tall"]


@pytest.mark.slow
def test_numbers_with_several_targets_test_files_and_standard_deviations(folder, tmp_path):
    data, out = folder / "table.parquet", tmp_path / "model.safetensors"
    table = frame(1000, seed=1)
    table.to_csv(tmp_path / "other.csv", index=False)
    targets = ("--target", "height", "--target", "d", "--ignore", "kind", "--ignore", "id")
    found = fit(data, out, *targets, "--test", str(tmp_path / "other.csv"), *QUICK)
    assert (found["task"], found["n_rows"], found["n_test_rows"]) == ("regression", 3000, 1000)
    written = tmp_path / "predictions.parquet"
    # Columns in another order, without the targets.
    table[["city", "d", "c", "b", "a"]].drop(columns="d").to_parquet(tmp_path / "new.parquet")
    done = run(MODULE, "predict", out, tmp_path / "new.parquet", "--out", written, "--std")
    assert done.returncode == 0
    assert done.stderr == ""
    predictions = pd.read_parquet(written)
    assert [*predictions] == [
        "prediction_height",
        "prediction_d",
        "std_height",
        "std_d",
    ]
    evaluated = run(MODULE, "evaluate", out, tmp_path / "other.csv")
    assert evaluated.returncode == 0
    assert "variance" in evaluated.stdout


@pytest.mark.slow
def test_the_summary_for_people(folder, tmp_path):
    out = tmp_path / "model.safetensors"
    done = run(
        MODULE, "fit", folder / "table.csv", "--out", out, *NUMBERS, *QUICK[:-1], "--seed", "3"
    )
    assert done.returncode == 0
    assert done.stderr == ""  # no bars, as it is not a terminal
    assert "\x1b[" not in done.stdout
    for text in (
        *("Regression, because", "Fastfood", "linear model", "trivial model", "rows/s"),
        *("3,000 training rows", "Validation score (R^2): ", "2,000 validation rows"),
    ):
        assert text in done.stdout


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal(many, tmp_path):
    options = (*CLASSES, *QUICK[:-1])
    shown = run_in_a_terminal(
        MODULE, "fit", str(many / "data"), "--out", str(tmp_path / "m"), *options
    )
    for text in ("choosing a map", "learning", "rows/s", "0:00:"):
        assert text in shown


@pytest.mark.slow
def test_choose_and_compare(folder, tmp_path):
    data, page = folder / "table.parquet", tmp_path / "page.html"
    done = run(MODULE, "choose", data, *CLASSES, "--components", "64", "--effort", "1s", "--json")
    assert json.loads(done.stdout)["chosen"]["n_components"] <= 64
    done = run(
        MODULE, "compare", data, *CLASSES, "--time", "2s", "--rows", "600", "--out", page, "--json"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["recommended"] in found["advice"][0]
    assert found["task"] == "classification"
    text = page.read_text(encoding="utf-8")
    for words in ("kind of table.parquet", "city = Rome", "b is missing"):
        assert words in text
    sizes = {column["name"]: column["importance"] for column in found["columns"]}
    assert sum(sizes.values()) == pytest.approx(1)
    assert max(sizes, key=sizes.get) == "a"


@pytest.mark.slow
def test_other_losses_hold_the_same_rows_out(folder, tmp_path):
    out = tmp_path / "model.safetensors"
    options = (*CLASSES, *QUICK, "--loss", "logistic")
    found = fit(folder / "table.csv", out, *options, "--test", "0.1")
    assert (found["loss"], found["solver"], found["n_test_rows"]) == ("logistic", "iterative", 300)
    assert found["errors"]["model"] < found["errors"]["trivial"]
    found = fit(folder / "table.csv", out, *options)
    assert (found["n_rows"], found["n_test_rows"]) == (3000, 0)
    assert found["errors"]["model"] == pytest.approx(1 - found["validation_score"])
    assert found["errors"]["model"] < found["errors"]["linear"] < found["errors"]["trivial"]
    assert found["not_beaten"] == []


@pytest.mark.slow
def test_limits_of_time_and_memory_choose_the_size(folder, tmp_path):
    out = tmp_path / "model.safetensors"
    found = fit(
        folder / "table.csv", out, *NUMBERS, "--map", "Fastfood", "--json", "--memory", "410MB"
    )
    assert found["n_components"] == 256
    done = run(MODULE, "fit", folder / "table.csv", "--out", out, *NUMBERS, "--memory", "1MB")
    assert done.returncode == ExitCode.RESOURCES
    assert "64 features take" in done.stderr


@pytest.mark.slow
def test_weights_count_rows(tmp_path):
    table = frame(2000)
    table["weight"] = (table["id"] % 2).astype(float)
    table.to_parquet(tmp_path / "weighted.parquet")
    out = tmp_path / "model.safetensors"
    fit(tmp_path / "weighted.parquet", out, *NUMBERS, *QUICK, "--weight", "weight")
    model = kitchenette.load(out)
    assert model.statistics_.n_rows == 1000
    assert (model.target_names_.tolist(), model.weight_name_) == (["height"], "weight")


@pytest.mark.slow
def test_models_that_are_fitted_alike_can_be_merged(folder, tmp_path):
    table = frame(3000)
    for name, rows in (("a", slice(0, 1400)), ("b", slice(1400, None))):
        table[rows].to_csv(tmp_path / f"{name}.csv", index=False)
    options = (*CLASSES, *QUICK)
    a, b, merged = (tmp_path / name for name in ("a", "b", "merged"))
    fit(tmp_path / "a.csv", a, *options)
    fit(tmp_path / "b.csv", b, *options)
    done = run(MODULE, "merge", a, b, "--out", merged)
    assert done.returncode == ExitCode.MODEL
    assert f"--like {a}" in done.stderr
    # The columns are those of the other model, so that none has to be ignored.
    found = fit(tmp_path / "b.csv", b, "--target", "kind", *QUICK, "--like", a)
    assert (found["n_columns"], found["n_components"]) == (5, 64)
    assert run(MODULE, "merge", a, b, "--out", merged).returncode == 0
    whole = tmp_path / "whole"
    fit(folder / "table.csv", whole, "--target", "kind", *QUICK, "--like", a)
    models = [kitchenette.load(path) for path in (merged, whole)]
    assert [model.statistics_.n_rows for model in models] == [3000, 3000]
    probabilities = [model.predict_proba(table) for model in models]
    np.testing.assert_allclose(*probabilities, atol=0.02)  # other rows validate


# ------------------------------------------------------------ bad input


def _parquet(table: Any, path: Path, **options: Any) -> Path:
    table.to_parquet(path, **options)
    return path


def _cut(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[:-200])
    return path


def _damaged(path: Path) -> Path:
    content = bytearray(path.read_bytes())
    place = len(content) // 2
    content[place : place + 400] = b"\xff" * 400
    path.write_bytes(bytes(content))
    return path


def _two_files(folder: Path) -> Path:
    table = frame(50)[["a", "height"]]
    table.to_parquet(folder / "one.parquet")
    table.rename(columns={"a": "b"}).to_parquet(folder / "two.parquet")
    return folder


PLAIN = "a,height\n" + "".join(f"{i}.5,{i % 7}.25\n" for i in range(60))
# What is wrong: how the file is made, or its text, and what the command must say about it.
BAD: dict[str, tuple[str | bytes | Callable[[Path], Path], str]] = {
    "short row": (PLAIN + "3.5\n", "line 62: there are 1 values instead of 2"),
    "long row": (PLAIN + "3.5,1,2\n", "line 62: there are 3 values instead of 2"),
    "bad number": (PLAIN + "oops,1.5\n", "line 62: the column 'a' has 'oops'"),
    "words in the target": (PLAIN + "1.5,oops\n", "line 62: the column 'height' has 'oops'"),
    "decimal commas": ('a;height\n"1,5";2\n"2,5";3\n', "--decimal ,"),
    "other encoding": ("a,height\n1,ü\n".encode("latin-1"), "is not text in UTF-8"),
    "empty": (b"", "is empty"),
    "only a header": ("a,height\n", "no rows"),
    "repeated names": ("a,height,a\n1,2,3\n", "line 1: names are repeated"),
    "no such column": ("a,heigth\n1,2\n", "Did you mean 'heigth'?"),
    "a missing target": (PLAIN + "1.5,\n", "a value is missing in row 60"),
    "dates": ("a,height\n2024-02-29,1\n2024-03-01,2\n", "--dates days"),
    "cut Parquet": (
        lambda folder: _cut(_parquet(frame(50), folder / "a.parquet")),
        "a.parquet is not a whole Parquet file",
    ),
    "damaged Parquet": (
        lambda folder: _damaged(
            _parquet(
                frame(4000)[[*"abcd", "height"]],
                folder / "a.parquet",
                row_group_size=400,
                compression="gzip",
            )
        ),
        "a.parquet, row group ",
    ),
    "changed columns": (_two_files, "two.parquet has no column 'a'"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD)
def test_bad_files_get_one_sentence(tmp_path, name):
    content, sentence = BAD[name]
    if callable(content):
        data = content(tmp_path)
    else:
        data = tmp_path / "bad.csv"
        data.write_bytes(content.encode() if isinstance(content, str) else content)
    done = run(MODULE, "fit", data, "--target", "height", "--out", tmp_path / "model", *QUICK)
    assert_one_sentence(done, ExitCode.DATA, sentence)
    assert not (tmp_path / "model").exists()


ROWS = [(f"{i / 8}", f"{i % 7}", f'"u{i % 3}, v"') for i in range(80)]
LINES = [("a", "height", "word"), *ROWS]
UNUSUAL: dict[str, tuple[str, tuple[str, ...]]] = {
    "BOM, CRLF, quotes, semicolons and decimal commas": (
        "\ufeff" + "".join(";".join(line) + "\r\n" for line in LINES).replace(".", ","),
        ("--decimal", ","),
    ),
    "line breaks in quotes": (
        "".join(",".join(line) + "\n" for line in LINES).replace(", v", "\nv"),
        ("--newlines",),
    ),
    "no header": ("".join(",".join(line) + "\n" for line in ROWS), ("--no-header",)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_csv_files_are_learned(tmp_path, name):
    text, options = UNUSUAL[name]
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode())
    target = "f1" if name == "no header" else "height"
    found = fit(path, tmp_path / "m", "--target", target, *QUICK, *options)
    assert (found["n_rows"], found["n_columns"], found["task"]) == (80, 2, "classification")
    model = kitchenette.load(tmp_path / "m")
    assert model.classes_.tolist() == [*range(7)]
    words = model.feature_map_.specification_.vocabularies[0].categories
    between = "\n" if "--newlines" in options else ", "
    assert words == tuple(f"u{i}{between}v" for i in range(3))


ARRAYS = {
    "npy": lambda X, y, path: np.save(path, np.c_[X, y]),
    "npz": lambda X, y, path: np.savez(path, X=X, y=y, others=X[:5]),
    "svm": lambda X, y, path: dump_svmlight_file(X, y, str(path)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FILES, *ARRAYS])
def test_files_of_every_format_are_learned_by_the_command(tmp_path, name):
    options: tuple[str, ...]
    if name in ARRAYS:
        X = np.random.default_rng(0).normal(size=(400, 3))
        data = tmp_path / f"a.{name}"
        ARRAYS[name](X, X[:, 0] - X[:, 1], data)
        target = {"npy": "x3", "npz": "y", "svm": "label"}[name]
        options, n_columns = (("--array", "X") if name == "npz" else ()), 3
    else:
        make, keywords = FORMATS[name]
        data, target = make(table_of_all_kinds(), tmp_path), "price"
        options, n_columns = ("--ignore", "label", "--weight", "weight"), 4
        options += ("--decimal", ",") if "decimal" in keywords else ()
    found = fit(data, tmp_path / "m", "--target", target, *QUICK, *options)
    assert (found["n_rows"], found["n_test_rows"]) == (400, 0)
    assert {*found["errors"]} >= {"model", "trivial"}
    assert (found["n_columns"], found["task"]) == (n_columns, "regression")
    assert found["errors"]["model"] < found["errors"]["trivial"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["fit", "nowhere.csv", "--target", "y", "--out", "m"], ExitCode.DATA, "nowhere.csv"),
        (["fit", "TABLE", *NUMBERS, "--out", "no/m"], ExitCode.RESOURCES, "no folder"),
        (["fit", "TABLE", *NUMBERS, "--out", "m", "--map", "Slow"], ExitCode.USAGE, "map must be"),
        (["fit", "TABLE", *NUMBERS, "--out", "m", "--loss", "Slow"], ExitCode.USAGE, "loss must"),
        (["fit", "TABLE", *NUMBERS, "--out", "m", "--dates", "no"], ExitCode.USAGE, "dates must"),
        (["fit", "TABLE", *NUMBERS, "--out", "m", "--kind", "a"], ExitCode.USAGE, "zip=category"),
        (["fit", "TABLE", *NUMBERS, "--out", "m", "--test", "2"], ExitCode.USAGE, "test must be"),
        (["fit", "TABLE", *NUMBERS, "--out", "m", "--memory", "x"], ExitCode.USAGE, "a size"),
        (["fit", "TABLE", "--traget", "a", "--out", "m"], ExitCode.USAGE, "--target"),
        (["fit", "TABLE", *NUMBERS, "--out", "."], ExitCode.RESOURCES, "is a folder"),
        (["compare", "TABLE", *NUMBERS, "--out", "no/m"], ExitCode.RESOURCES, "no folder"),
        (
            ["fit", "TABLE", "--target", "city", "--task", "regression", "--out", "m"],
            ExitCode.DATA,
            "cannot be a regression",
        ),
        (["predict", "nothing", "TABLE", "--out", "p.csv"], ExitCode.MODEL, "nothing"),
        (
            ["fit", "TABLE", *NUMBERS, "--out", "m", "--map", "TensorSketch", "--kernel", "cauchy"],
            ExitCode.USAGE,
            "TensorSketch does not support Cauchy",
        ),
        (
            ["fit", "TABLE", *NUMBERS, "--out", "m", "--loss", "logistic"],
            ExitCode.DATA,
            "logistic is not for regression",
        ),
        (
            ["fit", "TABLE", *NUMBERS, "--out", "m", "--task", "classification"],
            ExitCode.DATA,
            "cannot be a classification",
        ),
        (
            ["fit", "TABLE", "--target", "a", "--target", "city", "--out", "m"],
            ExitCode.DATA,
            "Several targets can be numbers only",
        ),
        (
            ["fit", "TABLE", "--target", "a", "--target", "a", "--out", "m"],
            ExitCode.DATA,
            "'a' is named twice",
        ),
        (
            ["fit", "TABLE", *NUMBERS, "--out", "m", "--missing", "refuse"],
            ExitCode.DATA,
            "missing values in 'b'",
        ),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_mistakes_get_one_sentence(folder, tmp_path, arguments, code, sentence):
    arguments = [str(folder / "table.csv") if one == "TABLE" else one for one in arguments]
    done = run(MODULE, *arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert sentence in done.stderr
    assert done.stderr.startswith("kitchenette: ")
    assert len(done.stderr.splitlines()) == 1
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
def test_a_column_that_is_missing_in_predictions_is_named(folder, tmp_path):
    out = tmp_path / "model"
    fit(folder / "table.csv", out, *NUMBERS, *QUICK)
    frame(10).drop(columns=["a", "city"]).to_csv(tmp_path / "new.csv", index=False)
    predictions = tmp_path / "predictions.csv"
    done = run(MODULE, "predict", out, tmp_path / "new.csv", "--out", predictions)
    assert done.returncode == ExitCode.DATA
    assert "a, city" in done.stderr
    assert not predictions.exists()
    done = run(MODULE, "predict", out, folder / "table.csv", "--out", tmp_path / "predictions.txt")
    assert done.returncode == ExitCode.USAGE
    assert ".parquet" in done.stderr


@pytest.mark.slow
def test_arrays_with_targets_and_narrower_svmlight_files_are_predicted(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 4))
    y = np.sign(X[:, 0])
    np.save(tmp_path / "a.npy", np.c_[X, np.ones(300), y])
    fit(tmp_path / "a.npy", tmp_path / "m", "--target", "x5", "--weight", "x4", *QUICK)
    out = tmp_path / "p.csv"
    # The model knows which columns were target and weight.
    done = run(MODULE, "predict", tmp_path / "m", tmp_path / "a.npy", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 300
    done = run(MODULE, "evaluate", tmp_path / "m", tmp_path / "a.npy", "--json")
    assert json.loads(done.stdout)["error"] < 0.1
    # Zeros are not in these files, so that the last columns may be missing, as in a9a.t of LIBSVM.
    narrow = X.copy()
    narrow[:, 3] = 0
    dump_svmlight_file(X, y, str(tmp_path / "a.svm"), zero_based=False)
    dump_svmlight_file(narrow, y, str(tmp_path / "b.svm"), zero_based=False)
    options = ("--target", "label", "--test", str(tmp_path / "b.svm"), *QUICK)
    found = fit(tmp_path / "a.svm", tmp_path / "s", *options)
    assert found["n_test_rows"] == 300
    done = run(MODULE, "predict", tmp_path / "s", tmp_path / "b.svm", "--out", out)
    assert done.returncode == 0, done.stderr
    expected = kitchenette.load(tmp_path / "s").predict(narrow)
    np.testing.assert_array_equal(pd.read_csv(out)["prediction"], expected)
    bad = np.c_[X, y]
    bad[3, 1] = np.nan
    np.save(tmp_path / "gaps.npy", bad)
    fit(tmp_path / "gaps.npy", tmp_path / "n", "--target", "x4", *QUICK)  # it is filled
    bad[3, 1] = np.inf
    np.save(tmp_path / "gaps.npy", bad)
    gaps = ["fit", tmp_path / "gaps.npy", "--target", "x4", "--out", tmp_path / "n", *QUICK]
    done = run(MODULE, *gaps)
    assert done.returncode == ExitCode.DATA
    assert "infinit" in done.stderr
    assert "supervised" not in done.stderr


@pytest.mark.slow
def test_no_command_writes_over_its_input(folder, tmp_path):
    data, model = tmp_path / "table.csv", tmp_path / "model.csv"
    table = (folder / "table.csv").read_bytes()
    data.write_bytes(table)
    fit(data, model, *NUMBERS, *QUICK)
    stored = model.read_bytes()
    link = tmp_path / "link.csv"
    link.symlink_to(data)
    for command in (
        ["fit", tmp_path / "t*.csv", *NUMBERS, *QUICK, "--out", link],
        ["fit", folder / "table.csv", *NUMBERS, *QUICK, "--test", data, "--out", data],
        ["predict", model, data, "--out", data],
        ["predict", model, data, "--out", model],
        ["compare", data, *NUMBERS, "--out", data],
    ):
        done = run(MODULE, *command)
        assert done.returncode == ExitCode.USAGE, done.stderr
        assert "is one of the inputs" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert (data.read_bytes(), model.read_bytes()) == (table, stored)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "options", "sentence"),
    [
        ({"height": np.inf}, (), "'height' is a target or a weight, and infinite in row "),
        ({"w": -1.0}, ("--weight", "w"), "'w' has weights, and one is negative in row "),
        ({"w": np.nan}, ("--weight", "w"), "a value is missing in row "),
        ({"a": np.inf}, (), "The column 'a' has infinite numbers"),
    ],
    ids=["infinite target", "negative weight", "missing weight", "infinite number"],
)
@pytest.mark.parametrize("held_out", [False, True])
def test_values_of_no_use_are_refused_also_in_test_rows(
    tmp_path, changes, options, sentence, held_out
):
    table = frame(300)[["a", "b", "height"]].assign(w=1.0)
    tested = rows_held_out(len(table), FitSettings(test=0.1))
    row = int(tested[0]) if held_out else int(np.setdiff1d(np.arange(300), tested)[0])
    for name, value in changes.items():
        table.loc[row, name] = value
    table.to_csv(tmp_path / "bad.csv", index=False)
    ignored = () if options else ("--ignore", "w")
    command = ["fit", tmp_path / "bad.csv", "--target", "height", "--out", tmp_path / "model"]
    done = run(MODULE, *command, *QUICK, *options, *ignored, "--test", "0.1")
    assert done.returncode == ExitCode.DATA, done.stdout
    assert sentence + (str(row) if "row" in sentence else "") in done.stderr
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
def test_models_and_data_that_were_mixed_up_are_named(folder, tmp_path):
    data, model, classes = folder / "table.csv", tmp_path / "model", tmp_path / "classes"
    fit(data, model, *NUMBERS, *QUICK)
    fit(data, classes, *CLASSES, *QUICK)
    out = tmp_path / "predictions.csv"
    wrong = frame(20).assign(a="word").to_csv(index=False)
    (tmp_path / "words.csv").write_text(wrong)
    for command, code, sentence in (
        (["predict", model, model, "--out", out], ExitCode.DATA, "is a model file, not"),
        (["fit", model, *NUMBERS, "--out", out], ExitCode.DATA, "is a model file, not"),
        (["predict", data, data, "--out", out], ExitCode.MODEL, "not a model file"),
        (["predict", model, data, "--out", out, "--proba"], ExitCode.USAGE, "are for classes"),
        (["predict", classes, data, "--out", out, "--std"], ExitCode.USAGE, "for regression"),
        (["predict", model, tmp_path / "words.csv", "--out", out], ExitCode.DATA, "line 2: the"),
        (["evaluate", classes, data, "--target", "city"], ExitCode.DATA, "none of these is in"),
    ):
        done = run(MODULE, *command)
        assert done.returncode == code, done.stderr
        assert sentence in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert not out.exists()


# ------------------------------------------------------------ interrupts


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Two files with five blocks of rows, and the model of an undisturbed fit."""
    made = tmp_path_factory.mktemp("many")
    table = frame(5 * BLOCK_ROWS)
    half = len(table) // 2
    (made / "data").mkdir()
    table[:half].to_parquet(made / "data" / "a.parquet")
    table[half:].to_parquet(made / "data" / "b.parquet")
    assert fit(made / "data", made / "model", *CLASSES, *QUICK)["resumed_at"] == 0
    return made


def started(many: Path, out: Path, *options: str, **others: Any) -> subprocess.Popen[str]:
    """A fit that writes a checkpoint after every block."""
    return subprocess.Popen(
        [
            *[*MODULE, "fit", str(many / "data"), "--out", str(out), *CLASSES, *QUICK],
            *["--checkpoint-every", "0s", *options],
        ],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Shells let what they run in the background ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **others,
    )


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 300
    while not happened() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.002)


def stamp(path: Path) -> int:
    """A number that changes when a file is replaced; 0 if there is none."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


@pytest.mark.slow
def test_twenty_kills_and_resumptions_give_the_same_bits(many, tmp_path):
    rng, resumed = np.random.default_rng(17), []
    for number in range(5):
        out, checkpoint = tmp_path / f"model{number}", tmp_path / f"model{number}.checkpoint"
        for kill in range(4):
            before = stamp(checkpoint)
            process = started(many, out, *(["--resume"] if kill else []))
            # At any moment of the beginning, or soon after the next checkpoint.
            if rng.random() < 0.7:
                wait_for(lambda: stamp(checkpoint) != before, process)  # noqa: B023
                time.sleep(rng.uniform(0, 0.1))
            else:
                time.sleep(rng.uniform(0, 2))
            process.kill()
            process.communicate()
            assert process.returncode == -signal.SIGKILL
        found = fit(many / "data", out, *CLASSES, *QUICK, "--resume")
        assert found["resumed_at"] % BLOCK_ROWS == 0
        resumed.append(found["resumed_at"] > 0)
        assert out.read_bytes() == (many / "model").read_bytes()
    # On a busy machine all four kills of a fit may come before its first block is learned.
    assert sum(resumed) >= 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"model{n}" for n in range(5)]


@pytest.mark.slow
def test_an_interrupt_leaves_a_checkpoint_and_a_sentence(many, tmp_path):
    out, checkpoint = tmp_path / "model", tmp_path / "model.checkpoint"
    out.write_text("the old model")
    process = started(many, out)
    wait_for(checkpoint.exists, process)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate()
    assert process.returncode == ExitCode.INTERRUPTED
    assert "--resume" in complaint
    assert "Traceback" not in complaint
    assert out.read_text() == "the old model"
    found = fit(many / "data", out, *CLASSES, *QUICK, "--resume")
    assert found["resumed_at"] > 0
    assert out.read_bytes() == (many / "model").read_bytes()
    assert not checkpoint.exists()


@pytest.mark.slow
def test_a_changed_input_and_other_options_are_refused(many, tmp_path):
    data, out = tmp_path / "data", tmp_path / "model"
    data.mkdir()
    for path in (many / "data").iterdir():
        os.link(path, data / path.name)
    process = started(tmp_path, out)
    wait_for((tmp_path / "model.checkpoint").exists, process)
    process.kill()
    process.communicate()
    again = ("fit", data, "--out", out, "--resume", *CLASSES, *QUICK)
    done = run(MODULE, *again, "--alpha", "1.0")
    assert done.returncode == ExitCode.CHECKPOINT
    assert "alpha was 'auto' and is 1.0" in done.stderr
    done = run(MODULE, *again, "--missing", "refuse")
    assert done.returncode == ExitCode.CHECKPOINT
    changed = pd.read_parquet(data / "b.parquet")
    (data / "b.parquet").unlink()
    changed.assign(a=changed["a"] + 1).to_parquet(data / "b.parquet")
    done = run(MODULE, *again)
    assert done.returncode == ExitCode.CHECKPOINT
    assert "input has changed" in done.stderr
    assert not out.exists()


def limited(what: int, size: int) -> Any:
    """A function that limits a resource of a new process."""
    return lambda: resource.setrlimit(what, (size, size))


@pytest.mark.slow
@pytest.mark.parametrize("size", [50_000, 1000])
def test_a_full_disk_leaves_the_old_model(folder, tmp_path, size):
    out = tmp_path / "model"
    out.write_text("the old model")
    process = subprocess.run(
        [*MODULE, "fit", str(folder / "table.csv"), "--out", str(out), *NUMBERS, *QUICK],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited(resource.RLIMIT_FSIZE, size),
    )
    assert process.returncode == ExitCode.RESOURCES
    assert "disk is full" in process.stderr
    assert len(process.stderr.splitlines()) == 1
    assert out.read_text() == "the old model"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


ALLOWED = 2 * 10**9  # bytes of address space, most of which the libraries reserve and never use


@pytest.mark.slow
def test_files_larger_than_the_memory_that_the_process_may_use(tmp_path):
    data, n_links, n_rows = tmp_path / "data", 21, 240_000
    data.mkdir()
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(n_rows, 101)).astype(np.float32))
    table.columns = [f"x{j}" for j in range(100)] + ["y"]
    table["y"] += table["x0"] ** 2
    table.to_parquet(data / "part0.parquet", compression=None, row_group_size=60_000)
    for number in range(1, n_links):  # further names of the same file, to save space on the disk
        os.link(data / "part0.parquet", data / f"part{number}.parquet")
    assert sum(path.stat().st_size for path in data.iterdir()) > ALLOWED
    variables = {
        **environment(),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "1",
    }
    options = {"env": variables, "capture_output": True, "text": True, "check": False}
    in_memory = f"import pyarrow.parquet; pyarrow.parquet.read_table({str(data)!r})"
    failed = subprocess.run(
        [MODULE[0], "-c", in_memory],
        preexec_fn=limited(resource.RLIMIT_AS, ALLOWED),
        **options,
    )
    assert failed.returncode != 0  # they do not fit indeed
    out, predictions = tmp_path / "model", tmp_path / "predictions.parquet"
    for command in (
        ["fit", data, "--target", "y", "--out", out, *QUICK],
        ["predict", out, data, "--out", predictions, "--json"],
    ):
        done = subprocess.run(
            [*MODULE, *map(str, command)],
            preexec_fn=limited(resource.RLIMIT_AS, ALLOWED),
            **options,
        )
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == n_links * n_rows
    assert kitchenette.load(out).statistics_.n_rows == n_links * n_rows
