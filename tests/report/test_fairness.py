"""Comparisons with other models: the same rows, settings that work, and no verdict from less."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes

from kitchenette import Fastfood, KernelClassifier
from kitchenette.data import source
from kitchenette.jobs import prepared_sample
from kitchenette.report import Measurement, compare, comparing
from kitchenette.report.advice import advised, imports_of, in_python
from kitchenette.report.boosting import LIBRARIES, ROUNDS, boosted, installed
from kitchenette.report.contestants import MAPS, with_map

HIST = "HistGradientBoosting"


# ------------------------------------------------------------ trees that work


@pytest.fixture(params=LIBRARIES)
def library(request) -> str:
    pytest.importorskip(LIBRARIES[request.param])
    return request.param


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # of LightGBM
def test_trees_take_labels_of_any_kind(library):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(600, 3)).astype(float)
    y = np.array(["low", "middle", "high"])[(X[:, 0] + X[:, 1] > 3).astype(int) + (X[:, 2] > 2)]
    model = boosted(library, "classification", rounds=30).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.95


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # of LightGBM
def test_trees_take_several_targets_far_from_zero(library):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = 5e7 + np.c_[X[:, 0] > 0, X[:, 1]] * 3.0
    model = boosted(library, "regression", n_targets=2, rounds=30).fit(X[:300], y[:300])
    errors = np.sqrt(np.mean(np.square(model.predict(X[300:]) - y[300:]), axis=0)) / y.std(axis=0)
    assert errors.max() < 0.5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # of LightGBM
def test_trees_survive_a_class_of_three_rows(library):
    # Without a penalty on its leaves, HistGradientBoosting has an error of 0.63 here.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 4))
    y = (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0)
    y[np.argsort(-X[:4000, 2])[:3]] = 4
    model = boosted(library, "classification").fit(X[:4000], y[:4000])
    assert model.score(X[4000:], y[4000:]) > 0.98


def test_trees_do_not_stop_early():
    assert boosted(HIST, "classification").get_params()["early_stopping"] is False


def test_an_unknown_library_is_refused():
    with pytest.raises(ValueError, match="library must be one of LightGBM, XGBoost"):
        boosted("CatBoost", "regression")


# ------------------------------------------------------------ the same rows, and as much time


def test_trees_learn_all_rows_however_little_time_there_is():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    found = compare(X, np.sin(3 * X[:, 0]), maps=("Fastfood",), sizes=(16,), budget=1e-6)
    rows = [row for row in found.measurements if row.family == "trees"]
    assert rows
    assert {row.n_rows for row in rows} == {found.n_rows}


def test_trees_have_at_least_the_time_of_the_slowest_map():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    y = rng.integers(0, 20, size=2000)
    found = compare(X, y, maps=("Fastfood",), sizes=(16, 64), budget=1e-6, task="classification")
    slowest = max(row.fit_seconds for row in found.measurements if row.n_components)
    trees = [row for row in found.measurements if row.family == "trees"]
    assert trees
    for row in trees:
        assert row.fit_seconds >= slowest or not row.unfinished
        if row.unfinished:
            assert f"of {ROUNDS} rounds" in row.name
            library = row.name.partition(",")[0]
            assert any(text.startswith(f"{library} with all") for text in found.left_out)


@pytest.mark.parametrize(
    ("there", "taken"),
    [((HIST,), {HIST}), (("XGBoost", HIST), {"XGBoost"}), (("LightGBM", HIST), {"LightGBM"})],
)
def test_lightgbm_or_xgboost_is_taken_where_it_is_installed(monkeypatch, there, taken):
    for name in there:
        pytest.importorskip(LIBRARIES[name])
    monkeypatch.setattr(comparing, "installed", lambda *, sparse: there)
    X, y = load_diabetes(return_X_y=True)
    found = compare(X, y, maps=("Fastfood",), sizes=(16,), budget=30)
    assert {row.name for row in found.measurements if row.family == "trees"} == taken


def test_installed_libraries_that_take_sparse_rows():
    assert set(installed(sparse=True)) == set(installed()) - {HIST}


def test_trees_take_sparse_rows_where_a_library_does(monkeypatch):
    X = sp.random(300, 20, density=0.2, format="csr", random_state=0)
    y = np.asarray(X[:, 0].todense()).ravel()
    found = compare(X, y, maps=("Fastfood",), sizes=(16,), budget=1)
    trees = [row for row in found.measurements if row.family == "trees"]
    assert len(trees) == len(installed(sparse=True))
    monkeypatch.setattr(comparing, "installed", lambda *, sparse: ())
    found = compare(X, y, maps=("Fastfood",), sizes=(16,), budget=1)
    assert found.left_out[-1].endswith("Install LightGBM or XGBoost, which do.")


def test_a_library_that_fails_is_left_out_and_said_so(monkeypatch):
    def broken(library, *arguments, **options):
        raise RuntimeError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(comparing, "boosted", broken)
    monkeypatch.setattr(comparing, "installed", lambda *, sparse: ("LightGBM", HIST))
    X, y = load_diabetes(return_X_y=True)
    found = compare(X, y, maps=("Fastfood",), sizes=(16,), budget=1)
    assert "LightGBM: libgomp.so.1: cannot open shared object file" in found.left_out


# ------------------------------------------------------------ verdicts


def row(name: str, family: str, error: float | None, n_rows: int = 16_000, **others: object):
    return Measurement(
        name,
        family,
        n_rows,
        error=error,
        standard_error=0.002,
        fit_seconds=1.0,
        predict_seconds=1e-6,
        model_bytes=1000,
        **others,
    )


OURS = row("Fastfood, 256 features", "Fastfood", 0.10, n_components=256)
MODEL = KernelClassifier(Fastfood(n_components=256, random_state=0), random_state=0)
VERDICTS = ("better than", "worse than", "as good as")


def advice(*others: Measurement) -> tuple[str, ...]:
    return advised([*others, OURS], OURS, ["Fastfood"], "classification", MODEL)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (row("exact kernel machine on 2,000 rows", "exact kernel", 0.3, 2000), "all 16,000 rows"),
        (row("XGBoost, 10 of 100 rounds", "trees", 0.3, unfinished=True), "all rounds"),
        (row("XGBoost, 10 of 100 rounds", "trees", 0.10, unfinished=True), "all rounds"),
    ],
    ids=["fewer rows", "fewer rounds", "fewer rounds, equal"],
)
def test_no_verdict_from_fewer_rows_or_rounds(other, reason):
    text = " ".join(advice(other))
    assert not any(verdict in text for verdict in VERDICTS)
    assert "no verdict, as it was not fitted " in text
    assert reason in text


@pytest.mark.parametrize(
    ("error", "verdict"), [(0.3, "worse than"), (0.101, "as good as"), (0.05, "better than")]
)
def test_a_verdict_of_the_same_rows_names_both(error, verdict):
    last = advice(row("LightGBM", "trees", error))[-1]
    assert last.startswith(f"LightGBM is {verdict} Fastfood, 256 features, with an error of")


def test_the_first_sentence_says_when_another_model_wins():
    first = advice(row("LightGBM", "trees", 0.05))[0]
    assert first.startswith(
        "LightGBM has a lower error, 5.00%. Among the maps, take Fastfood, 256 features:"
    )
    first = advice(row("LightGBM", "trees", 0.099))[0]
    assert first.startswith("Take Fastfood, 256 features:")


# ------------------------------------------------------------ the printed call


def table(n_rows: int = 240) -> pd.DataFrame:
    """Strings, missing strings and missing numbers."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"kind": rng.choice(["Cache", "Disk"], n_rows), "size": rng.normal(size=n_rows)}
    )
    cached = frame["kind"] == "Cache"
    frame["speed"] = np.where(np.sin(2 * frame["size"]) + cached > 0.4, "slow", "quick")
    frame.loc[::11, "size"] = np.nan
    frame.loc[::13, "kind"] = None
    return frame


