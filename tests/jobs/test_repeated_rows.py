"""Tables whose rows repeat, by the command and on Dask: as good as the same rows as arrays."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.repeated import grid
from kitchenette import Fastfood, KernelClassifier
from kitchenette.kernels import Gaussian

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
SMALL = Fastfood(Gaussian(0.5), n_components=256, random_state=0)


@pytest.mark.slow
def test_the_command_learns_cells(tmp_path):
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from kitchenette.cli.app import app

    def run(*arguments):
        done = CliRunner().invoke(app, [str(one) for one in arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    data = grid(4, 3, 4000, "bernoulli")
    paths = [tmp_path / "train.csv", tmp_path / "test.parquet"]
    for path, X, y in zip(paths, (data.X, data.X_test), (data.y, data.y_test), strict=True):
        frame = pd.DataFrame(X, columns=list("abc")).assign(y=y)
        if path.suffix == ".csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path)
    model = tmp_path / "model"
    task = ("--task", "classification")
    run("fit", paths[0], "--target", "y", *task, "--out", model)
    found = json.loads(run("evaluate", model, paths[1], "--json"))
    best = KernelClassifier(random_state=0).fit(data.X, data.y).score(data.X_test, data.y_test)
    assert 1 - found["error"] > best - 0.01 > 0.67


@pytest.mark.parametrize(
    ("target", "not_beaten", "said"),
    [
        ("noise", ["linear", "trivial"], "beats neither the linear model of a sample nor the tri"),
        ("sum", ["linear"], "does not beat the linear model of a sample by more than chance"),
        ("product", [], None),
    ],
)
def test_the_command_says_if_a_simpler_model_is_as_good(tmp_path, target, not_beaten, said):
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from kitchenette.cli.app import app

    rng = np.random.default_rng(1)
    X, noise = rng.integers(5, size=(2000, 3)) - 2.0, rng.normal(size=2000)
    y = {"noise": noise, "sum": X.sum(axis=1) + noise, "product": X[:, 0] * X[:, 1] + noise}[target]
    pd.DataFrame(X, columns=list("abc")).assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    arguments = ["fit", tmp_path / "rows.csv", "--target", "y", "--out", tmp_path / "model"]
    arguments += ["--map", "Fastfood", "--components", "64", "--task", "regression"]
    printed = [
        CliRunner().invoke(app, [*map(str, arguments), *more]).stdout for more in ([], ["--json"])
    ]
    assert json.loads(printed[1])["not_beaten"] == not_beaten
    line = " ".join(printed[0].split())
    assert ("beat" in line) == (said is not None)
    assert said is None or said in line


def test_dask_arrays_are_learned_like_arrays():
    dask_array = pytest.importorskip("dask.array")
    data = grid(4, 3, 4000, "bernoulli")
    whole = KernelClassifier(SMALL, random_state=0).fit(data.X, data.y)
    parts = KernelClassifier(SMALL, random_state=0).fit(
        dask_array.from_array(data.X, chunks=(700, 3)), dask_array.from_array(data.y, chunks=700)
    )
    assert parts.observation_rule_ == whole.observation_rule_ == "weights"
    assert np.isclose(parts.alpha_, whole.alpha_, rtol=1e-6)
    assert np.isclose(parts.validation_score_, whole.validation_score_)
    assert parts.score(data.X_test, data.y_test) > 0.67
