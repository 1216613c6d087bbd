"""The penalty that is chosen with rows that the model has not seen."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge

from kitchenette import Fastfood, KernelClassifier, KernelRegressor, LeastSquares
from kitchenette.data.keys import row_keys
from kitchenette.kernels import Gaussian
from kitchenette.learning import leave_one_out
from kitchenette.learning import penalty as penalty_module
from kitchenette.learning.leave_one_out import LeaveOneOut, RowErrors, RowSample
from kitchenette.learning.penalty import PenaltyPath
from kitchenette.learning.target_coding import ClassCoding, CodeRule


def problem(n_rows=60, n_features=12, n_targets=2, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_rows, n_features)) + 1
    Y = Z[:, :n_targets] * 2 + rng.normal(size=(n_rows, n_targets))
    return Z, Y, rng.integers(1, 4, size=n_rows).astype(float)


def left_out(Z, Y, weights, *, fit_intercept=True, rule="pairs"):
    statistics = LeastSquares(Z.shape[1], Y.shape[1]).update(Z, Y, weights)
    sample = RowSample.of(len(Z), row_keys(Z, Y), Z, Y, weights)
    equations = statistics.equations(fit_intercept, sample.n_observations(len(Z), rule))
    return LeaveOneOut(PenaltyPath(equations), sample, sample.counts(rule))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("exact", [True, False])
def test_predictions_are_those_of_models_without_the_row(fit_intercept, exact):
    Z, Y, weights = problem()
    found = left_out(Z, Y, weights, fit_intercept=fit_intercept)
    if exact:
        found.chosen()  # by an eigendecomposition, which it then uses
    outputs = found.outputs(0.7)
    for i in range(5):
        row = found.rows.features[i]
        others = ~np.all(row == Z, axis=1)
        ridge = Ridge(0.7, fit_intercept=fit_intercept)
        expected = ridge.fit(Z[others], Y[others], weights[others]).predict(row[None])
        assert outputs[i] == pytest.approx(expected[0], rel=1e-10)


@pytest.mark.parametrize("columns", [1, 5, 256])
def test_predictions_for_several_penalties_are_those_for_each(columns, monkeypatch):
    monkeypatch.setattr(penalty_module, "LARGEST_PRODUCT", columns)
    found = left_out(*problem())
    alphas = [1e-3, 0.1, 0.7, 20.0, 1e3]
    expected = [found.outputs(alpha) for alpha in alphas]  # by a Cholesky factor for each
    found.chosen()
    np.testing.assert_allclose(list(found._by_eigenvectors(alphas)), expected, rtol=1e-9)


def test_a_factor_in_float32_compares_penalties_where_that_is_exact_enough(monkeypatch):
    Z, Y, weights = problem(n_rows=500, n_features=100)
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(100, 100)))[0]
    small = Z * np.geomspace(1, 1e-6, 100) @ rotation  # a condition number of 1e12
    for rows, alpha, rough in ((Z, 1.0, True), (small, 10.0, True), (small, 1e-8, False)):
        found = left_out(rows, Y, weights)
        exact = found.outputs(alpha)
        with monkeypatch.context() as patch:
            patch.setattr(penalty_module, "EXACT_FEATURES", 10)
            found = left_out(rows, Y, weights)
            assert found.path.compared(alpha).inverse.is_rough == rough
            error = np.abs(found.outputs(alpha) - exact).max() / np.abs(exact).max()
            assert (1e-13 < error < 1e-4) if rough else (error < 1e-10)
            # What is kept for the penalty that is chosen is not.
            solution = found.path.solve(np.asarray(found.chosen()))
            assert not solution.inverse.is_rough
            assert solution.coef == pytest.approx(
                left_out(rows, Y, weights).path.solution(solution.alpha).coef, rel=1e-9
            )


def test_rows_that_determine_their_own_predictions_need_a_factor_in_float64(monkeypatch):
    Z, Y, weights = problem(n_rows=500, n_features=100)
    Z[:2] *= 100  # two rows of leverage near one
    exact = left_out(Z, Y, weights).outputs(1.0)
    monkeypatch.setattr(penalty_module, "EXACT_FEATURES", 10)
    found = left_out(Z, Y, weights)
    assert found.path.compared(1.0).inverse.is_rough
    np.testing.assert_allclose(found.outputs(1.0), exact, rtol=1e-6)


def test_folds_without_rows_of_large_leverage_need_a_factor_in_float64(monkeypatch):
    Z, Y, weights = problem(n_rows=200, n_features=100)
    Z[:40], Y[:40] = 1e3 * Z[0], Y[0]
    Z[:40] += np.random.default_rng(1).normal(size=Z[:40].shape)
    plain = left_out(Z, Y, weights)
    expected = plain.without_folds(plain.path.solution(1.0))
    monkeypatch.setattr(penalty_module, "EXACT_FEATURES", 10)
    found = left_out(Z, Y, weights)
    found.outputs(1.0)  # by a rough factor, unless the rows alone show that it does not suffice
    for mine, other in zip(found.without_folds(found.path.solution(1.0)), expected, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-3 * np.abs(other).max())


def test_heavy_tails_do_not_hide_that_most_rows_are_predicted_better():
    rng = np.random.default_rng(0)
    found = left_out(*problem(400))
    found.rows = replace(found.rows, weights=np.ones(found.rows.n_sampled))
    # Two rows have most of the error, so the difference is within one standard error.
    others = rng.uniform(0.5, 1.5, size=found.rows.n_sampled)
    others[:2] = 10_000.0, 5000.0
    most, few = 0.4 * others, others.copy()
    most[1] = 1.05 * others[1]
    few[:2] = most[:2]
    mean, deviation = found.difference(others, most)
    assert 0.25 * others.mean() < mean < deviation
    assert found._clearly_less(most, others)
    assert not found._clearly_less(few, others)
    assert not found._clearly_less(others, most)


@pytest.mark.parametrize("rule", ["pairs", "rows", "weights"])
def test_copies_are_left_out_together_and_observations_one_by_one(rule):
    Z, Y, _ = problem()
    Z, Y = np.concatenate([Z, Z[:7]]), np.concatenate([Y, Y[:7]])
    found = left_out(Z, Y, None, rule=rule)
    i = int(np.flatnonzero(np.all(found.rows.features == Z[3], axis=1))[0])
    others = ~np.all(Z[3] == Z, axis=1) if rule == "pairs" else np.arange(len(Z)) != 3
    expected = Ridge(2.0).fit(Z[others], Y[others]).predict(Z[3:4])
    assert found.outputs(2.0)[i] == pytest.approx(expected[0], rel=1e-10)


@pytest.mark.parametrize("n_features", [12, 30])
def test_a_model_that_is_no_better_than_the_mean_is_not_taken(n_features, monkeypatch):
    monkeypatch.setattr("kitchenette.learning.penalty.EXACT_FEATURES", 20)
    monkeypatch.setattr(LeaveOneOut, "_chosen", lambda self: (1e-3, 1e-3))
    rng = np.random.default_rng(0)
    Z, noise = rng.normal(size=(60, n_features)), rng.normal(size=(60, 1))
    mean = left_out(Z, noise, None)
    trace = mean._equations.trace
    assert mean.chosen() == penalty_module.LARGEST_PENALTY * trace
    expected = [(noise.sum() - noise[i]) / 59 for i in range(60)]
    found = mean.rows.targets - mean._left_out(np.zeros((60, 1)), np.zeros(60))
    assert sorted((mean.rows.targets - found).ravel()) == pytest.approx(sorted(np.ravel(expected)))
    assert left_out(Z, Z[:, :1] + 0.1 * noise, None).chosen() == 1e-3


def balanced_scales(seed, measure):
    """Which side of a pair of scales is heavier: labels without noise, by a product of columns."""
    weights = np.stack(np.meshgrid(*[np.arange(-2, 3)] * 4), axis=-1).reshape(-1, 4)
    left, right = np.prod(weights[:, :2] + 3, axis=1), np.prod(weights[:, 2:] + 3, axis=1)
    some = np.random.default_rng(seed).permutation(625)[:400]
    feature_map = Fastfood(Gaussian(2.8), n_components=200, random_state=seed)
    Z, Y = feature_map.fit_transform(weights[some]), np.eye(3)[1 + np.sign(left - right)[some]]
    found = left_out(Z, Y, None)
    return LeaveOneOut(found.path, found.rows, found.counts, measure)


@pytest.mark.parametrize("exact", [True, False])
def test_the_penalty_of_classes_has_the_least_log_loss_of_calibrated_scores(exact, monkeypatch):
    monkeypatch.setattr(penalty_module, "EXACT_FEATURES", 1000 if exact else 10)
    coding = ClassCoding.of(np.arange(3), None, CodeRule())[0]
    gains = []
    for seed in range(4):
        by_loss = balanced_scales(seed, coding.measure("soft"))
        chosen, squared = by_loss.chosen(), balanced_scales(seed, None).chosen()
        errors = by_loss.errors(chosen)
        gains.append(by_loss.errors(squared).mean() / errors.mean())
        for factor in (0.01, 0.1, 10, 100):  # others are better by chance at most
            mean, deviation = by_loss.difference(errors, by_loss.errors(factor * chosen))
            assert mean <= max(2 * by_loss.measure.tie * errors.mean(), 2 * deviation)
    assert min(gains) > 1 - coding.measure("soft").tie
    assert max(gains) > 1.02


def test_errors_of_rows_that_are_left_out_together_are_those_of_a_model_without_them():
    Z, Y, weights = problem()
    found = left_out(Z, Y, weights)
    keys = row_keys(Z, Y)[:9]
    errors = found.errors_without(found.path.solution(0.7), keys, weights[:9])
    rest = Ridge(0.7).fit(Z[9:], Y[9:], weights[9:])
    order = np.argsort(keys)
    expected = found.measure(rest.predict(Z[:9]), Y[:9], weights[:9])[order]
    assert np.array_equal(errors.keys, keys[order])
    np.testing.assert_allclose(errors.errors, expected, rtol=1e-9)


def test_errors_of_rows_are_compared_on_common_rows():
    rng = np.random.default_rng(0)
    keys, errors = np.arange(100, dtype=np.uint64), rng.uniform(0, 2, 100)
    weights = rng.uniform(0.5, 2, 100)
    mine = RowErrors(keys[:80], weights[:80], errors[:80] - 0.1 + 0.2 * rng.normal(size=80))
    others = RowErrors(keys[::-1], weights, errors[::-1])
    assert mine.clearly_less(others, 1.0)
    assert not mine.clearly_less(others, 20.0)
    assert not others.clearly_less(mine, 1.0)
    assert not RowErrors(keys[:10], weights[:10], errors[:10] - 1).clearly_less(others, 1.0)


@pytest.mark.parametrize("decoding", ["soft", "hamming"])
@pytest.mark.parametrize("code", ["onehot", "ecoc", "hadamard"])
def test_log_losses_judge_the_decoded_scores(code, decoding):
    coding, labels = ClassCoding.of(np.arange(300) % 5, None, CodeRule(code, None, 1))
    outputs = coding.columns(labels) + 0.6 * np.random.default_rng(0).normal(size=(300, 5))
    measure, shares = coding.measure(decoding), np.ones(300)
    losses = measure(outputs, coding.columns(labels), shares)
    wrong = coding.scores("squared", decoding).labels(outputs) != labels
    assert 0 < wrong.mean() < 0.5
    assert losses[wrong].min() > np.log(2) * 0.999
    assert np.median(losses[~wrong]) < np.log(2)


def test_labels_that_are_noise_do_not_take_a_smaller_penalty():
    rng = np.random.default_rng(0)
    coding = ClassCoding.of(np.arange(2), None, CodeRule())[0]
    for _ in range(5):
        found = left_out(rng.normal(size=(300, 30)), np.eye(2)[rng.integers(0, 2, 300)], None)
        by_loss = LeaveOneOut(found.path, found.rows, found.counts, coding.measure("soft"))
        assert by_loss.chosen() > 0.5 * found.path.best("evidence").alpha


def test_large_problems_are_solved_by_steps(monkeypatch):
    Z, Y, weights = problem(n_rows=200, n_features=50)
    exact = left_out(Z, Y, weights).chosen()
    monkeypatch.setattr(penalty_module, "EXACT_FEATURES", 10)
    assert abs(np.log10(left_out(Z, Y, weights).chosen() / exact)) < 1


def betraying_rows(seed=0):
    """Targets that are heavy-tailed noise and have nothing to do with the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 6))
    y = rng.standard_t(1.2, size=400)
    return X, y


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_not_learned(seed):
    X, y = betraying_rows(seed)
    model = KernelRegressor(Fastfood(random_state=seed), random_state=0).fit(X, y)
    assert np.ptp(model.predict(X)) < 0.3 * np.ptp(y)


