"""The two estimators against scikit-learn's on explicit features, and against themselves."""

from __future__ import annotations

import builtins
import pickle
import subprocess
import sys
import threading
import warnings
from copy import copy, deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from peak_memory import SOURCE
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import BayesianRidge, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from kitchenette import (
    TEFM,
    AutoMap,
    CRAFTMap,
    Fastfood,
    KernelClassifier,
    KernelPCA,
    KernelRegressor,
    RandomKitchenSinks,
    RandomMaclaurin,
    TensorSketch,
    load,
    save,
)
from kitchenette.comparison import first_difference
from kitchenette.kernels import Exponential, Gaussian, Polynomial
from kitchenette.learning import OutputCode, partial
from kitchenette.learning.linear_model import LinearModel
from kitchenette.learning.penalty import PenaltyPath
from kitchenette.maps.protocol import FittedMap, thawed
from kitchenette.sketching.dense import matrix_product
from kitchenette.sketching.operators import chain
from kitchenette.training import model as model_module


def fixed_map(n_components=40, **options):
    """A map that does not depend on data."""
    return Fastfood(Gaussian(3.0), n_components, random_state=0, **options)


def regression(n=300, k=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    directions = rng.normal(size=(4, k or 1))
    signal = np.sin(2 * X @ directions / np.linalg.norm(directions, axis=0))
    y = signal + 0.2 * rng.normal(size=signal.shape) + 3
    return X, y if k else y[:, 0]


def classification(n=300, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    scores = X @ rng.normal(size=(4, n_classes)) + 0.5 * rng.normal(size=(n, n_classes))
    return X, scores.argmax(axis=1)


NAMES = np.array(["apple", "pear", "quince", "cherry", "plum"])

# ---------------------------------------------------------------- conventions


@parametrize_with_checks(
    [
        KernelRegressor(Fastfood(n_components=32, random_state=0)),
        KernelClassifier(Fastfood(n_components=64, random_state=0)),
    ]
)
def test_scikit_learns_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        KernelRegressor(fixed_map(), alpha=1e-3),
        KernelRegressor(RBFSampler(random_state=0), alpha=1e-3, fit_intercept=False),
        KernelClassifier(
            fixed_map(64), alpha=1e-3, code="ecoc", code_length=30, decoding="hamming"
        ),
        KernelClassifier(fixed_map(64), alpha=[1e-3, 1], code="hadamard", fit_intercept=False),
    ],
    expected_failed_checks=lambda estimator: (
        {}
        if estimator.fit_intercept
        else {
            "check_class_weight_classifiers": "without an intercept, rows far away from all others "
            "have no class that is more probable"
        }
    ),
)
def test_scikit_learns_estimator_checks_with_options(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        KernelRegressor(AutoMap(32, random_state=0)),
        KernelClassifier(AutoMap(32, random_state=0)),
    ]
)
def test_scikit_learns_estimator_checks_of_the_default_map(estimator, check):
    check(estimator)


def test_the_default_map_is_chosen_from_the_data():
    X, y = regression()
    model = KernelRegressor(random_state=0).fit(X, y)
    auto = AutoMap(task="regression", random_state=0).fit(X, y)
    assert isinstance(model.feature_map_, AutoMap)
    assert np.array_equal(model.feature_map_.transform(X), auto.transform(X))
    assert model.score(X, y) > 0.8
    assert model.feature_map_.seed_ == model.seed_ == 0


@pytest.mark.slow
def test_the_default_map_has_the_seed_of_the_model():
    X, y = regression()
    model = KernelRegressor(random_state=0).fit(X, y)
    same = KernelRegressor("auto", random_state=0).fit(X, y)
    assert np.array_equal(same.predict(X), model.predict(X))
    labels = classification()[1]
    for kind, targets in ((KernelRegressor, y), (KernelClassifier, labels)):
        one, again, other = (kind(random_state=seed).fit(X, targets) for seed in (0, 0, 1))
        assert one.feature_map_.seed_ == one.seed_ == 0
        assert other.feature_map_.seed_ == 1
        assert np.array_equal(one.predict(X), again.predict(X))


def test_nested_parameters_reach_the_kernel():
    X, y = regression()
    shared = Fastfood(Gaussian(1.0), 100, random_state=0)
    model = KernelRegressor(shared, alpha=0.1)
    search = GridSearchCV(model, {"feature_map__kernel__length_scale": [0.01, 2.0]}, cv=2)
    assert search.fit(X, y).best_params_ == {"feature_map__kernel__length_scale": 2.0}
    assert shared.kernel.length_scale == 1.0


# ---------------------------------------------------------------- against scikit-learn


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_regressor_is_ridge_on_the_features(fit_intercept, k, dtype):
    X, y = regression(5000, k)
    X = X.astype(dtype)
    weights = np.random.default_rng(1).uniform(0, 2, len(X))
    model = KernelRegressor(fixed_map(), alpha=0.1, fit_intercept=fit_intercept)
    model.fit(X, y, sample_weight=weights)
    Z = model.feature_map_.transform(X).astype(float)
    ridge = Ridge(alpha=0.1, fit_intercept=fit_intercept).fit(Z, y, sample_weight=weights)
    rtol = 1e-8 if dtype == np.float64 else 2e-3
    assert model.alpha_ == 0.1
    assert model.feature_weights_.shape == ridge.coef_.shape
    assert np.shape(model.intercept_) == np.shape(ridge.intercept_) or not fit_intercept
    np.testing.assert_allclose(model.feature_weights_, ridge.coef_, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(model.intercept_, ridge.intercept_, rtol=rtol, atol=rtol)
    predicted = model.predict(X)
    assert predicted.dtype == np.float64  # as the targets
    assert clone(model).fit(X, y.astype(dtype)).predict(X).dtype == dtype
    np.testing.assert_allclose(predicted, ridge.predict(Z), rtol=rtol / 10, atol=rtol / 10)
    assert model.score(X, y) == pytest.approx(ridge.score(Z, y), abs=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_classifier_is_ridge_classifier_on_the_features(fit_intercept, n_classes):
    X, y = classification(n_classes=n_classes)
    model = KernelClassifier(fixed_map(), alpha=0.1, fit_intercept=fit_intercept).fit(X, y)
    Z = model.feature_map_.transform(X)
    ridge = RidgeClassifier(alpha=0.1, fit_intercept=fit_intercept).fit(Z, y)
    scores = model.decision_function(X)
    assert scores.shape == ((300,) if n_classes == 2 else (300, 3))
    np.testing.assert_allclose(scores, ridge.decision_function(Z), atol=1e-7)
    assert np.array_equal(model.predict(X), ridge.predict(Z))
    assert model.feature_weights_.shape == (n_classes, 40)


def test_evidence_and_standard_deviations_are_those_of_bayesian_ridge():
    X, y = regression(1000)
    model = KernelRegressor(fixed_map(20), alpha="evidence", validation_rows=0).fit(X, y)
    Z = model.feature_map_.transform(X)
    # Without priors for the two variances, which scikit-learn has.
    flat = {"alpha_1": 0, "alpha_2": 0, "lambda_1": 0, "lambda_2": 0}
    bayes = BayesianRidge(max_iter=2000, tol=1e-10, **flat).fit(Z, y)
    assert model.alpha_ == pytest.approx(bayes.lambda_ / bayes.alpha_, rel=0.02)
    mean, std = model.predict(X[:50], return_std=True)
    np.testing.assert_allclose(mean, bayes.predict(Z[:50]), atol=1e-3)
    # From the covariance of the weights, because BayesianRidge.predict of scikit-learn 1.6 does
    # not center the rows that it computes standard deviations for.
    centered = Z[:50] - Z.mean(axis=0)
    variance = np.einsum("ij,jk,ik->i", centered, bayes.sigma_, centered) + 1 / bayes.alpha_
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=3e-3)
    solution = model.statistics_.solve("evidence")
    assert model.log_marginal_likelihood_ == solution.log_marginal_likelihood


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_intervals_of_95_percent_cover_95_percent(fit_intercept):
    """20 draws of weights and noise from the model, 500 new rows each.

    Rows of one draw share its weights and noise estimate, so that coverage of draws varies by
    a percent or two; its mean over 20 draws is within a percent of 95.
    """
    feature_map = fixed_map(100).fit(np.zeros((1, 4)))
    covered = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(900, 4))
        Z = feature_map.transform(X)
        y = Z @ rng.normal(size=100) + 5 * fit_intercept + 0.3 * rng.normal(size=900)
        model = KernelRegressor(
            FrozenEstimator(feature_map), alpha="evidence", fit_intercept=fit_intercept
        ).fit(X[:400], y[:400])
        mean, std = model.predict(X[400:], return_std=True)
        covered.append(np.mean(np.abs(y[400:] - mean) < 1.96 * std))
    assert abs(np.mean(covered) - 0.95) < 0.01


