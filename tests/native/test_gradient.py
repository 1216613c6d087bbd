"""Gradients of losses of linear functions of features, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from native_operators import (
    D_IN,
    NAMES,
    TYPES,
    features,
    operators,
    outputs_by_threads,
    some_rows,
)
from scipy.special import log_softmax, softmax

from kitchenette import _core
from kitchenette.sketching.operators import BlockwiseLinear, NativeOperator
from kitchenette.sketching.structured import draw_fastfood, draw_fourier

LOSSES = {
    "squared": _core.Loss("squared"),
    "huber": _core.Loss("huber", threshold=0.7),
    "quantile": _core.Loss("quantile", level=0.8, width=0.5),
    "exact quantile": _core.Loss("quantile", level=0.8),
    "logistic": _core.Loss("logistic"),
    "squared_hinge": _core.Loss("squared_hinge"),
}
CLASSES = {"logistic", "squared_hinge"}


def loss_and_slopes(name, F, targets):
    """Losses of rows and their derivatives, written down as plainly as possible."""
    k = F.shape[1]
    if name in CLASSES:
        signs = 2.0 * (targets[:, None] == (np.arange(k) if k > 1 else 1)) - 1
        if name == "squared_hinge":
            gaps = np.maximum(0, 1 - signs * F)
            return (gaps**2 / 2).sum(axis=1), -signs * gaps
        if k == 1:
            return np.logaddexp(0, -signs * F)[:, 0], -signs / (1 + np.exp(signs * F))
        chosen = np.arange(len(F)), targets
        return -log_softmax(F, axis=1)[chosen], softmax(F, axis=1) - (signs > 0)
    residuals = targets - F
    if name == "squared":
        losses, slopes = residuals**2 / 2, -residuals
    elif name == "huber":
        inside = np.abs(residuals) <= 0.7
        losses = np.where(inside, residuals**2 / 2, 0.7 * (np.abs(residuals) - 0.35))
        slopes = -np.clip(residuals, -0.7, 0.7)
    elif name == "exact quantile":
        losses = np.maximum(0.8 * residuals, -0.2 * residuals)
        slopes = np.where(residuals > 0, -0.8, 0.2)
    else:
        # The mean of the pinball loss over residuals - u for u uniform in [-width, width], by its
        # antiderivative r |r| / 4 + (level - 1 / 2) r^2 / 2.
        low, high = residuals - 0.5, residuals + 0.5
        losses = (high * np.abs(high) - low * np.abs(low)) / 4 + 0.15 * (high**2 - low**2)
        slopes = (np.abs(low) - np.abs(high)) / 2 + 0.3 * (low - high)
    return losses.sum(axis=1), slopes


def targets_for(name, n, k, rng):
    if name in CLASSES:
        return rng.integers(max(k, 2), size=n, dtype=np.int32)
    return rng.normal(size=(n, k)) * 2


def gradient(operator, rows, weights, intercept, targets, sample_weight, loss):
    """The loss, the outputs, and the derivatives."""
    n, k = rows.shape[0], intercept.size
    outputs, out = np.full((n, k), np.nan), np.zeros((operator.n_features, k))
    sums = np.zeros(k)
    value = operator.gradient(
        rows, weights, intercept, targets, sample_weight, loss, outputs, out, sums
    )
    return value, outputs, out, sums


def check(operator, name, n, k, dtype, rng):
    X, targets = some_rows(n, dtype), targets_for(name, n, k, rng)
    weights, intercept = rng.normal(size=(operator.n_features, k)) / 4, rng.normal(size=k)
    sample_weight = np.where(rng.random(n) < 0.3, 0, rng.random(n) + 0.5)
    sample_weight[-1] = 1.5
    Z = features(operator, X).astype(np.float64)
    F = Z @ weights + intercept
    tolerance = 1e3 * np.finfo(dtype).eps
    size_of_outputs = (np.abs(Z) @ np.abs(weights)).max() + 1
    if name == "exact quantile":  # keeps away from the kink
        targets = F + np.sign(targets)
    for rows in (X, sp.csr_array(X)):
        for each in (sample_weight, None):
            given = np.ones(n) if each is None else each
            losses, slopes = loss_and_slopes(name, F, targets)
            R = given[:, None] * slopes
            value, outputs, out, sums = gradient(
                operator, rows, weights, intercept, targets, each, LOSSES[name]
            )
            np.testing.assert_allclose(outputs, F, rtol=0, atol=tolerance * size_of_outputs)
            # No derivative changes faster than the output.
            wrong = tolerance * size_of_outputs
            size = np.abs(given) @ (np.abs(slopes).sum(axis=1) + wrong) + 1
            assert abs(value - given @ losses) <= wrong * size
            np.testing.assert_allclose(sums, R.sum(axis=0), rtol=0, atol=n * wrong)
            bound = np.abs(Z).T @ (np.abs(R) + 1) + 1
            assert (np.abs(out - Z.T @ R) / bound).max() <= wrong


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_the_loss(simd, name, dtype):
    rng = np.random.default_rng(1)
    for kind in ("fastfood sincos", "concatenation"):
        operator = operators(dtype)[kind]
        for n, k in [(1, 1), (1, 3), (17, 1), (17, 2), (300, 10), (300, 50)]:
            check(operator, name, n, k, dtype, rng)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", NAMES)
def test_gradients_of_every_operator(simd, kind, dtype):
    rng = np.random.default_rng(2)
    operator = operators(dtype)[kind]
    check(operator, "squared", 17, 1, dtype, rng)
    check(operator, "logistic", 140, 3, dtype, rng)


@pytest.mark.parametrize("dtype", TYPES)
def test_gradients_of_several_blocks_of_rows(dtype):
    rng = np.random.default_rng(3)
    operator = draw_fastfood(8000, D_IN, 0, dtype).operator(
        _core.Nonlinearity("sincos", 0.02), 16000
    )
    check(operator, "logistic", 600, 2, dtype, rng)
    wide = draw_fastfood(70000, D_IN, 0, dtype).operator(_core.Nonlinearity("sincos", 0.02), 140000)
    check(wide, "squared", 70, 1, dtype, rng)


def test_gradients_of_operators_that_are_not_native():
    operator = draw_fourier(150, D_IN, 0, np.float64).operator(_core.Nonlinearity("sincos"), 300)
    assert not isinstance(operator, NativeOperator)
    for name in LOSSES:
        check(operator, name, 50, 1, np.float64, np.random.default_rng(4))
        check(operator, name, 50, 4, np.float64, np.random.default_rng(4))


def test_weights_may_be_of_either_precision():
    operator = operators(np.float32)["dense sincos"]
    X, weights = some_rows(20, np.float32), np.random.default_rng(5).normal(size=(199, 2))
    weights = weights.astype(np.float32)
    each = [
        gradient(operator, X, w, np.zeros(2), np.ones((20, 2)), None, LOSSES["squared"])
        for w in (weights, weights.astype(np.float64), np.asfortranarray(weights))
    ]
    for other in each[1:]:
        for a, b in zip(each[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", TYPES)
def test_outputs_are_those_of_linear_functions(dtype):
    rng = np.random.default_rng(6)
    for name, operator in operators(dtype).items():
        X, weights = some_rows(150, dtype), rng.normal(size=(operator.n_features, 3))
        line, expected = operator.linear(weights, np.ones(3)), np.empty((150, 3))
        assert not isinstance(line, BlockwiseLinear)
        assert line.write(X, expected)
        loss, targets = LOSSES["squared"], np.zeros((150, 3))
        found = gradient(operator, X, weights, np.ones(3), targets, None, loss)[1]
        np.testing.assert_array_equal(found, expected, err_msg=name)


def test_gradients_are_added_to_what_is_there():
    operator = operators(np.float64)["affine"]
    X, weights = some_rows(30, np.float64), np.ones((operator.n_features, 2))
    labels = np.arange(30, dtype=np.int32) % 2
    arguments = X, weights, np.zeros(2), labels, None, LOSSES["logistic"]
    value, outputs, out, sums = gradient(operator, *arguments)
    more, more_sums = np.ones_like(out), np.full(2, 5.0)
    assert operator.gradient(*arguments, outputs, more, more_sums) == value
    np.testing.assert_allclose(more - 1, out, atol=1e-12)
    np.testing.assert_allclose(more_sums - 5, sums, atol=1e-12)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_are_finite_differences_of_the_loss(name, k):
    rng = np.random.default_rng(7)
    operator, n = operators(np.float64)["affine"], 12
    X, targets = some_rows(n, np.float64), targets_for(name, n, k, rng)
    weights, intercept = rng.normal(size=(operator.n_features, k)), rng.normal(size=k)
    sample_weight, loss = rng.random(n), LOSSES[name]
    _, _, out, sums = gradient(operator, X, weights, intercept, targets, sample_weight, loss)
    step = 1e-5
    for _ in range(5):
        direction, shift = rng.normal(size=weights.shape), rng.normal(size=k)
        low, high = (
            gradient(
                operator,
                X,
                weights + t * direction,
                intercept + t * shift,
                targets,
                sample_weight,
                loss,
            )[0]
            for t in (-step, step)
        )
        slope = (out * direction).sum() + sums @ shift
        assert abs((high - low) / (2 * step) - slope) < 1e-4 * (1 + abs(slope))


# ---------------------------------------------------------------- extreme outputs


def evaluate(loss, F, targets, sample_weight=None):
    factors, sums = np.full_like(F, np.nan), np.zeros(F.shape[1])
    return loss.evaluate(F, targets, sample_weight, factors, sums), factors


def test_logistic_losses_of_large_outputs_are_exact():
    label, loss = np.ones(1, np.int32), LOSSES["logistic"]
    for size in (40.0, 700.0, 1e5):
        value, slopes = evaluate(loss, np.array([[size]]), label)
        assert value == pytest.approx(np.exp(-size), rel=1e-12)
        assert slopes[0, 0] == pytest.approx(-np.exp(-size), rel=1e-12)
        value, slopes = evaluate(loss, np.array([[-size]]), label)
        assert value == size
        assert slopes[0, 0] == -1
        value, slopes = evaluate(loss, np.array([[0, size, -size]]), label)
        assert value == pytest.approx(np.exp(-size) + np.exp(-2 * size), rel=1e-12)
        np.testing.assert_allclose(slopes[0, :2], [np.exp(-size), -np.exp(-size)], rtol=1e-12)
        value, slopes = evaluate(loss, np.array([[size, -size, 0]]), label)
        assert value == pytest.approx(2 * size, rel=1e-12)
        np.testing.assert_allclose(slopes[0], [1, -1, np.exp(-size)], rtol=1e-12)


def test_a_binary_output_is_the_difference_of_two():
    F, labels = np.linspace(-3, 3, 8)[:, None], np.arange(8, dtype=np.int32) % 2
    one = evaluate(LOSSES["logistic"], F, labels)
    two = evaluate(LOSSES["logistic"], np.hstack([np.zeros_like(F), F]), labels)
    assert one[0] == pytest.approx(two[0])
    np.testing.assert_allclose(one[1][:, 0], two[1][:, 1], atol=1e-14)


def test_smoothed_quantile_losses_tend_to_the_exact_one():
    F, y = np.zeros((5, 1)), np.array([[-2.0], [-0.5], [0.0], [0.5], [2.0]])
    exact, slopes = evaluate(_core.Loss("quantile", level=0.9), F, y)
    assert exact == pytest.approx(0.1 * 2.5 + 0.9 * 2.5)
    np.testing.assert_allclose(slopes[:, 0], [0.1, 0.1, -0.4, -0.9, -0.9])
    smooth, near = evaluate(_core.Loss("quantile", level=0.9, width=0.25), F, y)
    assert smooth == pytest.approx(exact + 0.25 / 4)
    np.testing.assert_allclose(near, slopes)


def test_rows_of_weight_zero_are_not_read():
    operator = operators(np.float64)["affine"]
    X, weights = some_rows(4, np.float64), np.ones((operator.n_features, 1))
    targets = np.array([[1.0], [np.nan], [np.inf], [2.0]])
    kept = np.array([0, 3])
    loss, each = LOSSES["squared"], np.array([1.0, 0.0, 0.0, 2.0])
    found = gradient(operator, X, weights, np.zeros(1), targets, each, loss)
    alone = gradient(operator, X[kept], weights, np.zeros(1), targets[kept], each[kept], loss)
    assert found[0] == pytest.approx(alone[0])
    np.testing.assert_allclose(found[1][kept], alone[1])
    assert np.isfinite(found[1]).all()
    np.testing.assert_allclose(found[2], alone[2])
    np.testing.assert_allclose(found[3], alone[3])


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_that_are_not_finite_give_nan(dtype):
    operator, loss = operators(dtype)["fastfood sincos"], LOSSES["squared"]
    weights, targets = np.ones((operator.n_features, 1)), np.zeros((40, 1))
    X = some_rows(40, dtype)
    assert np.isfinite(gradient(operator, X, weights, np.zeros(1), targets, None, loss)[0])
    for spoilt in (0, 17, 39):
        bad = X.copy()
        bad[spoilt, 3] = np.nan
        for rows in (bad, sp.csr_array(bad)):
            assert np.isnan(gradient(operator, rows, weights, np.zeros(1), targets, None, loss)[0])
        wrong = targets.copy()
        wrong[spoilt] = np.inf
        assert np.isnan(gradient(operator, X, weights, np.zeros(1), wrong, None, loss)[0])
        each = np.ones(40)
        each[spoilt] = np.nan
        assert np.isnan(gradient(operator, X, weights, np.zeros(1), targets, each, loss)[0])
    largest = np.full_like(weights, np.finfo(np.float64).max)
    assert np.isnan(gradient(operator, X, largest, np.zeros(1), targets, None, loss)[0])


def test_outputs_that_are_not_finite_give_nan():
    for name, loss in LOSSES.items():
        targets = np.zeros(2, np.int32) if name in CLASSES else np.zeros((2, 1))
        for bad in (np.nan, np.inf, -np.inf):
            assert np.isnan(evaluate(loss, np.array([[0.0], [bad]]), targets)[0]), name


def test_no_rows_have_no_loss():
    operator = operators(np.float64)["affine"]
    weights, none = np.ones((operator.n_features, 2)), np.empty((0, D_IN))
    value, _, out, sums = gradient(
        operator, none, weights, np.zeros(2), np.empty((0, 2)), None, LOSSES["squared"]
    )
    assert value == 0
    assert not out.any()
    assert not sums.any()


def arguments():
    """Arguments that fit each other: 5 rows and 2 targets."""
    operator = operators(np.float64)["affine"]
    return {
        "operator": operator.native,
        "x": some_rows(5, np.float64),
        "weights": np.ones((operator.n_features, 2)),
        "intercept": np.zeros(2),
        "targets": np.zeros((5, 2)),
        "sample_weight": np.ones(5),
        "loss": LOSSES["squared"],
        "outputs": np.zeros((5, 2)),
        "out": np.zeros((operator.n_features, 2)),
        "sums": np.zeros(2),
    }


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"x": np.zeros((5, D_IN + 1))}, "columns of the operator"),
        ({"weights": np.ones((3, 2))}, "a row per feature and a column per target"),
        ({"intercept": np.zeros(3)}, "a row per feature and a column per target"),
        ({"intercept": np.zeros(0)}, "there must be a target"),
        ({"targets": np.zeros((4, 2))}, "targets must have a row per row"),
        ({"targets": np.zeros((5, 3))}, "targets must have a row per row"),
        ({"targets": np.zeros(5, np.int32)}, "takes a matrix of targets"),
        ({"sample_weight": np.ones(4)}, "a sample weight for every row"),
        ({"loss": LOSSES["logistic"]}, "takes labels of type int32"),
        ({"outputs": np.zeros((5, 1))}, "outputs must have"),
        ({"outputs": np.zeros((6, 2))}, "outputs must have"),
        ({"out": np.zeros((5, 2))}, "out must have"),
        ({"sums": np.zeros(1)}, "sums must have"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(changes, sentence):
    assert np.isfinite(_core.gradient(**arguments()))
    with pytest.raises(ValueError, match=sentence):
        _core.gradient(**{**arguments(), **changes})


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_labels_outside_the_classes_are_refused(name):
    for label in (-1, 2, 2**31 - 1):
        labels = np.array([0, 1, label, 1, 0], np.int32)
        with pytest.raises(ValueError, match="outside the classes"):
            _core.gradient(**{**arguments(), "targets": labels, "loss": LOSSES[name]})
        with pytest.raises(ValueError, match="outside the classes"):
            evaluate(LOSSES[name], np.zeros((5, 1)), labels)
    with pytest.raises(ValueError, match="a label for every row"):
        evaluate(LOSSES[name], np.zeros((5, 2)), np.zeros(4, np.int32))
    evaluate(LOSSES[name], np.zeros((1, 3)), np.array([2], np.int32))


def test_losses_refuse_what_has_no_meaning():
    with pytest.raises(ValueError, match="unknown loss 'cubic'"):
        _core.Loss("cubic")
    for threshold in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="threshold must be a positive number"):
            _core.Loss("huber", threshold=threshold)
    for level in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="level must be between 0 and 1"):
            _core.Loss("quantile", level=level)
    for width in (-1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="width must be a number of at least zero"):
            _core.Loss("quantile", width=width)
    with pytest.raises(ValueError, match="factors must have the shape of outputs"):
        LOSSES["squared"].evaluate(
            np.zeros((2, 1)), np.zeros((2, 1)), None, np.zeros((1, 1)), np.zeros(1)
        )


# ---------------------------------------------------------------- threads

SCRIPT = """
import hashlib
import numpy as np
from native_operators import D_IN, matrix, operators, some_rows
from kitchenette import _core
from kitchenette.sketching.structured import draw_fastfood

digest = hashlib.sha256()
rng = np.random.default_rng(0)
for dtype in (np.float32, np.float64):
    wide = draw_fastfood(8000, D_IN, 0, dtype).operator(_core.Nonlinearity("sincos", 0.02), 16000)
    for operator in [*operators(dtype).values(), wide]:
        for n, k in [(5, 2), (100, 3), (900, 4), (900, 40)]:
            labels = rng.integers(k, size=n, dtype=np.int32)
            weights = matrix(operator.n_features, k, np.float64)
            parts = np.empty((n, k)), np.zeros((operator.n_features, k)), np.zeros(k)
            rest = weights, np.ones(k), labels, rng.random(n), _core.Loss("logistic"), *parts
            parts += (np.float64(operator.gradient(some_rows(n, dtype), *rest)),)
            for part in parts:
                digest.update(part.tobytes())
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_gradients_do_not_depend_on_the_number_of_threads():
    assert len(outputs_by_threads(SCRIPT)) == 1