def test_criteria_warn_when_they_are_contradicted():
    # A length scale far below the distances of the rows, and nearly no penalty: the model goes
    # through all targets and predicts rows that it has not seen badly.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    feature_map = Fastfood(Gaussian(0.2), n_components=300, random_state=0)
    model = KernelRegressor(feature_map, alpha=1e-9).fit(X, y)
    problem, partial = model.problem(), model.model_.partial
    prepared = model.model_.prepared
    found = problem.held_out(prepared, partial, problem.path(prepared, partial))
    assert found.contradiction(1e-9) is not None
    assert found.contradiction(found.chosen()) is None
    with pytest.warns(UserWarning, match="predicted better with"):
        problem.warn_of_contradiction(found, 1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelRegressor(Fastfood(random_state=0), alpha="gcv").fit(
            rng.normal(size=(3000, 2)), rng.normal(size=3000)
        )


def test_weights_are_relative():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=300)
    weights = rng.uniform(0.2, 2, size=300)
    feature_map = Fastfood(n_components=64, random_state=0)
    for alpha in ("auto", "gcv", "evidence"):
        model = KernelRegressor(feature_map, alpha=alpha).fit(X, y, weights)
        mean, deviation = model.predict(X, return_std=True)
        for factor in (1e-3, 100):
            other = KernelRegressor(feature_map, alpha=alpha).fit(X, y, factor * weights)
            assert other.alpha_ == pytest.approx(factor * model.alpha_, rel=1e-6)
            other_mean, other_deviation = other.predict(X, return_std=True)
            assert np.allclose(mean, other_mean, atol=1e-8)
            assert np.allclose(deviation, other_deviation, atol=1e-8)


