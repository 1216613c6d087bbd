"""Least squares against bare BLAS and Ridge; KernelClassifier against scikit-learn on MNIST.

python -m benchmarks.learning          # some minutes, 4 GB
python -m benchmarks.learning --quick  # small sizes only, and no MNIST
python -m benchmarks.learning --mnist  # MNIST only
python -m benchmarks.learning --mnist --svc-rows 60000  # with an SVC that learns all of it

MNIST is read as docs/reproduction.md says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from benchmarks.timing import (
    Action,
    begun,
    best_times,
    fastfood,
    forget_peak,
    in_a_new_process,
    options_parser,
    peak_memory,
)
from kitchenette import KernelClassifier, LeastSquares
from kitchenette.kernels import Gaussian
from reproduction.data import load, unit_rows

Rows = NDArray[np.float32]

D = 4096  # features on MNIST
BLOCK_ROWS = 4096  # in one product of the bare BLAS
LENGTH_SCALE = 0.8  # for rows of norm one; good for both
SVC_ROWS = 10_000  # learning all of them takes many minutes


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


def from_rows(Z: Rows, Y: NDArray[np.float64]) -> Any:
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


def mnist() -> tuple[Rows, NDArray[Any], Rows, NDArray[Any]]:
    """Rows of norm one and labels, for training and for testing."""
    arrays = load("mnist")
    return (
        unit_rows(arrays["X_train"]),
        arrays["y_train"],
        unit_rows(arrays["X_test"]),
        arrays["y_test"],
    )


def ours() -> Any:
    return KernelClassifier(fastfood(Gaussian(LENGTH_SCALE), D))


def theirs() -> Any:
    sampler = RBFSampler(gamma=0.5 / LENGTH_SCALE**2, n_components=D, random_state=0)
    return make_pipeline(sampler, RidgeClassifier(alpha=1.0))


def exact() -> Any:
    return SVC(gamma=0.5 / LENGTH_SCALE**2, C=10.0)


def fitted(make: Callable[[], Any], n_rows: int | None = None) -> tuple[float, float, float]:
    """Seconds to fit, error on test rows, and megabytes that fitting added to the peak."""
    X, y, X_test, y_test = mnist()
    forget_peak()
    before = peak_memory()
    start = perf_counter()
    model = make().fit(X[:n_rows], y[:n_rows])
    seconds = perf_counter() - start
    return seconds, 1 - model.score(X_test, y_test), peak_memory() - before


def bare_syrk() -> float:
    """Seconds that the Gram matrix takes a BLAS with nothing else to do."""
    block = rows(BLOCK_ROWS, D)
    product = np.zeros((D, D), np.float32, order="F")
    start = perf_counter()
    for _ in range(60_000 // BLOCK_ROWS):
        blas.ssyrk(1.0, block.T, beta=1.0, c=product, overwrite_c=1, lower=1)
    return (perf_counter() - start) * 60_000 / (60_000 // BLOCK_ROWS * BLOCK_ROWS)


def learning_mnist(svc_rows: int, rounds: int = 12) -> None:
    print(f"Fitting MNIST's 60,000 rows, float32, D={D}, best of {rounds}, a process for each")
    makers = {
        "KernelClassifier(Fastfood), alpha by gcv": ours,
        "RBFSampler + RidgeClassifier, one alpha": theirs,
    }
    best: dict[str, tuple[float, float, float]] = {}
    for _ in range(rounds):
        for name, make in makers.items():
            best[name] = min(best.get(name, (np.inf, 0.0, 0.0)), in_a_new_process(fitted, make))
    slowest = max(seconds for seconds, _, _ in best.values())
    print(f"{'':42}{'seconds':>9}{'times':>7}{'error':>8}{'peak MB':>9}")
    for name, (seconds, error, memory) in best.items():
        print(f"{name:42}{seconds:9.1f}{slowest / seconds:7.1f}{error:8.2%}{memory:9.0f}")
    seconds = min(in_a_new_process(bare_syrk) for _ in range(rounds))
    print(f"{'(bare ssyrk for as many rows)':42}{seconds:9.1f}{slowest / seconds:7.1f}")
    seconds, error, memory = in_a_new_process(fitted, exact, svc_rows)
    print(f"{f'SVC, {svc_rows} rows, once':42}{seconds:9.1f}{'':7}{error:8.2%}{memory:9.0f}")
    print()
    one_row(svc_rows)


def one_row(svc_rows: int) -> None:
    X, y, X_test, _ = mnist()
    print("One row, d=784, k=10, from an array of shape (784,) or (1, 784) to its label")
    small = slice(0, 8 * D)  # the time of a prediction does not depend on the rows learned
    model, pipeline = ours().fit(X[small], y[small]), theirs().fit(X[small], y[small])
    svc = exact().fit(X[:svc_rows], y[:svc_rows])
    predictor, row = model.predictor(), X_test[:1]
    actions: dict[str, Action] = {
        "predictor()": partial(predictor, X_test[0]),
        "KernelClassifier.predict": partial(model.predict, row),
        "RBFSampler pipeline's predict": partial(pipeline.predict, row),
        f"SVC.predict, {svc_rows} rows learned": partial(svc.predict, row),
    }
    times = best_times(actions)
    for name, seconds in times.items():
        ratio = seconds / times["predictor()"]
        print(f"{name:42}{1e6 * seconds:9.1f} microseconds {ratio:7.1f}")
    print()


def figures() -> dict[str, Action]:
    """A few cases whose times tell versions apart."""
    Z, Y = rows(8192, 1024), targets(8192, 10)
    statistics, growing = LeastSquares(1024, 10).update(Z, Y), LeastSquares(1024, 10)
    X, y = rows(8192, 64), np.arange(8192) % 10
    maker = partial(KernelClassifier, fastfood(Gaussian(8.0), 1024))
    model = maker().fit(X, y)
    return {
        "update": partial(growing.update, Z, Y),
        "solve(1.0)": partial(statistics.solve, 1.0),
        "solve('gcv')": partial(statistics.solve, "gcv"),
        "solve('evidence')": partial(statistics.solve, "evidence"),
        "KernelClassifier.fit": lambda: maker().fit(X, y),
        "KernelClassifier.predict": partial(model.predict, X),
        "predictor(), one row": partial(model.predictor(), X[0]),
    }


def main() -> None:
    parser = options_parser(__doc__)
    parser.add_argument("--mnist", action="store_true", help="MNIST only")
    parser.add_argument(
        "--svc-rows", type=int, default=SVC_ROWS, metavar="N", help="rows that an SVC learns"
    )
    options = begun(parser, figures)
    if options is None:
        return
    if options.mnist:
        learning_mnist(options.svc_rows)
        return
    large = [] if options.quick else [(4096, 8192, 10)]
    updating([(256, 8192, 1), (1024, 8192, 10), *large])
    solving([(512, 8192), (1024, 8192)] + ([] if options.quick else [(2048, 8192)]))
    if not options.quick:
        learning_mnist(options.svc_rows)


if __name__ == "__main__":
    main()
