"""Fits of small sources, with what can happen to them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import mutations
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from kitchenette import KernelRegressor, ModelFileError, RandomKitchenSinks, load, save
from kitchenette.data import DataError, source
from kitchenette.jobs import FitSettings, checkpoint, fit_rows, fitting, settings
from kitchenette.jobs.checkpoint import checkpoint_path
from kitchenette.jobs.outputs import OutputError
from kitchenette.kernels import Gaussian
from kitchenette.training.problem import Problem

X = np.random.default_rng(0).normal(size=(600, 3))
SETTINGS = FitSettings(map="Fastfood", components=32)


def rows(part=slice(None)):
    return source(X[part], target=np.sin(X[part, 0]))


def narrow_rows():
    """Rows that are learned in six blocks."""
    made = rows()
    made.block_rows = lambda: 100
    return made


@pytest.mark.parametrize("n_rows", [1, 3, 600])
def test_a_model_is_solved_once_and_stored_with_its_solution(n_rows, tmp_path, monkeypatch):
    solved = []
    monkeypatch.setattr(
        Problem, "solved", lambda *given, solve=Problem.solved: solved.append(1) or solve(*given)
    )
    settings = SETTINGS if n_rows > 1 else FitSettings(components=32)
    fit_rows(rows(slice(n_rows)), tmp_path / "model", settings)
    model = load(tmp_path / "model")
    assert model.alpha_ > 0
    assert np.isfinite(model.predict(X)).all()
    assert len(solved) == 1


def test_an_interrupt_while_it_solves_leaves_all_rows_in_the_checkpoint(tmp_path, monkeypatch):
    out, expected = tmp_path / "model", tmp_path / "expected"
    fit_rows(rows(), expected, SETTINGS)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(KernelRegressor, "solve", interrupted)
        with pytest.raises(KeyboardInterrupt, match="600 of 600 rows, which are kept in"):
            fit_rows(rows(), out, SETTINGS)
    assert not out.exists()
    assert load(checkpoint_path(out)).stop == 600
    fitted = fit_rows(rows(), out, SETTINGS, resume=True)
    assert (fitted.resumed_at, fitted.n_rows, fitted.n_test_rows) == (600, 600, 0)
    assert out.read_bytes() == expected.read_bytes()
    assert not checkpoint_path(out).exists()


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_errors_do_not_depend_on_a_resumption(tmp_path, monkeypatch, share):
    narrow, settings = source(X, target=np.sin(X[:, 0])), replace(SETTINGS, test=share)
    monkeypatch.setattr(type(narrow), "block_rows", lambda self: 100)
    whole = fit_rows(narrow, tmp_path / "whole", settings)

    def stopped(what, done, total):
        if what == "learning" and done > 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="300 of 600"):
        fit_rows(narrow, tmp_path / "model", settings, progress=stopped)
    resumed = fit_rows(narrow, tmp_path / "model", settings, resume=True)
    assert resumed.resumed_at == 300
    assert (resumed.n_rows, resumed.n_test_rows) == ((540, 60) if share else (600, 0))
    assert resumed.errors == whole.errors
    assert {*resumed.errors} == {"model", "linear", "trivial"}


def interrupted_fit(out, settings, like=None, data=None):
    """A checkpoint before the first row, as an early interrupt leaves it."""
    data = rows() if data is None else data
    state, _ = fitting.begun(data, data, settings, data.fingerprint(), like)
    save(state, checkpoint_path(out))


def test_a_checkpoint_of_a_larger_map_than_was_asked_for_is_refused(tmp_path):
    """Who can change the checkpoint of a small fit cannot make its resumption expensive."""
    out = tmp_path / "model"
    interrupted_fit(out, SETTINGS)
    header, document, data = mutations.split(checkpoint_path(out).read_bytes())
    for entry in document["objects"]:
        if entry["class"] == "FastfoodSpecification":
            entry["state"]["n_components"] = 10**8
    checkpoint_path(out).write_bytes(mutations.joined(header, document, data))
    with pytest.raises(ModelFileError, match=r"drawing 100000000 components .* may take"):
        fit_rows(rows(), out, SETTINGS, resume=True)


@pytest.mark.filterwarnings("ignore:These rows are longer")
@pytest.mark.parametrize("name", ["RandomKitchenSinks", "Fastfood", "TensorSketch"])
@pytest.mark.parametrize("n_components", [1, 2048])
@pytest.mark.parametrize("table", [False, True])
def test_checkpoints_are_within_limits_that_follow_from_the_options(
    name, n_components, table, tmp_path, monkeypatch
):
    """Also without the default limits of `load`, which are enough for maps of this size."""
    outlier = X.copy()
    outlier[5] *= 10  # a series of many terms
    words = np.array(["a", "b", "c", "d"])[np.arange(600) % 4]
    frame = {"a": outlier[:, 0], "b": outlier[:, 1], "words": words, "y": X[:, 2]}
    data = source(frame, target="y") if table else source(outlier, target=X[:, 2])
    told = FitSettings(map=name, kernel="gaussian", components=n_components)
    interrupted_fit(tmp_path / "model", told, data=data)
    if n_components > 1:
        monkeypatch.setattr(settings, "MAX_BYTES", 0)
        monkeypatch.setattr(settings, "MAX_OPERATIONS", 0)
    fitted = fit_rows(data, tmp_path / "model", told, resume=True)
    assert fitted.n_components == n_components


def test_a_checkpoint_like_a_model_is_within_the_limits_of_its_map(tmp_path, monkeypatch):
    like = KernelRegressor(RandomKitchenSinks(Gaussian(1.0), 64, frequencies="orthogonal"))
    like.fit(X, X[:, 0])
    interrupted_fit(tmp_path / "model", SETTINGS, like)
    monkeypatch.setattr(settings, "MAX_BYTES", 0)
    monkeypatch.setattr(settings, "MAX_OPERATIONS", 0)
    fitted = fit_rows(rows(), tmp_path / "model", SETTINGS, like=like, resume=True)
    assert fitted.n_components == 64


def test_a_fit_like_another_has_its_map(tmp_path):
    first = fit_rows(rows(slice(0, 300)), tmp_path / "a", SETTINGS).model
    second = fit_rows(rows(slice(300, None)), tmp_path / "b", SETTINGS, like=first).model
    assert second.feature_map_.estimator.specification_ == first.feature_map_.specification_
    assert first.merge(second).statistics_.n_rows == 600


def test_a_fit_like_a_model_of_other_targets_is_refused(tmp_path):
    frame = {"a": X[:, 0], "b": X[:, 1], "y": X[:, 2]}
    model = fit_rows(source(frame, target="y"), tmp_path / "a", SETTINGS).model
    assert model.target_names_.tolist() == ["y"]
    with pytest.raises(DataError, match="predicts y, not b"):
        fit_rows(source(frame, target="b"), tmp_path / "b", SETTINGS, like=model)
    told = FitSettings(task="classification", components=32)
    with pytest.raises(ValueError, match="is for regression, not classification"):
        fit_rows(source(frame, target="y"), tmp_path / "b", told, like=model)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"loss": "cubic"}, "loss must be one of 'squared', 'logistic'"),
        ({"loss": "logistic", "task": "regression"}, "loss must be one of 'squared', 'huber'"),
        ({"loss": "logistic", "solver": "onepass"}, "solver='onepass' is for loss='squared'"),
        ({"alpha": "best"}, "alpha must be one of"),
        ({"alpha": -1.0}, "alpha must be finite"),
    ],
    ids=str,
)
def test_settings_are_checked_before_any_row_is_read(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        FitSettings(**options).check()


def test_time_is_not_spent_on_more_features_than_rows():
    assert FitSettings(seconds=600.0).n_components(1200) == 2048
    assert FitSettings(seconds=600.0).n_components(100) == 1024  # as without a limit
    assert FitSettings(seconds=36_000.0).n_components(100_000) == 8192
    assert FitSettings(seconds=1.0).n_components(8192) < 2048  # the solution counts as well


def test_a_fit_deletes_no_checkpoint_but_its_own(tmp_path):
    out = tmp_path / "model"
    other = checkpoint.Checkpoint("other inputs", {}, KernelRegressor(), {}, 100)
    save(other, checkpoint_path(out))
    before = checkpoint_path(out).read_bytes()
    fit_rows(rows(), out, SETTINGS)
    assert checkpoint_path(out).read_bytes() == before
    fit_rows(narrow_rows(), out, SETTINGS, checkpoint_every=0.0)
    assert not checkpoint_path(out).exists()  # its own ones replaced it


def test_a_checkpoint_that_another_fit_wrote_meanwhile_is_kept(tmp_path, monkeypatch):
    out = tmp_path / "model"
    solve = KernelRegressor.solve

    def while_another_one_writes(model):
        save(checkpoint.Checkpoint("other inputs", {}, KernelRegressor(), {}, 7), own)
        return solve(model)

    own = checkpoint_path(out)
    monkeypatch.setattr(KernelRegressor, "solve", while_another_one_writes)
    assert fit_rows(narrow_rows(), out, SETTINGS, checkpoint_every=0.0).checkpoints == 5
    assert load(own).n_rows == 7


def test_a_file_of_another_kind_in_the_place_of_the_checkpoint_is_refused(tmp_path):
    out = tmp_path / "model"
    checkpoint_path(out).write_text("a,b\n1,2\n")
    with pytest.raises(OutputError, match="is not a checkpoint: move it"):
        fit_rows(rows(), out, SETTINGS)
    assert checkpoint_path(out).read_text() == "a,b\n1,2\n"
    checkpoint_path(out).unlink()
    checkpoint_path(out).mkdir()
    with pytest.raises(OutputError, match="is not a checkpoint: move it"):
        fit_rows(rows(), out, SETTINGS)


def test_a_model_in_the_place_of_the_checkpoint_is_refused(tmp_path):
    out = tmp_path / "model"
    fit_rows(rows(), checkpoint_path(out), SETTINGS)
    before = checkpoint_path(out).read_bytes()
    with pytest.raises(OutputError, match="is not a checkpoint: move it"):
        fit_rows(narrow_rows(), out, SETTINGS, checkpoint_every=0.0)
    assert checkpoint_path(out).read_bytes() == before


def test_a_checkpoint_of_another_fit_is_kept_though_it_has_the_same_inode(tmp_path):
    out = tmp_path / "model"
    writer = checkpoint.CheckpointWriter(checkpoint_path(out))
    writer.store(checkpoint.Checkpoint("own inputs", {}, KernelRegressor(), {}, 100))
    first = checkpoint_path(out).stat()
    # File systems give the number of a file that was replaced to the next one.
    other = checkpoint.Checkpoint("other inputs", {}, KernelRegressor(), {}, 7)
    checkpoint_path(out).write_bytes(saved_bytes(other, tmp_path))
    os.utime(checkpoint_path(out), ns=(first.st_atime_ns, first.st_mtime_ns + 1))
    writer.remove()
    assert load(checkpoint_path(out)).n_rows == 7


def saved_bytes(value, folder):
    save(value, folder / "elsewhere")
    return (folder / "elsewhere").read_bytes()


def test_an_input_in_the_place_of_the_checkpoint_is_refused(tmp_path):
    data = tmp_path / "model.checkpoint"
    table = pa.table({"a": X[:, 0], "y": X[:, 1]})
    parquet.write_table(table, data)
    for arguments in ({}, {"test": source(data, target="y", format="parquet")}):
        given = source(data, target="y", format="parquet") if not arguments else rows()
        with pytest.raises(OutputError, match=r"model.checkpoint is one of the inputs"):
            fit_rows(given, tmp_path / "model", SETTINGS, **arguments)
    assert parquet.read_table(data).equals(table)
    assert [path.name for path in tmp_path.iterdir()] == ["model.checkpoint"]


def test_a_fit_leaves_the_temporary_file_of_a_running_one_alone(tmp_path):
    out = tmp_path / "model"
    program = (
        "import sys, time\n"
        "from kitchenette.files.container import replacement\n"
        f"with replacement({str(out)!r}) as file:\n"
        "    file.write(b'half'), file.flush()\n"
        "    print('writing', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert writer.stdout.readline().strip() == b"writing"
        fit_rows(rows(), out, SETTINGS)
        assert len(list(tmp_path.glob(".model.*.tmp"))) == 1
    finally:
        writer.kill()
        writer.communicate()
    fit_rows(rows(), out, SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
