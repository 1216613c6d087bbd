"""The table of docs/bounds.md: features that the theorems ask for, and those that are needed.

python -m benchmarks.bounds             # in a few minutes
python -m benchmarks.bounds --seeds 20  # faster and less exact
python -m benchmarks.bounds --certificates  # how often certificates contain the error
python -m benchmarks.bounds --constants     # theorems from elsewhere, simulated

For each theorem: the number of features for an error of 0.1 with probability 0.95 as printed in
the paper (where it has constants), as in `kitchenette.bounds`, and the smallest number for which
95 % of the maps drawn here have at most that error. The last is found by measuring the quantile
at a number of features and scaling it like D^-1/2, twice; it is known to about 30 %.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.random_projection import GaussianRandomProjection

from kitchenette import TEFM, CRAFTMap, Fastfood, RandomKitchenSinks, RandomMaclaurin, TensorSketch
from kitchenette.bounds import (
    CRAFTMapError,
    FastfoodError,
    FastfoodTailError,
    GaussianProductsError,
    KitchenSinksSpectralError,
    MaclaurinError,
    MaclaurinUniformError,
    SketchesMeanError,
    SketchRelativeError,
    TEFMSpectralError,
)
from kitchenette.kernels import Exponential, Gaussian, Kernel, Polynomial
from kitchenette.metrics import certificate, kernel_error

ERROR, DELTA = 0.1, 0.05
COLUMNS, COSINE = 64, 0.8
UP_COMPONENTS, BASE_COMPONENTS = 2**15, 4096
MOST = 2**18  # features of a measured map

Array = NDArray[np.float64]
Measure = Callable[[Array, Array], float]  # of the exact kernel matrix and the approximate one


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    name: str
    rows: Array
    kernel: Kernel
    make: Callable[[int, int], Any]  # a map of a size and a seed
    measure: Measure
    by_theorem: int
    as_printed: float | None = None
    start: int = 256


def unit_rows(n_rows: int, nonzeros: int = COLUMNS) -> Array:
    """Rows of norm one, the first two of which have the cosine 0.8."""
    rng = np.random.default_rng(0)
    rows = np.zeros((n_rows, COLUMNS))
    rows[:, :nonzeros] = rng.normal(size=(n_rows, nonzeros))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    across = rows[1] - (rows[0] @ rows[1]) * rows[0]
    rows[1] = COSINE * rows[0] + np.sqrt(1 - COSINE**2) * across / np.linalg.norm(across)
    return rows


def at_distance(distance: float) -> Array:
    return distance * np.stack([np.zeros(COLUMNS), unit_rows(2)[0]])


# ---------------------------------------------------------------- errors of a kernel matrix


def of_the_pair(K: Array, approximation: Array) -> float:
    return float(abs(approximation[0, 1] - K[0, 1]))


def of_a_row_with_itself(K: Array, approximation: Array) -> float:
    return float(abs(approximation[0, 0] - K[0, 0]))


def relative(K: Array, approximation: Array) -> float:
    return of_the_pair(K, approximation) / float(K[0, 1])


def largest(K: Array, approximation: Array) -> float:
    return float(np.abs(approximation - K).max())


def spectral(K: Array, approximation: Array) -> float:
    return float(np.linalg.norm(approximation - K, 2) / len(K))


# ---------------------------------------------------------------- the theorems


def cases() -> list[Case]:
    return [*polynomial_cases(), *maclaurin_cases(), *fastfood_cases(), *compact_cases()]


def polynomial_cases() -> list[Case]:
    square, cube = Polynomial(2, coef0=0.0), Polynomial(3, coef0=0.0)
    dense, sparse, many = unit_rows(2), unit_rows(2, nonzeros=2), unit_rows(100)
    made: list[Case] = [
        Case(
            f"001 Lemma 7, degree {kernel.degree}, relative error, one pair",
            dense,
            kernel,
            lambda D, seed, kernel=kernel: TensorSketch(kernel, D, random_state=seed),  # type: ignore[misc]
            relative,
            SketchRelativeError(kernel.degree, COSINE).n_components(ERROR, delta=DELTA),
            2 / (ERROR**2 * DELTA * COSINE ** (2 * kernel.degree)),
        )
        for kernel in (square, cube)
    ]
    R = float(np.abs(sparse).sum(axis=1).max())
    made.append(
        Case(
            "001 Lemma 9, degree 2, sketches of 64 features, two nonzeros, one pair",
            sparse,
            square,
            lambda D, seed: TensorSketch(square, D, n_sketches=max(1, D // 64), random_state=seed),
            of_the_pair,
            SketchesMeanError(2, R, 64, norm=1.0).n_components(ERROR, delta=DELTA),
            64 * np.ceil(2 * R**8 * np.log(2 / DELTA) / ERROR**2),
        )
    )
    for name, rows, measure, n_rows in (
        ("a row with itself", dense, of_a_row_with_itself, None),
        ("all pairs of 100 rows", many, largest, 100),
    ):
        pairs = 1 if n_rows is None else n_rows * (n_rows + 1) / 2
        log = 2 * np.log(0.766**2 * pairs / DELTA)
        made.append(
            Case(
                f"000 Lemma 3.1 and Corollary 3.2, degree 2, {name}",
                rows,
                square,
                lambda D, seed: RandomMaclaurin(
                    square, D, projection="gaussian", random_state=seed
                ),
                measure,
                GaussianProductsError(2).n_components(ERROR, delta=DELTA, n_rows=n_rows),
                11 * log**6 / ERROR**2,
                start=1024,
            )
        )
    return made


def maclaurin_cases() -> list[Case]:
    kernel = Exponential()
    rows = unit_rows(100, nonzeros=2)
    rows /= np.abs(rows).sum(axis=1).max()
    # The papers' C = p f(p R^2) and 8 C^2, for p = 2 and R = 1.
    printed = 8 * (2 * np.exp(2.0)) ** 2 * np.log(2 / DELTA) / ERROR**2

    def make(D: int, seed: int) -> Any:
        return RandomMaclaurin(
            kernel, D, projection="rademacher", degrees="geometric", random_state=seed
        )

    pair = MaclaurinError(kernel, 1.0)
    ball = MaclaurinUniformError(kernel, 1.0, COLUMNS)
    return [
        Case(
            "003 Theorem 4, exp(<x, y>), R = 1, one pair",
            rows[:2],
            kernel,
            make,
            of_the_pair,
            pair.n_components(ERROR, delta=DELTA),
            printed,
        ),
        Case(
            "003 Theorem 4, exp(<x, y>), R = 1, the whole ball (needed: for 100 rows)",
            rows,
            kernel,
            make,
            largest,
            ball.n_components(ERROR, delta=DELTA),
        ),
    ]


def fastfood_cases() -> list[Case]:
    kernel = Gaussian(1.0)
    made = []
    for v in (0.5, 1.0, 3.0):
        scaling = 6 * v**4 * (np.exp(-(v**2)) + v**2 / 3)
        printed = 2 * (2 * (1 - np.exp(-(v**2))) ** 2 + scaling) / (ERROR**2 * DELTA)
        common = {
            "rows": at_distance(v),
            "kernel": kernel,
            "make": lambda D, seed: Fastfood(kernel, D, projection="hadamard", random_state=seed),
            "measure": of_the_pair,
            "start": 128,
        }
        bound, tail = FastfoodError(v), FastfoodTailError(v, COLUMNS)
        name = f"distance {v:g}, one pair"
        made += [
            Case(
                f"004 Corollary 10, {name}",
                by_theorem=bound.n_components(ERROR, delta=DELTA),
                as_printed=printed,
                **common,  # type: ignore[arg-type]
            ),
            Case(
                f"004 Theorem 11, {name}",
                by_theorem=tail.n_components(ERROR, delta=DELTA),
                **common,  # type: ignore[arg-type]
            ),
        ]
    return made


def compact_cases() -> list[Case]:
    square, gaussian = Polynomial(2, coef0=0.0), Gaussian(1.0)
    rows, row = unit_rows(200), unit_rows(2)
    # The first half of the proof of Theorem 1 with 2 n / a and r = 10.
    log = np.log(40 / DELTA)
    a = np.arange(1, 10**5)
    first = log * (2 / (3 * a) + np.sqrt(4 / (9 * a**2) + 1 / (2 * a * log)))
    made = [
        Case(
            "002 Theorem 1, base map alone, 200 rows, spectral error over n",
            rows,
            gaussian,
            lambda D, seed: RandomKitchenSinks(gaussian, D, random_state=seed),
            spectral,
            KitchenSinksSpectralError().n_components(ERROR, delta=DELTA),
            2.0 * float(a[np.argmax(first <= ERROR)]),
            start=32,
        )
    ]
    for q in (0, 1):

        def compact(D: int, seed: int, q: int = q) -> Any:
            base = RandomKitchenSinks(gaussian, BASE_COMPONENTS, random_state=seed)
            return TEFM(base, D, power_iterations=q, random_state=seed)

        made.append(
            Case(
                f"002 Theorem 1, base of {BASE_COMPONENTS}, q = {q}, 200 rows, spectral error / n",
                rows,
                gaussian,
                compact,
                spectral,
                TEFMSpectralError(BASE_COMPONENTS, q).n_components(ERROR, delta=DELTA),
                start=8,
            )
        )
    for projection in ("gaussian", "srht"):

        def craft(D: int, seed: int, projection: str = projection) -> Any:
            up = RandomMaclaurin(square, UP_COMPONENTS, projection="gaussian", random_state=seed)
            down = GaussianRandomProjection(random_state=seed) if projection == "gaussian" else None
            return CRAFTMap(up, D, down=down, random_state=seed)

        made.append(
            Case(
                f"000 Theorem 3.3, degree 2, D = {UP_COMPONENTS}, {projection}, a row with itself",
                row,
                square,
                craft,
                of_a_row_with_itself,
                CRAFTMapError(GaussianProductsError(2), UP_COMPONENTS, projection).n_components(
                    ERROR, delta=DELTA
                ),
                start=512,
            )
        )
    return made


# ---------------------------------------------------------------- what is needed


def quantile(case: Case, D: int, seeds: int) -> float:
    """The error that 95 % of the maps of this size do not exceed."""
    K = case.kernel(case.rows)
    errors = []
    for seed in range(seeds):
        Z = np.asarray(case.make(D, seed).fit_transform(case.rows), dtype=np.float64)
        errors.append(case.measure(K, Z @ Z.T))
    return float(np.quantile(errors, 1 - DELTA))


def needed(case: Case, seeds: int) -> int:
    D = case.start
    for _ in range(2):
        D = int(np.clip(np.ceil(D * (quantile(case, D, seeds) / ERROR) ** 2), 2, MOST))
    return D


def certificates(seeds: int) -> None:
    """How often intervals of 90 % contain the error, and their width, for 25 unit rows."""
    rows = unit_rows(25)[:, :6]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    gaussian, square, cube = Gaussian(0.8), Polynomial(2), Polynomial(3)
    makers: dict[str, Callable[[int], Any]] = {
        "RandomKitchenSinks": lambda seed: RandomKitchenSinks(gaussian, 64, random_state=seed),
        "Fastfood, one block": lambda seed: Fastfood(gaussian, 16, random_state=seed),
        "TensorSketch": lambda seed: TensorSketch(square, 32, random_state=seed),
        "RandomMaclaurin": lambda seed: RandomMaclaurin(cube, 64, random_state=seed),
    }
    print("| map | contain the error | median width / error |")
    print("|---|---:|---:|")
    for name, make in makers.items():
        inside, widths = [], []
        for seed in range(seeds):
            feature_map = make(seed).fit(rows)
            found = certificate(feature_map, rows, confidence=0.9, random_state=1000 + seed)
            error = kernel_error(feature_map, rows)
            inside.append(found.low <= error <= found.high)
            widths.append((found.high - found.low) / error)
        print(f"| {name} | {100 * np.mean(inside):.0f} % | {np.median(widths):.2f} |", flush=True)


def constants(seeds: int) -> None:
    """Halko et al., Theorem 10.8, and the two halves of its proof: violations and looseness."""
    rng = np.random.default_rng(0)
    print("| case | violated | bound / quantile |")
    print("|---|---:|---:|")

    def line(case: str, errors: Array, bound: float) -> None:
        looseness = bound / np.quantile(errors, 1 - DELTA)
        print(f"| {case} | {np.mean(errors > bound):.4f} | {looseness:.2f} |", flush=True)

    for k, p in itertools.product((2, 8, 32), (4, 8, 16, 32)):
        G = rng.normal(size=(25 * seeds, k, k + p))
        inverses = 1 / np.linalg.svd(G, compute_uv=False)
        bound = DELTA ** (-1 / p) * np.sqrt(3 * k / (p + 1))
        line(f"Frobenius norm, k = {k}, p = {p}", np.sqrt((inverses**2).sum(axis=1)), bound)
        bound = DELTA ** (-1 / (p + 1)) * np.e * np.sqrt(k + p) / (p + 1)
        line(f"spectral norm, k = {k}, p = {p}", inverses.max(axis=1), bound)
    t_power, u = 4 / DELTA, np.sqrt(2 * np.log(2 / DELTA))
    for decay, k in itertools.product((0.0, 0.5, 1.0), (5, 10, 20)):
        p, values = k, np.arange(1.0, 201.0) ** -decay
        scale = np.e * np.sqrt(k + p) / (p + 1)
        rest = np.sqrt(3 * k / (p + 1)) * values[k] + scale * np.linalg.norm(values[k:])
        bound = values[k] + t_power ** (1 / p) * (rest + u * scale * values[k])
        errors = []
        for _ in range(3 * seeds):
            Q = np.linalg.qr(values[:, None] * rng.normal(size=(200, k + p)))[0]
            errors.append(np.linalg.norm(np.diag(values) - Q @ (Q.T * values), 2))
        line(f"Theorem 10.8, values j^-{decay}, k = p = {k}", np.array(errors), bound)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--only", default="", help="cases whose names begin like this")
    parser.add_argument("--certificates", action="store_true", help="measure certificates instead")
    parser.add_argument("--constants", action="store_true", help="simulate borrowed theorems")
    arguments = parser.parse_args()
    seeds, only = arguments.seeds, arguments.only
    if arguments.certificates:
        certificates(5 * seeds)
        return
    if arguments.constants:
        constants(seeds)
        return
    print("| theorem and case | as printed | kitchenette.bounds | needed | bound / needed |")
    print("|---|---:|---:|---:|---:|")
    for case in cases():
        if not case.name.startswith(only):
            continue
        # A compact map of many wide features takes long to draw.
        enough = needed(case, min(seeds, 25) if "Theorem 3.3" in case.name else seeds)
        printed = "-" if case.as_printed is None else f"{case.as_printed:,.0f}"
        print(
            f"| {case.name} | {printed} | {case.by_theorem:,} | {enough:,} | "
            f"{case.by_theorem / enough:,.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
