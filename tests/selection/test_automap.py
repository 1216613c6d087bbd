"""AutoMap: what it finds, what does not matter to it, and that it is a map like any other."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import kitchenette
from kitchenette import AutoMap, Fastfood, KernelClassifier, KernelRegressor
from kitchenette.kernels import Gaussian, Laplacian
from kitchenette.maps.protocol import fit_map


def planted(n_rows: int = 1200, n_columns: int = 30, seed: int = 0):
    """A target that depends on three of many columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    product = X[:, -2] * X[:, 11 % n_columns]
    y = np.sin(2 * X[:, 3]) + product + 0.1 * rng.normal(size=n_rows)
    return X, y


@pytest.fixture(scope="module")
def fitted():
    X, y = planted()
    return AutoMap(256, random_state=0).fit(X, y), X, y


def test_useful_columns_are_found(fitted):
    auto = fitted[0]
    assert {*np.argsort(auto.feature_importances_)[-3:]} == {3, 11, 28}
    assert auto.feature_importances_[[3, 11, 28]].sum() > 0.7
    others = np.delete(auto.length_scale_, [3, 11, 28])
    assert others.min() > 3 * auto.length_scale_[[3, 11, 28]].max()


def test_learned_scales_beat_common_ones(fitted):
    auto, X, y = fitted
    fresh, truth = planted(seed=1)
    learned = KernelRegressor(FrozenEstimator(auto), alpha="evidence").fit(X, y)
    common = KernelRegressor(kitchenette.Fastfood(n_components=256), alpha="evidence").fit(X, y)
    assert learned.score(fresh, truth) > 0.95
    assert 1 - learned.score(fresh, truth) < 0.3 * (1 - common.score(fresh, truth))


def rotated(n_rows: int, seed: int):
    """A target that depends on two of ten directions, none of them along a column."""
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(10, 10)))[0]
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 10))
    along = X @ axes
    return X, np.sin(2 * along[:, 0]) + 0.5 * along[:, 1] ** 2 + 0.1 * rng.normal(size=n_rows)


@pytest.fixture(scope="module")
def mixed():
    X, y = rotated(800, 1)
    return AutoMap(256, kernel=Gaussian(), scales="full", random_state=0).fit(X, y), X, y


def test_a_full_metric_wins_where_directions_matter_and_not_columns(mixed):
    auto, X, y = mixed
    assert auto.choice_.chosen["scales"].startswith("full metric")
    fresh, truth = rotated(1000, 2)
    full = KernelRegressor(FrozenEstimator(auto), alpha="evidence").fit(X, y)
    diagonal = AutoMap(256, kernel=Gaussian(), scales="learned", random_state=0)
    learned = KernelRegressor(diagonal, alpha="evidence")
    assert 1 - full.score(fresh, truth) < 0.3 * (1 - learned.fit(X, y).score(fresh, truth))


def test_importances_and_lengths_of_a_full_metric_are_of_the_columns(mixed):
    auto, X, y = mixed
    model = KernelRegressor(FrozenEstimator(auto), alpha="evidence").fit(X, y)
    steps = 1e-4 * np.eye(10)
    slopes = [model.predict(X + step) - model.predict(X - step) for step in steps]
    expected = np.sqrt(np.mean(np.square(slopes), axis=1)) * X.std(axis=0)
    expected /= expected.sum()
    np.testing.assert_allclose(model.importance(X), expected, atol=1e-4)
    np.testing.assert_allclose(model.feature_importances_, expected, atol=0.02)
    np.testing.assert_allclose(auto.feature_importances_, expected, atol=0.03)
    zero = np.zeros((1, 10))
    for j, length in enumerate(auto.length_scale_):
        moved = zero.copy()
        moved[0, j] = length
        preparation = auto.specification_.preparation.operator(np.float64)
        both = np.empty((2, 10))
        preparation.write(np.concatenate([zero, moved]), both)
        assert np.linalg.norm(both[1] - both[0]) == pytest.approx(1)


def test_a_full_metric_is_stored_and_merged(mixed, tmp_path):
    auto, X, y = mixed
    options = {"alpha": 1e-3, "validation_rows": 0}
    halves = [
        KernelRegressor(FrozenEstimator(auto), **options).fit(X[i::2], y[i::2]) for i in range(2)
    ]
    whole = KernelRegressor(FrozenEstimator(auto), **options).fit(X, y)
    np.testing.assert_allclose(halves[0].merge(halves[1]).predict(X), whole.predict(X), atol=1e-6)
    kitchenette.save(whole, tmp_path / "model")
    again = kitchenette.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))
    np.testing.assert_allclose(again.predictor()(X[0]), whole.predict(X[:1]), atol=1e-5)
    np.testing.assert_allclose(again.predict(sp.csr_matrix(X)), whole.predict(X), atol=1e-8)


