"""Models of other losses minimize what they say, and agree with other packages."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from kitchenette import Fastfood, KernelClassifier, KernelRegressor
from kitchenette.kernels import Gaussian
from kitchenette.learning import preconditioner
from kitchenette.learning.losses import Huber, Logistic, Quantile, SquaredHinge

TIGHT = {"validation_rows": 0, "tol": 1e-8, "max_iter": 500}
MAP = Fastfood(Gaussian(2.0), 32, random_state=0)


def smooth_data(n=250, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.standard_t(3, size=n)
    return X, y, MAP.fit_transform(X)


def labels(y, n_classes):
    return np.digitize(y, [0.0] if n_classes == 2 else [-0.7, 0.0, 0.7])


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 1: 0.5}])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_logistic_is_logistic_regression(n_classes, class_weight, fit_intercept):
    X, y, Z = smooth_data()
    y = labels(y, n_classes)
    options = {"class_weight": class_weight, "fit_intercept": fit_intercept}
    model = KernelClassifier(MAP, alpha=0.5, loss="logistic", **options, **TIGHT).fit(X, y)
    peer = LogisticRegression(C=2.0, tol=1e-8, max_iter=5000, **options).fit(Z, y)
    assert np.abs(model.predict_proba(X) - peer.predict_proba(Z)).max() < 1e-4
    assert np.abs(model.decision_function(X) - peer.decision_function(Z)).max() < 1e-3


@pytest.mark.parametrize("sampled", [None, 8])
def test_weighted_logistic_is_logistic_regression(sampled, monkeypatch):
    if sampled is not None:
        monkeypatch.setattr(preconditioner, "LARGEST_ORDER", sampled)
    X, y, Z = smooth_data()
    y, weights = labels(y, 4), np.random.default_rng(1).integers(0, 3, y.size)
    model = KernelClassifier(MAP, alpha=0.5, loss="logistic", **TIGHT)
    model.fit(X, y, sample_weight=weights)
    peer = LogisticRegression(C=2.0, tol=1e-8, max_iter=5000).fit(Z, y, sample_weight=weights)
    assert np.abs(model.predict_proba(X) - peer.predict_proba(Z)).max() < 1e-4


def test_balanced_classes_have_equal_sums_of_weights():
    X, y, Z = smooth_data()
    y, weights = labels(y, 4), np.random.default_rng(1).random(y.size) + 0.1
    factors = weights.sum() / (4 * np.bincount(y, weights))
    options = {"alpha": 0.5, "class_weight": "balanced", **TIGHT}
    model = KernelClassifier(MAP, loss="logistic", **options).fit(X, y, sample_weight=weights)
    peer = LogisticRegression(C=2.0, tol=1e-8, max_iter=5000)
    peer.fit(Z, y, sample_weight=weights * factors[y])
    assert np.abs(model.predict_proba(X) - peer.predict_proba(Z)).max() < 1e-4


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [True, False])
def test_squared_hinge_is_a_support_vector_machine(n_classes, weighted):
    X, y, Z = smooth_data()
    y = labels(y, n_classes)
    weights = np.random.default_rng(1).random(y.size) if weighted else None
    model = KernelClassifier(
        MAP, alpha=0.5, loss="squared_hinge", fit_intercept=False, **TIGHT
    ).fit(X, y, sample_weight=weights)
    peer = LinearSVC(C=1.0, dual=False, tol=1e-8, fit_intercept=False, max_iter=20000).fit(
        Z, y, sample_weight=weights
    )
    assert np.abs(model.decision_function(X) - peer.decision_function(Z)).max() < 1e-4


def test_the_intercept_of_squared_hinge_is_not_penalized():
    X, y, Z = smooth_data()
    y = labels(y + 0.5, 2)
    model = KernelClassifier(MAP, alpha=0.5, loss="squared_hinge", **TIGHT).fit(X, y)
    peer = LinearSVC(C=1.0, dual=False, tol=1e-10, intercept_scaling=1e3, max_iter=50000).fit(Z, y)
    assert np.abs(model.decision_function(X) - peer.decision_function(Z)).max() < 1e-3


def pinball(level, width):
    """The pinball loss averaged over an interval, and its derivative in the output."""

    def value(f, y):
        d = f - y
        inside = np.square(d + width) / (4 * width) - level * d
        return np.where(
            np.abs(d) < width, inside, np.where(d > 0, (1 - level) * d, -level * d)
        ), np.clip((d + width) / (2 * width), 0, 1) - level

    return value


def huber(threshold):
    def value(f, y):
        d = f - y
        linear = threshold * np.abs(d) - threshold**2 / 2
        small = np.abs(d) <= threshold
        return np.where(small, d**2 / 2, linear), np.clip(d, -threshold, threshold)

    return value


@pytest.mark.parametrize(
    ("name", "loss"), [("huber", huber(1.35)), ("quantile", pinball(0.3, 0.1))]
)
@pytest.mark.parametrize("weighted", [True, False])
def test_losses_of_numbers_are_minimized(name, loss, weighted, monkeypatch):
    X, y, Z = smooth_data()
    weights = np.random.default_rng(1).random(y.size) if weighted else np.ones(y.size)
    options = {"alpha": 0.5, "loss": name, "quantile": 0.3, **TIGHT}
    units = []
    monkeypatch.setattr(
        "kitchenette.learning.quasi_newton.ScaledTargets",
        lambda kind, scales: units.append(scales) or Scaled(kind, scales),
    )
    model = KernelRegressor(MAP, **options).fit(X, y, sample_weight=weights)
    ((unit,),) = units
    assert 0.2 < unit < 0.6  # the spread of the errors

    def objective(w):
        values, slopes = loss(Z @ w[:-1] + w[-1], y / unit)
        slopes = weights * slopes
        gradient = np.append(Z.T @ slopes + 0.5 * w[:-1], slopes.sum())
        return weights @ values + 0.25 * w[:-1] @ w[:-1], gradient

    tight = {"maxiter": 20000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-8, "maxcor": 50}
    found = minimize(objective, np.zeros(33), jac=True, method="L-BFGS-B", options=tight).x
    expected = unit * (Z @ found[:-1] + found[-1])
    assert np.abs(model.predict(X) - expected).max() < 2e-4 * np.std(y)


class Scaled:
    """As `ScaledTargets`, written again as an oracle."""

    def __init__(self, kind, scales):
        self.kind, self.scales = kind, scales

    def columns(self, targets):
        return self.kind.columns(targets) / self.scales

    def target_numbers(self, targets):
        return self.kind.target_numbers(targets)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.9])
def test_this_share_of_the_targets_is_below_a_quantile(level):
    X, y, _ = smooth_data(1000)
    model = KernelRegressor(MAP, loss="quantile", quantile=level).fit(X, y)
    assert np.mean(y < model.predict(X)) == pytest.approx(level, abs=0.03)


def test_quantiles_of_weighted_rows_count_the_weights():
    X, y, _ = smooth_data(1000)
    weights = np.where(y > np.median(y), 3.0, 1.0)
    model = KernelRegressor(MAP, loss="quantile", quantile=0.5, alpha=1e4)  # nearly a constant
    model.fit(X, y, sample_weight=weights)
    below = weights @ (y < model.predict(X)) / weights.sum()
    assert below == pytest.approx(0.5, abs=0.03)


def test_huber_is_not_led_astray_by_outliers():
    X, y, _ = smooth_data(600)
    wrong = np.random.default_rng(4).random(600) < 0.05
    noisy = np.where(wrong, y + 50, y)
    robust = KernelRegressor(MAP, loss="huber").fit(X, noisy).predict(X)
    plain = KernelRegressor(MAP).fit(X, noisy).predict(X)
    assert np.mean((robust - y)[~wrong] ** 2) < 0.2 * np.mean((plain - y)[~wrong] ** 2)


def test_exact_targets_are_learned_with_all_losses():
    X = np.random.default_rng(0).normal(size=(400, 4))
    y = np.sin(X[:, 0]) + 100.0
    for loss in ("squared", "huber", "quantile"):
        model = KernelRegressor(Fastfood(Gaussian(3.0), 128, random_state=0), loss=loss)
        assert model.set_params(solver="auto" if loss != "squared" else "iterative")
        assert model.fit(X, y).score(X, y) > 0.99


@pytest.mark.parametrize(
    "loss",
    [Logistic(), SquaredHinge(), Huber(1.35), Quantile(0.3, 0.5)],
    ids=lambda loss: loss.name,
)
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_curvatures_are_mean_second_derivatives(loss, n_outputs):
    rng = np.random.default_rng(0)
    F = rng.normal(size=(6, n_outputs))
    if loss.of_labels:
        targets = rng.integers(max(2, n_outputs), size=6).astype(np.int32)
    else:
        targets = rng.normal(size=F.shape)

    def derivatives(F):
        out = np.empty_like(F)
        loss.native.evaluate(F, targets, np.ones(6), out, np.zeros(n_outputs))
        return out

    step, expected = 1e-6, np.zeros(6)
    for j in range(n_outputs):
        moved = np.array([F, F])
        moved[:, :, j] += [[step], [-step]]
        change = derivatives(moved[0]) - derivatives(moved[1])
        expected += change[:, j] / (2 * step * n_outputs)
    assert np.allclose(loss.curvature(F, targets), expected, atol=1e-5)
