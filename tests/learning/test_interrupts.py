"""Whatever interrupts a change of statistics or of a model, it has happened or it has not."""

from __future__ import annotations

import functools
import itertools
import os
import pickle
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import kitchenette
from kitchenette import Fastfood, KernelClassifier, KernelRegressor, LeastSquares
from kitchenette.kernels import Gaussian
from kitchenette.training import model as model_module

PACKAGE = str(Path(kitchenette.__file__).parent)
RNG = np.random.default_rng(0)
Z, Y = RNG.normal(size=(8400, 9)).astype(np.float32), RNG.normal(size=(8400, 2))


def known():
    return LeastSquares(9, 2).update(Z, Y)


def numbers(statistics):
    return {name: np.copy(value) for name, value in statistics.state().items()}


def equal(a, b):
    return all(np.array_equal(a[name], b[name]) for name in a)


def interrupted(action, line, error):
    """Run an action and raise an error at so many lines of the package; whether it came so far."""
    lines = 0

    def trace(frame, event, _):
        nonlocal lines
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            lines += 1
            if lines == line:
                raise error
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    except error:
        return True
    except AttributeError as refused:  # `available_if` has caught the error
        if not isinstance(refused.__cause__, error):
            raise
        return True
    finally:
        sys.settrace(before)
    return False


def assert_happens_or_does_not(make, change, described, error):
    """Interrupt the change of a new object at every line of the package, one after the other."""
    before = described(make())
    changed = make()
    change(changed)
    after = described(changed)
    assert not equal(before, after)
    seen, reached = [], True
    while reached:
        owner = make()
        reached = interrupted(functools.partial(change, owner), len(seen) + 1, error)
        now = described(owner)
        assert equal(now, before) or equal(now, after), f"torn at line event {len(seen) + 1}"
        seen.append(equal(now, after))
    assert seen[0] is False
    assert seen[-1] is True
    assert len(seen) > 3
    assert seen == sorted(seen)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("method", ["update", "downdate", "merge"])
