"""The errors that the docstrings and docs/accuracy.md state, for each option of the maps.

python -m benchmarks.accuracy            # all tables, in one to two minutes
python -m benchmarks.accuracy quasi      # only the tables whose names begin like this

Tables are printed in Markdown. Variances are measured over seeds, by the mean square of the error
at pairs of rows; with the numbers of seeds and pairs used here they are known to about 5 %.
NRMSE is the root mean square error of a kernel matrix over its root mean square, over all seeds.
It is known to about 10 %, because the errors at different pairs of digits are correlated.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize
from sklearn.random_projection import GaussianRandomProjection

from kitchenette import TEFM, CRAFTMap, Fastfood, RandomKitchenSinks, RandomMaclaurin, TensorSketch
from kitchenette.kernels import Exponential, Gaussian, Kernel, Maclaurin, Polynomial
from kitchenette.metrics import kernel_error

Maker = Callable[[Any, int, int], Any]  # a map for a kernel, a size and a seed
SEEDS = 100


def maker(cls: Any, **options: Any) -> Maker:
    return lambda kernel, D, seed: cls(kernel, D, random_state=seed, **options)


def title(text: str) -> None:
    print(f"\n{text}\n")


def heading(names: Iterable[Any]) -> None:
    names = list(names)
    print("| | " + " | ".join(str(name) for name in names) + " |")
    print("|---|" + "---:|" * len(names))


def line(name: str, cells: Iterable[float | None], digits: int = 3) -> None:
    texts = ("-" if cell is None else f"{cell:.{digits}f}" for cell in cells)
    print(f"| {name} | " + " | ".join(texts) + " |", flush=True)


# ---------------------------------------------------------------- dot-product kernels


def unit_digits(n_rows: int = 64) -> NDArray[np.float64]:
    """Rows of the handwritten digits, 64 columns, scaled to norm one."""
    X, _ = load_digits(return_X_y=True)
    rows: NDArray[np.float64] = normalize(X[np.random.default_rng(0).permutation(len(X))[:n_rows]])
    return rows


def error(make: Maker, kernel: Kernel, D: int, X: Any, seeds: int = SEEDS) -> float | None:
    """The NRMSE over seeds; None if the map does not serve the kernel."""
    try:
        errors = [kernel_error(make(kernel, D, seed).fit(X), X) for seed in range(seeds)]
    except ValueError:
        return None
    return float(np.sqrt(np.mean(np.square(errors))))


def as_series(kernel: Kernel) -> Kernel:
    """A polynomial kernel with a constant as the series of its powers of <x, y>."""
    if not isinstance(kernel, Polynomial) or kernel.coef0 == 0:
        raise ValueError("Only a polynomial with a constant has several terms.")
    return Maclaurin([comb(kernel.degree, n) for n in range(kernel.degree + 1)])


DOT_PRODUCT_MAPS: dict[str, Maker] = {
    "`RandomMaclaurin()`": maker(RandomMaclaurin),
    '... `projection="rademacher"`': maker(RandomMaclaurin, projection="rademacher"),
    '... `projection="gaussian"`': maker(RandomMaclaurin, projection="gaussian"),
    '... `degrees="geometric"`': maker(RandomMaclaurin, degrees="geometric"),
    "... `h01=True`": maker(RandomMaclaurin, h01=True),
    "`TensorSketch()`": maker(TensorSketch),
    "... `n_sketches=4`": maker(TensorSketch, n_sketches=4),
    "... `n_sketches=64`": maker(TensorSketch, n_sketches=64),
    "... of the series, as a `Maclaurin` kernel": lambda kernel, D, seed: TensorSketch(
        as_series(kernel), D, random_state=seed
    ),
    "`Fastfood()`": maker(Fastfood),
    '... `projection="hadamard"`': maker(Fastfood, projection="hadamard"),
}


def dot_product() -> None:
    """Errors of the options of the maps for dot-product kernels."""
    X, D = unit_digits(), 2048
    title(
        f"NRMSE on {len(X)} unit-norm rows of the digits (64 columns), {D} features, "
        f"{SEEDS} seeds; (r, q) is the kernel (<x, y> + q)^r"
    )
    kernels: dict[str, Kernel] = {
        f"({r}, {q})": Polynomial(r, coef0=float(q))
        for r, q in ((2, 1), (3, 1), (7, 1), (2, 0), (3, 0), (4, 0))
    }
    kernels["exp"] = Exponential()
    heading(kernels)
    for name, make in DOT_PRODUCT_MAPS.items():
        line(name, (error(make, kernel, D, X) for kernel in kernels.values()))


def errors_at(
    make: Maker, kernel: Kernel, D: int, pairs: tuple[Any, Any], seeds: int
) -> NDArray[np.float64]:
    """The errors at pairs of rows, one row of the answer for each seed."""
    X, Y = pairs
    exact = [kernel(x[None], y[None])[0, 0] for x, y in zip(X, Y, strict=True)]
    errors = []
    for seed in range(seeds):
        fitted = make(kernel, D, seed).fit(X)
        products = np.einsum("ij,ij->i", fitted.transform(X), fitted.transform(Y))
        errors.append(products - exact)
    return np.stack(errors)


def mean_square_error(
    make: Maker, kernel: Kernel, D: int, pairs: tuple[Any, Any], seeds: int
) -> float:
    """The mean square of the error over seeds and pairs of rows; the variance, if unbiased."""
    return float(np.mean(errors_at(make, kernel, D, pairs, seeds) ** 2))


def signs() -> None:
    """Variance of normal numbers over that of signs as one column gains weight."""
    title(
        'Variance of `RandomMaclaurin(projection="gaussian")` over that of "rademacher", '
        "(<x, y>)^r, rows of norm one and 32 columns, of which the first has the given share of "
        "the squared norm; 1024 features, 60 seeds and 50 pairs"
    )
    shares = (0.0, 0.25, 0.5, 0.75)
    heading(f"share {share}" for share in shares)
    for degree in (2, 3, 4):
        ratios = []
        for share in shares:
            rest = normalize(np.random.default_rng(1).normal(size=(100, 32)))
            rest[:, 0] = 0
            X = np.sqrt(1 - share) * normalize(rest)
            X[:, 0] = np.sqrt(share)
            variances = [
                mean_square_error(
                    maker(RandomMaclaurin, projection=projection),
                    Polynomial(degree, coef0=0.0),
                    1024,
                    (X[:50], X[50:]),
                    60,
                )
                for projection in ("gaussian", "rademacher")
            ]
            ratios.append(variances[0] / variances[1])
        line(f"r = {degree}", ratios, digits=2)


def sketches() -> None:
    """Variance and tails of averages of shorter sketches."""
    counts, D, seeds = (1, 8, 64), 256, 500
    title(
        "`TensorSketch(n_sketches=t)`, (<x, y>)^r, 50 pairs of unit rows of 64 columns with "
        f"<x, y> = 0.5, {D} features, {seeds} seeds: variance over that of t = 1, and the 99.9th "
        "percentile of the absolute error over the standard deviation"
    )
    heading(f"t = {t}, {what}" for what in ("variance", "99.9 %") for t in counts)
    rng = np.random.default_rng(2)
    X = normalize(rng.normal(size=(50, 64)))
    other = rng.normal(size=(50, 64))
    other = normalize(other - np.sum(other * X, axis=1, keepdims=True) * X)
    Y = 0.5 * X + np.sqrt(0.75) * other
    for degree in (2, 3, 4):
        variances, tails = [], []
        for t in counts:
            make = maker(TensorSketch, n_sketches=t)
            errors = errors_at(make, Polynomial(degree, coef0=0.0), D, (X, Y), seeds)
            variances.append(float(np.mean(errors**2)))
            tails.append(float(np.quantile(np.abs(errors), 0.999)) / variances[-1] ** 0.5)
        line(f"r = {degree}", [v / variances[0] for v in variances] + tails, digits=2)


# ---------------------------------------------------------------- shift-invariant kernels


def pairs_at(distance: float, n_columns: int, n_pairs: int = 50) -> tuple[Any, Any]:
    """Pairs of rows at this distance, in random directions."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n_pairs, n_columns))
    return X, X + distance * normalize(rng.normal(size=(n_pairs, n_columns)))