def test_a_full_metric_ignores_constant_columns():
    X, y = rotated(300, 3)
    wide = np.insert(X, 4, 7.0, axis=1)
    auto = AutoMap(64, kernel=Gaussian(), scales="full", random_state=0).fit(wide, y)
    assert np.isinf(auto.length_scale_[4])
    assert auto.feature_importances_[4] == 0


def signals(n_rows: int, seed: int):
    """Strengths that fall with the distance to twelve senders; weak ones are recorded as 100."""
    senders = np.random.default_rng(0).uniform(size=(12, 2))
    rng = np.random.default_rng(seed)
    places = rng.uniform(size=(n_rows, 2))
    distances = np.linalg.norm(places[:, None] - senders, axis=2)
    strengths = -30 - 100 * distances + 3 * rng.normal(size=distances.shape)
    return np.where(strengths > -75, strengths, 100.0), places[:, 0]


def test_a_number_for_what_was_not_measured_is_moved_to_its_place(tmp_path):
    X, y = signals(600, 1)
    auto = AutoMap(128, kernel=Gaussian(), scales="common", random_state=0)
    model = KernelRegressor(auto, alpha="evidence").fit(X, y)
    assert model.feature_map_.choice_.chosen["scales"].endswith("placeholders moved")
    fresh, truth = signals(1000, 2)
    by_hand = np.where(X == 100, -80.0, X), np.where(fresh == 100, -80.0, fresh)
    best = clone(model).fit(by_hand[0], y).score(by_hand[1], truth)
    assert 1 - model.score(fresh, truth) < 1.1 * (1 - best)
    kitchenette.save(model, tmp_path / "model")
    loaded = kitchenette.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(fresh), model.predict(fresh))
    assert model.importance(X).sum() == pytest.approx(1)
    assert np.isfinite(model.feature_map_.length_scale_).all()


@pytest.mark.slow
def test_the_choice_is_repeatable(fitted):
    auto, X, y = fitted
    again = clone(auto).fit(X, y)
    assert again.specification_ == auto.specification_
    assert again.choice_ == auto.choice_


@pytest.mark.parametrize("factor", [1e6, pytest.param(1e-8, marks=pytest.mark.slow)])
def test_the_unit_of_a_column_does_not_matter(factor):
    X = planted(400, 6, seed=2)[0]
    y = np.sin(2 * X[:, 3]) + X[:, 1]
    unit = np.where(np.arange(6) == 3, factor, 1.0)
    plain, scaled = (
        AutoMap(64, scales="columns", random_state=0).fit(rows, y) for rows in (X, X * unit)
    )
    np.testing.assert_allclose(scaled.transform(X * unit), plain.transform(X), atol=1e-5)
    model = KernelRegressor(AutoMap(64, random_state=0), alpha="evidence").fit(X * unit, y)
    assert model.score(X * unit, y) > 0.95


def test_constant_columns_are_ignored():
    X = planted(300, 5, seed=3)[0]
    y = X[:, 0] ** 2
    wide = np.insert(X, [0, 3], [1e6, 0.1], axis=1)
    for dtype in (np.float64, np.float32):
        auto = AutoMap(64, random_state=0).fit(wide.astype(dtype), y)
        assert np.isinf(auto.length_scale_[[0, 4]]).all()
        assert (auto.feature_importances_[[0, 4]] == 0).all()
        assert np.isfinite(np.delete(auto.length_scale_, [0, 4])).all()
        assert np.isfinite(auto.transform(wide.astype(dtype))).all()


def test_all_columns_may_be_constant():
    auto = AutoMap(32, random_state=0).fit(np.ones((50, 3)), np.arange(50.0))
    assert np.isfinite(auto.transform(np.ones((2, 3)))).all()


@pytest.mark.parametrize("n_rows", [1, 2, 5, 12, 30])
def test_few_rows_suffice(n_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 4))
    regressor = KernelRegressor(AutoMap(64, random_state=0), alpha=1.0).fit(X, X[:, 0])
    assert np.isfinite(regressor.predict(X)).all()
    assert regressor.feature_map_.choice_.sentence


def test_noise_is_not_learned():
    rng = np.random.default_rng(0)
    X, y, fresh, truth = (rng.normal(size=size) for size in ((200, 20), 200, (500, 20), 500))
    model = KernelRegressor(AutoMap(256, random_state=0), alpha="evidence").fit(X, y)
    assert model.score(fresh, truth) > -0.1


