"""The order of rows, their batches, formats and repetitions do not matter to what is chosen."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import kitchenette
from kitchenette import (
    AutoMap,
    Fastfood,
    KernelClassifier,
    KernelPCA,
    KernelRegressor,
    RandomMaclaurin,
)
from kitchenette.data import source
from kitchenette.data.drawing import Drawing
from kitchenette.kernels import Gaussian, Polynomial
from kitchenette.selection.pilot import first_best
from kitchenette.training import combine, finish, partial, prepare


def rows(n_rows: int, seed: int = 0):
    """Rows that are exact in float32, some of them equal, and targets with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5)).astype(np.float32).astype(np.float64)
    y = np.sin(2 * X[:, 3]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n_rows)
    copied = rng.integers(n_rows, size=n_rows // 10)
    X[: copied.size], y[: copied.size] = X[copied], y[copied]
    return X, y, rng.permutation(n_rows)


@pytest.fixture
def small_samples(monkeypatch):
    """Samples of 700 rows instead of 20,000, of which 500 instead of 8000 are chosen on."""
    learning, sources, auto = (
        sys.modules[f"kitchenette.{name}"]  # `kitchenette.data.source` is also a function
        for name in ("training.feature_maps", "data.source", "selection.automap")
    )
    monkeypatch.setattr(auto, "SEARCH", replace(auto.SEARCH, pilot_rows=500))
    for module in (learning, sources):
        monkeypatch.setattr(module, "sample_size", lambda n_columns: 700)


def small(estimator):
    """An estimator with few features, whose choice does not take long."""
    auto = AutoMap(32, kernel=Gaussian(), scales="columns", task=estimator.task, random_state=3)
    return estimator(auto, random_state=3, validation_rows=200)


def same_models(a, b, X):
    assert a.feature_map_.specification_ == b.feature_map_.specification_
    mine, theirs = (
        model.predict_proba(X) if isinstance(model, KernelClassifier) else model.predict(X)
        for model in (a, b)
    )
    np.testing.assert_allclose(mine, theirs, atol=1e-9)


@pytest.mark.parametrize("estimator", [KernelRegressor, KernelClassifier])
def test_permuted_rows_give_the_same_model(small_samples, estimator):
    X, y, order = rows(2000)
    y = y if estimator is KernelRegressor else np.array(["low", "high"])[(y > 0.3).astype(int)]
    whole = small(estimator).fit(X, y)
    assert "500 rows" in whole.feature_map_.choice_.sentence
    same_models(whole, small(estimator).fit(X[order], y[order]), X)
    same_models(whole, small(estimator).fit(source(X[order], target=y[order])), X)
    prepared = prepare(small(estimator), source(X, target=y))
    whole_partial = combine(*(partial(prepared, X[i::2], y[i::2]) for i in (1, 0)))
    same_models(whole, finish(prepared, whole_partial), X)


def test_another_seed_is_another_sample(small_samples):
    X, y, _ = rows(2000)
    one, other = (
        AutoMap(32, kernel=Gaussian(), scales="columns", random_state=seed).fit(X, y)
        for seed in (0, 1)
    )
    assert not np.array_equal(one.length_scale_, other.length_scale_)


def test_weights_and_repetitions_choose_the_same_map(small_samples):
    X, y, _ = rows(1500)
    counts = np.random.default_rng(1).integers(0, 3, size=1500)
    weighted = AutoMap(32, scales="columns", kernel=Gaussian(), random_state=0)
    repeated = clone(weighted)
    weighted.fit_supervised(X, y, counts.astype(float))
    which = np.repeat(np.arange(1500), counts)
    repeated.fit(X[which], y[which])
    assert weighted.specification_ == repeated.specification_


def test_formats_choose_the_same_map(small_samples):
    X, y, _ = rows(1500)
    X[np.abs(X) < 0.5] = 0
    auto = AutoMap(32, scales="columns", kernel=Gaussian(), random_state=0)
    whole = auto.fit(X, y).specification_
    for other in (X.astype(np.float32), pd.DataFrame(X, columns=[*"abcde"]), np.asfortranarray(X)):
        found = clone(auto).fit(other, y)
        np.testing.assert_allclose(found.transform(other), auto.transform(X), atol=1e-4)
    sparse = clone(auto).fit(sp.csr_matrix(X), y).choice_
    assert sparse.n_rows >= 500
    options = {"n_components": 32, "scales": "columns", "kernel": Gaussian(), "random_state": 0}
    chosen = kitchenette.choose(source(X, target=y), **options).feature_map.estimator
    assert chosen.specification_ == whole


def test_permuted_tables_give_the_same_model(small_samples):
    X, y, order = rows(2000)
    frame = pd.DataFrame(X, columns=[*"abcde"])
    frame["word"] = np.array(["no", "yes", None])[np.digitize(X[:, 0], [-1, 1])]
    frame.loc[::7, "b"] = None
    whole, permuted = (
        small(KernelRegressor).fit(frame.iloc[i], y[i]) for i in (np.arange(2000), order)
    )
    same_models(whole, permuted, frame)
    table = frame.assign(target=y).iloc[order]
    same_models(whole, small(KernelRegressor).fit(source(table, target="target")), frame)


def test_categories_of_repeated_rows_are_not_rare():
    frame = pd.DataFrame({"city": ["Oslo", "Rome", "Bonn", "Pisa"] * 10 + ["Ulm"]})
    y = np.arange(41) % 4
    model = KernelClassifier(Fastfood(n_components=64, random_state=0)).fit(frame, y)
    preparation = model.feature_map_.specification_.preparation
    assert preparation.n_outputs == 5  # four cities, and one column for the rare one
    medians = pd.DataFrame({"size": [1.0] * 30 + [2.0, 3.0, 4.0, None]})
    model = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(medians, np.ones(34))
    assert model.feature_map_.specification_.preparation.fill.tolist() == [1.0]


@pytest.mark.parametrize(
    "feature_map",
    [Fastfood(n_components=64, random_state=0), RandomMaclaurin(Polynomial(2), 64, random_state=0)],
)
def test_given_maps_do_not_depend_on_the_order_either(feature_map):
    X, y, order = rows(3000)
    whole, permuted = (
        KernelRegressor(feature_map, random_state=0).fit(X[i], y[i])
        for i in (np.arange(3000), order)
    )
    same_models(whole, permuted, X)


def test_components_do_not_depend_on_the_order():
    X, _, order = rows(3000)
    whole, permuted = (
        KernelPCA(3, Fastfood(n_components=64, random_state=0)).fit(X[i])
        for i in (np.arange(3000), order)
    )
    assert whole.feature_map_.specification_ == permuted.feature_map_.specification_
    np.testing.assert_allclose(np.abs(whole.transform(X)), np.abs(permuted.transform(X)), atol=1e-6)


def test_a_drawn_sample_is_chosen_on_like_all_rows(small_samples):
    X, y, _ = rows(2000)
    auto = AutoMap(32, scales="columns", kernel=Gaussian(), random_state=2)
    whole = auto.fit(X, y).specification_
    drawn = Drawing(900, 2).of_rows(X, y)
    again = clone(auto)
    again.fit_supervised(drawn.X, drawn.y, drawn.sample_weight, drawn.population)
    assert again.specification_ == whole


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [KernelRegressor, KernelClassifier])
def test_permuted_rows_give_the_same_default_model(estimator):
    X, y, order = rows(20_000)
    y = y if estimator is KernelRegressor else np.digitize(y, [-0.5, 0.7])
    whole, permuted = (
        estimator(AutoMap(128, task=estimator.task, random_state=0)).fit(X[i], y[i])
        for i in (np.arange(20_000), order)
    )
    same_models(whole, permuted, X[:500])