@pytest.mark.parametrize("alpha", ["auto", "gcv", "evidence"])
def test_a_row_of_weight_two_is_two_rows(alpha):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    weights = rng.integers(0, 4, size=300)
    feature_map = FrozenEstimator(Fastfood(n_components=100, random_state=0).fit(X))
    one = KernelClassifier(feature_map, alpha=alpha).fit(X, y, weights)
    many = KernelClassifier(feature_map, alpha=alpha).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    assert one.alpha_ == pytest.approx(many.alpha_, rel=1e-6)
    assert np.allclose(one.predict_proba(X), many.predict_proba(X), atol=1e-6)
    assert one.validation_score_ == pytest.approx(many.validation_score_)


def test_streams_and_merges_make_the_same_choice():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=3000)
    feature_map = FrozenEstimator(Fastfood(n_components=64, random_state=0).fit(X))

    def model():
        return KernelRegressor(feature_map, validation_rows=300)

    whole = model().fit(X, y)
    stream = model()
    for part in np.array_split(rng.permutation(3000), 11):
        stream.partial_fit(X[part], y[part])
    parts = [model().fit(X[part], y[part]) for part in np.array_split(rng.permutation(3000), 4)]
    merged = parts[2].merge(parts[0]).merge(parts[3].merge(parts[1]))
    extra = rng.normal(size=(50, 4))
    forgetful = model().fit(np.concatenate([X, extra]), np.concatenate([y, np.ones(50)]))
    forgetful.downdate(extra, np.ones(50))
    for other in (stream, merged, forgetful):
        other.solve()
        assert other.alpha_ == pytest.approx(whole.alpha_, rel=1e-9)
        assert np.allclose(other.predict(X), whole.predict(X), atol=1e-8)
        if other is not forgetful:  # rows that were pushed out of its sample do not come back
            assert other.validation_score_ == pytest.approx(whole.validation_score_, abs=1e-9)