def test_standard_deviations_follow_the_rows_that_are_learned_and_forgotten():
    X, y = regression(400)
    model = KernelRegressor(fixed_map(), alpha=1.0).fit(X[:200], y[:200])
    before = model.predict(X[:9], return_std=True)[1]
    other = KernelRegressor(fixed_map(), alpha=1.0).fit(X[200:], y[200:])
    whole = KernelRegressor(fixed_map(), alpha=1.0).fit(X, y).predict(X[:9], return_std=True)[1]
    assert not np.allclose(before, whole, rtol=1e-3)
    model.partial_fit(X[200:], y[200:])
    np.testing.assert_allclose(model.predict(X[:9], return_std=True)[1], whole)
    model.downdate(X[200:], y[200:])
    np.testing.assert_allclose(model.predict(X[:9], return_std=True)[1], before)
    model.merge(other)
    np.testing.assert_allclose(model.predict(X[:9], return_std=True)[1], whole)
    model.fit(X[:200], y[:200])
    np.testing.assert_allclose(model.predict(X[:9], return_std=True)[1], before)


def test_standard_deviations_of_several_targets():
    X, Y = regression(k=2)
    model = KernelRegressor(fixed_map(), alpha=1.0).fit(X, Y)
    mean, std = model.predict(X[:7], return_std=True)
    assert mean.shape == std.shape == (7, 2)
    alone = KernelRegressor(fixed_map(), alpha=1.0).fit(X, Y[:, 1])
    np.testing.assert_allclose(std[:, 1], alone.predict(X[:7], return_std=True)[1])
    each = MultiOutputRegressor(KernelRegressor(fixed_map(), alpha=1.0)).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), each.predict(X))


# ---------------------------------------------------------------- one pass, batches, merging


def same_predictions(a, b, X, rtol=1e-6):
    method = "decision_function" if hasattr(a, "decision_function") else "predict"
    assert a.statistics_.n_rows == b.statistics_.n_rows
    np.testing.assert_allclose(getattr(a, method)(X), getattr(b, method)(X), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("cuts", [[1], [100, 101, 250], list(range(20, 300, 20))])
@pytest.mark.filterwarnings("ignore:alpha='gcv' chose")
@pytest.mark.parametrize("alpha", [0.3, "gcv", "auto"])
def test_batches_make_the_model_of_all_rows(cuts, alpha, monkeypatch):
    monkeypatch.setattr(model_module, "MOST_ROWS", 64)
    monkeypatch.setattr(partial, "MOST_ROWS", 64)
    X, y = regression()
    weights = np.random.default_rng(1).uniform(0, 2, len(X))
    whole = KernelRegressor(fixed_map(), alpha=alpha).fit(X, y, weights)
    model = KernelRegressor(fixed_map(), alpha=alpha)
    for rows in np.split(np.arange(300), cuts):
        model.partial_fit(X[rows], y[rows], weights[rows])
    same_predictions(model, whole, X)
    labels = NAMES[classification()[1]]
    whole = KernelClassifier(fixed_map(), alpha=alpha).fit(X, labels, weights)
    model = KernelClassifier(fixed_map(), alpha=alpha)
    for rows in np.split(np.arange(300), cuts):
        model.partial_fit(X[rows], labels[rows], NAMES[:3], weights[rows])
    same_predictions(model, whole, X)
    # fit starts again.
    assert model.fit(X, labels).statistics_.n_rows == 300


def test_predictions_do_not_depend_on_the_rows_beside(monkeypatch):
    X, y = regression()
    model = KernelRegressor(fixed_map()).fit(X, y)
    whole = model.predict(X)
    np.testing.assert_allclose(
        np.concatenate([model.predict(X[i : i + 1]) for i in range(9)]), whole[:9], rtol=1e-12
    )
    monkeypatch.setattr(model_module, "PREDICTED_ROWS", 20)
    assert np.array_equal(model.predict(sp.csr_array(X)), whole)


def test_partial_fit_solves_only_when_asked(monkeypatch):
    X, y = regression()
    solved = []
    solve = PenaltyPath.solve
    monkeypatch.setattr(PenaltyPath, "solve", lambda *a: (solved.append(1), solve(*a))[1])
    model = KernelRegressor(fixed_map())
    for start in range(0, 300, 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50])
    assert not hasattr(model, "feature_weights_")
    with pytest.raises(AttributeError, match=r"Call solve\(\) first"):
        model.alpha_  # noqa: B018
    assert not solved
    model.predict(X)
    assert model.alpha_ > 0
    assert len(solved) == 1
    model.merge(clone(model).partial_fit(X, y))
    assert not hasattr(model, "feature_weights_")
    assert len(solved) == 1
    assert model.solve().feature_weights_.shape == (40,)
    assert len(solved) == 2
    with pytest.raises(AttributeError):
        model.feature_weights_ = 0


