"""Standard deviations beyond the data are those of a Gaussian process, however many rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import cho_factor, cho_solve
from sklearn.frozen import FrozenEstimator

import kitchenette
from kitchenette import AutoMap, KernelRegressor
from kitchenette.kernels import Gaussian, Laplacian, Matern, RationalQuadratic
from kitchenette.maps.prepared import PreparedSpecification
from kitchenette.selection.extrapolation import unlearned_share

KERNELS = [
    Gaussian(1.0),
    Laplacian(1.0),
    Matern(0.5, 1.0),
    Matern(1.5, 1.0),
    Matern(2.5, 1.0),
    RationalQuadratic(1.0, 1.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_what_is_left_of_the_prior_is_at_most_what_an_exact_process_has_left(kernel, n_columns):
    rng = np.random.default_rng(0)
    box = rng.uniform(0, 4, size=(1500, n_columns))
    box[:, 0] *= rng.uniform(size=1500)  # more rows near the end
    distances = np.array([0.05, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0])
    x = np.full((7, n_columns), 2.0)
    x[:, 0] = -distances
    for alpha in (1.0, 1e-3, 1e-6):
        factor = cho_factor(kernel(box) + alpha * np.eye(1500))
        cross = kernel(box, x)
        exact = 1 - (cross * cho_solve(factor, cross)).sum(axis=0)
        found = unlearned_share(kernel, distances, 1500 / alpha)
        # Beside the line, rows tell a little, but for these two kernels.
        is_bound = n_columns == 1 or isinstance(kernel, Gaussian | Laplacian)
        assert np.all(found <= (1.001 if is_bound else 1.5) * exact + 1e-6)
        assert found[-1] > 0.7
        assert np.all(np.diff(found) >= 0)


def test_nothing_is_learned_far_away_whatever_the_information():
    for kernel in KERNELS:
        for information in (1e-3, 1.0, 1e6, 1e300):
            share = unlearned_share(kernel, np.array([0.0, 60.0]), information)
            assert share[0] == 0
            least = 0 if information < 1 else 0.4
            assert least < share[1] <= 1


def rows_and_targets(n_columns, seed, heavy=False, n_rows=5000):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    y = np.sin(2 * X).sum(axis=1) + 0.1 * rng.normal(size=n_rows)
    return (np.exp(1.5 * X) if heavy else X), y


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


@pytest.mark.parametrize("scales", ["columns", "compressed", "ranks"])
def test_many_more_rows_than_features_are_uncertain_far_from_the_data(scales):
    for seed, heavy in enumerate((False, True)):
        X, y = rows_and_targets(3, seed, heavy)
        model = KernelRegressor(AutoMap(64, scales=scales, effort=0.1), random_state=seed)
        assert least_share_of_prior(model.fit(X, y), X) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("n_columns", [1, 3, 10])
@pytest.mark.parametrize("scales", ["auto", "compressed", "ranks"])
@pytest.mark.parametrize("n_components", [128, 1024])
def test_predictions_of_many_rows_are_as_uncertain_as_the_prior(n_components, scales, n_columns):
    for seed in range(4 if n_components == 128 else 2):
        X, y = rows_and_targets(n_columns, seed, heavy=seed % 2 == 1)
        model = KernelRegressor(AutoMap(n_components, scales=scales), random_state=seed).fit(X, y)
        assert least_share_of_prior(model, X) > 0.5


def test_features_of_little_variance_spread_as_the_targets_far_from_the_data():
    rng = np.random.default_rng(702)
    X = rng.uniform(-3, 3, size=(1500, 7))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=1500)
    model = KernelRegressor(random_state=2).fit(X, y)
    assert model.predict(far_from(X), return_std=True)[1].min() > 0.5 * y.std()


@pytest.fixture(scope="module")
def model():
    X, y = rows_and_targets(3, 0, n_rows=2000)
    auto = AutoMap(64, scales="columns", effort=0.1)
    return KernelRegressor(auto, random_state=0).fit(X, y), X, y


def test_nothing_changes_inside_the_box_of_the_data(model, monkeypatch):
    model, X, _ = model
    rng = np.random.default_rng(1)
    inside = rng.uniform(X.min(axis=0), X.max(axis=0), size=(500, 3))
    rows = np.concatenate([X, inside, far_from(X)])
    std = model.predict(rows, return_std=True)[1]
    monkeypatch.setattr(PreparedSpecification, "distances", lambda self, rows: None)
    plain = model.predict(rows, return_std=True)[1]
    assert_allclose(std[:-2], plain[:-2], rtol=1e-7)
    assert (std[-2:] > 1.5 * plain[-2:]).all()


def test_it_is_continuous_where_the_data_end(model):
    model, X, _ = model
    steps = np.linspace(0, 1e-3, 20)[:, None]
    std = model.predict(X.max(axis=0) + steps * X.std(axis=0), return_std=True)[1]
    assert np.abs(np.diff(std)).max() < 0.02 * std[0]


def test_loaded_merged_and_continued_models_keep_the_ranges(model, tmp_path):
    model, X, y = model
    far = far_from(X)
    expected = model.predict(far, return_std=True)[1]
    kitchenette.save(model, tmp_path / "model")
    loaded = kitchenette.load(tmp_path / "model")
    assert_array_equal(loaded.predict(far, return_std=True)[1], expected)
    shared = FrozenEstimator(model.feature_map_)
    halves = [KernelRegressor(shared).fit(X[part::2], y[part::2]) for part in (0, 1)]
    merged = halves[0].merge(halves[1]).solve()
    assert least_share_of_prior(merged, X) > 0.5
    continued = KernelRegressor(shared).partial_fit(X[:1000], y[:1000])
    continued.partial_fit(X[1000:], y[1000:]).solve()
    assert least_share_of_prior(continued, X) > 0.5


def test_a_model_that_predicted_deviations_is_merged_with_its_loaded_copy(tmp_path):
    X, y = rows_and_targets(2, 0, n_rows=300)
    first = KernelRegressor(AutoMap(32, scales="columns", effort=0.1), random_state=0).fit(X, y)
    kitchenette.save(first, tmp_path / "model")
    loaded = kitchenette.load(tmp_path / "model")
    first.predict(X[:3], return_std=True)  # what it caches is no difference of the maps
    other = KernelRegressor(FrozenEstimator(loaded.feature_map_)).fit(X + 0.01, y)
    assert first.merge(other).statistics_.n_rows == 600


def test_weights_times_a_constant_change_nothing_beyond_the_data(model):
    model, X, y = model
    shared = FrozenEstimator(model.feature_map_)
    far = np.concatenate([X[:5], far_from(X), X.max(axis=0)[None] + 0.5])
    plain, weighted = (
        KernelRegressor(shared, alpha=0.01 * weight).fit(X, y, np.full(len(X), weight))
        for weight in (1.0, 100.0)
    )
    found = [one.predict(far, return_std=True)[1] for one in (plain, weighted)]
    assert_allclose(found[0], found[1], rtol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 1e-300])
def test_without_a_penalty_there_is_no_prior_to_return_to(model, alpha):
    model, X, y = model
    free = KernelRegressor(FrozenEstimator(model.feature_map_), alpha=alpha)
    std = free.fit(X.astype(np.float32), y.astype(np.float32)).predict(far_from(X), True)[1]
    assert np.isfinite(std).all()


def test_forged_ranges_are_refused(model):
    specification = model[0].feature_map_.specification_
    for ranges in (np.zeros((3, 2)), np.array([[1.0] * 3, [0.0] * 3]), np.full((2, 3), np.nan)):
        with pytest.raises(ValueError, match="ranges"):
            PreparedSpecification.of(specification.preparation, specification.inner, ranges=ranges)