@pytest.mark.slow
def test_large_means_in_float32_do_no_harm():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3)) * 1000
    y = np.sin(X[:, 0] / 500)
    shifted = (X + 1e6).astype(np.float32)
    model = KernelRegressor(AutoMap(128, random_state=0), alpha="evidence").fit(shifted, y)
    assert model.score(shifted, y) > 0.95


def test_heavy_tails_are_compressed_or_ranked():
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(600, 3))
    X, y = np.exp(4 * normal), np.sin(2 * normal[:, 0])
    auto = AutoMap(128, random_state=0).fit(X, y)
    assert "compressed" in auto.choice_.chosen["scales"] or "ranks" in auto.choice_.chosen["scales"]


def far_from(X):
    """Rows that are ten spreads beyond the data in all columns, on either side."""
    outside = 10 * X.std(axis=0)
    return np.array([X.min(axis=0) - outside, X.max(axis=0) + outside])


def least_share_of_prior(model, X):
    """The smallest std ten spreads from the data, over that of the prior with noise."""
    solution = model.statistics_.solve(model.alpha_)
    fitted = np.sqrt(solution.variance(model.feature_map_.transform(X[:1]))[:, 0])
    calibration = model.predict(X[:1], return_std=True)[1] / fitted
    prior = calibration * np.sqrt(solution.noise_variance * (1 + 1 / model.alpha_))
    return (model.predict(far_from(X), return_std=True)[1] / prior).min()


@pytest.mark.parametrize("scales", ["compressed", "ranks"])
def test_transformed_columns_are_uncertain_far_from_the_data(scales):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(300, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=300)
    model = KernelRegressor(AutoMap(128, scales=scales), random_state=0).fit(X, y)
    ten_spreads = [[-17.3], [17.3]]
    assert (model.predict(ten_spreads, return_std=True)[1] > 0.5).all()  # the noise is 0.1
    assert least_share_of_prior(model, X) > 0.5
    inside = model.predict(X, return_std=True)[1]
    assert inside.max() < 0.2


@pytest.mark.parametrize("n_columns", [5, 10])
def test_new_extreme_numbers_of_heavy_tails_are_predicted_like_those_seen(n_columns):
    rng = np.random.default_rng(n_columns)
    X = rng.normal(size=(5000, n_columns))
    y = np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=5000)
    X, seen = np.exp(1.5 * X), 500
    model = KernelRegressor(AutoMap(256), random_state=0).fit(X[:seen], y[:seen])
    beyond = (X[seen:] > X[:seen].max(axis=0)).any(axis=1)
    assert beyond.sum() > 20
    assert model.score(X[seen:], y[seen:]) > 0.95
    assert model.score(X[seen:][beyond], y[seen:][beyond]) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("n_columns", [1, 3, 10])
@pytest.mark.parametrize("scales", ["auto", "compressed", "ranks"])
def test_predictions_far_from_the_data_are_as_uncertain_as_the_prior(scales, n_columns):
    for seed, heavy in enumerate((False, True)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, n_columns))
        y = np.sin(2 * X).sum(axis=1) + 0.1 * rng.normal(size=300)
        X = np.exp(1.5 * X) if heavy else X
        # With few features, those of 300 rows leave no direction that is not learned.
        model = KernelRegressor(AutoMap(1024, scales=scales), random_state=seed).fit(X, y)
        assert least_share_of_prior(model, X) > 0.5


@pytest.mark.parametrize("scales", ["compressed", "ranks"])
def test_sparse_rows_far_from_the_data_are_like_dense_ones(scales):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, size=(200, 3)) * rng.exponential(size=(200, 3))
    y = np.sin(2 * X[:, 0])
    sparse, dense = (
        KernelRegressor(AutoMap(32, scales=scales), random_state=0, alpha=0.1).fit(rows, y)
        for rows in (sp.csr_matrix(X), X)
    )
    far = far_from(X)
    found = sparse.predict(sp.csr_matrix(far), return_std=True)
    np.testing.assert_allclose(found, dense.predict(far, return_std=True), rtol=1e-5)
    assert least_share_of_prior(dense, X) > 0.5


@pytest.mark.parametrize("scales", ["compressed", "ranks"])
def test_length_scales_of_transformed_columns_are_those_inside_the_data(scales):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) * [1, 100]
    auto = AutoMap(32, scales=scales, random_state=0).fit(X, np.sin(X[:, 0]))
    ends = np.array([X.min(axis=0), X.max(axis=0)])
    run, rise = (np.ptp(e, axis=0) for e in (ends, auto.specification_.preparation.prepared(ends)))
    np.testing.assert_allclose(auto.length_scale_, run / rise, rtol=1e-5)


