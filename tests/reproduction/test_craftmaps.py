"""What the experiments of CRAFTMaps measure is what they say."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import map_coordinates
from sklearn.datasets import load_digits

from kitchenette import KernelClassifier
from kitchenette.kernels import Polynomial
from kitchenette.learning import OutputCode
from reproduction import deformed_digits
from reproduction.craftmaps import MAPS, approximations, make_map
from reproduction.craftmaps_learning import (
    CODE_LENGTH,
    KernelColumns,
    errors_on_test_rows,
    learned_from_file,
    learned_in_one_pass,
)
from reproduction.data import Split, unit_rows

KERNEL = Polynomial(3)


@pytest.fixture(scope="module")
def rows():
    X, y = load_digits(return_X_y=True)
    X = unit_rows(X)
    return Split(X[:1200], y[:1200], X[1200:], y[1200:])


@pytest.mark.parametrize("name", MAPS)
def test_kernels_of_growing_maps_are_those_of_separate_ones(name, rows):
    X = rows.X[:50]
    for E, found in zip((70, 100), approximations(name, KERNEL, 256, [70, 100], X, 3), strict=True):
        Z = make_map(name, KERNEL, 256, E, X.shape[1], seed=3).fit_transform(X).astype(float)
        assert_allclose(found, Z @ Z.T, rtol=1e-4, atol=1e-4)


def test_features_in_a_file_give_the_model_of_the_map_itself(rows):
    made = make_map("CM RFM", KERNEL, 512, 128, rows.X.shape[1], seed=0)
    converged = {"alpha": 0.3, "tol": 1e-6, "validation_rows": 0}
    stored, _ = learned_from_file(made.fit(rows.X), rows, **converged)
    direct = KernelClassifier(made, solver="iterative", random_state=0, **converged)
    expected = direct.fit(rows.X, rows.y).decision_function(rows.X_test)
    assert_allclose(stored.decision_function(made.transform(rows.X_test)), expected, atol=1e-4)


def test_blocks_of_features_give_the_model_of_the_map_itself(rows):
    made = make_map("CM TS", KERNEL, 512, 128, rows.X.shape[1], seed=0)
    in_blocks, _ = learned_in_one_pass(made.fit(rows.X), rows)
    direct = KernelClassifier(made, random_state=0).fit(rows.X, rows.y)
    expected = direct.decision_function(rows.X_test)
    assert_allclose(in_blocks.decision_function(made.transform(rows.X_test)), expected, atol=1e-3)


def test_errors_are_those_of_predictions_with_and_without_codes(rows):
    made = make_map("RFM", KERNEL, 0, 100, rows.X.shape[1], seed=0).fit(rows.X)
    model, _ = learned_in_one_pass(made, rows)
    found = errors_on_test_rows(model, made, rows)
    Z, Z_test = made.transform(rows.X), made.transform(rows.X_test)
    assert found["error"] == np.mean(model.predict(Z_test) != rows.y_test)
    words = OutputCode.random(10, CODE_LENGTH, seed=0).codewords
    coded = KernelClassifier(model.feature_map, code=words, decoding="hamming", alpha=model.alpha_)
    wrong = np.mean(coded.fit(Z, rows.y).predict(Z_test) != rows.y_test)
    assert found["error with codes"] == pytest.approx(wrong, abs=2 / len(rows.y_test))


def test_the_exact_kernel_is_that_of_some_training_rows(rows):
    columns = KernelColumns(KERNEL, 40, random_state=1).fit(rows.X)
    picked = [int(np.flatnonzero((row == rows.X).all(axis=1))[0]) for row in columns.rows_]
    assert len(set(picked)) == 40
    assert_allclose(columns.transform(rows.X_test), KERNEL(rows.X_test, rows.X[picked]))


@pytest.fixture(scope="module")
def images():
    """Smooth blobs, as digits are, which do not reach the edges."""
    rng = np.random.default_rng(0)
    at = np.arange(28.0)
    centers = rng.uniform(10, 17, size=(300, 2, 1, 1))
    squares = (at[:, None] - centers[:, 0]) ** 2 + (at - centers[:, 1]) ** 2
    return (255 * np.exp(-squares / 12)).reshape(300, 784).astype(np.float32)


def places(vertical, horizontal):
    """The places of all pixels of one image, displaced."""
    down, right = np.mgrid[:28, :28].astype(np.float32) + deformed_digits.BORDER
    return [(axis + by).reshape(1, -1) for axis, by in ((down, vertical), (right, horizontal))]


def test_images_are_resampled_bilinearly(images):
    rng = np.random.default_rng(1)
    image = images[:1]
    vertical, horizontal = rng.normal(size=(2, 28, 28)).astype(np.float32) * 4
    padded = np.pad(image.reshape(28, 28), deformed_digits.BORDER)
    at = [axis.reshape(28, 28) for axis in places(vertical, horizontal)]
    expected = map_coordinates(padded, at, order=1, mode="nearest")
    found = deformed_digits.resampled(image, *places(vertical, horizontal))
    assert_allclose(found.reshape(28, 28), expected, atol=0.01)


def test_without_displacement_images_stay_and_with_one_pixel_they_move(images):
    image = images[:1]
    assert_array_equal(deformed_digits.resampled(image, *places(0, 0)), image)
    moved = deformed_digits.resampled(image, *places(1, 0)).reshape(28, 28)
    assert_array_equal(moved[:-1], image.reshape(28, 28)[1:])


def test_rounds_begin_with_the_digits_and_then_deform_each(images):
    labels = np.arange(300)
    ((first, first_labels),) = deformed_digits.one_round(images, labels, 0, seed=5)
    assert_array_equal(first, images)
    ((second, second_labels),) = deformed_digits.one_round(images, labels, 1, seed=5)
    assert_array_equal(first_labels, second_labels)
    difference = np.linalg.norm(second - images, axis=1) / np.linalg.norm(images, axis=1)
    assert 0.1 < np.median(difference) < 0.8
    assert np.all(np.abs(second.sum(axis=1) / images.sum(axis=1) - 1) < 0.8)
    ((again, _),) = deformed_digits.one_round(images, labels, 1, seed=5)
    assert_array_equal(again, second)
    ((other, _),) = deformed_digits.one_round(images, labels, 2, seed=5)
    assert not np.array_equal(other, second)
