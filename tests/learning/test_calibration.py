"""Probabilities of classes."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import AdaBoostClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.class_weight import compute_sample_weight

import kitchenette
from kitchenette import Fastfood, KernelClassifier, RandomMaclaurin
from kitchenette.data import source
from kitchenette.files.budget import Budget
from kitchenette.files.fields import from_fields
from kitchenette.kernels import Polynomial
from kitchenette.learning.calibration import (
    PRIOR_SLOPE,
    Calibration,
    _increasing,
    calibrated_losses,
)
from kitchenette.training import combine, finish, partial, prepare


def drawn(slope, biases, n_rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_rows, len(biases)))
    probabilities = softmax(slope * scores + biases, axis=1)
    labels = (probabilities.cumsum(axis=1) < rng.uniform(size=(n_rows, 1))).sum(axis=1)
    return scores, labels, probabilities


def test_the_softmax_is_found():
    # Standard errors of slope and biases are about 0.05.
    biases = np.array([0.5, -0.5, 0.0])
    scores, labels, _ = drawn(3.0, biases)
    found = Calibration._softmax(scores, labels, np.ones(len(labels)))
    assert found.slope == pytest.approx(3.0, abs=0.25)
    assert found.biases - found.biases.mean() == pytest.approx(biases, abs=0.25)


@pytest.mark.parametrize("slope", [0.0, 0.02, 3.0, 500.0, np.inf])
def test_calibrated_losses_are_those_of_the_best_slope(slope):
    scores, labels, _ = drawn(min(slope, 3.0), np.zeros(3), 300)
    scores *= 1.0 if slope in (0.0, np.inf) else 3.0 / slope
    if slope == np.inf:  # labels that the scores tell without a mistake
        labels = scores.argmax(axis=1)
    weights = np.random.default_rng(1).uniform(0.1, 2.0, 300)

    def losses(logarithm):
        return -log_softmax(np.exp(logarithm) * scores, axis=1)[np.arange(300), labels]

    def objective(logarithm):
        prior = (logarithm - np.log(PRIOR_SLOPE)) ** 2 / 2 / 300
        return np.average(losses(logarithm), weights=weights) + prior

    start = np.linspace(-15, 15, 61)[np.argmin([objective(x) for x in np.linspace(-15, 15, 61)])]
    best = minimize_scalar(objective, bounds=(start - 1, start + 1), options={"xatol": 1e-9}).x
    found = calibrated_losses(scores, labels, weights)
    assert np.allclose(found, losses(best), rtol=1e-3, atol=1e-6)
    for factor in (1e-3, 1e3):
        assert np.array_equal(found, calibrated_losses(scores, labels, factor * weights)) or (
            np.allclose(found, calibrated_losses(scores, labels, factor * weights), rtol=1e-9)
        )


def test_one_mistake_does_not_move_the_biases():
    # 2000 rows whose classes the scores tell apart, and one row that is wrong by far. With a prior
    # of variance one the largest bias is above 0.4.
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 2000)
    scores = 2 * np.eye(3)[labels] - 1 + 0.2 * rng.normal(size=(2000, 3))
    labels[0] = (labels[0] + 1) % 3
    found = Calibration._softmax(scores, labels, np.ones(2000))
    assert np.abs(found.biases).max() < 0.1


def test_rare_classes_are_rare_also_without_an_intercept():
    # Scores without an intercept do not know that one row of 20 is of the second class. With the
    # narrow prior of scores that do, the mean probability is 0.37.
    rng = np.random.default_rng(0)

    def rows(n):
        y = (rng.random(n) < 0.05).astype(int)
        return rng.normal(size=(n, 3)) + np.outer(1.2 * y, [1, 0, 0]), y

    linear = RandomMaclaurin(Polynomial(1, 0.0), 16, random_state=0)
    model = KernelClassifier(linear, fit_intercept=False, random_state=0).fit(*rows(150))
    assert model.predict_proba(rows(4000)[0])[:, 1].mean() < 0.31


def test_isotonic_wins_where_the_softmax_is_wrong():
    rng = np.random.default_rng(0)
    score = rng.uniform(-1, 1, size=4000)
    truth = np.where(score > 0.5, 0.7, 0.2)
    labels = (rng.uniform(size=4000) < truth).astype(int)
    scores = np.stack([-score, score], axis=1)
    found = Calibration.fit(scores, labels, np.ones(4000))
    assert len(found.curves) == 2
    inside = np.abs(score - 0.5) > 0.1
    raw = np.interp(score, *found.curves[1])
    assert np.abs(raw - truth)[inside].mean() < 0.05


@pytest.mark.parametrize("n_rows", [1, 2, 3, 50, 1000])
@pytest.mark.parametrize("tied", [False, True])
def test_curves_are_those_of_scikit_learns_isotonic_regression(n_rows, tied):
    rng = np.random.default_rng(n_rows)
    scores = rng.normal(size=n_rows)
    scores = scores.round(1) if tied else scores
    positive = rng.uniform(size=n_rows) < expit(scores)
    weights = rng.choice([0.0, 0.3, 1.0, 2.0], size=n_rows)
    weights[0] = 1
    peer = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    peer.fit(scores, positive, weights)
    found = _increasing(scores, positive, weights)
    np.testing.assert_allclose(found[0], peer.X_thresholds_)
    np.testing.assert_allclose(found[1], peer.y_thresholds_, atol=1e-12)


def test_rows_without_weight_have_no_curve():
    assert _increasing(np.arange(3.0), np.array([True, False, True]), np.zeros(3)).shape == (2, 0)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_probabilities_add_up_and_agree_with_the_scores(n_classes):
    scores, labels, _ = drawn(1.5, np.linspace(-1, 1, n_classes))
    plain = Calibration._softmax(scores, labels, np.ones(len(labels)))
    for found in (plain, plain._isotonic(scores, labels, np.ones(len(labels)))):
        p = found(scores)
        assert np.allclose(p.sum(axis=1), 1)
        assert p.min() > 0
        assert np.array_equal(p.argmax(axis=1), scores.argmax(axis=1))


def test_log_loss_is_that_of_cross_validated_calibration():
    X, y = make_classification(
        4000, 10, n_informative=6, n_classes=3, class_sep=0.7, random_state=0
    )
    feature_map = Fastfood(n_components=128, random_state=0)
    model = KernelClassifier(feature_map).fit(X[:2000], y[:2000])
    peer = CalibratedClassifierCV(KernelClassifier(feature_map), cv=5).fit(X[:2000], y[:2000])
    ours = log_loss(y[2000:], model.predict_proba(X[2000:]))
    assert ours < 1.03 * log_loss(y[2000:], peer.predict_proba(X[2000:]))


def test_a_class_without_validation_rows_has_a_probability():
    X, y = load_digits(return_X_y=True)
    rare = (y != 9) | (np.cumsum(y == 9) <= 2)
    model = KernelClassifier(Fastfood(n_components=128, random_state=0), validation_rows=100)
    p = model.fit(X[rare], y[rare]).predict_proba(X)
    assert np.all(p > 0)
    assert p[y == 9][:, 9].mean() > p[y != 9][:, 9].mean()


def test_few_rows_have_probabilities_too():
    model = KernelClassifier(random_state=0).fit([[0.0], [1.0], [0.1], [0.9]], ["a", "b"] * 2)
    p = model.predict_proba([[0.0], [1.0]])
    assert p[0, 0] > 0.5 > p[1, 0]
    assert np.allclose(np.exp(model.predict_log_proba([[0.0]])), p[:1])


def test_without_validation_rows_there_are_no_probabilities():
    model = KernelClassifier(validation_rows=0, random_state=0)
    for name in ("predict_proba", "predict_log_proba"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=name) as refused:
            getattr(model, name)
        reason = "validation_rows=0, because they are calibrated on these rows"
        assert reason in str(refused.value.__cause__)
        assert hasattr(model.set_params(validation_rows=20), name)
        assert "Parameters" in getattr(KernelClassifier, name).__doc__
        model.set_params(validation_rows=0)


@pytest.mark.parametrize("code", ["onehot", "ecoc", "hadamard"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_codes_have_probabilities(code, n_classes):
    X, y = load_digits(n_class=n_classes, return_X_y=True)
    model = KernelClassifier(Fastfood(n_components=64, random_state=0), code=code, random_state=0)
    p = model.fit(X, y).predict_proba(X)
    assert np.array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert log_loss(y, p) < 0.3


def test_probabilities_survive_files(tmp_path):
    X, y = load_digits(return_X_y=True)
    model = KernelClassifier(Fastfood(n_components=64, random_state=0)).fit(X, y)
    for small in (model, model.for_inference()):
        kitchenette.save(small, tmp_path / "model.safetensors")
        loaded = kitchenette.load(tmp_path / "model.safetensors")
        assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert loaded.validation_score_ == model.validation_score_


def test_what_needs_probabilities_works():
    X, y = load_digits(n_class=4, return_X_y=True)
    model = KernelClassifier(Fastfood(n_components=64, random_state=0))
    assert cross_val_score(model, X, y, scoring="neg_log_loss", cv=3).min() > -0.3
    probabilities = model.fit(X[:400], y[:400]).predict_proba(X[400:])
    assert roc_auc_score(y[400:], probabilities, multi_class="ovr") > 0.98
    voting = VotingClassifier([("a", model), ("b", model)], voting="soft").fit(X, y)
    assert voting.score(X, y) > 0.95
    partly = np.where(np.arange(len(y)) % 3 == 0, y, -1)
    assert SelfTrainingClassifier(model).fit(X, partly).score(X, y) > 0.95
    boosted = AdaBoostClassifier(model, n_estimators=3, random_state=0).fit(X, y)
    assert boosted.score(X, y) > 0.95


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"slope": -1.0}, "slope"),
        ({"biases": np.array([np.nan, 0.0])}, "biases"),
        ({"curves": [np.zeros((2, 1))]}, "as many as"),
        ({"curves": [np.zeros((1, 2)), np.zeros((2, 2))]}, "two rows"),
        ({"curves": [np.array([[1.0, 0.0], [0.0, 1.0]])] * 2}, "not decrease"),
        ({"curves": [np.array([[0.0, 1.0], [0.0, 2.0]])] * 2}, "probabilities"),
    ],
)
def test_files_are_checked(change, sentence):
    state = {"slope": 1.0, "biases": np.zeros(2), "curves": [], "floor": 0.0}
    from_fields(Calibration, dict(state), Budget(1e9, 1e9))
    with pytest.raises(ValueError, match=sentence):
        from_fields(Calibration, {**state, **change}, Budget(1e9, 1e9))


def test_class_weights_are_weights_of_rows():
    X, y = make_classification(600, 6, weights=[0.9], flip_y=0.1, random_state=0)
    feature_map = Fastfood(n_components=64, random_state=0)
    names = np.array(["no", "yes"])[y]
    weighted = KernelClassifier(feature_map, class_weight={"yes": 5.0}).fit(X, names)
    same = KernelClassifier(feature_map).fit(X, names, np.where(y == 1, 5.0, 1.0))
    assert np.allclose(weighted.decision_function(X), same.decision_function(X))
    stream = KernelClassifier(feature_map, class_weight={"yes": 5.0})
    for part in np.array_split(np.argsort(y, kind="stable"), 7):
        stream.partial_fit(X[part], names[part], classes=["no", "yes"])
    assert np.isfinite(stream.decision_function(X)).all()
    balanced = KernelClassifier(feature_map, class_weight="balanced").fit(X, names)
    plain = KernelClassifier(feature_map).fit(X, names)
    assert (balanced.predict(X) == "yes").mean() > (plain.predict(X) == "yes").mean()
    with pytest.raises(ValueError, match="not among the classes"):
        KernelClassifier(feature_map, class_weight={"maybe": 2.0}).fit(X, names)


def test_balanced_classes_in_streams_and_merges(tmp_path):
    X, y = make_classification(
        900, 6, n_classes=3, n_informative=4, weights=[0.7, 0.2], random_state=0
    )
    feature_map = FrozenEstimator(Fastfood(n_components=64, random_state=0).fit(X))

    def model():
        return KernelClassifier(feature_map, class_weight="balanced", validation_rows=200)

    whole = model().fit(X, y)
    factors = compute_sample_weight("balanced", y)
    same = KernelClassifier(feature_map, validation_rows=200).fit(X, y, factors)
    stream = model()
    for part in np.array_split(np.argsort(y, kind="stable"), 8):
        stream.partial_fit(X[part], y[part], classes=[0, 1, 2])
    merged = model().fit(X[y < 2], y[y < 2]).merge(model().fit(X[y > 0][::2], y[y > 0][::2]))
    merged.merge(model().fit(X[y > 0][1::2], y[y > 0][1::2])).downdate(X[y == 1], y[y == 1])
    kitchenette.save(stream, tmp_path / "model.safetensors")
    loaded = kitchenette.load(tmp_path / "model.safetensors")
    for other in (same, stream, merged, loaded):
        assert np.allclose(other.decision_function(X), whole.decision_function(X), atol=1e-6)
        assert np.allclose(other.predict_proba(X), whole.predict_proba(X), atol=1e-5)
    loaded.partial_fit(X[:50], y[:50])
    assert loaded.statistics_.n_rows == 950
    assert whole.for_inference().model_.partial is None
    with pytest.raises(ValueError, match="only one has class_weight"):
        same.merge(whole)
    with pytest.raises(ValueError, match="No row of class 2 was learned"):
        model().fit(X[y < 2], y[y < 2]).merge(
            model().partial_fit(X[:9], np.zeros(9, int), classes=[0, 1, 2])
        ).downdate(X[y == 2], y[y == 2])


def repeated_rows(discrete):
    """Rows with weights, some of them zero, and the same rows as often as they weigh."""
    X, y = make_classification(
        500, 4, n_classes=3, n_informative=4, n_redundant=0, weights=[0.7, 0.2], random_state=0
    )
    X = np.round(X) if discrete else X
    weights = np.random.default_rng(0).integers(0, 4, y.size)
    copies = np.repeat(np.arange(y.size), weights)
    return X, y, weights.astype(float), copies


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize(
    "options",
    [{}, {"alpha": "evidence"}, {"solver": "iterative", "alpha": 0.1}, {"loss": "logistic"}],
    ids=str,
)
def test_balanced_classes_with_weights_are_those_of_repeated_rows(options, discrete):
    X, y, weights, copies = repeated_rows(discrete)
    model = KernelClassifier(
        Fastfood(n_components=32, random_state=0), class_weight="balanced", **options
    )
    weighted = clone(model).fit(X, y, sample_weight=weights)
    repeated = clone(model).fit(X[copies], y[copies])
    assert weighted.alpha_ == pytest.approx(repeated.alpha_, rel=1e-6)
    assert weighted.validation_score_ == pytest.approx(repeated.validation_score_, rel=1e-9)
    difference = weighted.predict_proba(X) - repeated.predict_proba(X)
    assert np.abs(difference).max() < 1e-5


def streamed(model, X, y, weights, parts):
    for part in parts:
        model.partial_fit(X[part], y[part], [0, 1, 2], sample_weight=weights[part])
    return model


def removed(model, X, y, weights, parts):
    some = parts[0]
    model.fit(X, y, weights).partial_fit(X[some], y[some], sample_weight=2 + weights[some])
    return model.downdate(X[some], y[some], 2 + weights[some])


def merged(model, X, y, weights, parts):
    one, *others = [streamed(clone(model), X, y, weights, [part]) for part in parts]
    return reduce(lambda a, b: a.merge(b), others, one)


def in_stages(model, X, y, weights, parts):
    prepared = prepare(model, X, y)
    learned = [partial(prepared, X[part], y[part], weights[part]) for part in parts]
    return finish(prepared, reduce(combine, learned))


def of_a_source(model, X, y, weights, parts):
    return model.fit(source(X, target=y, weight=weights))


def of_dask(model, X, y, weights, parts):
    da = pytest.importorskip("dask.array")
    chunks = [da.from_array(array, chunks=(200, *array.shape[1:])) for array in (X, y, weights)]
    return model.fit(*chunks)


@pytest.mark.parametrize("route", [streamed, removed, merged, in_stages, of_a_source, of_dask])
def test_balanced_classes_with_weights_are_those_of_repeated_rows_by_any_route(route):
    X, y, weights, copies = repeated_rows(discrete=False)
    feature_map = FrozenEstimator(Fastfood(n_components=32, random_state=0).fit(X))
    model = KernelClassifier(feature_map, alpha=0.1, class_weight="balanced")
    repeated = clone(model).fit(X[copies], y[copies])
    parts = np.array_split(np.random.default_rng(1).permutation(y.size), 3)
    found = route(clone(model), X, y, weights, parts)
    difference = found.decision_function(X) - repeated.decision_function(X)
    assert np.abs(difference).max() < 1e-8
