"""Whatever interrupts a change of statistics, it has happened or it has not."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import kitchenette
from kitchenette import LeastSquares

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


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("method", ["update", "downdate", "merge"])
def test_a_change_happens_or_does_not(method, error):
    other = LeastSquares(9, 2).update(Z[:50] + 1, Y[:50])
    arguments = {"update": (Z, Y), "downdate": (Z[:8300], Y[:8300]), "merge": (other,)}[method]
    start = known().state()
    before = numbers(known())
    changed = known()
    getattr(changed, method)(*arguments)
    after = numbers(changed)
    assert not equal(before, after)
    seen, line, reached = [], 1, True
    while reached:
        statistics = LeastSquares.from_state(start)
        reached = interrupted(lambda: getattr(statistics, method)(*arguments), line, error)  # noqa: B023
        now = numbers(statistics)
        assert equal(now, before) or equal(now, after), f"torn at line event {line}"
        seen.append(equal(now, after))
        line += 1
    assert seen[0] is False
    assert seen[-1] is True
    assert len(seen) > 3
    assert seen == sorted(seen)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_load_leaves_the_state_alone(error):
    state = known().state()
    before = {name: np.copy(value) for name, value in state.items()}
    line = 1
    while interrupted(lambda: LeastSquares.from_state(state), line, error):
        assert equal(state, before)
        line += 1
    assert line > 10
