"""`validation_score_` is what new rows will say, also on few rows and where there is only noise."""

import itertools

import numpy as np
import pytest

from kitchenette import Fastfood, KernelClassifier, KernelRegressor
from kitchenette.learning.iterative import VALIDATION_PART
from kitchenette.learning.leave_one_out import LeaveOneOut

N_NEW = 3000
PROBLEMS = [
    (n, signal, task, repetition)
    for n, repetitions in ((50, 3), (60, 3), (100, 2), (200, 2), (500, 1))
    for signal in (False, True)
    for task in ("classes", "numbers")
    for repetition in range(100, 100 + repetitions)
]


def problem(n, signal, task, repetition):
    rng = np.random.default_rng([n, signal, task == "classes", repetition])
    X = rng.normal(size=(n + N_NEW, int(rng.integers(2, 12))))
    y = rng.normal(size=len(X)) * (0.7 if signal else 1.0)
    if signal:
        y += np.sin(1.5 * X[:, 0]) + X[:, 1] * (X[:, 0] > 0)
    return X, (y > 0 if task == "classes" else y)


def standardized(problems, options_of, part=1.0):
    """Differences of validation scores to scores on new rows, in standard errors of the first."""
    found = []
    for n, signal, task, repetition in problems:
        X, y = problem(n, signal, task, repetition)
        cls = KernelClassifier if task == "classes" else KernelRegressor
        model = cls(random_state=repetition, **options_of(task)).fit(X[:n], y[:n])
        score = model.score(X[n:], y[n:])
        deviation = 0.5
        if task == "numbers":
            deviation = np.square(y[n:] - model.predict(X[n:])).std() / y.var()
        found.append((model.validation_score_ - score) / (deviation / np.sqrt(part * n)))
    return np.array(found)


@pytest.mark.slow
def test_it_is_not_optimistic_although_the_map_was_chosen_on_the_same_rows():
    # The mean of 44 standard scores has a standard error of 0.15. Three of these are exceeded by
    # chance with a probability of 0.3 %.
    assert len(PROBLEMS) >= 40
    differences = standardized(PROBLEMS, lambda task: {})
    assert abs(differences.mean()) < 0.45
    assert np.median(np.abs(differences)) < 1


@pytest.mark.slow
@pytest.mark.parametrize("option", ["solver", "loss"])
def test_it_is_not_optimistic_in_many_passes(option):
    # A fifth of the rows judges the penalties and the steps that it has chosen. The mean of 40
    # standard scores has a standard error of 0.16; three of these as above.
    def options(task):
        loss = "logistic" if task == "classes" else "huber"
        chosen = {"solver": "iterative"} if option == "solver" else {"loss": loss}
        return {"feature_map": Fastfood(n_components=128, random_state=0), **chosen}

    problems = [
        (n, signal, task, repetition)
        for n in (100, 200, 500, 1000, 2000)
        for signal in (False, True)
        for task in ("classes", "numbers")
        for repetition in (100, 101)
    ]
    differences = standardized(problems, options, part=1 / VALIDATION_PART)
    assert differences.size == 40
    assert abs(differences.mean()) < 0.48


@pytest.mark.parametrize("n_copies", [1, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_it_is_the_score_of_models_without_a_third_of_the_rows(
    n_copies, fit_intercept, monkeypatch
):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(90, 2)).astype(float)
    y = X[:, 0] + rng.integers(0, 3, size=90)
    X, y = np.repeat(X, n_copies, axis=0), np.repeat(y, n_copies)
    parts = []
    whole = LeaveOneOut.without_folds

    def without_folds(self, solution):
        found = whole(self, solution)
        parts.append((self.rows, found))
        return found

    monkeypatch.setattr(LeaveOneOut, "without_folds", without_folds)
    fitted_map = Fastfood(n_components=32, random_state=0)
    model = KernelRegressor(fitted_map, alpha=0.1, fit_intercept=fit_intercept, random_state=0)
    model.fit(X, y)
    sample, (rows, weights, outputs) = parts[0]
    assert np.isclose(weights.sum(), len(X))  # each observation is left out once
    ends = [0, *(1 + np.flatnonzero(np.diff(rows) < 0)), rows.size]
    assert len(ends) == 4
    for start, end in itertools.pairwise(ends):
        left = sample.weights.copy()
        left[rows[start:end]] -= weights[start:end]
        Z = sample.features.astype(float)
        mean = left @ Z / left.sum() if fit_intercept else np.zeros(Z.shape[1])
        constant = left @ sample.targets / left.sum() if fit_intercept else np.zeros(1)
        A = (Z - mean).T @ (left[:, None] * (Z - mean)) + 0.1 * np.eye(Z.shape[1])
        b = (Z - mean).T @ (left[:, None] * (sample.targets - constant))
        expected = (Z - mean) @ np.linalg.solve(A, b) + constant
        np.testing.assert_allclose(outputs[start:end], expected[rows[start:end]], atol=1e-5)


def test_the_majority_of_noise_is_no_better_than_chance():
    # Without one row, the share of the majority would be the score.
    optimism = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(61, 3)), rng.random(61) < 0.5
        model = KernelClassifier(Fastfood(n_components=64, random_state=0), random_state=0)
        optimism.append(model.fit(X, y).validation_score_ - 0.5)
    assert np.mean(optimism) < 0.045  # 0.064 is the standard deviation of one