def independent_variance(v: float, D: int) -> float:
    """The variance of "sincos" features with independent frequencies, Gaussian kernel."""
    return float((1 - np.exp(-(v**2))) ** 2 / D)


DISTANCES = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0)


def quasi() -> None:
    """Variance of quasi-random and orthogonal frequencies over that of independent ones."""
    title(
        "`RandomKitchenSinks`, variance over that of independent frequencies, Gaussian kernel, "
        "v = |x - y| / length_scale, 100 seeds and 50 pairs"
    )
    heading(f"v = {v}" for v in DISTANCES)
    for d, D in ((4, 64), (4, 1024), (8, 128), (16, 128), (100, 512)):
        for kind in ("quasi", "orthogonal"):
            make = maker(RandomKitchenSinks, frequencies=kind)
            ratios = [
                mean_square_error(make, Gaussian(1.0), D, pairs_at(v, d), 100)
                / independent_variance(v, D)
                for v in DISTANCES
            ]
            line(f'"{kind}", {d} columns, {D} features', ratios, digits=2)


def projections() -> None:
    """Mean square error of the projections of Fastfood."""
    title(
        "`Fastfood`, mean square error over the variance of independent frequencies, Gaussian "
        "kernel, v = |x - y| / length_scale, one block (2 d features), 100 seeds and 50 pairs"
    )
    heading(f"v = {v}" for v in DISTANCES)
    for d in (16, 64, 1024):
        for projection in ("hadamard", "orthogonal", "fourier"):
            make = maker(Fastfood, projection=projection)
            ratios = [
                mean_square_error(make, Gaussian(1.0), 2 * d, pairs_at(v, d), 100)
                / independent_variance(v, 2 * d)
                for v in DISTANCES
            ]
            line(f'"{projection}", {d} columns', ratios, digits=2)


