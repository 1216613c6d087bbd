"""Threads that predict while another one changes the model."""

import pickle
import sys
import threading
from copy import deepcopy

import numpy as np
import pytest

import kitchenette
from kitchenette import Fastfood, KernelClassifier, KernelPCA, KernelRegressor
from kitchenette.kernels import Gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3)) * np.repeat([1.0, 1.5], 200)[:, None]
ROWS = X[:50]
BATCHES = np.split(np.arange(400), 8)
TARGETS = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=400)
TARGETS[BATCHES[0].size :] += np.repeat(np.arange(1.0, 8.0), 50)  # every batch changes the model
LABELS = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + np.repeat([0, 1], 200), [-0.5, 0.5])]


@pytest.fixture(autouse=True)
def frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def observed(model, predict, change, n_threads=4):
    """The results of ``predict(model)`` in several threads while ``change(model)`` runs."""
    results, errors, stop = [], [], threading.Event()

    def observe():
        try:
            while not stop.is_set():
                results.append(predict(model))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=observe) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    try:
        change(model)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not errors
    return results


def is_one_of(result, states):
    return any(
        all(
            a.shape == b.shape
            and (np.array_equal(a, b) if a.dtype.kind == "U" else np.allclose(a, b, rtol=1e-7))
            for a, b in zip(result, state, strict=True)
        )
        for state in states
    )


def small_map():
    return Fastfood(Gaussian(1.0), 64, random_state=0)


def regressor():
    return KernelRegressor(small_map(), validation_rows=100)


def classifier():
    return KernelClassifier(small_map(), validation_rows=100)


def mean_and_std(model):
    return model.predict(ROWS, return_std=True)


def scores_and_labels(model):
    return (model.predict_proba(ROWS),)


def labels(model):
    return (model.predict(ROWS),)


def projections(model):
    return (model.transform(ROWS),)


CASES = {
    "regressor": (regressor, mean_and_std, TARGETS),
    "classifier": (classifier, scores_and_labels, LABELS),
    "balanced": (
        lambda: classifier().set_params(class_weight="balanced"),
        scores_and_labels,
        LABELS,
    ),
    "principal components": (lambda: KernelPCA(2, small_map()), projections, None),
}


def some(y, rows):
    return None if y is None else y[rows]


@pytest.mark.parametrize("case", CASES)
def test_predictions_during_partial_fit_belong_to_a_state_of_the_model(case):
    make, predict, y = CASES[case]
    twin = make().fit(X[BATCHES[0]], some(y, BATCHES[0]))
    states = [predict(twin)]
    for batch in BATCHES[1:]:
        states.append(predict(twin.partial_fit(X[batch], some(y, batch))))
    assert not is_one_of(states[0], states[1:])

    def change(model):
        for batch in BATCHES[1:]:
            model.partial_fit(X[batch], some(y, batch))

    model = make().fit(X[BATCHES[0]], some(y, BATCHES[0]))
    found = observed(model, predict, change)
    assert all(is_one_of(result, states) for result in found)
    assert is_one_of(predict(model), states[-1:])


def saved_and_loaded(model, folder):
    path = folder / str(threading.get_ident())
    kitchenette.save(model, path)
    return kitchenette.load(path)


@pytest.mark.parametrize("way", ["save", "pickle", "deepcopy"])
def test_copies_made_during_partial_fit_are_of_one_state(way, tmp_path):
    copied = {
        "save": lambda model: saved_and_loaded(model, tmp_path),
        "pickle": lambda model: pickle.loads(pickle.dumps(model)),
        "deepcopy": deepcopy,
    }[way]
    start = regressor().fit(X[BATCHES[0]], TARGETS[BATCHES[0]])
    twin, states = deepcopy(start), [mean_and_std(start)]
    for batch in BATCHES[1:]:
        states.append(mean_and_std(twin.partial_fit(X[batch], TARGETS[batch])))

    def change(model):
        for batch in BATCHES[1:]:
            model.partial_fit(X[batch], TARGETS[batch])

    found = observed(start, lambda model: mean_and_std(copied(model)), change)
    assert all(is_one_of(result, states) for result in found)


FIRST, SECOND = slice(0, 150), slice(200, 400)
FITS = {
    "regressor": (regressor, mean_and_std, TARGETS, -3 * TARGETS),
    "targets of another shape": (
        regressor,
        lambda model: (model.predict(ROWS),),
        TARGETS,
        np.stack([TARGETS, -TARGETS], axis=1),
    ),
    "other labels": (classifier, labels, LABELS, np.char.add("other ", LABELS)),
    "more labels": (
        classifier,
        scores_and_labels,
        LABELS,
        np.array(["x", "y", "z", "t", "u"])[np.digitize(X[:, 1], [-1, -0.3, 0.3, 1])],
    ),
    "principal components": (lambda: KernelPCA(2, small_map()), projections, None, None),
    "map": (lambda: Fastfood(Gaussian("median"), 32, random_state=0), projections, None, None),
}


@pytest.mark.parametrize("case", FITS)
def test_other_threads_see_the_old_model_until_it_is_fitted_again(case):
    make, predict, y, other = FITS[case]
    states = [
        predict(make().fit(X[FIRST], some(y, FIRST))),
        predict(make().fit(X[SECOND], some(other, SECOND))),
    ]
    assert not is_one_of(states[0], states[1:])

    def change(model):
        for _ in range(3):
            model.fit(X[SECOND], some(other, SECOND))
            model.fit(X[FIRST], some(y, FIRST))

    model = make().fit(X[FIRST], some(y, FIRST))
    found = observed(model, predict, change)
    assert all(is_one_of(result, states) for result in found)


def test_a_failed_fit_leaves_the_model_alone():
    model = regressor().fit(X, TARGETS)
    before = model.predict(ROWS)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, np.where(TARGETS > 0, np.nan, TARGETS))
    np.testing.assert_array_equal(model.predict(ROWS), before)


def test_parameters_set_while_a_model_is_fitted_are_kept():
    model = regressor()
    observed(model, lambda m: m.set_params(alpha=3.0), lambda m: m.fit(X, TARGETS), n_threads=1)
    assert model.alpha == 3.0