def test_the_validation_score_is_honest():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(4000, 3))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=4000)
    model = KernelRegressor(Fastfood(random_state=0)).fit(X[:1000], y[:1000])
    assert model.validation_score_ == pytest.approx(model.score(X[1000:], y[1000:]), abs=0.03)
    without = KernelRegressor(Fastfood(random_state=0), validation_rows=0).fit(X, y)
    assert not hasattr(without, "validation_score_")


def test_intervals_cover_also_when_the_noise_is_not_the_assumed_one():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(6000, 1))
    noise = rng.normal(size=6000) * np.where(rng.uniform(size=6000) < 0.1, 3.0, 0.05)
    y = np.sin(3 * X[:, 0]) + noise
    model = KernelRegressor(Fastfood(n_components=128, random_state=0)).fit(X[:3000], y[:3000])
    mean, deviation = model.predict(X[3000:], return_std=True)
    assert 0.93 < np.mean(np.abs(y[3000:] - mean) < 1.96 * deviation) < 0.97


@pytest.mark.parametrize("error", [penalty_module.ROUGH, 0.0])  # zero: always in float64
def test_a_few_rows_refuse_only_penalties_that_are_worse_for_all(monkeypatch, error):
    monkeypatch.setattr(penalty_module, "EXACT_FEATURES", 10)
    monkeypatch.setattr(leave_one_out, "SCREENING_ROWS", 200)
    monkeypatch.setattr(penalty_module, "ROUGH", error)
    refused = 0
    for seed in range(5):
        Z, Y, weights = problem(n_rows=800, n_features=50, seed=seed)
        found = left_out(Z, Y, weights)
        for alpha in 10.0 ** np.arange(-2, 5):
            errors, larger = found.errors(alpha), found.errors(10 * alpha)
            if found._errors_unless_larger(10 * alpha, errors) is None:
                refused += 1
                assert not found._clearly_less(larger, errors)
    assert refused > 5  # some are, so that the comparison is no empty one
