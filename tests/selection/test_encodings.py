"""Numbers that are categories, and categories that are numbers, are found on rows held out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import kitchenette
from kitchenette import AutoMap, KernelClassifier, KernelRegressor
from kitchenette.data import source
from kitchenette.kernels import Gaussian
from kitchenette.selection import encodings
from kitchenette.selection.encodings import encoding_of, indicator_blocks

CODES, PLACES = 12, 24


def codes(n_rows: int, seed: int):
    """Whole numbers without an order, of which the target is a product of two table entries."""
    tables = np.random.default_rng(7).normal(size=(2, CODES))
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, CODES, (n_rows, 3)), rng.normal(size=n_rows)])
    first, second = X[:, :2].T.astype(int)
    return X, tables[0][first] * tables[1][second] + X[:, 3] + 0.1 * rng.normal(size=n_rows)


def places(n_rows: int, seed: int):
    """Strings with an order, of which the target is a wave of their differences."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, PLACES, (n_rows, 3))
    frame = pd.DataFrame({name: [f"v{place}" for place in X[:, j]] for j, name in enumerate("abc")})
    return frame, np.sin((X[:, 0] - X[:, 1]) / 2.5) + 0.1 * rng.normal(size=n_rows)


def fitted(X, y):
    return KernelRegressor(AutoMap(512), alpha="evidence", random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def of_codes():
    return fitted(*codes(1500, 0))


@pytest.fixture(scope="module")
def of_places():
    return fitted(*places(1500, 0))


def without_encodings(monkeypatch, X, y):
    monkeypatch.setattr(encodings, "promising_encoding", lambda *_: None)
    return fitted(X, y)


def test_numbers_without_an_order_become_categories(of_codes, monkeypatch):
    assert "numbers of 3 columns are also categories" in of_codes.feature_map_.choice_.sentence
    X, y = codes(1000, 1)
    plain = without_encodings(monkeypatch, *codes(1500, 0))
    assert 1 - of_codes.score(X, y) < 0.7 * (1 - plain.score(X, y))


def test_strings_with_an_order_become_numbers(of_places, monkeypatch):
    assert "numbers, in their order" in of_places.feature_map_.choice_.sentence
    summary = of_places.feature_map_.column_summary()
    assert all(text.endswith("as a number by their order") for text in summary.values())
    frame, y = places(1000, 1)
    plain = without_encodings(monkeypatch, *places(1500, 0))
    assert 1 - of_places.score(frame, y) < 0.7 * (1 - plain.score(frame, y))


def test_importances_and_lengths_are_of_the_columns(of_codes, of_places):
    auto = of_codes.feature_map_
    for sizes in (
        auto.feature_importances_,
        of_codes.importance(),
        of_codes.importance(codes(500, 2)[0]),
    ):
        assert sizes.shape == (4,)
        assert sizes.sum() == pytest.approx(1)
        assert sizes[2] < 0.3 * sizes[[0, 1, 3]].min()
    assert auto.length_scale_.shape == (4,)
    assert auto.length_scale_[2] > auto.length_scale_[:2].max()
    for sizes in (of_places.importance(), of_places.importance(places(500, 2)[0])):
        assert sizes.shape == (3,)
        assert sizes[2] < 0.3 * sizes[:2].min()


@pytest.mark.parametrize("kind", ["shuffled", "float32", "sparse", "frame", "source", "file"])
def test_the_choice_is_the_same_by_every_route(of_codes, kind, tmp_path):
    X, y = codes(1500, 0)
    new = codes(50, 1)[0]
    expected = of_codes.predict(new)
    frame = pd.DataFrame(X, columns=[*"abcd"]).assign(y=y)
    model = KernelRegressor(AutoMap(512), alpha="evidence", random_state=0)
    if kind == "shuffled":
        order = np.random.default_rng(3).permutation(1500)
        model.fit(X[order], y[order])
    elif kind == "float32":
        model.fit(X.astype(np.float32), y)
    elif kind == "sparse":
        model.fit(sp.csr_matrix(X), y)
        expected = model.predict(new)
        np.testing.assert_allclose(model.predict(sp.csr_matrix(new)), expected, atol=1e-6)
    elif kind == "frame":
        model.fit(frame[[*"abcd"]], y)
        new = pd.DataFrame(new, columns=[*"abcd"])
    else:
        if kind == "file":
            frame.to_parquet(tmp_path / "rows.parquet")
        rows = source(tmp_path / "rows.parquet" if kind == "file" else frame, target="y")
        model.fit(rows)
        new = pd.DataFrame(new, columns=[*"abcd"])
    assert "numbers of 3 columns are also categories" in str(model.feature_map_.choice_.sentence)
    if kind != "float32":  # whose penalty is bounded by rounding
        np.testing.assert_allclose(model.predict(new), expected, atol=1e-4)
    chosen = of_codes.feature_map_.choice_.chosen
    assert model.feature_map_.choice_.chosen == chosen | {
        name: pytest.approx(chosen[name], rel=1e-4)
        for name in ("width", "loss", "error", "penalty")
    }


@pytest.mark.parametrize("which", ["codes", "places"])
def test_models_are_stored_merged_and_predict_single_rows(which, request, tmp_path):
    model = request.getfixturevalue(f"of_{which}")
    X, y = (codes if which == "codes" else places)(200, 4)
    kitchenette.save(model, tmp_path / "model")
    loaded = kitchenette.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict(X), model.predict(X), atol=1e-8)
    np.testing.assert_allclose(loaded.importance(), model.importance())
    row = X[0] if which == "codes" else X.iloc[0].to_dict()
    np.testing.assert_allclose(loaded.predictor()(row), model.predict(X[:1])[0], atol=1e-5)
    loaded.partial_fit(X, y).merge(model)
    assert np.isfinite(loaded.predict(X, return_std=True)[1]).all()


