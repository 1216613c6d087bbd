"""`kitchenette fit` on a cluster and in shards, as a user runs it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command import MODULE, run
from numpy.testing import assert_allclose

import kitchenette
from kitchenette.cli.outcome import ExitCode

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

QUICK = ("--target", "target", "--map", "Fastfood", "--components", "32", "--json")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(9000, 3)), columns=[*"abc"])
    frame["city"] = rng.choice(["Oslo", "Rome"], 9000)
    frame["target"] = np.sin(2 * frame["a"]) + (frame["city"] == "Rome")
    path = tmp_path_factory.mktemp("data") / "rows.parquet"
    frame.to_parquet(path, row_group_size=1000)
    return path


def done(*arguments):
    found = run(MODULE, *arguments)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("test", [(), ("--test", "0.1")], ids=["all rows", "test rows"])
def test_a_cluster_and_shards_give_the_model_of_one_machine(data, tmp_path, test):
    pytest.importorskip("distributed")
    options = (*QUICK, *test)
    whole = done("fit", data, *options, "--out", tmp_path / "whole")
    assert (whole["n_rows"], whole["n_test_rows"]) == ((8100, 900) if test else (9000, 0))
    local = "local-processes=2"
    there = done("fit", data, *options, "--out", tmp_path / "there", "--scheduler", local)
    for name in ("task", "n_rows", "n_test_rows", "n_validation_rows", "choice"):
        assert there[name] == whole[name]
    assert there["errors"] == pytest.approx(whole["errors"], rel=1e-6)
    for part in ("1/2", "2/2"):
        out = tmp_path / f"{part[0]}.shard"
        done("fit", data, *options, "--out", out, "--shard", part, "--statistics-only")
    shards = [tmp_path / "1.shard", tmp_path / "2.shard"]
    done("merge", *shards, "--out", tmp_path / "merged", "--json")
    rows = pd.read_parquet(data)
    expected = kitchenette.load(tmp_path / "whole").predict(rows)
    for name in ("there", "merged"):
        found = kitchenette.load(tmp_path / name).predict(rows)
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--shard", "1/2"), "--statistics-only"),
        (("--shard", "two", "--statistics-only"), "as 3/16"),
        (("--statistics-only", "--scheduler", "tcp://x:1"), "leave out --scheduler"),
        (("--scheduler", "nobody"), "A scheduler is tcp://"),
    ],
)
@pytest.mark.slow
def test_options_that_do_not_fit_together(data, tmp_path, options, sentence):
    found = run(MODULE, "fit", data, *QUICK, "--out", tmp_path / "x", *options)
    assert found.returncode == ExitCode.USAGE
    assert sentence in found.stderr