@pytest.mark.parametrize(
    "labels_of",
    [
        lambda x: np.where(x > 0, "yes", "no"),
        pytest.param(lambda x: x > 0, marks=pytest.mark.slow),
        pytest.param(lambda x: np.digitize(x, [-1, 1]), marks=pytest.mark.slow),
    ],
    ids=["strings", "booleans", "numbers"],
)
def test_classes_of_any_kind(labels_of):
    X = planted(300, 5, seed=4)[0]
    labels = labels_of(X[:, 1])
    model = KernelClassifier(AutoMap(64, random_state=0), alpha="evidence").fit(X, labels)
    assert model.score(X, labels) > 0.9
    assert model.feature_map_.feature_importances_.argmax() == 1


@pytest.mark.slow
def test_more_classes_than_columns_of_targets():
    X = np.random.default_rng(0).normal(size=(900, 3))
    labels = np.floor(15 * X[:, 0]).astype(int)
    auto = AutoMap(64, task="classification", random_state=0).fit(X, labels)
    assert auto.feature_importances_.argmax() == 0


def test_several_targets():
    X = planted(300, 5, seed=5)[0]
    Y = np.c_[np.sin(X[:, 0]), X[:, 2]]
    auto = AutoMap(64, random_state=0).fit(X, Y)
    assert {*np.argsort(auto.feature_importances_)[-2:]} == {0, 2}


@pytest.mark.slow
def test_weights_matter_by_their_ratios_only():
    X, y = planted(300, 5, seed=6)
    weights = np.random.default_rng(0).integers(0, 3, size=300).astype(float)
    one, other, without = (
        fit_map(AutoMap(64, random_state=0), rows, targets, w)
        for rows, targets, w in (
            (X, y, weights),
            (X, y, 1024 * weights),
            (X[weights > 0], y[weights > 0], weights[weights > 0]),
        )
    )
    assert one.specification_ == other.specification_ == without.specification_


@pytest.mark.slow
def test_sparse_rows_are_not_centered():
    X = planted(300, 6, seed=7)[0]
    X[np.abs(X) < 0.8] = 0
    sparse = AutoMap(64, random_state=0).fit(sp.csr_matrix(X), X[:, 2])
    np.testing.assert_allclose(sparse.transform(X), sparse.transform(sp.csr_matrix(X)), atol=1e-6)
    dense = AutoMap(64, random_state=0).fit(X, X[:, 2])
    np.testing.assert_allclose(dense.transform(X), dense.transform(sp.csr_matrix(X)), atol=1e-6)


def test_wide_text_gets_sketches_of_polynomials():
    rng = np.random.default_rng(0)
    n_rows, n_columns = 600, 2**18
    words = rng.integers(0, 2000, size=(n_rows, 30)) * 131
    labels = (words[:, :10] % 2).sum(axis=1) > 4
    words[labels, 0], words[~labels, 0] = 7, 11
    places = np.repeat(np.arange(n_rows), 30), words.ravel()
    X = sp.csr_matrix((np.ones(words.size), places), shape=(n_rows, n_columns))
    model = KernelClassifier(AutoMap(256, random_state=0), alpha="evidence").fit(X, labels)
    assert model.feature_map_.choice_.chosen["scales"] == "unit rows"
    assert model.score(X, labels) > 0.9


def test_it_is_stored_pickled_and_merged(fitted, tmp_path):
    auto, X, y = fitted
    kitchenette.save(auto, tmp_path / "map")
    loaded = kitchenette.load(tmp_path / "map")
    for copy in (loaded, pickle.loads(pickle.dumps(auto))):
        assert copy.specification_ == auto.specification_
        assert copy.choice_ == auto.choice_
        np.testing.assert_array_equal(copy.transform(X[:5]), auto.transform(X[:5]))
        np.testing.assert_array_equal(copy.feature_importances_, auto.feature_importances_)
    frozen = FrozenEstimator(auto)
    whole = KernelRegressor(frozen, alpha=1e-3).fit(X, y)
    halves = [KernelRegressor(frozen, alpha=1e-3).fit(X[i::2], y[i::2]) for i in range(2)]
    merged = halves[0].merge(halves[1])
    np.testing.assert_allclose(merged.predict(X), whole.predict(X), atol=1e-6)
    kitchenette.save(whole, tmp_path / "model")
    again = kitchenette.load(tmp_path / "model")
    np.testing.assert_allclose(again.predict(X), whole.predict(X), atol=1e-8)
    one = whole.predictor()(X[0])
    np.testing.assert_allclose(one, whole.predict(X[:1]), atol=1e-5)