def test_unknown_codes_and_categories_are_predicted_near_the_others(of_codes, of_places):
    X, _ = codes(20, 5)
    X[:, :2] = [CODES + 1, 2.5]
    frame, _ = places(20, 5)
    frame["a"] = "new"
    assert np.abs(of_codes.predict(X)).max() < 10
    with pytest.warns(UserWarning, match="no value that the model knows"):
        assert np.abs(of_places.predict(frame)).max() < 10


def test_codes_that_are_quantities_stay_numbers():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 10, (1500, 4)).astype(float)
    y = np.sin(X[:, 0] / 3) + X[:, 1] * X[:, 2] / 30 + 0.1 * rng.normal(size=1500)
    assert "categories" not in fitted(X, y).feature_map_.choice_.sentence


def test_noise_is_not_encoded():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (1200, 5)).astype(float)
    n_encoded = 0
    for seed in range(5):
        y = np.random.default_rng(seed).integers(0, 2, 1200)
        model = KernelClassifier(AutoMap(64), random_state=seed).fit(X, y)
        n_encoded += "categories" in model.feature_map_.choice_.sentence
    assert n_encoded == 0


def test_given_kernels_and_scales_are_of_the_columns_as_they_are():
    X, y = codes(1500, 0)
    for given in ({"kernel": Gaussian()}, {"scales": "learned"}):
        auto = AutoMap(64, random_state=0, **given).fit(X, y)
        assert "categories" not in auto.choice_.sentence


def test_blocks_of_indicators_are_complete_and_side_by_side():
    rng = np.random.default_rng(0)
    four, two = np.eye(4)[rng.integers(0, 4, 300)], np.eye(2)[rng.integers(0, 2, 300)]
    flags, number = rng.integers(0, 2, (300, 2)), rng.normal(size=(300, 1))
    rows = np.hstack([flags, four, number, two, four[:, :3], four])
    blocks = [block.tolist() for block in indicator_blocks(rows)]
    assert blocks == [[2, 3, 4, 5], [12, 13, 14, 15]]


def test_columns_of_many_or_fractional_numbers_are_no_codes():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 5, (300, 4)).astype(float)
    rows[:, 1] = rng.integers(0, 50, 300)
    rows[:, 2] += 0.5 * (rng.random(300) < 0.1)
    rows[:, 3] = rows[:, 3] > 2
    rows[0, 0] = 11  # too rare to be a category
    encoding = encoding_of(rows)
    assert {j: keys.tolist() for j, keys in encoding.keys.items()} == {0: [0, 1, 2, 3, 4]}
    assert not encoding_of(rng.normal(size=(300, 5))).alternatives()