def test_rows_can_be_forgotten():
    X, y = regression()
    labels = NAMES[classification()[1]]
    whole = KernelRegressor(fixed_map()).fit(X[:200], y[:200])
    model = KernelRegressor(fixed_map()).fit(X, y).downdate(X[200:], y[200:])
    same_predictions(model, whole, X)
    whole = KernelClassifier(fixed_map()).fit(X[:200], labels[:200])
    model = KernelClassifier(fixed_map()).fit(X, labels).downdate(X[200:], labels[200:])
    same_predictions(model, whole, X)
    with pytest.raises(ValueError, match="Cannot remove 300 rows"):
        model.downdate(X, labels)
    same_predictions(model, whole, X)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_any_order_of_merging_gives_the_model_of_all_rows(order):
    X, y = regression()
    labels = NAMES[classification(n_classes=5)[1]]
    parts = np.split(np.arange(300), [30, 200])
    for model, targets in (
        (KernelRegressor(fixed_map()), y),
        (KernelClassifier(fixed_map(), code="hadamard"), labels),
    ):
        whole = clone(model).fit(X, targets)
        models = [clone(model).fit(X[rows], targets[rows]) for rows in parts]
        first, second, third = (models[i] for i in order)
        assert first.merge(second.merge(third)) is first
        same_predictions(first, whole, X)


def test_classes_that_only_one_model_has_seen_are_merged():
    X, numbers = classification(400, 5)
    y = NAMES[numbers]
    here, there = numbers < 3, numbers >= 2
    there &= ~here | (np.arange(400) % 2 == 0)
    here &= ~there
    for options in ({}, {"code": "ecoc", "random_state": 3}):
        one, other = (
            KernelClassifier(fixed_map(), **options).fit(X[part], y[part]) for part in (here, there)
        )
        assert one.classes_.size < 5
        assert other.classes_.size < 5
        before = other.statistics_.cross.copy()
        one.merge(other)
        assert np.array_equal(other.statistics_.cross, before)
        assert one.classes_.tolist() == sorted(NAMES)
        same_predictions(one, KernelClassifier(fixed_map(), **options).fit(X, y), X)


def test_maps_that_depend_on_data_are_merged_frozen():
    X, y = regression()
    halves = [slice(0, 150), slice(150, 300)]
    free = [KernelRegressor(Fastfood(n_components=40, random_state=0)) for _ in halves]
    for model, rows in zip(free, halves, strict=True):
        model.fit(X[rows], y[rows])
    before = free[0].predict(X)
    with pytest.raises(ValueError, match=r"feature maps differ.*kernel\.length_scale.*Frozen"):
        free[0].merge(free[1])
    assert np.array_equal(free[0].predict(X), before)
    frozen = FrozenEstimator(Fastfood(n_components=40).fit(X[:50]))
    elsewhere = pickle.loads(pickle.dumps(frozen))
    one = KernelRegressor(frozen).fit(X[:150], y[:150])
    other = KernelRegressor(elsewhere).fit(X[150:], y[150:])
    same_predictions(one.merge(other), KernelRegressor(frozen).fit(X, y), X)


def test_maps_with_other_bases_of_the_same_range_do_not_merge():
    # Ten rows leave most of 32 directions open: statistics of other directions do not add up.
    X, y = regression()
    tefm = TEFM(Gaussian(1.0), 32, random_state=0).fit(X[:10])
    other = pickle.loads(pickle.dumps(tefm))
    flipped = np.hstack([tefm.basis_[:, :10], -tefm.basis_[:, 10:]])
    other.specification_ = replace(other.specification_, basis=flipped)
    models = [KernelRegressor(FrozenEstimator(m)).fit(X, y) for m in (tefm, other)]
    more = KernelRegressor(FrozenEstimator(tefm)).fit(X[:100], y[:100])
    with pytest.raises(ValueError, match=r"feature maps differ.*basis"):
        models[0].merge(models[1])
    whole = KernelRegressor(FrozenEstimator(tefm))
    whole.fit(np.vstack([X, X[:100]]), np.concatenate([y, y[:100]]))
    same_predictions(models[0].merge(more), whole, X)


def fitted_copies(model, X, y, path):
    """A fitted model, and others that have learned the same rows."""
    fitted = model.fit(X, y)
    save(fitted, path)
    return fitted, [deepcopy(fitted), load(path), clone(model).fit(X, y)]


@pytest.mark.parametrize("kind", ["regressor", "classifier", "balanced", "components"])
def test_a_model_is_not_merged_with_itself_and_warns_of_its_copies(kind, tmp_path):
    X, y = classification()
    feature_map = FrozenEstimator(fixed_map().fit(X))
    model = {
        "regressor": KernelRegressor(feature_map),
        "classifier": KernelClassifier(feature_map),
        "balanced": KernelClassifier(feature_map, class_weight="balanced"),
        "components": KernelPCA(2, feature_map),
    }[kind]
    fitted, copies = fitted_copies(model, X, y, tmp_path / "model")
    with pytest.raises(ValueError, match="Cannot merge a model with itself"):
        fitted.merge(fitted)
    assert fitted.statistics_.n_rows == len(X)
    for other in [*copies, copy(fitted)]:
        merged = deepcopy(fitted)
        with pytest.warns(UserWarning, match=f"same statistics of {len(X)} rows.*count twice"):
            merged.merge(other)
        assert merged.statistics_.n_rows == 2 * len(X)
    other = clone(model).fit(X[1:], y[1:])
    assert fitted.merge(other).statistics_.n_rows == 2 * len(X) - 1


def test_comparison_of_maps_sees_what_matters_and_nothing_else():
    X, _ = regression()
    one = fixed_map().fit(X).specification_
    assert first_difference(one, fixed_map().fit(X.astype(np.float32)).specification_) is None
    assert (
        first_difference(one, fixed_map().set_params(random_state=1).fit(X).specification_)
        == "seed"
    )
    hadamard = fixed_map(projection="hadamard").fit(X).specification_
    assert first_difference(one, hadamard) == "projection"
    assert first_difference(one, RBFSampler().fit(X)) == "class"
    other = pickle.loads(pickle.dumps(one))
    assert one == other
    assert hash(one) == hash(other)
    assert one != hadamard
    assert first_difference(one, other) is None
    wider = replace(one, kernel=Gaussian(3.003))
    assert first_difference(one, wider) == "kernel.length_scale"
    pipelines = [make_pipeline(StandardScaler(), RBFSampler(random_state=s)).fit(X) for s in (0, 1)]
    assert first_difference(pipelines[0], pickle.loads(pickle.dumps(pipelines[0]))) is None
    assert "random_weights_" in first_difference(*pipelines)


