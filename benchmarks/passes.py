"""Passes over features as iterative solvers make them, relative to the features alone.

python -m benchmarks.passes            # all sizes
python -m benchmarks.passes --quick    # 16384 features and 10 targets only
python -m benchmarks.passes --picture docs/images/passes-growth.png   # growth with n, D and k only

Times are those of the processors, summed over the threads, which hardly depend on what else the
machine does. Features are written to a block that is used again for the following rows. F = Z W is
a linear function of the features Z, Z' R adds their products with factors of the rows, and a
gradient of the logistic loss takes both from the same features.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kitchenette
from benchmarks.timing import Action, draw_curves, fastfood, options_parser, print_figures
from kitchenette import CRAFTMap, RandomKitchenSinks, RandomMaclaurin, TensorSketch, _core
from kitchenette.kernels import Gaussian, Polynomial
from kitchenette.sketching.operators import WIDE_BYTES, Operator

ROWS, COLUMNS = 2048, 784
KERNEL = Polynomial(3)
TRANSPOSED = "Z' R"

MAPS: dict[str, Callable[[int], Any]] = {
    "Fastfood": lambda D: fastfood(Gaussian(28.0), D),
    "RandomKitchenSinks": lambda D: RandomKitchenSinks(Gaussian(28.0), D, random_state=0),
    "TensorSketch": lambda D: TensorSketch(KERNEL, D, random_state=0),
    "RandomMaclaurin": lambda D: RandomMaclaurin(KERNEL, D, random_state=0),
    "CRAFT, TensorSketch": lambda D: CRAFTMap(
        TensorSketch(KERNEL, 8 * D, random_state=0), D, random_state=0
    ),
    "CRAFT, RandomMaclaurin": lambda D: CRAFTMap(
        RandomMaclaurin(KERNEL, 8 * D, random_state=0), D, random_state=0
    ),
}


def rows(n: int) -> NDArray[np.float32]:
    X = np.random.default_rng(0).normal(size=(n, COLUMNS)).astype(np.float32)
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def operator_of(name: str, D: int, X: NDArray[np.float32]) -> Operator:
    operator: Operator = MAPS[name](D).fit(X[:100]).operator(X)
    return operator


def write_blocks(operator: Operator, X: NDArray[Any], block: NDArray[Any]) -> None:
    for start in range(0, len(X), len(block)):
        some = X[start : start + len(block)]
        operator.write(some, block[: len(some)])


def passes(operator: Operator, X: NDArray[Any], n_targets: int) -> dict[str, Action]:
    rng = np.random.default_rng(1)
    n, D = len(X), operator.n_features
    size = max(1, WIDE_BYTES // (D * operator.dtype.itemsize))
    block = np.empty((min(n, size), D), operator.dtype)
    weights, intercept = rng.normal(size=(D, n_targets)) / D**0.5, np.zeros(n_targets)
    labels = rng.integers(max(2, n_targets), size=n, dtype=np.int32)
    R = rng.normal(size=(n, n_targets)).astype(operator.dtype)
    outputs, out, sums = np.empty((n, n_targets)), np.zeros((D, n_targets)), np.zeros(n_targets)
    line, loss = operator.linear(weights, intercept), _core.Loss("logistic")
    return {
        "features": partial(write_blocks, operator, X, block),
        "Z W": partial(line.write, X, outputs),
        TRANSPOSED: partial(operator.add_transposed, X, R, out),
        "gradient": partial(
            operator.gradient, X, weights, intercept, labels, None, loss, outputs, out, sums
        ),
    }


def processor_seconds(action: Action) -> float:
    """The least processor time of a few calls, summed over the threads."""
    used = []
    for _ in range(4):
        start = process_time()
        action()
        used.append(process_time() - start)
    return min(used)


def compare(name: str, D: int, n_targets: list[int]) -> None:
    # Few rows of what is expensive, so that all sizes take a similar time.
    X = rows(ROWS if D < 65536 else ROWS // 4)
    operator = operator_of(name, D, X)
    for k in n_targets:
        times = {name: processor_seconds(call) for name, call in passes(operator, X, k).items()}
        features = times["features"]
        print(
            f"{name:24}{D:7}{k:9}{features / (len(X) * D) * 1e9:10.2f}"
            f"{times['Z W'] / features:8.2f}{times[TRANSPOSED] / features:8.2f}"
            f"{times['gradient'] / features:10.2f}",
            flush=True,
        )


# ---------------------------------------------------------------- growth

BASE = {"rows n": 1024, "features D": 8192, "targets k": 10}
SIZES = {
    "rows n": [64, 128, 256, 512, 1024, 2048, 4096, 8192],
    "features D": [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536],
    "targets k": [1, 2, 4, 8, 16, 32, 64, 128],
}
Curves = dict[str, dict[str, list[tuple[int, float]]]]


def growth() -> Curves:
    """Processor seconds of passes over Fastfood features, as one of n, D and k grows."""
    curves: Curves = {}
    for axis, sizes in SIZES.items():
        others = ", ".join(f"{name} = {value}" for name, value in BASE.items() if name != axis)
        print(f"Processor milliseconds of a pass as {axis} grows; {others}")
        curve: dict[str, list[tuple[int, float]]] = {}
        curves[f"{axis}  ({others})"] = curve
        for size in sizes:
            n, D, k = ({**BASE, axis: size}[name] for name in BASE)
            X = rows(n)
            line = f"{size:8}"
            for name, action in passes(operator_of("Fastfood", D, X), X, k).items():
                seconds = processor_seconds(action)
                curve.setdefault(name, []).append((size, seconds))
                line += f"{name:>12}{1e3 * seconds:9.2f}"
            print(line, flush=True)
    return curves


def main() -> None:
    parser = options_parser(__doc__)
    parser.add_argument("--picture", metavar="FILE", help="draw how the cost of a pass grows")
    options = parser.parse_args()
    if options.picture:
        kitchenette.show_config()
        draw_curves(growth(), "processor milliseconds of a pass", 1e3, options.picture)
        return
    if options.json:
        X = rows(ROWS)
        print_figures(passes(operator_of("Fastfood", 16384, X), X, 10))
        return
    print("processor nanoseconds per feature of a row, and passes relative to features alone")
    print(
        f"{'map':24}{'D':>7}{'targets':>9}{'features':>10}{'Z W':>8}{TRANSPOSED:>8}{'gradient':>10}"
    )
    for D in [16384] if options.quick else [4096, 16384, 65536]:
        for name in MAPS:
            compare(name, D, [10] if options.quick else [1, 10, 100])


if __name__ == "__main__":
    main()