def local() -> None:
    """Variance of local features as the spread of the templates changes."""
    spreads = (0.05, 0.1, 0.2, 0.4)
    title(
        'Root mean square error of `Fastfood(features="local", template_spread=t)` over the '
        "root mean square of the kernel, Gaussian kernel with length scale one, 16 columns, 1024 "
        "features, 50 seeds, 50 pairs of rows of the given norm in random directions"
    )
    heading([*(f"t = {t}" for t in spreads), "t chosen by fit", "chosen t", "sincos"])
    kernel = Gaussian(1.0)
    for norm in (0.25, 0.5, 1.0, 1.5):
        rows = norm * normalize(np.random.default_rng(4).normal(size=(100, 16)))
        pairs = rows[:50], rows[50:]
        size = float(np.sqrt(np.mean(np.exp(-np.sum((pairs[0] - pairs[1]) ** 2, axis=1)))))
        makers = [maker(Fastfood, features="local", template_spread=t) for t in (*spreads, None)]
        cells = [
            np.sqrt(mean_square_error(make, kernel, 1024, pairs, 50)) / size
            for make in [*makers, maker(Fastfood)]
        ]
        chosen = makers[-1](kernel, 1024, 0).fit(rows[:50]).template_spread_
        line(f"norm {norm}", [*cells[:-1], chosen, cells[-1]])


# ---------------------------------------------------------------- compact maps


def compact() -> None:
    """Errors of the options of the compact maps."""
    X, E, seeds = unit_digits(256), 128, 25
    title(
        f"NRMSE on {len(X)} unit-norm rows of the digits, {E} features, {seeds} seeds; CRAFTMap "
        "squeezes 8 times as many features and TEFM 4 times as many"
    )
    heading(["(<x, y> + 1)^7", "Gaussian(0.7)"])
    dense = GaussianRandomProjection()
    maps: dict[str, tuple[Maker | None, Maker]] = {
        "`RandomMaclaurin()` and `RandomKitchenSinks()`": (
            maker(RandomMaclaurin),
            maker(RandomKitchenSinks),
        ),
        "`CRAFTMap` over them": (maker(CRAFTMap), maker(CRAFTMap)),
        "... `down=GaussianRandomProjection()`": (
            maker(CRAFTMap, down=dense),
            maker(CRAFTMap, down=dense),
        ),
        "`TEFM` over them": (maker(TEFM), maker(TEFM)),
        '... `method="srht"`': (maker(TEFM, method="srht"), maker(TEFM, method="srht")),
        "... `power_iterations=1`": (
            maker(TEFM, power_iterations=1),
            maker(TEFM, power_iterations=1),
        ),
        "`Fastfood()`": (None, maker(Fastfood)),
        "`TEFM` over it": (
            None,
            lambda kernel, D, seed: TEFM(Fastfood(kernel, 4 * D), D, random_state=seed),
        ),
    }
    for name, makers in maps.items():
        cells = [
            None if make is None else error(make, kernel, E, X, seeds)
            for make, kernel in zip(makers, (Polynomial(7), Gaussian(0.7)), strict=True)
        ]
        line(name, cells)


TABLES = {
    "dot_product": dot_product,
    "signs": signs,
    "sketches": sketches,
    "quasi": quasi,
    "projections": projections,
    "local": local,
    "compact": compact,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("table", nargs="*", help="; ".join(TABLES), default=[""])
    options = parser.parse_args()
    for name, table in TABLES.items():
        if name.startswith(tuple(options.table)):
            table()


if __name__ == "__main__":
    main()