def lognormal(seed):
    rng = np.random.default_rng(seed)
    X = rng.lognormal(sigma=1.5, size=(200, 3))
    return X, np.log(X[:, 0]) + 0.3 * rng.normal(size=200)


def one_column(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 1))
    return X, np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=200)


def with_zeros(seed):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((200, 6)) < 0.7, 0.0, rng.normal(size=(200, 6)))
    return X, X[:, 0] + X[:, 1] * X[:, 2] > 0.2


def offset(seed):
    X, y = one_column(seed)
    return np.hstack([X + 100, X**2 - 1000]), y


@pytest.mark.parametrize(
    ("make", "seed"),
    [
        (lognormal, 0),
        (one_column, 1),
        (with_zeros, 2),
        (offset, 3),
        *(
            pytest.param(make, seed, marks=pytest.mark.slow)
            for make in (lognormal, one_column, with_zeros, offset)
            for seed in range(4, 7)
        ),
    ],
)
def test_precision_and_sparsity_do_not_change_the_choice(make, seed):
    X, y = make(seed)
    auto = AutoMap(64, effort=0.5, random_state=seed)
    expected = clone(auto).fit(X, y)
    rounded = X.astype(np.float32)
    for other in (rounded, sp.csr_matrix(X), sp.csr_matrix(rounded)):
        found = clone(auto).fit(other, y)
        assert found.choice_.sentence == expected.choice_.sentence
        np.testing.assert_allclose(found.transform(X), expected.transform(X), atol=1e-4)


def test_of_tied_candidates_the_first_one_is_chosen():
    losses = {"first": 1.0, "tied": 1.0 - 1e-6, "better": 0.9, "tied with it": 0.9 * (1 - 1e-6)}
    assert first_best(losses, losses.__getitem__) == "better"
    assert first_best(["first", "tied"], losses.__getitem__) == "first"
