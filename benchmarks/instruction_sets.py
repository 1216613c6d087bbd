"""The instruction sets of this processor against each other, on one thread.

python -m benchmarks.instruction_sets            # a minute
python -m benchmarks.instruction_sets --quick    # less exact

Processor time is measured, so that other work on the machine hardly matters; the sets take turns.
The table has microseconds with the second widest set, usually AVX2, and how many times as fast the
widest one is.
"""

from __future__ import annotations

from functools import partial
from time import thread_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.timing import Action, options_parser
from kitchenette import (
    SRHT,
    CRAFTMap,
    Fastfood,
    KernelClassifier,
    LeastSquares,
    RandomKitchenSinks,
    RandomMaclaurin,
    TensorSketch,
    _core,
    fwht,
)
from kitchenette.kernels import Gaussian, Polynomial


def transforming(feature_map: Any, X: Any) -> Action:
    return partial(feature_map.fit(X).transform, X)


def actions() -> dict[str, Action]:
    """What is measured, by name."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(256, 784)) / 28).astype(np.float32)
    Z = rng.normal(size=(4096, 1024)).astype(np.float32)
    gaussian, cubic = Gaussian(1.0), Polynomial(3)
    made: dict[str, Action] = {
        "`Fastfood`, 4096 features": transforming(Fastfood(gaussian, 4096), X),
        "... of 16 columns": transforming(Fastfood(gaussian, 4096), X[:, :16].copy()),
        "... one row": transforming(Fastfood(gaussian, 4096), X[:1]),
        "... one row, 32768 features": transforming(Fastfood(gaussian, 32768), X[:1]),
        '... "hadamard"': transforming(Fastfood(gaussian, 4096, projection="hadamard"), X),
        "`RandomKitchenSinks`, 4096 features": transforming(RandomKitchenSinks(gaussian, 4096), X),
        "... of 16 columns, dense frequencies": transforming(
            RandomKitchenSinks(gaussian, 4096), X[:, :16].copy()
        ),
        "`RandomMaclaurin`, 4096 features": transforming(RandomMaclaurin(cubic, 4096), X),
        "`TensorSketch`, 4096 features": transforming(TensorSketch(cubic, 4096), X),
        "`CRAFTMap`, 16384 to 2048 features": transforming(
            CRAFTMap(RandomMaclaurin(cubic, 16384), 2048), X[:64]
        ),
        "`SRHT`, 512 features": transforming(SRHT(512), X),
        "`fwht` of 1024 numbers": partial(fwht, Z[:256]),
    }
    targets = Z[:, :10].astype(np.float64)
    made["`LeastSquares.update`, 1024 features"] = lambda: LeastSquares(1024, 10).update(Z, targets)
    model = KernelClassifier(Fastfood(gaussian, 1024), alpha=1.0).fit(X, np.arange(256) % 10)
    made["`predict`, 256 rows, 1024 features"] = partial(model.predict, X)
    made["`predictor()`, one row"] = partial(model.predictor(), X[0])
    return made


def best_time(action: Action, seconds: float) -> float:
    """The shortest processor time of an action that is repeated for some seconds."""
    action()
    best, end = np.inf, thread_time() + seconds
    while thread_time() < end:
        repeats = 1 if best > 2e-3 else 10
        start = thread_time()
        for _ in range(repeats):
            action()
        best = min(best, (thread_time() - start) / repeats)
    return best


def main() -> None:
    options = options_parser(__doc__).parse_args()
    rounds, seconds = (2, 0.1) if options.quick else (6, 0.2)
    *_, narrow, wide = _core.simd_variants()
    measured = actions()
    best: dict[tuple[str, str], float] = {}
    with threadpool_limits(1):
        for _ in range(rounds):
            for name, action in measured.items():
                for variant in (narrow, wide):
                    _core.set_simd(variant)
                    time = best_time(action, seconds)
                    best[name, variant] = min(time, best.get((name, variant), np.inf))
    print(f"| | {narrow}, µs | {wide}, times as fast |\n|---|---:|---:|")
    for name in measured:
        short, long = best[name, wide], best[name, narrow]
        print(f"| {name} | {1e6 * long:.4g} | {long / short:.2f} |")


if __name__ == "__main__":
    main()
