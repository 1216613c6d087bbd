"""`kitchenette fit` makes the model that the estimators make of the same rows."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from command import run

import kitchenette
from kitchenette import Fastfood, KernelClassifier, KernelRegressor

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("typer")
from typer.testing import CliRunner  # noqa: E402

from kitchenette.cli.app import app  # noqa: E402

N_ROWS = 800
OPTIONS = {
    "default": (),
    "fastfood": ("--map", "fastfood", "--components", "128"),
}
MAPS = {"default": None, "fastfood": Fastfood(n_components=128, random_state=0)}


def frame(kind: str) -> tuple[object, object]:
    """Rows of numbers, or with strings and missing values, and a target."""
    rng = np.random.default_rng(0)
    made = pd.DataFrame(rng.normal(size=(N_ROWS, 3)), columns=[*"abc"])
    y = np.sin(2 * made["a"]) + made["b"] * made["c"] + 0.1 * rng.normal(size=N_ROWS)
    if kind == "mixed":
        made["city"] = rng.choice(["Oslo", "Rome", "Lima"], N_ROWS)
        y += (made["city"] == "Rome") * made["c"]
        made.loc[::40, "b"] = np.nan
        made.loc[7::90, "city"] = None
    return made, y


def fit(path, out, *options):
    arguments = ["fit", path, "--target", "y", "--out", out, *options, "--json"]
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("kind", ["numbers", "mixed"])
@pytest.mark.parametrize(("suffix", "task"), [("parquet", "regression"), ("csv", "classification")])
def test_the_command_makes_the_model_of_the_estimator(tmp_path, name, kind, suffix, task):
    rows, y = frame(kind)
    if task == "classification":
        y = pd.Series(np.where(y > 0.3, "tall", "small"))
    path, out = tmp_path / f"rows.{suffix}", tmp_path / "model"
    if suffix == "csv":
        rows.assign(y=y).to_csv(path, index=False)
    else:
        rows.assign(y=y).to_parquet(path)
    found = fit(path, out, *OPTIONS[name])
    made = KernelRegressor if task == "regression" else KernelClassifier
    expected = made(MAPS[name], random_state=0).fit(rows, y)
    model = kitchenette.load(out)
    if task == "regression":
        mine, theirs, spread = model.predict(rows), expected.predict(rows), np.std(y)
        error = np.sqrt(1 - expected.validation_score_)
    else:
        mine, theirs = (one.decision_function(rows) for one in (model, expected))
        spread, error = 1.0, 1 - expected.validation_score_
        np.testing.assert_allclose(
            model.predict_proba(rows), expected.predict_proba(rows), atol=1e-9
        )
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-9 * spread)
    assert model.alpha_ == pytest.approx(expected.alpha_, rel=1e-9)
    assert (found["n_rows"], found["n_test_rows"]) == (N_ROWS, 0)
    # The error that is shown is that of the validation rows of the model.
    assert found["validation_score"] == pytest.approx(expected.validation_score_, abs=1e-9)
    assert found["errors"]["model"] == pytest.approx(error, abs=1e-9)
    assert found["errors"]["model"] < found["errors"]["linear"] < found["errors"]["trivial"]
    assert found["not_beaten"] == []


def test_rows_are_held_back_for_a_test_only_on_request(tmp_path):
    rows, y = frame("mixed")
    table = rows.assign(y=y)
    table.to_parquet(tmp_path / "rows.parquet")
    quick = ("--map", "Fastfood", "--components", "64")
    held_back = fit(tmp_path / "rows.parquet", tmp_path / "model", *quick, "--test", "0.25")
    assert (held_back["n_rows"], held_back["n_test_rows"]) == (600, 200)
    assert held_back["n_validation_rows"] == 0
    model = kitchenette.load(tmp_path / "model")
    assert model.statistics_.n_rows == 600
    # The rows that were not learned do not change the model, whatever they are.
    from kitchenette.jobs import FitSettings
    from kitchenette.jobs.held_out import test_rows as rows_held_back

    tested = rows_held_back(N_ROWS, FitSettings(test=0.25))
    errors = table["y"].to_numpy()[tested] - model.predict(rows.iloc[tested])
    expected = np.sqrt(np.mean(np.square(errors))) / table["y"].to_numpy()[tested].std()
    assert held_back["errors"]["model"] == pytest.approx(expected)
    table.loc[tested, "y"] = 1e6
    table.to_parquet(tmp_path / "rows.parquet")
    fit(tmp_path / "rows.parquet", tmp_path / "other", *quick, "--test", "0.25")
    other = kitchenette.load(tmp_path / "other")
    np.testing.assert_array_equal(other.predict(rows), model.predict(rows))


def test_a_fit_does_not_import_the_report(tmp_path):
    rows, y = frame("numbers")
    rows.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    program = (
        "import sys\n"
        "from kitchenette.cli.app import app\n"
        f"app(['fit', {str(tmp_path / 'rows.csv')!r}, '--target', 'y', '--out', "
        f"{str(tmp_path / 'model')!r}, '--map', 'fastfood', '--components', '32'], "
        "standalone_mode=False)\n"
        "print(sorted(name for name in sys.modules if 'kitchenette.report' in name))\n"
    )
    done = run([sys.executable, "-c"], program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
    assert (tmp_path / "model").exists()