def test_maps_that_cannot_be_compared_differ():
    X, y = regression()
    models = [KernelRegressor(FunctionTransformer(lambda X, k=k: k * X)).fit(X, y) for k in (1, 2)]
    with pytest.raises(ValueError, match="feature maps differ"):
        models[0].merge(models[1])


def test_a_frozen_map_equals_the_same_map():
    X, y = regression()
    free = KernelRegressor(fixed_map()).fit(X[:150], y[:150])
    frozen = KernelRegressor(FrozenEstimator(fixed_map().fit(X))).fit(X[150:], y[150:])
    same_predictions(free.merge(frozen), KernelRegressor(fixed_map()).fit(X, y), X)


def test_labels_of_different_kinds_do_not_merge():
    X, y = classification()
    numbers = KernelClassifier(fixed_map()).fit(X, y)
    strings = KernelClassifier(fixed_map()).fit(X, y.astype(str))
    with pytest.raises(ValueError, match=r"one has numbers.*\[0, 1, 2\] and \['0', '1', '2'\]"):
        numbers.merge(strings)
    assert numbers.classes_.dtype.kind == "i"


def test_one_penalty_may_come_as_an_array_without_axes():
    X, y = regression()
    models = [KernelRegressor(fixed_map(), alpha=a).fit(X, y) for a in (2.0, np.array(2.0))]
    assert models[0].alpha_ == models[1].alpha_ == 2.0
    several = KernelRegressor(fixed_map(), alpha=(2.0, 3.0)).fit(X, y)
    assert several.alpha_ in (2.0, 3.0)


def test_no_rows_get_a_sentence():
    X, y = regression()
    model = KernelRegressor(fixed_map()).fit(pd.DataFrame(X), y)
    for call in (model.predict, lambda X: model.fit(X, y), lambda X: model.partial_fit(X, y)):
        with pytest.raises(ValueError, match="0 sample"):
            call(pd.DataFrame(X[:0]))


def test_singular_equations_are_mentioned_once():
    X, y = regression()
    model = KernelRegressor(FunctionTransformer(lambda X: np.hstack([X, X])), alpha=0.0)
    with pytest.warns(ConvergenceWarning, match="singular"):
        model.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X, return_std=True)


def test_weights_equal_repeated_rows():
    X, y = regression()
    repeats = np.random.default_rng(1).integers(0, 4, 300)
    weighted = KernelRegressor(fixed_map()).fit(X, y, repeats)
    repeated = KernelRegressor(fixed_map()).fit(np.repeat(X, repeats, 0), np.repeat(y, repeats))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-5)
    std, repeated_std = (m.predict(X, return_std=True)[1] for m in (weighted, repeated))
    np.testing.assert_allclose(std, repeated_std, rtol=1e-5)
    labels = classification()[1]
    weighted = KernelClassifier(fixed_map()).fit(X, labels, repeats)
    repeated = KernelClassifier(fixed_map()).fit(
        np.repeat(X, repeats, 0), np.repeat(labels, repeats)
    )
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-5
    )


# ---------------------------------------------------------------- codes


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_codes_equal_a_model_for_every_bit(fit_intercept):
    X, y = classification(n_classes=5)
    model = KernelClassifier(
        fixed_map(), alpha=0.1, code="ecoc", code_length=30, random_state=1,
        fit_intercept=fit_intercept,
    ).fit(X, NAMES[y])  # fmt: skip
    assert model.code_.shape == (5, 30)
    assert model.statistics_.n_targets == 5
    code = OutputCode(model.code_)
    bits = model.code_[np.searchsorted(model.classes_, NAMES[y])].astype(float)
    for_bits = KernelRegressor(fixed_map(), alpha=0.1, fit_intercept=fit_intercept).fit(X, bits)
    outputs = for_bits.predict(X)
    np.testing.assert_allclose(model.decision_function(X), code.scores(outputs), atol=1e-9)
    assert np.array_equal(model.predict(X), model.classes_[code.decode(outputs)])
    model.set_params(decoding="hamming")
    scores = model.decision_function(X)
    assert np.abs(scores - code.scores(outputs, "hamming")).max() < 0.5 / 30
    assert np.array_equal(model.predict(X), model.classes_[code.decode(outputs, "hamming")])


def test_hadamard_and_given_codes():
    X, y = classification(n_classes=5)
    model = KernelClassifier(fixed_map(), code="hadamard").fit(X, y)
    assert np.array_equal(model.code_, OutputCode.hadamard(5).codewords)
    given = KernelClassifier(fixed_map(), code=(model.code_ > 0).tolist()).fit(X, y)
    assert np.array_equal(given.decision_function(X), model.decision_function(X))
    assert model.score(X, y) > 0.7
    two = KernelClassifier(fixed_map(), code="ecoc").fit(X, y > 1)
    assert two.decision_function(X).shape == (300,)
    assert np.array_equal(two.predict(X), two.decision_function(X) > 0)


# ---------------------------------------------------------------- kinds of input


def test_labels_may_be_strings_and_objects():
    X, y = classification()
    for labels in (NAMES[y], NAMES[y].astype(object), pd.Series(NAMES[y]), NAMES[y].tolist()):
        model = KernelClassifier(fixed_map()).fit(X, labels)
        assert model.classes_.tolist() == sorted(NAMES[:3])
        assert model.score(X, labels) > 0.8
        assert model.predictor()(X[0]) == model.predict(X[:1])[0]


def test_columns_are_found_by_name():
    X, y = regression()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = KernelRegressor(fixed_map()).fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_allclose(
        model.predict(frame), KernelRegressor(fixed_map()).fit(X, y).predict(X)
    )
    assert np.array_equal(model.predict(frame[list("bdca")]), model.predict(frame))
    with pytest.raises(ValueError, match=r"columns are missing: a\. There are z, b, c, d\."):
        model.partial_fit(frame.rename(columns={"a": "z"}), y)
    assert model.predictor()(X[0]) == pytest.approx(model.predict(frame[:1])[0])
    with pytest.raises(ValueError, match="different columns"):
        model.merge(KernelRegressor(fixed_map()).fit(X, y))


def test_frames_of_mixed_types_go_through_pipelines():
    X, y = regression()
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    frame["c"] = NAMES[classification()[1]]
    columns = make_column_transformer((StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["c"]))
    model = KernelRegressor(make_pipeline(columns, fixed_map(20))).fit(frame, y)
    assert model.predict(frame).shape == (300,)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix])