def test_a_change_happens_or_does_not(method, error):
    other = LeastSquares(9, 2).update(Z[:50] + 1, Y[:50])
    arguments = {"update": (Z, Y), "downdate": (Z[:8300], Y[:8300]), "merge": (other,)}[method]
    start = known().state()
    assert_happens_or_does_not(
        lambda: LeastSquares.from_state(start),
        lambda statistics: getattr(statistics, method)(*arguments),
        numbers,
        error,
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_load_leaves_the_state_alone(error):
    state = known().state()
    before = {name: np.copy(value) for name, value in state.items()}
    line = 1
    while interrupted(lambda: LeastSquares.from_state(state), line, error):
        assert equal(state, before)
        line += 1
    assert line > 10


# ---------------------------------------------------------------- the estimators

X = RNG.normal(size=(240, 3))
TARGETS = np.sin(X[:, 0])
LABELS = np.array(["a", "b", "c", "d"])[(X[:, :2] > 0) @ [1, 2]]
MAP = Fastfood(Gaussian(2.0), 12, random_state=0)


def regressor(rows):
    return KernelRegressor(MAP).fit(X[rows], TARGETS[rows])


def classifier(rows, labels=LABELS):
    return KernelClassifier(MAP).fit(X[rows], labels[rows])


def described(model):
    """All that can change in a model, and whether it has weights, which would be out of date."""
    partial = model.model_.partial
    sample = partial.sample
    return {
        **numbers(model.statistics_),
        "classes": getattr(model, "classes_", np.empty(0)),
        "target_dtype": np.array(partial.target_dtype),
        "solved": hasattr(model, "feature_weights_"),
        "sampled": np.empty(0) if sample is None else sample.keys,
        "copies": np.empty(0) if sample is None else sample.copies,
    }


SOME, MORE, MANY = slice(0, 100), slice(100, 130), slice(100, 240)
FEWER = np.where(LABELS == "d", "c", LABELS)


@functools.cache
def other_regressor():
    return regressor(MORE)


@functools.cache
def other_classifier(*, many=False, fewer=False):
    return classifier(MANY if many else MORE, FEWER if fewer else LABELS)


CHANGES = {
    "partial_fit": (regressor, lambda m: m.partial_fit(X[MORE], TARGETS[MORE])),
    "partial_fit of many rows": (regressor, lambda m: m.partial_fit(X[MANY], TARGETS[MANY])),
    "partial_fit after float32 targets": (
        lambda rows: KernelRegressor(MAP).fit(X[rows], TARGETS[rows].astype(np.float32)),
        lambda m: m.partial_fit(X[MORE], TARGETS[MORE]),
    ),
    "downdate": (regressor, lambda m: m.downdate(X[:30], TARGETS[:30])),
    "merge": (regressor, lambda m: m.merge(other_regressor())),
    "partial_fit of a classifier": (classifier, lambda m: m.partial_fit(X[MORE], LABELS[MORE])),
    "merge of equal classes": (classifier, lambda m: m.merge(other_classifier())),
    "merge of fewer classes": (classifier, lambda m: m.merge(other_classifier(fewer=True))),
    "merge of more classes": (
        lambda rows: classifier(rows, FEWER),
        lambda m: m.merge(other_classifier(many=True)),
    ),
}


@pytest.mark.parametrize(
    ("name", "error"),
    [
        *itertools.product(CHANGES, [KeyboardInterrupt]),
        ("merge", MemoryError),
        *(
            pytest.param(name, MemoryError, marks=pytest.mark.slow)
            for name in CHANGES
            if name != "merge"
        ),
    ],
)
def test_a_model_changes_or_does_not(name, error, monkeypatch):
    monkeypatch.setattr(model_module, "MOST_ROWS", 64)
    make, change = CHANGES[name]
    start = pickle.dumps(make(SOME))
    # The first change also makes the other model, before any call is interrupted.
    assert_happens_or_does_not(lambda: pickle.loads(start), change, described, error)


# ---------------------------------------------------------------- real signals


def seconds(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def interrupted_after(delay, action):
    """Run an action, and send the process a real SIGINT after so many seconds; whether it came."""
    running = True

    def handler(signal_number, frame):
        if running:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        action()
        running = False
    except KeyboardInterrupt:
        return True
    finally:
        running = False
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGINT, before)
    return False


@functools.cache
def larger(kind):
    """A model of which a change takes some milliseconds, as a pickle, and rows to change it by."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(600, 4))
    targets = np.sin(2 * rows[:, 0]) + 0.1 * rng.normal(size=600)
    feature_map = Fastfood(Gaussian(1.0), 256, random_state=0)
    model = KernelRegressor(feature_map, validation_rows=200)
    if kind == "balanced":
        model = KernelClassifier(feature_map, validation_rows=200, class_weight="balanced")
        targets = targets > 0
    return pickle.dumps(model.fit(rows, targets)), rows, targets


@pytest.mark.parametrize(
    "moments", [pytest.param(6, id="few"), pytest.param(60, id="many", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", ["regressor", "balanced"])
@pytest.mark.parametrize("method", ["partial_fit", "downdate", "fit"])
def test_a_keyboard_interrupt_leaves_the_model_as_before_or_as_after(method, kind, moments):
    start, rows, targets = larger(kind)
    some = slice(300, 600)

    def change(model):
        getattr(model, method)(rows[some], targets[some])

    before = described(pickle.loads(start))
    changed = pickle.loads(start)
    took = seconds(functools.partial(change, changed))
    after = described(changed)
    assert not equal(before, after)
    happened = []
    for moment in range(moments):
        model = pickle.loads(start)
        delay = took * moment / moments
        happened.append(interrupted_after(delay, functools.partial(change, model)))
        now = described(model)
        assert equal(now, before) or equal(now, after), f"torn after {delay:g} seconds"
        assert model.predict(rows[:3]).shape == (3,)
    assert any(happened)
