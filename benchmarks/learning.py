"""The statistics of least squares against bare BLAS, and their solutions against Ridge.

python -m benchmarks.learning          # about two minutes, 2 GB
python -m benchmarks.learning --quick  # small sizes only
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas
from sklearn.linear_model import Ridge

import kitchenette
from benchmarks.timing import Action, best_times
from kitchenette import LeastSquares
from kitchenette.learning import Solution
from kitchenette.learning.least_squares import BLOCK_ROWS

Rows = NDArray[np.float32]


def rows(n: int, D: int) -> Rows:
    return np.random.default_rng(0).normal(size=(n, D)).astype(np.float32) + np.float32(1)


def targets(n: int, k: int) -> NDArray[np.float64]:
    return np.random.default_rng(1).normal(size=(n, k))


def updating(sizes: list[tuple[int, int, int]]) -> None:
    print("Adding rows, float32: the part that LeastSquares.update reaches of the speed of")
    print(f"a bare ssyrk on blocks of {BLOCK_ROWS} rows, of sgemm, and of np.dot(Z.T, Z)")
    print(f"{'D':>6} {'rows':>6} {'k':>3}{'GFlop/s':>9}{'ssyrk':>8}{'sgemm':>8}{'np.dot':>8}")
    for D, n, k in sizes:
        Z, Y = rows(n, D), targets(n, k)
        product = np.zeros((D, D), np.float32, order="F")
        statistics = LeastSquares(D, k)
        block = Z[:BLOCK_ROWS]

        def syrk(Z: Rows = Z, C: Rows = product) -> None:
            for start in range(0, len(Z), BLOCK_ROWS):
                A = Z[start : start + BLOCK_ROWS].T
                blas.ssyrk(1.0, A, beta=1.0, c=C, overwrite_c=1, lower=1)

        actions: dict[str, Action] = {
            "update": partial(statistics.update, Z, Y),
            "ssyrk": syrk,
            "sgemm": partial(
                blas.sgemm, 1.0, block.T, block.T, trans_b=1, c=product, overwrite_c=1
            ),
            "np.dot": partial(np.dot, Z.T, Z),
        }
        times = best_times(actions)
        operations = n * D * D
        speed = operations / times["update"]
        gemm_speed = 2 * len(block) * D * D / times["sgemm"]
        print(
            f"{D:6} {n:6} {k:3}{speed / 1e9:9.0f}{times['ssyrk'] / times['update']:8.2f}"
            f"{speed / gemm_speed:8.2f}{times['np.dot'] / times['update']:8.2f}"
        )
    print()


def from_rows(Z: Rows, Y: NDArray[np.float64]) -> Solution:
    return LeastSquares(Z.shape[1], Y.shape[1]).update(Z, Y).solve(1.0)


def solving(sizes: list[tuple[int, int]]) -> None:
    print("Solving, from statistics: times relative to one Ridge(solver='cholesky') on all rows")
    print(f"{'D':>6} {'rows':>6}{'Ridge':>10}  {'':24}{'Ridge /':>10}")
    alphas = np.logspace(-3, 3, 30)
    for D, n in sizes:
        Z, Y = rows(n, D), targets(n, 10)
        Y[:, 0] += Z[:, 0]
        statistics = LeastSquares(D, 10).update(Z, Y)
        ridge: Any = Ridge(alpha=1.0, solver="cholesky")
        actions: dict[str, Action] = {
            "Ridge": partial(ridge.fit, Z, Y),
            "update and solve(1.0)": partial(from_rows, Z, Y),
            "solve(1.0)": partial(statistics.solve, 1.0),
            "solve('gcv')": partial(statistics.solve, "gcv"),
            "solve('evidence')": partial(statistics.solve, "evidence"),
            "path of 30, each": partial(statistics.path, alphas),
        }
        times = best_times(actions)
        times["path of 30, each"] /= len(alphas)
        for name in list(actions)[1:]:
            print(
                f"{D:6} {n:6}{1e3 * times['Ridge']:7.0f} ms  {name:24}"
                f"{times['Ridge'] / times[name]:10.1f}"
            )
        print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="leave out what takes long")
    options = parser.parse_args()
    kitchenette.show_config()
    print()
    large = [] if options.quick else [(4096, 8192, 10)]
    updating([(256, 8192, 1), (1024, 8192, 10), *large])
    solving([(512, 8192), (1024, 8192)] + ([] if options.quick else [(2048, 8192)]))


if __name__ == "__main__":
    main()
