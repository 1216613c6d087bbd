"""Shards of a fit, learned one by one and merged, give the model of one fit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kitchenette
from kitchenette.data import source
from kitchenette.files import ModelFileError
from kitchenette.jobs import CheckpointError, FitSettings, fit_rows, learn_shard, merge_shards

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

SETTINGS = FitSettings(map="Fastfood", components=32)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1500, 3)), columns=[*"abc"])
    frame["city"] = rng.choice(["Oslo", "Rome"], 1500)
    frame["target"] = np.sin(2 * frame["a"]) + (frame["city"] == "Rome")
    folder = tmp_path_factory.mktemp("table")
    for number, part in enumerate((frame[:700], frame[700:])):
        part.to_parquet(folder / f"{number}.parquet")
    return folder


def opened(table):
    return source(table, target="target")


@pytest.fixture(scope="module")
def shards(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    paths = [folder / f"{number}.shard" for number in (1, 2, 3, 4)]
    for number, path in enumerate(paths, start=1):
        prepared = paths[0] if number == 3 else None
        learn_shard(opened(table), path, SETTINGS, shard=(number, 4), prepared=prepared)
    return paths


def test_shards_give_the_model_of_one_fit(table, shards, tmp_path):
    whole = fit_rows(opened(table), tmp_path / "model", SETTINGS).model
    merged = merge_shards(shards[::-1])
    rows = opened(table).without_targets()
    assert merged.statistics_.n_rows == whole.statistics_.n_rows == 1500
    assert merged.alpha_ == pytest.approx(whole.alpha_, rel=1e-9)
    assert_allclose(merged.predict(rows), whole.predict(rows), rtol=1e-9, atol=1e-9)
    kitchenette.save(merged, tmp_path / "merged")
    assert np.array_equal(kitchenette.load(tmp_path / "merged").predict(rows), merged.predict(rows))


def test_shards_that_do_not_belong_together_are_refused(table, shards, tmp_path):
    with pytest.raises(CheckpointError, match=r"missing, whose rows would be lost: 2, 4\."):
        merge_shards([shards[0], shards[2]])
    with pytest.raises(CheckpointError, match="both shard 1: its rows would count twice"):
        merge_shards([*shards, shards[0]])
    other = FitSettings(map="Fastfood", components=16)
    learn_shard(opened(table), tmp_path / "other", other, shard=(2, 4))
    with pytest.raises(CheckpointError, match="other options: components"):
        merge_shards([shards[0], tmp_path / "other"])
    with pytest.raises(CheckpointError, match="other options: components"):
        learn_shard(opened(table), tmp_path / "x", SETTINGS, prepared=tmp_path / "other")
    learn_shard(opened(table), tmp_path / "five", SETTINGS, shard=(2, 5))
    with pytest.raises(CheckpointError, match="one of 5 shards"):
        merge_shards([shards[0], tmp_path / "five"])
    kitchenette.save(merge_shards(shards), tmp_path / "model")
    with pytest.raises(ModelFileError, match="no statistics of a shard"):
        merge_shards([tmp_path / "model"])
    with pytest.raises(ValueError, match="from 1 to 4"):
        learn_shard(opened(table), tmp_path / "x", SETTINGS, shard=(5, 4))
    with pytest.raises(ValueError, match="statistics of one pass"):
        learn_shard(opened(table), tmp_path / "x", FitSettings(loss="huber", components=16))


def test_there_may_be_more_shards_than_rows(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    rows = source(X, target=X[:, 0])
    paths = [tmp_path / f"{number}" for number in range(1, 41)]
    for number, path in enumerate(paths, start=1):
        learn_shard(
            rows, path, SETTINGS, shard=(number, 40), prepared=paths[0] if number > 1 else None
        )
    assert merge_shards(paths).statistics_.n_rows == 30


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_shard_reads_columns_as_the_prepared_one(tmp_path, suffix):
    rng = np.random.default_rng(0)
    codes = np.array([f"{number:05d}" for number in range(20)])[rng.integers(0, 20, 600)]
    frame = pd.DataFrame({"zip": codes, "x": rng.normal(size=600)})
    frame["target"] = frame["x"] + np.sin(7 * frame["zip"].astype(float))
    path = tmp_path / f"rows.{suffix}"
    if suffix == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.astype({"zip": int}).to_parquet(path)
    told = source(path, target="target", kinds={"zip": "category"})
    not_told = source(path, target="target")
    shards = [tmp_path / "1.shard", tmp_path / "2.shard"]
    learn_shard(told, shards[0], SETTINGS, shard=(1, 2))
    learn_shard(not_told, shards[1], SETTINGS, shard=(2, 2), prepared=shards[0])
    whole = fit_rows(told, tmp_path / "model", SETTINGS).model
    rows = told.without_targets()
    assert_allclose(merge_shards(shards).predict(rows), whole.predict(rows), rtol=1e-9, atol=1e-9)
