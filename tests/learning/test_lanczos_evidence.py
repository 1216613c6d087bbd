"""The evidence by Lanczos quadrature agrees with the exact one."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import kitchenette
from kitchenette import Fastfood, KernelClassifier, KernelRegressor
from kitchenette.kernels import Gaussian
from kitchenette.learning import conjugate_gradients
from kitchenette.learning.conjugate_gradients import Lanczos


def data(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n)


def regressor(solver, n_components=96, **options):
    fourier = Fastfood(Gaussian(2.0), n_components, random_state=0)
    return KernelRegressor(fourier, alpha="evidence", solver=solver, validation_rows=0, **options)


def test_quadratures_are_exact_with_as_many_steps_as_eigenvalues():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(7, 7))
    A = A @ A.T
    start = rng.normal(size=(7, 3))
    lanczos = Lanczos(lambda V: A @ V, start)
    for _ in range(7):
        lanczos.step()
    nodes, weights = lanczos.quadratures()
    values, vectors = np.linalg.eigh(A)
    expected = np.square(vectors.T @ start).T @ np.log1p(values / 0.1)
    np.testing.assert_allclose((weights * np.log1p(nodes / 0.1)).sum(axis=1), expected, rtol=1e-9)


def test_vectors_whose_steps_end_early_keep_their_quadratures():
    A = np.diag([1.0, 2.0, 3.0, 4.0, 5.0])
    start = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    lanczos = Lanczos(lambda V: A @ V, start)
    for _ in range(5):
        lanczos.step()
    nodes, weights = lanczos.quadratures()
    np.testing.assert_allclose((weights / (nodes + 1)).sum(axis=1), [1 / 2 + 1 / 3, 0], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["plain", "weighted", "several targets", "sparse"])
def test_with_all_probes_the_evidence_is_the_exact_one(kind, intercept, monkeypatch):
    # Vectors of signs that are orthogonal estimate a trace exactly.
    stream = SimpleNamespace(signs=lambda count, size: kitchenette.fwht(np.eye(size)))
    monkeypatch.setattr(conjugate_gradients, "Stream", lambda seed, name: stream)
    monkeypatch.setattr(conjugate_gradients, "STEADY_VALUE", 1e-12)
    X, y = data()
    weights = np.random.default_rng(1).uniform(0.5, 3, size=len(y)) if kind == "weighted" else None
    targets = np.stack([y, y + X[:, 2] ** 2], axis=1) if kind == "several targets" else y
    rows = sp.csr_array(X) if kind == "sparse" else X
    one, many = (
        regressor(solver, 64, fit_intercept=intercept, tol=1e-9).fit(rows, targets, weights)
        for solver in ("onepass", "iterative")
    )
    assert many.alpha_ == pytest.approx(one.alpha_, rel=0.021)  # whole steps of 1 %
    assert many.log_marginal_likelihood_ == pytest.approx(one.log_marginal_likelihood_, rel=1e-4)


@pytest.mark.parametrize("n_components", [96, 600])
def test_a_few_probes_choose_nearly_the_same_penalty(n_components):
    X, y = data(1500)
    one, many = (regressor(s, n_components).fit(X, y) for s in ("onepass", "iterative"))
    assert one.solver_ == "onepass"
    assert many.solver_ == "iterative"
    assert many.alpha_ == pytest.approx(one.alpha_, rel=0.5)
    # The standard error of the determinant is a few units.
    assert many.log_marginal_likelihood_ == pytest.approx(one.log_marginal_likelihood_, abs=10)
    spread = np.std(one.predict(X) - many.predict(X)) / y.std()
    assert spread < 0.02


def test_classes_have_an_evidence_too():
    X, y = data(600)
    labels = np.digitize(y, [-0.5, 0.5])
    models = [
        KernelClassifier(
            Fastfood(Gaussian(2.0), 128, random_state=0), alpha="evidence", solver=solver
        ).fit(X, labels)
        for solver in ("onepass", "iterative")
    ]
    one, many = (model.log_marginal_likelihood_ for model in models)
    assert many == pytest.approx(one, rel=0.02)


def test_weights_count_relative_to_each_other_and_the_model_can_be_stored(tmp_path):
    X, y = data()
    plain = regressor("iterative").fit(X, y)
    scaled = regressor("iterative").fit(X, y, np.full(len(y), 1000.0))
    assert scaled.alpha_ == pytest.approx(1000 * plain.alpha_, rel=1e-6)
    assert scaled.log_marginal_likelihood_ == pytest.approx(plain.log_marginal_likelihood_)
    kitchenette.save(plain, tmp_path / "model")
    again = kitchenette.load(tmp_path / "model")
    assert again.log_marginal_likelihood_ == plain.log_marginal_likelihood_


def test_constant_targets_and_features_have_some_penalty():
    X, y = data(100)
    assert regressor("iterative").fit(X, np.ones(100)).predict(X[:1]) == pytest.approx(1)
    assert regressor("iterative").fit(np.ones((100, 4)), y).predict(X[:1]) == pytest.approx(
        y.mean()
    )


def test_one_row_is_refused_and_other_penalties_have_no_evidence():
    X, y = data(100)
    with pytest.raises(ValueError, match="needs more than 1 observations"):
        regressor("iterative").fit(X[:1], y[:1])
    model = regressor("iterative").set_params(alpha=1.0).fit(X, y)
    with pytest.raises(AttributeError, match="alpha='evidence' only"):
        model.log_marginal_likelihood_  # noqa: B018


def test_steps_are_shown_and_counted(capsys):
    X, y = data()
    model = regressor("iterative", verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert "step 1 of Lanczos: alpha" in lines[0]
    assert model.n_iter_ == len(lines)