def test_sparse_rows_equal_dense_ones(container):
    X, y = regression()
    X[np.random.default_rng(1).random(X.shape) < 0.7] = 0
    dense = KernelRegressor(fixed_map()).fit(X, y)
    sparse = KernelRegressor(fixed_map()).fit(container(X), y)
    np.testing.assert_allclose(sparse.predict(container(X)), dense.predict(X), rtol=1e-12)
    labels = classification()[1]
    sparse = KernelClassifier(fixed_map()).partial_fit(container(X), labels, [0, 1, 2])
    dense = KernelClassifier(fixed_map()).fit(X, labels)
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), rtol=1e-9)


def test_any_transformer_is_a_map():
    X, y = regression()
    for feature_map in (
        RBFSampler(n_components=30, random_state=0),
        RBFSampler(n_components=30, random_state=0).set_output(transform="pandas"),
        StandardScaler(),
        make_pipeline(StandardScaler(), fixed_map()),
        OneHotEncoder(handle_unknown="ignore"),  # sparse features
    ):
        model = KernelRegressor(feature_map, alpha=0.1).fit(X, y)
        Z = model.feature_map_.transform(X)
        Z = Z.toarray() if sp.issparse(Z) else np.asarray(Z)
        np.testing.assert_allclose(
            model.predict(X), Ridge(alpha=0.1).fit(Z, y).predict(Z), rtol=1e-6
        )


class Compressed(TransformerMixin, BaseEstimator):
    """A user's map that implements the protocol: linear in the features of another one."""

    def fit(self, X, y=None):
        self.base_ = fixed_map().fit(X)
        self.n_features_in_ = X.shape[1]
        self.basis_ = np.random.default_rng(0).normal(size=(40, 10))
        self.n_features_out_ = 10
        return self

    def transform(self, X):
        return self.base_.transform(X) @ self.basis_

    def rows(self, X):
        return self.base_.rows(X)

    def operator(self, rows):
        product = matrix_product(self.basis_, rows.dtype)
        return chain(self.base_.operator(rows), product, matrix=self.basis_)

    def overflow(self, rows):
        return self.base_.overflow(rows)

    def for_inference(self):
        return self

    def identity(self):
        return self.base_.identity(), self.basis_


@pytest.mark.parametrize("frozen", [True, False])
def test_maps_of_users_take_part_by_the_protocol_and_collapse(frozen):
    X, y = regression()
    feature_map = FrozenEstimator(Compressed().fit(X)) if frozen else Compressed()
    assert isinstance(Compressed().fit(X), FittedMap)
    model = KernelRegressor(feature_map, alpha=1.0).fit(X, y)
    assert model.feature_weights_.shape == (10,)
    Z = model.feature_map_.transform(X)
    expected = Z @ model.feature_weights_ + model.intercept_
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-9)
    np.testing.assert_allclose(model.predictor()(X), expected, rtol=1e-9)
    operator = thawed(model.feature_map_).operator(X)
    operator, weights = operator.collapse(model.feature_weights_[:, None])
    assert operator.n_features == 40
    assert weights.shape == (40, 1)
    labels = classification()[1]
    model = KernelClassifier(feature_map).fit(X, labels)
    np.testing.assert_allclose(
        model.predictor(scores=True)(X), model.decision_function(X), rtol=1e-9
    )
    for compact in (CRAFTMap(Compressed(), 5), TEFM(Compressed(), 5)):
        assert compact.fit(X).transform(X).shape == (300, 5)


@pytest.mark.parametrize(
    "feature_map",
    [
        TEFM(Gaussian(3.0), 12, random_state=0),
        TEFM(Fastfood(Gaussian(3.0), 40), 12, method="srht", random_state=0),
        CRAFTMap(Polynomial(2), 30, random_state=0),
    ],
    ids=lambda m: f"{type(m).__name__} {m.get_params().get('method', '')}",
)
def test_compact_maps(feature_map):
    X, y = regression()
    model = KernelRegressor(feature_map, alpha=1.0).fit(X, y)
    Z = model.feature_map_.transform(X)
    expected = Ridge(alpha=1.0).fit(Z, y).predict(Z)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6)
    np.testing.assert_allclose(model.predictor()(X), expected, rtol=1e-6)
    frozen = FrozenEstimator(clone(feature_map).fit(X))
    halves = [
        KernelRegressor(frozen, alpha=1.0).fit(X[part], y[part])
        for part in (slice(0, 100), slice(100, None))
    ]
    merged = halves[0].merge(halves[1])
    np.testing.assert_allclose(merged.predict(X), expected, rtol=1e-6)


# ---------------------------------------------------------------- predictor

UNIT = Fastfood(Exponential(), 24, random_state=0)
MAPS = [
    fixed_map(),
    fixed_map(41),
    fixed_map(features="offset"),
    fixed_map(features="local"),
    fixed_map(projection="hadamard"),
    fixed_map(projection="fourier"),
    Fastfood(Gaussian([1.0, 2.0, 3.0, 4.0]), 24, random_state=0),
    Fastfood(Polynomial(2), 24, random_state=0),
    UNIT,
    RandomKitchenSinks(Gaussian(3.0), 24, random_state=0),
    RandomMaclaurin(Polynomial(2), 24, random_state=0),
    RandomMaclaurin(Exponential(), 24, h01=True, projection="rademacher", random_state=0),
    TensorSketch(Polynomial(2), 24, random_state=0),
    RBFSampler(n_components=24, random_state=0),
]


@pytest.mark.parametrize("feature_map", MAPS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictors_predict_as_predict_does(feature_map, dtype):
    X, y = regression()
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)
    tolerance = 1e-4 if dtype == np.float32 else 1e-9
    model = KernelRegressor(feature_map, alpha=0.1).fit(X, y)
    predict = model.predictor()
    expected = model.predict(X)
    np.testing.assert_allclose(predict(X), expected, atol=tolerance)
    np.testing.assert_allclose([predict(x) for x in X[:5]], expected[:5], atol=tolerance)
    np.testing.assert_allclose(predict(X[0].tolist()), expected[0], atol=tolerance)
    assert np.ndim(predict(X[0])) == 0
    if dtype == np.float64:
        np.testing.assert_allclose(model.predictor(dtype=np.float32)(X), expected, atol=1e-4)
    strided = np.repeat(X, 2, axis=1)[:, ::2]
    assert np.array_equal(predict(strided), predict(X))


def test_predictors_of_several_targets_and_of_classes():
    X, Y = regression(k=2)
    model = KernelRegressor(FrozenEstimator(fixed_map().fit(X))).fit(X, Y)
    predict = model.predictor()
    np.testing.assert_allclose(predict(X[3]), model.predict(X)[3])
    assert predict(X[3]).shape == (2,)
    kept = predict(X[3])
    copy = kept.copy()
    predict(X[4])
    assert np.array_equal(kept, copy)
    X, y = classification(n_classes=5)
    for options in ({}, {"code": "ecoc"}, {"code": "ecoc", "decoding": "hamming"}):
        model = KernelClassifier(fixed_map(), random_state=0, **options).fit(X, NAMES[y])
        predict, score = model.predictor(), model.predictor(scores=True)
        assert np.array_equal(predict(X), model.predict(X))
        assert [predict(x) for x in X[:9]] == model.predict(X[:9]).tolist()
        np.testing.assert_allclose(score(X), model.decision_function(X), atol=1e-9)
        np.testing.assert_allclose(score(X[0]), model.decision_function(X[:1])[0], atol=1e-9)


