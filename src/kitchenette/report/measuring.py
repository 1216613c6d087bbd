"""Times, memory and sizes of one model."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from kitchenette.files import ModelFileError, save
from kitchenette.resources import resident

CLEAR = Path("/proc/self/clear_refs")
RESET_PEAK = "5"  # written to `CLEAR`, it sets the peak of the resident memory to its present size
PREDICTED_ROWS = 2000  # beyond them the time per row does not change
REPEATS = 3  # the least of which is free of most interruptions


class Usage(NamedTuple):
    """The seconds of an action, and the memory that it took in addition."""

    seconds: float
    n_bytes: int | None


def cost_of(action: Callable[[], object]) -> Usage:
    """Run an action, and measure it."""
    before = _reset_peak()
    start = perf_counter()
    action()
    seconds = perf_counter() - start
    peak = None if before is None else resident("VmHWM")
    return Usage(seconds, None if before is None or peak is None else max(0, peak - before))


def _reset_peak() -> int | None:
    """Forget the peak of the memory and return its present size; None where that is impossible."""
    try:
        CLEAR.write_text(RESET_PEAK, encoding="ascii")
    except OSError:
        return None
    return resident("VmRSS")


def prediction_seconds(model: Any, X: Any) -> float:
    """The time per row of a prediction of many rows."""
    X = X[:PREDICTED_ROWS]
    return min(cost_of(lambda: model.predict(X)).seconds for _ in range(REPEATS)) / X.shape[0]


def stored_size(model: Any) -> int:
    """The size of a file with the model, for predictions only."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        try:
            save(model, path, statistics=False)
        except ModelFileError:
            return len(pickle.dumps(model))
        return os.path.getsize(path)
