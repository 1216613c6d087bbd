"""KernelPCA against scikit-learn's in time, memory and variance; a million rows in one pass.

python -m benchmarks.kernel_pca          # a few minutes, 3 GB for the exact one
python -m benchmarks.kernel_pca --quick  # fewer rows

The data are seeded: rows of 50 float32 columns near a curved surface of four dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.decomposition import KernelPCA as ExactKernelPCA
from threadpoolctl import threadpool_limits

from benchmarks.timing import (
    Action,
    begun,
    fastfood,
    forget_peak,
    in_a_new_process,
    options_parser,
    peak_memory,
)
from kitchenette import KernelPCA
from kitchenette.kernels import Gaussian
from kitchenette.learning.gram import leading_eigenvectors

Rows = NDArray[np.float32]

COLUMNS, HIDDEN = 50, 4
LENGTH_SCALE = 16.0  # about the median distance
COMPONENTS = 10
D = 1024
BATCH = 10_000
NEW_ROWS = 1000  # on which the variance that the components explain is compared
REPETITIONS = 2


def rows(n: int, seed: int) -> Rows:
    fixed = np.random.default_rng(0)
    A, B = (fixed.normal(size=(HIDDEN, COLUMNS)) for _ in range(2))
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, HIDDEN))
    X = hidden @ A / 2 + 2 * np.sin(hidden @ B) + 0.3 * rng.normal(size=(n, COLUMNS))
    return X.astype(np.float32)


def ours(n_features: int = D) -> Any:
    return KernelPCA(COMPONENTS, fastfood(Gaussian(LENGTH_SCALE), n_features))


def theirs(solver: str = "auto") -> Any:
    return ExactKernelPCA(
        COMPONENTS,
        kernel="rbf",
        gamma=0.5 / LENGTH_SCALE**2,
        eigen_solver=solver,
        random_state=0,
        copy_X=False,
    )


def fitted(make: Callable[[], Any], n: int) -> tuple[float, float, NDArray[Any]]:
    """Seconds to fit, megabytes that fitting adds to the peak, and projections of new rows.

    Seconds are those of all processors together, with one BLAS thread: threads of the BLAS that
    wait for each other on a busy machine would cost scikit-learn several times as much.
    """
    X, new = rows(n, 1), rows(NEW_ROWS, 2)
    make().fit(X[:100])  # what the first call loads is not counted
    forget_peak()
    before = peak_memory()
    start = process_time()
    with threadpool_limits(1, user_api="blas"):
        model = make().fit(X)
    seconds = process_time() - start
    memory = peak_memory() - before
    return seconds, memory, np.asarray(model.transform(new), dtype=np.float64)


def captured(projections: NDArray[Any], K: NDArray[Any]) -> float:
    """The part of the variance in the feature space of the exact kernel that columns explain.

    The columns span a subspace of functions on the new rows; it is the trace of the centered kernel
    matrix projected on this subspace, divided by the trace.
    """
    basis = np.linalg.qr(projections - projections.mean(axis=0))[0]
    centered = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    return float(np.trace(basis.T @ centered @ basis) / np.trace(centered))


def against_exact(sizes: list[int]) -> None:
    new = rows(NEW_ROWS, 2)
    K = Gaussian(LENGTH_SCALE)(new, new)
    print(f"Fitting {COMPONENTS} components of rows of {COLUMNS} float32 columns: seconds of all")
    print(f"processors, best of {REPETITIONS}, a process for each; 'variance' is the part of the")
    print(f"exact kernel's variance of {NEW_ROWS} new rows that the components explain")
    print(f"{'rows':>6}  {'':30}{'seconds':>9}{'times':>7}{'added MB':>10}{'variance':>10}")
    makers: dict[str, Callable[[], Any]] = {
        "scikit-learn's KernelPCA": theirs,
        "  eigen_solver='randomized'": partial(theirs, "randomized"),
        f"KernelPCA, {D} features": ours,
        f"KernelPCA, {4 * D} features": partial(ours, 4 * D),
    }
    for n in sizes:
        slowest = None
        for name, make in makers.items():
            runs = [in_a_new_process(fitted, make, n) for _ in range(REPETITIONS)]
            seconds, memory, projections = min(runs, key=lambda run: run[0])
            slowest = seconds if slowest is None else slowest
            print(
                f"{n:6}  {name:30}{seconds:9.2f}{slowest / seconds:7.1f}{memory:10.0f}"
                f"{captured(projections, K):10.1%}"
            )
        print()


def solving(sizes: list[int]) -> None:
    print(f"{COMPONENTS} eigenvectors of a Gram matrix, seconds of all processors, one BLAS thread")
    print(f"{'features':>8}{'ours':>8}{'eigh, subset':>14}{'eigh, all':>11}")
    for n_features in sizes:
        gram = ours(n_features).partial_fit(rows(BATCH, 1)).statistics_.gram
        subset = n_features - COMPONENTS, n_features - 1
        actions: list[Action] = [
            partial(leading_eigenvectors, gram, COMPONENTS),
            partial(eigh, gram.full(), lower=True, subset_by_index=subset),
            partial(eigh, gram.full(), lower=True, driver="evd"),
        ]
        seconds = []
        with threadpool_limits(1, user_api="blas"):
            for action in actions:
                start = process_time()
                action()
                seconds.append(process_time() - start)
        print("{:8}{:8.2f}{:14.2f}{:11.2f}".format(n_features, *seconds))
    print()


def one_pass(n: int) -> tuple[float, float, list[float], float]:
    """Seconds of all processors for learning and for solving, peaks on the way, and the last."""
    model = ours()
    forget_peak()
    peaks, learning = [], 0.0
    for number in range(n // BATCH):
        X = rows(BATCH, number)
        start = process_time()
        model.partial_fit(X)
        learning += process_time() - start
        peaks.append(peak_memory())
    start = process_time()
    model.solve()
    solving = process_time() - start
    tenths = [peaks[(len(peaks) - 1) * tenth // 10] for tenth in (1, 5, 10)]
    return learning, solving, tenths, peak_memory()


def a_million(n: int) -> None:
    learning, solving, tenths, peak = in_a_new_process(one_pass, n)
    print(f"{n:,} rows x {COLUMNS} columns in batches of {BATCH:,}, {D} features, one pass:")
    per_row = 1e6 * learning / n
    print(f"  learning {learning:.1f} s of all processors, {per_row:.1f} microseconds per row")
    print(f"  {COMPONENTS} components {solving:.2f} s")
    shown = ", ".join(f"{megabytes:.0f}" for megabytes in tenths)
    print(f"  peak of the process after 10, 50 and 100 % of the rows: {shown} MB")
    print(f"  with the components: {peak:.0f} MB")
    sizes = (f"{n * width * 4 / 2**20:,.0f} MB" for width in (COLUMNS, D, n))
    print("  (in float32, rows, features and kernel matrix have {}, {} and {})".format(*sizes))


def figures() -> dict[str, Action]:
    """A few cases whose times tell versions apart."""
    X = rows(BATCH, 1)
    model = ours().fit(X)
    return {
        "KernelPCA.fit": lambda: ours().fit(X),
        "KernelPCA.transform": partial(model.transform, X),
    }


def main() -> None:
    options = begun(options_parser(__doc__), figures)
    if options is None:
        return
    against_exact([2000] if options.quick else [2000, 5000, 10_000])
    solving([1024] if options.quick else [1024, 4096])
    a_million(100_000 if options.quick else 1_000_000)


if __name__ == "__main__":
    main()