@pytest.mark.slow
def test_a_predictor_is_safe_to_share_by_threads():
    X, y = classification(1000, n_classes=5)
    X = X.astype(np.float32)
    model = KernelClassifier(fixed_map(256)).fit(X, NAMES[y])
    predict = model.predictor()
    expected = model.predict(X)
    wrong = []

    def work(first):
        order = np.random.default_rng(first).permutation(len(X))
        for _ in range(125):
            wrong.extend(i for i in order if predict(X[i]) != expected[i])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong  # of a million predictions


def test_predictions_in_one_precision_do_not_change_those_in_the_other():
    X, y = regression()
    fitted = KernelRegressor(fixed_map(), alpha=1e-6).fit(X, y)
    fresh = {dtype: deepcopy(fitted).outputs(X.astype(dtype)) for dtype in ("f4", "f8")}
    assert not np.array_equal(fresh["f4"][0], fresh["f8"][0])
    for dtype in ("f8", "f4", "f4", "f8", "f8", "f4"):
        values, precision = fitted.outputs(X.astype(dtype))
        assert precision == fresh[dtype][1] == np.dtype(dtype)
        assert np.array_equal(values, fresh[dtype][0])


def test_a_linear_model_serves_the_map_that_it_is_given():
    X, _ = regression()
    coef = np.random.default_rng(0).normal(size=(40, 2))
    model = LinearModel(coef, np.array([1.0, 2.0]), 1.0, 0.0, True, False, 0)
    maps = [Fastfood(Gaussian(3.0), 40, random_state=seed).fit(X) for seed in (0, 1)]
    out = np.empty((300, 2))
    for feature_map in (maps[0], maps[1], maps[0]):
        assert model.predict(feature_map, X, out)
        np.testing.assert_allclose(out, feature_map.transform(X) @ coef + [1.0, 2.0], atol=1e-12)


def test_predictors_can_be_pickled():
    X, y = regression(k=2)
    labels = NAMES[classification()[1]]
    for predict in (
        KernelRegressor(TEFM(Gaussian(3.0), 12, random_state=0)).fit(X, y).predictor(),
        KernelRegressor(make_pipeline(StandardScaler(), fixed_map())).fit(X, y).predictor(),
        KernelClassifier(fixed_map(), code="ecoc").fit(X, labels).predictor(),
    ):
        assert np.array_equal(pickle.loads(pickle.dumps(predict))(X), predict(X))


