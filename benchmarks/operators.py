"""Linear functions of features, computed in cache, against features and a BLAS product.

python -m benchmarks.operators            # all threads
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.operators
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import best_times
from kitchenette import _core
from kitchenette.sketching.operators import NativeOperator, Operator
from kitchenette.sketching.products import draw_hadamard_products
from kitchenette.sketching.structured import draw_fastfood

ROWS = 512
SINCOS = _core.Nonlinearity("sincos", 0.1)


def fastfood(d: int, D: int, dtype: Any) -> Operator:
    return draw_fastfood(D // 2, d, 0, dtype).operator(SINCOS, D)


def dense(d: int, D: int, dtype: Any) -> Operator:
    panels = np.random.default_rng(0).normal(size=(D // 128, d, 64)).astype(dtype)
    return NativeOperator(_core.dense(SINCOS, panels=panels, n_features=D))


def products(d: int, D: int, dtype: Any) -> Operator:
    degrees = np.full(D, 3, np.int32)
    return draw_hadamard_products(degrees, np.ones(D), d, 0, dtype).operator()


def write_and_multiply(
    operator: Operator, X: NDArray[Any], Z: NDArray[Any], weights: NDArray[Any]
) -> NDArray[Any]:
    operator.write(X, Z)
    return np.asarray(Z @ weights)


def compare(name: str, operator: Operator, n: int, n_targets: int) -> None:
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(n, operator.n_columns)) / 30).astype(operator.dtype)
    Z = np.empty((n, operator.n_features), operator.dtype)
    weights = rng.normal(size=(operator.n_features, n_targets))
    line, out = operator.linear(weights, np.zeros(n_targets)), np.empty((n, n_targets))
    native = np.asfortranarray(weights, dtype=operator.dtype)
    times = best_times(
        {
            "features": partial(operator.write, X, Z),
            "linear": partial(line.write, X, out),
            "product": partial(write_and_multiply, operator, X, Z, native),
        }
    )
    features = times["features"]
    print(
        f"{name:26}{operator.dtype.name:9}{n:5}{n_targets:9}{features / n * 1e6:10.1f}"
        f"{times['linear'] / features:10.2f}{times['product'] / features:16.2f}",
        flush=True,
    )


def main() -> None:
    print("microseconds of features per row, and the time of linear functions relative to features")
    print(
        f"{'operator':26}{'dtype':9}{'rows':>5}{'targets':>9}{'features':>10}{'linear':>10}"
        f"{'write + BLAS':>16}"
    )
    for dtype in (np.float32, np.float64):
        operators = {
            "Fastfood, d 784, D 4096": fastfood(784, 4096, dtype),
            "Fastfood, d 784, D 16384": fastfood(784, 16384, dtype),
            "dense, d 64, D 4096": dense(64, 4096, dtype),
            "products, d 784, D 4096": products(784, 4096, dtype),
        }
        for name, operator in operators.items():
            for n, n_targets in [(ROWS, 1), (ROWS, 10), (1, 1), (1, 10)]:
                compare(name, operator, n, n_targets)


if __name__ == "__main__":
    main()
