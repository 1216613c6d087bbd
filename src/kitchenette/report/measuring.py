"""Times, memory and sizes of one model."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kitchenette.files import ModelFileError, save

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")
RESET_PEAK = "5"  # written to `CLEAR`, it sets the peak of the resident memory to its present size
PREDICTED_ROWS = 2000
REPEATS = 3


class Cost(NamedTuple):
    """The seconds that an action took, and the memory beyond what was there before."""

    seconds: float
    n_bytes: int | None


def cost_of(action: Callable[[], object]) -> Cost:
    """Run an action, and measure it."""
    before = _reset_peak()
    start = perf_counter()
    action()
    seconds = perf_counter() - start
    peak = None if before is None else resident("VmHWM")
    return Cost(seconds, None if before is None or peak is None else max(0, peak - before))


def resident(entry: str) -> int | None:
    """The resident memory of this process, now ("VmRSS") or at most ("VmHWM"), on Linux."""
    try:
        lines = STATUS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = dict(line.split(":", 1) for line in lines).get(entry)
    return None if found is None else int(found.split()[0]) * 1024


def _reset_peak() -> int | None:
    """Forget the peak of the memory and return its present size; None where that is impossible."""
    try:
        CLEAR.write_text(RESET_PEAK, encoding="ascii")
    except OSError:
        return None
    return resident("VmRSS")


def prediction_seconds(model: Any, X: Any) -> float:
    """The time that the prediction of a row takes, among many of them."""
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


def error_of(
    predicted: NDArray[Any], targets: NDArray[Any], task: str
) -> tuple[float, float | None]:
    """The error of predictions, and its standard error.

    For classes it is the share of wrong ones. For numbers it is the root of the mean square error
    over the standard deviation of the targets, averaged over the targets if there are several.
    """
    n_rows = targets.shape[0]
    if task == "classification":
        wrong = float(np.mean(predicted != targets))
        return wrong, float(np.sqrt(wrong * (1 - wrong) / n_rows))
    targets, predicted = targets.reshape(n_rows, -1), predicted.reshape(n_rows, -1)
    squares = np.square(targets - predicted)
    spreads = targets.std(axis=0)
    varying = spreads > 0
    if not varying.any():
        return float(np.sqrt(squares.mean())), None
    relative = squares[:, varying] / np.square(spreads[varying])
    errors = np.sqrt(relative.mean(axis=0))
    # The standard error of a root is that of the mean square over twice the root.
    of_squares = relative.std(axis=0) / np.sqrt(n_rows)
    standard = np.divide(of_squares, 2 * errors, out=np.zeros_like(errors), where=errors > 0)
    return float(errors.mean()), float(standard.mean())