@pytest.mark.slow
def test_the_size_is_chosen_by_a_learning_curve():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    easy = AutoMap(random_state=0).fit(X, np.sin(X[:, 0]) + rng.normal(size=4000))
    waves = np.sin(3 * X[:, 0]) * np.sin(3 * X[:, 1])
    hard = AutoMap(random_state=0).fit(X, waves)
    assert easy.n_features_out_ == 1024 < hard.n_features_out_
    assert hard.transform(X[:3]).shape == (3, hard.n_features_out_)


def test_efforts_differ_in_features_and_candidates():
    X, y = planted(700, 5, seed=8)
    fast, balanced = (
        AutoMap(effort=effort, random_state=0).fit(X, y) for effort in ("fast", "balanced")
    )
    assert fast.n_features_out_ < balanced.n_features_out_
    assert len(fast.choice_.table) < len(balanced.choice_.table)


def test_estimators_pass_their_effort_to_the_default_map():
    X, y = planted(300, 5, seed=8)
    model = KernelRegressor(effort="fast", random_state=0).fit(X, y)
    expected = KernelRegressor(AutoMap(effort="fast"), random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    with pytest.raises(ValueError, match="effort='fast' is for the default map"):
        KernelRegressor(Fastfood(), effort="fast").fit(X, y)


def test_a_given_kernel_is_kept():
    X, y = planted(200, 5, seed=8)
    for kernel in (Gaussian(), Laplacian(3.0)):
        auto = AutoMap(64, kernel=kernel, random_state=0).fit(X, y)
        assert auto.kernel_ == type(kernel)(length_scale=1.0)


@pytest.mark.parametrize("scales", ["common", "columns", "compressed", "ranks", "learned"])
def test_given_scales_are_kept(scales):
    X, y = planted(200, 5, seed=9)
    auto = AutoMap(64, scales=scales, random_state=0).fit(X, y)
    assert scales in auto.choice_.chosen["scales"]


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": "many"}, "n_components"),
        ({"kernel": "gauss"}, "kernel"),
        ({"scales": "big"}, "scales"),
        ({"task": "ranking"}, "task"),
        ({"effort": -1}, "effort"),
        ({"effort": "much"}, "effort"),
    ],
)
def test_bad_parameters_get_a_sentence(parameters, word):
    with pytest.raises(ValueError, match=word):
        AutoMap(**parameters).fit(np.eye(5), np.arange(5.0))


def test_targets_are_needed():
    with pytest.raises(ValueError, match="requires y"):
        AutoMap().fit(np.eye(5))


@pytest.mark.slow
def test_the_default_fits_a_hundred_thousand_dense_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 100_000))
    model = KernelRegressor(AutoMap(64, random_state=0)).fit(X, X[:, 0])
    assert model.predict(X).shape == (40,)
    assert model.feature_importances_.shape == (100_000,)


@pytest.mark.parametrize(("size", "dtype"), [(1e-40, np.float32), (1e-300, np.float64)])
@pytest.mark.parametrize("kind", ["array", "sparse", "frame"])
def test_columns_that_are_too_small_to_be_scaled_are_named(kind, size, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [1.0, size, 1.0]
    X[:, 2] = 1e-40 if dtype is np.float32 else 0.0  # constant
    X = X.astype(dtype)
    y, name = np.sin(X[:, 0].astype(float)), "1"
    if kind == "sparse":
        X = sp.csr_array(X)
    elif kind == "frame":
        X, name = pd.DataFrame(X, columns=["a", "b", "c"]), "'b'"
    sentence = rf"differ by less than about 1e-30 .* are ignored: {name}\. Multiply them"
    with pytest.warns(UserWarning, match=sentence):
        KernelRegressor(AutoMap(32), random_state=0).fit(X, y)


@pytest.mark.parametrize("size", [1e39, 1e153, 1e200])
def test_columns_of_huge_numbers_are_scaled(size):
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = np.sin(X[:, 0])
    assert KernelRegressor(AutoMap(64), random_state=0).fit(X * size, y).score(X * size, y) > 0.98


def test_columns_of_small_numbers_are_scaled_without_a_warning():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    X = (X * [1e-26, 1.0]).astype(np.float32)
    assert KernelRegressor(AutoMap(256), random_state=0).fit(X[:400], y[:400]).score(X, y) > 0.98
