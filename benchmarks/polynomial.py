"""Maps for polynomial kernels against scikit-learn's PolynomialCountSketch, and their limits.

python -m benchmarks.polynomial            # everything but --learning
python -m benchmarks.polynomial --quick    # fewer rows
python -m benchmarks.polynomial --errors   # errors against time, for three kinds of rows
python -m benchmarks.polynomial --learning # errors on test rows by the degrees of RandomMaclaurin

The sets of --learning are read as docs/reproduction.md says.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import joblib
import numpy as np
import scipy.fft
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.kernel_approximation import PolynomialCountSketch

from benchmarks.timing import Action, begun, best_times, fastfood, options_parser
from kitchenette import (
    CRAFTMap,
    Fastfood,
    RandomMaclaurin,
    TensorSketch,
)
from kitchenette.kernels import Exponential, Gaussian, Kernel, Maclaurin, Polynomial

FFT_ROWS = 64  # of 4096 float32: a block that stays in the second-level cache


def dense_rows(n: int, d: int) -> NDArray[np.float32]:
    X = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def sparse_rows(n: int, d: int, density: float) -> Any:
    return sp.random(n, d, density, format="csr", dtype=np.float32, random_state=0)


# ---------------------------------------------------------------- Tensor Sketch


def tensor_sketch_times(X: Any, D: int, degree: int) -> tuple[dict[str, float], float]:
    """Seconds per transform of X, and of a real FFT per point on one thread."""
    sketch = TensorSketch(Polynomial(degree), D, random_state=0).fit(X)
    frequency = TensorSketch(Polynomial(degree), D, output="frequency", random_state=0).fit(X)
    peer = PolynomialCountSketch(degree=degree, coef0=1, n_components=D, random_state=0).fit(X)
    block = dense_rows(FFT_ROWS, D)
    times = best_times(
        {
            "TensorSketch": partial(sketch.transform, X),
            "frequency": partial(frequency.transform, X),
            "peer": partial(peer.transform, X),
            "fft": partial(scipy.fft.rfft, block, workers=1),
        }
    )
    return times, times.pop("fft") / block.size


def tensor_sketch(quick: bool) -> None:
    print("TensorSketch, float32, all threads: nanoseconds per feature and ratios. The last")
    print("columns: SciPy's real FFT on one thread, nanoseconds per point, and the time that")
    print("degree + 1 such transforms would take on all threads, relative to TensorSketch")
    print(
        f"{'rows':28}{'degree':>7}{'ns':>8}{'frequency':>11}{'sklearn':>9}{'sklearn /':>11}"
        f"{'FFT':>7}{'FFTs /':>8}"
    )
    D, n = 4096, 1000 if quick else 5000
    dense, sparse = dense_rows(n, 784), sparse_rows(n // 5, 50_000, 0.01)
    cases = [(f"{n} x 784 dense", dense, degree) for degree in (2, 4, 7)]
    for name, X, degree in [*cases, (f"{n // 5} x 50,000 CSR, 1 %", sparse, 2)]:
        times, fft = tensor_sketch_times(X, D, degree)
        ns = {key: 1e9 * time / (X.shape[0] * D) for key, time in times.items()}
        limit = 1e9 * fft * (degree + 1) / joblib.cpu_count()
        print(
            f"{name:28}{degree:7}{ns['TensorSketch']:8.2f}{ns['frequency']:11.2f}"
            f"{ns['peer']:9.1f}{ns['peer'] / ns['TensorSketch']:11.1f}"
            f"{1e9 * fft:7.2f}{limit / ns['TensorSketch']:8.1f}"
        )
    print()


def lengths() -> None:
    print("TensorSketch, 1000 x 784 dense float32, degree 3: nanoseconds per feature for")
    X = dense_rows(1000, 784)
    sizes = {4096: "a power of two", 4000: "2^5 5^3", 4093: "a prime"}
    maps = {D: TensorSketch(Polynomial(3), D, random_state=0).fit(X) for D in sizes}
    times = best_times({str(D): partial(maps[D].transform, X) for D in sizes})
    for D, what in sizes.items():
        print(f"  n_components = {D}, {what:15}{1e9 * times[str(D)] / (1000 * D):8.2f}")
    print()


# ---------------------------------------------------------------- Random Maclaurin


def random_maclaurin(quick: bool) -> None:
    d, D, degree = 784, 16384, 4
    n, few = (200, 20) if quick else (2000, 100)
    X = dense_rows(n, d)
    print(f"RandomMaclaurin, {d} columns, {D} features, degree {degree}, float32, all threads:")
    print("nanoseconds per feature, and relative to Hadamard projections")
    maps = {
        f"{name}, {kind}": RandomMaclaurin(kernel, D, projection=kind, random_state=0).fit(X)
        for name, kernel in {
            "(<x, y> + 1)^4": Polynomial(degree),
            "<x, y>^4": Polynomial(degree, coef0=0.0),
        }.items()
        for kind in ("hadamard", "rademacher")
    }
    maps["Gaussian, Fastfood"] = fastfood(Gaussian(1.0), D).fit(X)
    maps["<x, y>^4, Fastfood"] = fastfood(Polynomial(degree, coef0=0.0), D).fit(X)
    maps["<x, y>^4, TensorSketch"] = TensorSketch(
        Polynomial(degree, coef0=0.0), D, random_state=0
    ).fit(X)
    rows = {name: few if "rademacher" in name else n for name in maps}
    copy, out = np.ones((n, D), np.float32), np.ones((n, D), np.float32)
    actions = {name: partial(maps[name].transform, X[: rows[name]]) for name in maps}
    times = best_times({**actions, "np.copyto of the output": partial(np.copyto, copy, out)})
    ns = {name: 1e9 * times[name] / (rows.get(name, n) * D) for name in times}
    for name, value in ns.items():
        base = ns["<x, y>^4, hadamard" if "<x, y>^4" in name else "(<x, y> + 1)^4, hadamard"]
        print(f"  {name:32}{value:8.2f}{value / base:8.1f}")
    print()


# ---------------------------------------------------------------- errors against time


def as_series(kernel: Polynomial) -> Kernel:
    """The same kernel, whose degrees are sketched one by one."""
    n = np.arange(kernel.degree + 1)
    return Maclaurin(np.exp(kernel.log_coefficients(n))) if kernel.coef0 else kernel


def maclaurin(**options: Any) -> Callable[[Any, int, int], Any]:
    return lambda kernel, D, seed: RandomMaclaurin(
        kernel, D, random_state=seed, **{"degrees": "optimal", **options}
    )


CONTESTANTS: dict[str, Callable[[Any, int, int], Any]] = {
    "RandomMaclaurin, optimal degrees": maclaurin(),
    "... least_error": maclaurin(degrees="least_error"),
    "... complex": maclaurin(projection="complex"),
    "... complex, least_error": maclaurin(projection="complex", degrees="least_error"),
    "TensorSketch": lambda k, D, s: TensorSketch(k, D, random_state=s),
    "... tree": lambda k, D, s: TensorSketch(k, D, tree=True, random_state=s),
    "... tree, of the series": lambda k, D, s: TensorSketch(
        as_series(k), D, tree=True, random_state=s
    ),
    "CRAFTMap of 8 D": lambda k, D, s: CRAFTMap(maclaurin()(k, 8 * D, s), D, random_state=s),
    "CRAFTMap of 8 D, complex": lambda k, D, s: CRAFTMap(
        maclaurin(projection="complex")(k, 8 * D, s), D, random_state=s
    ),
}


def kinds_of_rows(n: int) -> dict[str, Any]:
    """Rows of norm one: images, random directions, and sparse ones like those of texts."""
    from sklearn.datasets import load_digits
    from sklearn.preprocessing import normalize

    sparse = sparse_rows(n, 5000, 0.01)
    sparse.data **= 4  # few words make up most of a row
    sparse.indices = (5000 * (sparse.indices / 5000) ** 3).astype(np.int32)
    sparse.sum_duplicates()
    return {
        "digits (64 columns)": normalize(load_digits().data[:n]).astype(np.float32),
        "random directions (784)": dense_rows(n, 784),
        "sparse rows (5000, 1 %)": normalize(sparse),
    }


def cpu_seconds(action: Action) -> float:
    best = float("inf")
    for _ in range(5):
        start = process_time()
        action()
        best = min(best, process_time() - start)
    return best


def errors(quick: bool) -> None:
    D, n, n_seeds = 2048, 200 if quick else 300, 3 if quick else 10
    print(f"NRMSE of the kernel matrix of {n} rows of norm one, D = {D}, the median over {n_seeds}")
    print("seeds; processor time per row in microseconds, float32; and the error for 10")
    print("microseconds per row, as the error falls like the root of the number of features")
    degrees = (2, 4, 16) if quick else (2, 3, 4, 8, 16)
    for rows, X in kinds_of_rows(n).items():
        kernels = [Polynomial(p, coef0=c) for c in (0.0, 1.0) for p in degrees]
        titles = [f"<x,y>^{p}" for p in degrees] + [f"(1+<x,y>)^{p}" for p in degrees]
        print(f"\n{rows:36}" + "".join(f"{title:>22}" for title in titles))
        exact = [kernel(X.astype(np.float64)) for kernel in kernels]
        for name, make in CONTESTANTS.items():
            line = f"{name:36}"
            for kernel, K in zip(kernels, exact, strict=True):
                found = []
                for seed in range(n_seeds):
                    fitted = make(kernel, D, seed).fit(X)
                    Z = fitted.transform(X).astype(np.float64)
                    found.append(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))
                time = 1e6 * cpu_seconds(partial(fitted.transform, X)) / n
                error = float(np.median(found))
                line += f"{error:9.3f}{time:6.1f}{error * (time / 10) ** 0.5:7.3f}"
            print(line, flush=True)
    print()


# ---------------------------------------------------------------- degrees and learning

ALLOCATIONS = ("optimal", "least_error", "geometric")
REGRESSIONS = ("cpu_act", "wine_quality")
CLASSES = ("a9a", "covtype", "ijcnn1", "letter", "mnist", "nursery", "pendigits", "spambase")


def learning(quick: bool) -> None:
    from reproduction.guide import Task, measured, task

    kernels: dict[str, Kernel] = {
        **{f"degree {p}": Polynomial(p) for p in (2, 3, 5, 10)},
        "exp(<x, y>)": Exponential(),
    }
    names = ("a9a", "letter") if quick else (*REGRESSIONS, *CLASSES)
    print("Errors on 1500 test rows after 1500 training rows, our one pass, rows of norm one,")
    print("relative to degrees='optimal': geometric means over D = 100, 200 and 600 and 3 seeds")
    print(
        f"{'':16}" + "".join(f"{f'{k}, {kind}':>26}" for k in kernels for kind in ALLOCATIONS[1:])
    )
    everything: dict[tuple[str, str], list[float]] = {}
    for name in names:
        found: dict[tuple[str, str], list[float]] = {}
        for seed, (title, kernel) in itertools.product(range(1 if quick else 3), kernels.items()):
            of_all = task(name, 1500, seed, True)
            here = Task(
                of_all.X, of_all.y, of_all.X_test, of_all.y_test, regression=name in REGRESSIONS
            )
            for D in (100, 200, 600):
                error = {
                    kind: measured(
                        RandomMaclaurin(kernel, D, degrees=kind, random_state=seed), here
                    )["error"]
                    for kind in ALLOCATIONS
                }
                for kind in ALLOCATIONS[1:]:
                    ratio = np.log(max(error[kind], 1e-3) / max(error["optimal"], 1e-3))
                    found.setdefault((title, kind), []).append(ratio)
        print(f"{name:16}" + means(found, kernels), flush=True)
        for key, ratios in found.items():
            everything.setdefault(key, []).extend(ratios)
    print(f"{'all':16}" + means(everything, kernels))
    print()


def means(ratios: dict[tuple[str, str], list[float]], kernels: dict[str, Kernel]) -> str:
    return "".join(
        f"{np.exp(np.mean(ratios[title, kind])):26.2f}"
        for title in kernels
        for kind in ALLOCATIONS[1:]
    )


# ---------------------------------------------------------------- growth


def growth() -> None:
    """How the cost of a row grows with each size while the others stay."""
    axes: dict[str, list[tuple[int, int, int, int]]] = {
        "columns": [(2**k, 4096, 3, 256) for k in range(4, 14, 3)],
        "features": [(784, 2**k, 3, 256) for k in range(8, 17, 2)],
        "degree": [(784, 4096, p, 256) for p in (1, 2, 4, 8)],
        "rows": [(784, 4096, 3, n) for n in (1, 16, 256, 4096)],
    }
    kinds = {"RandomMaclaurin": RandomMaclaurin, "TensorSketch": TensorSketch, "Fastfood": Fastfood}
    for position, (axis, sizes) in enumerate(axes.items()):
        print(f"Microseconds per row as the number of {axis} grows, homogeneous kernels")
        print(f"{axis:>10}" + "".join(f"{name:>18}" for name in kinds))
        for size in sizes:
            d, D, degree, n = size
            X = dense_rows(n, d)
            kernel = Polynomial(degree, coef0=0.0)
            maps = {name: kind(kernel, D, random_state=0).fit(X) for name, kind in kinds.items()}
            times = best_times(
                {name: partial(m.transform, X) for name, m in maps.items()}, seconds=0.2
            )
            print(f"{size[position]:10}" + "".join(f"{1e6 * times[m] / n:18.2f}" for m in kinds))
        print()


def figures() -> dict[str, Action]:
    """A few cases whose times tell versions apart."""
    dense, sparse = dense_rows(1000, 784), sparse_rows(200, 50_000, 0.01)
    homogeneous = Polynomial(4, coef0=0.0)
    cases: dict[str, tuple[Any, Any]] = {
        "TensorSketch, degree 4": (TensorSketch(Polynomial(4), 4096, random_state=0), dense),
        "TensorSketch, a prime": (TensorSketch(Polynomial(3), 4093, random_state=0), dense),
        "TensorSketch, sparse": (TensorSketch(Polynomial(2), 4096, random_state=0), sparse),
        "RandomMaclaurin": (RandomMaclaurin(Polynomial(4), 16384, random_state=0), dense[:200]),
        "RandomMaclaurin, homogeneous": (
            RandomMaclaurin(homogeneous, 16384, random_state=0),
            dense[:200],
        ),
        "RandomMaclaurin, rademacher": (
            RandomMaclaurin(Polynomial(4), 16384, projection="rademacher", random_state=0),
            dense[:20],
        ),
        "RandomMaclaurin, one row": (
            RandomMaclaurin(Polynomial(4), 16384, random_state=0),
            dense[:1],
        ),
        "Fastfood, homogeneous": (fastfood(homogeneous, 16384), dense[:200]),
        "TensorSketch, tree": (
            TensorSketch(Polynomial(8, coef0=0.0), 4096, tree=True, random_state=0),
            dense[:200],
        ),
        "RandomMaclaurin, complex": (
            RandomMaclaurin(homogeneous, 16384, projection="complex", random_state=0),
            dense[:200],
        ),
    }
    return {name: partial(made.fit(X).transform, X) for name, (made, X) in cases.items()}


def main() -> None:
    parser = options_parser(__doc__)
    parser.add_argument("--errors", action="store_true", help="errors against time, alone")
    parser.add_argument("--learning", action="store_true", help="errors on test rows, alone")
    options = begun(parser, figures)
    if options is None:
        return
    if options.learning:
        learning(options.quick)
        return
    errors(options.quick)
    if options.errors:
        return
    tensor_sketch(options.quick)
    lengths()
    random_maclaurin(options.quick)
    if not options.quick:
        growth()


if __name__ == "__main__":
    main()