@pytest.mark.parametrize(
    "feature_map", [*(m for m in MAPS if m is not UNIT), TEFM(Gaussian(3.0), 9)], ids=str
)
@pytest.mark.parametrize("value", [np.inf, pytest.param(-np.inf, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictors_refuse_rows_that_are_not_finite(feature_map, value, dtype):
    X, y = classification()
    X = (X / 4).astype(dtype)
    predict = KernelClassifier(feature_map).fit(X, y).predictor()
    missing = np.where(np.arange(4) == 1, np.nan, X[0]).astype(dtype)
    filled = np.where(np.arange(4) == 1, np.median(X[:, 1]), X[0]).astype(dtype)
    if not isinstance(feature_map, RBFSampler):
        assert predict(missing) == predict(filled)  # the median stands for it
    for column in range(4):
        bad = X[0].copy()
        bad[column] = value
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            predict(bad)
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            predict(np.stack([X[1], bad, X[2]]))


def test_large_targets_keep_their_digits():
    X, y = regression()
    X = X.astype(np.float32)
    plain = KernelRegressor(fixed_map(), alpha=0.1).fit(X, y).predict(X)
    model = KernelRegressor(fixed_map(), alpha=0.1).fit(X, y + 1e8)
    np.testing.assert_allclose(model.predict(X) - 1e8, plain, atol=1e-4)
    np.testing.assert_allclose(model.predictor()(X) - 1e8, plain, atol=1e-4)


def test_memory_is_checked_before_it_is_taken():
    X, y = regression()
    with pytest.raises(MemoryError, match=r"10000000 features would take 400 TB of memory"):
        KernelRegressor(Fastfood(Gaussian(1.0), 10**7), solver="onepass").fit(X, y)
    with pytest.raises(MemoryError, match=r"1000000000 features in many passes would take \d+ GB"):
        KernelRegressor(Fastfood(Gaussian(1.0), 10**9)).fit(X, y)


def test_predictors_refuse_other_shapes():
    X, y = regression()
    model = KernelRegressor(fixed_map()).fit(X, y)
    predict = model.predictor()
    for bad in (X[0, :3], X[:, :3], X[None], X[:0], 3.0):
        with pytest.raises(ValueError, match=r"must have 4 columns, .*; got an array of shape"):
            predict(bad)
    with pytest.raises(ValueError, match="dtype must be float32 or float64; got int64"):
        model.predictor(dtype=np.int64)


def test_predictors_refuse_what_is_not_an_array_of_numbers():
    X, y = regression()
    dates = np.array(["2020", "2021", "2022", "2023"], dtype="M8[D]")
    stamp = pd.Timestamp("2020-01-01")
    for dtype in (np.float32, np.float64):
        predict = KernelRegressor(fixed_map()).fit(X, y).predictor(dtype=dtype)
        for bad, sentence in [
            (np.ma.masked_array(X[0].astype(dtype), [True, False, False, False]), "Masked arrays"),
            (np.ma.masked_array(X.astype(dtype)), "Masked arrays"),
            (dates, "dates or times.*is not a number"),
            (dates - dates[0], "dates or times.*is not a number"),
            (list(dates), "dates or times.*is not a number"),
            ([1.0, 2.0, 3.0, stamp], "dates or times.*is not a number"),
            (pd.Series([1.0, 2.0, 3.0, stamp]), "dates or times.*is not a number"),
            (pd.DataFrame({"a": dates, "b": 1.0, "c": 1.0, "d": 1.0}), "dates or times"),
            (sp.csr_array(X), "takes dense rows.*use predict"),
            (sp.coo_matrix(X[:1]), "takes dense rows.*use predict"),
            (X[0] + 1j, "the array has complex numbers"),
        ]:
            with pytest.raises(ValueError, match=sentence):
                predict(bad)
        expected = predict(X[0].astype(dtype))
        for good in (X[0].tolist(), tuple(X[0]), pd.Series(X[0]), X[0].astype(object), X[:1][0]):
            assert predict(good) == expected


def test_predictors_find_columns_by_name():
    X, y = regression()
    frame = pd.DataFrame(X, columns=list("abcd"))
    predict = KernelRegressor(fixed_map()).fit(frame, y).predictor()
    for predictor in (predict, pickle.loads(pickle.dumps(predict))):
        assert np.array_equal(predictor(frame), predictor(X))
        assert predictor(frame.iloc[3]) == predictor(X[3])
        assert predictor(pd.Series(X[3])) == predictor(X[3])
        mixed = frame.assign(e="other")[list("ebdac")]
        assert np.array_equal(predictor(mixed), predictor(X))
        for row in (mixed.iloc[3], mixed.iloc[3].to_dict()):
            assert predictor(row) == predictor(X[3])
        for bad in (frame[list("bcd")], frame.iloc[0][list("bcd")], frame[list("bcd")].to_dict()):
            with pytest.raises(ValueError, match=r"columns are missing: a\. There are b, c, d\."):
                predictor(bad)


# ---------------------------------------------------------------- sentences


class Halves(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X[::2]


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (
            KernelClassifier("rbf"),
            "feature_map must be 'auto', a feature map of kitchenette.*got 'rbf'",
        ),
        (KernelClassifier(Fastfood), r"must be an object, not a class: write Fastfood\(\)"),
        (KernelClassifier(Gaussian()), r"not a kernel: write KernelClassifier\(Fastfood\(Gaussian"),
        (
            KernelClassifier(Halves()),
            r"a row of features for each row.*\(150, 4\) instead of \(300, 4\)",
        ),
        (
            KernelClassifier(alpha="aic"),
            "alpha must be one of 'auto', 'gcv', 'evidence'; got 'aic'",
        ),
        (KernelClassifier(alpha=-1.0), "alpha must be finite and not negative; got -1.0"),
        (KernelClassifier(alpha=[1.0, np.nan]), "alpha must be finite and not negative"),
        (KernelClassifier(alpha=[]), r"alpha must be a number, a list.*; got \[\]"),
        (KernelClassifier(alpha=True), "alpha must be a number, a list.*; got True"),
        (KernelClassifier(alpha=None), "alpha must be a number, a list.*; got None"),
        (KernelClassifier(alpha=["1"]), r"alpha must be a number, a list.*; got \['1'\]"),
        (KernelClassifier(alpha=[[1.0], [1.0, 2.0]]), "alpha must be a number, a list"),
        (KernelClassifier(fit_intercept="no"), "fit_intercept must be True or False; got 'no'"),
        (KernelClassifier(code="dense"), "code must be one of 'onehot', 'ecoc', 'hadamard'"),
        (KernelClassifier(code_length=5), "code_length=5 is for code='ecoc'"),
        (KernelClassifier(code="ecoc", code_length=0), "code_length must be a whole number"),
        (KernelClassifier(code="ecoc", code_length=1), "3 classes need at least 2 bits"),
        (KernelClassifier(code=np.eye(4)), "code has 4 rows, but there are 3 classes"),
        (KernelClassifier(code=np.ones((3, 4))), "same codeword"),
        (KernelClassifier(decoding="hard"), "decoding must be one of 'soft', 'hamming'"),
        (KernelClassifier(Fastfood(n_components=0)), "n_components must be a whole number"),
    ],
)
def test_bad_parameters_get_a_sentence(model, sentence):
    X, y = classification()
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_bad_targets_get_a_sentence():
    X, y = classification()
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        KernelClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="classes must not contain NaN"):
        KernelClassifier().partial_fit(X, y, [0, 1, np.nan])
    with pytest.raises(ValueError, match="classes cannot be sorted"):
        KernelClassifier().partial_fit(X, y, np.array([0, "a"], dtype=object))
    with pytest.raises(ValueError, match="at least two classes"):
        KernelClassifier().fit(X, np.zeros(300))
    with pytest.raises(ValueError, match="Unknown label type"):
        KernelClassifier().fit(X, X[:, 0])
    model = KernelClassifier(fixed_map()).partial_fit(X, y, [0, 1, 2])
    with pytest.raises(ValueError, match=r"labels that are not among the classes: \[7\]"):
        model.partial_fit(X, np.full(300, 7))
    with pytest.raises(ValueError, match="is not the same as in the first call"):
        model.partial_fit(X, y, [0, 1])
    with pytest.raises(ValueError, match="merges with models of its class; got KernelRegressor"):
        model.merge(KernelRegressor())
    with pytest.raises(NotFittedError):
        model.merge(KernelClassifier())
    with pytest.raises(NotFittedError):
        KernelClassifier().predictor()
    X, y = regression()
    model = KernelRegressor(fixed_map()).fit(X, y)
    with pytest.raises(ValueError, match="y must have one axis, as before; got"):
        model.partial_fit(X, y[:, None])
    with pytest.raises(ValueError, match="one was given vectors"):
        model.merge(KernelRegressor(fixed_map()).fit(X[1:], y[1:, None]))
    with pytest.raises(ValueError, match="requires y to be passed"):
        KernelRegressor().fit(X, None)
    with pytest.raises(ValueError, match="Y must have 2 columns"):
        KernelRegressor(fixed_map()).fit(X, np.c_[y, y]).partial_fit(X, np.c_[y, y, y])
    assert not hasattr(KernelRegressor(), "feature_weights_")


def test_after_an_error_the_model_is_as_it_was(monkeypatch):
    monkeypatch.setattr(model_module, "MOST_ROWS", 64)
    monkeypatch.setattr(partial, "MOST_ROWS", 64)
    X, y = regression()
    bad = X.copy()
    bad[250] = np.inf  # in a late block
    model = KernelRegressor(fixed_map()).fit(X, y)
    before, gram = model.predict(X), model.statistics_.gram.values.copy()
    for learn in (model.partial_fit, model.fit):
        with pytest.raises(ValueError, match="infinity"):
            learn(bad, y)
    with pytest.raises(ValueError, match="sample_weight"):
        model.partial_fit(X, y, -np.ones(300))
    assert model.statistics_.n_rows == 300
    assert np.array_equal(model.statistics_.gram.values, gram)
    assert np.array_equal(model.predict(X), before)


# ---------------------------------------------------------------- pickles, progress, memory


@pytest.mark.parametrize("copied", [lambda m: pickle.loads(pickle.dumps(m)), deepcopy, copy])
def test_copies_know_whether_their_weights_are_up_to_date(copied):
    X, y = regression()
    model = KernelRegressor(fixed_map(), alpha=0.1).fit(X[:100], y[:100])
    model.partial_fit(X[100:], y[100:] + 3)
    stale = copied(model)
    assert not hasattr(stale, "feature_weights_")
    assert np.array_equal(stale.predict(X), model.predict(X))
    assert hasattr(copied(model), "feature_weights_")
    assert np.array_equal(copied(model).predict(X), model.predict(X))


def test_a_model_keeps_the_map_that_it_learned_with():
    X, y = regression()
    tefm = TEFM(Gaussian(3.0), 12, random_state=0).fit(X)
    model = KernelRegressor(FrozenEstimator(tefm), alpha=0.1).fit(X, y)
    before = model.predict(X)
    tefm.partial_fit(5 * X + 3)
    assert np.array_equal(model.predict(X), before)
    with pytest.raises(ValueError, match="feature maps differ"):
        model.merge(KernelRegressor(FrozenEstimator(tefm), alpha=0.1).fit(X, y))


def test_rows_of_weight_zero_are_passed_over():
    X, y = regression()
    far, targets = np.vstack([X / 4, np.full((1, 4), 50.0)]), np.append(y, 0.0)
    weights = np.append(np.ones(300), 0.0)
    for feature_map in (
        RandomMaclaurin(Exponential(), 24, random_state=0),
        TEFM(Gaussian(3.0), 12, random_state=0),
    ):
        model = KernelRegressor(feature_map, alpha=0.1).fit(far, targets, sample_weight=weights)
        same_rows = KernelRegressor(feature_map, alpha=0.1).fit(X / 4, y)
        np.testing.assert_allclose(model.predict(X / 4), same_rows.predict(X / 4), rtol=1e-9)


def test_precision_grows_with_later_targets():
    X, y = regression()
    X, single = X.astype(np.float32), y.astype(np.float32)
    model = KernelRegressor(fixed_map()).partial_fit(X, single)
    assert model.predict(X).dtype == np.float32
    assert model.partial_fit(X, 1e8 + y).predict(X).dtype == np.float64


def test_frames_pass_through_maps_of_other_packages():
    X, y = regression()
    frame = pd.DataFrame(X, columns=list("abcd"))
    for feature_map in (
        TEFM(RBFSampler(n_components=30, random_state=0), 8, random_state=0),
        CRAFTMap(RBFSampler(n_components=30, random_state=0), 8, random_state=0),
        make_pipeline(StandardScaler(), fixed_map()),
    ):
        model = KernelRegressor(feature_map, alpha=0.1).fit(frame, y)
        np.testing.assert_allclose(model.predictor()(X), model.predict(frame), rtol=1e-9)


def test_pickles_have_all_but_the_factor():
    X, y = regression()
    model = KernelRegressor(fixed_map()).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert model.model_.computed.posterior is not None
    copy = pickle.loads(pickle.dumps(model))
    assert copy.model_.computed.posterior is None
    assert np.array_equal(copy.predict(X), mean)
    np.testing.assert_allclose(copy.predict(X, return_std=True)[1], std)
    unfinished = pickle.loads(pickle.dumps(KernelRegressor(fixed_map()).partial_fit(X, y)))
    assert not hasattr(unfinished, "feature_weights_")
    np.testing.assert_allclose(unfinished.predict(X), mean)


@pytest.mark.parametrize("installed", [True, False])
def test_progress_on_request(installed, monkeypatch, capsys):
    X, y = regression()
    plain = builtins.__import__

    def without_rich(name, *args, **options):
        if name.startswith("rich"):
            raise ImportError(name)
        return plain(name, *args, **options)

    if not installed:
        monkeypatch.setattr(builtins, "__import__", without_rich)
    monkeypatch.setattr(partial, "MOST_ROWS", 50)
    KernelRegressor(fixed_map(), verbose=True).fit(X, y)
    printed = capsys.readouterr().out
    assert "KernelRegressor" in printed
    assert ("100%" in printed) if installed else ("300 of 300 rows" in printed)
    KernelRegressor(fixed_map()).fit(X, y)
    assert not capsys.readouterr().out


MEASURE = (
    SOURCE
    + """
import numpy as np
from kitchenette import Fastfood, KernelClassifier
from kitchenette.kernels import Gaussian

X = np.random.default_rng(0).normal(size=(100_000, 16)).astype(np.float32)
y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0)
model = KernelClassifier(Fastfood(Gaussian(4.0), 1024, random_state=0), alpha=1.0)
model.fit(X[:300], y[:300]).predict(X[:300])
before = peak()
model.fit(X, y).predict(X)
print(peak() - before)
"""
)


@pytest.mark.slow
def test_fitting_takes_the_memory_of_the_gram_matrix_and_a_few_blocks():
    pytest.importorskip("resource", reason="peak memory is read with resource, on Unix only")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
    )
    # The features of all rows have 410 MB; the Gram matrix 4, and its factor, which the
    # first model needed, too; a block 8, of which there are two; labels and weights 1. The 2000
    # validation rows have 8, and 32 while the penalty is chosen, in float64 and twice.
    assert int(done.stdout) < 88 * 2**20