def made_by(imports: str, call: str):
    """What the user has after pasting both."""
    names: dict[str, object] = {}
    exec(imports, names)
    return eval(call, names)


@pytest.mark.parametrize("name", MAPS)
def test_the_call_of_every_map_runs_on_a_frame_with_strings_and_missing_values(name):
    frame = table()
    model = with_map("classification", name, 32, seed=0)
    made = made_by(imports_of(model), in_python(model))
    assert repr(made) == repr(model)
    columns, target = frame[["kind", "size"]], frame["speed"]
    made.fit(columns[:180], target[:180])
    assert made.score(columns[180:], target[180:]) > max(target[180:].value_counts(True)) + 0.05


@pytest.mark.parametrize("name", ["Fastfood", "TensorSketch"])
def test_the_printed_call_makes_the_model_that_was_measured(monkeypatch, name):
    # A scaler stands before these maps.
    monkeypatch.setattr(comparing, "installed", lambda *, sparse: (HIST,))
    frame = table()
    rows = prepared_sample(source(frame, target="speed"))
    found = compare(rows.X, rows.y, maps=(name,), sizes=(32,), budget=0.1, test=0.4)
    call, imports = re.findall("`([^`]+)`", found.advice[1])
    made = made_by(imports, call).fit(frame[["kind", "size"]], frame["speed"])
    error = next(row.error for row in found.measurements if row.name == found.recommended)
    # It has seen the test rows here, which the measured model has not.
    assert 1 - made.score(frame[["kind", "size"]], frame["speed"]) < error + 0.05
