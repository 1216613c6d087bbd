"""Whatever interrupts a change of statistics or of a model, it has happened or it has not."""

from __future__ import annotations

import functools
import itertools
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import kitchenette
from kitchenette import Fastfood, KernelClassifier, KernelRegressor, LeastSquares
from kitchenette.kernels import Gaussian
from kitchenette.learning import one_pass

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
    classes = model.classes_ if hasattr(model, "classes_") else np.empty(0)
    solved = hasattr(model, "feature_weights_")
    return {**numbers(model.statistics_), "classes": classes, "solved": solved}


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
    monkeypatch.setattr(one_pass, "MOST_ROWS", 64)
    make, change = CHANGES[name]
    start = pickle.dumps(make(SOME))
    # The first change also makes the other model, before any call is interrupted.
    assert_happens_or_does_not(lambda: pickle.loads(start), change, described, error)