def test_no_warnings_for_plain_use():
    X, y = classification()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelClassifier(fixed_map()).fit(pd.DataFrame(X), y).predict(pd.DataFrame(X))


def unaligned(values):
    """A copy that begins at an odd address, as fields of records and parts of files do."""
    values = np.ascontiguousarray(values)
    memory = np.empty(values.nbytes + 1, np.uint8)
    copied = np.frombuffer(memory[1:], values.dtype, values.size).reshape(values.shape)
    copied[...] = values
    assert not copied.flags.aligned
    return copied


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("solver", ["onepass", "iterative"])
def test_arrays_may_begin_at_any_address(solver, dtype):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(300, 4)).astype(dtype), rng.normal(size=(300, 2)).astype(dtype)
    weights = rng.uniform(1, 2, size=300).astype(dtype)
    for y in (Y, Y[:, 0]):
        model = KernelRegressor(fixed_map(), solver=solver)
        expected = model.fit(X, y, weights).predict(X)
        found = model.fit(unaligned(X), unaligned(y), unaligned(weights)).predict(unaligned(X))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    labels = (Y[:, 0] > 0).astype(np.int64)
    classifier = KernelClassifier(fixed_map(), solver=solver)
    expected = classifier.fit(X, labels).predict_proba(X)
    found = classifier.fit(unaligned(X), unaligned(labels)).predict_proba(unaligned(X))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_arrays_at_any_address_are_added_removed_and_chosen_on():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0]
    model = KernelRegressor(fixed_map()).partial_fit(unaligned(X), unaligned(y))
    model.partial_fit(unaligned(X[:50]), unaligned(y[:50]), unaligned(y[:50] ** 2))
    assert model.downdate(unaligned(X[50:]), unaligned(y[50:])).statistics_.n_rows == 100
    auto = AutoMap(16, random_state=0)
    chosen = auto.fit(unaligned(X), unaligned(y)).transform(X)
    np.testing.assert_array_equal(chosen, auto.fit(X, y).transform(X))
