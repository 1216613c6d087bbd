"""Fastfood and Random Kitchen Sinks against scikit-learn's RBFSampler, and their own limits.

python -m benchmarks.fourier                     # everything, a few minutes, 8 GB
python -m benchmarks.fourier --quick             # without the largest size and the growth
python -m benchmarks.fourier --picture FILE.png  # also draws how the cost grows
"""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.kernel_approximation import RBFSampler

from benchmarks.timing import Action, begun, best_times, draw_curves, fastfood, options_parser
from kitchenette import RandomKitchenSinks, fwht
from kitchenette.kernels import Gaussian

Rows = NDArray[np.float32]


def transforming(maps: dict[str, Any], X: Rows) -> dict[str, Action]:
    """One action per map: transform these rows."""
    return {name: partial(feature_map.transform, X) for name, feature_map in maps.items()}


def rows(n: int, d: int) -> Rows:
    return np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)


def fitted_maps(d: int, D: int) -> dict[str, Any]:
    X = rows(2, d)
    scale = float(np.sqrt(d))
    return {
        "Fastfood, hadamard": fastfood(Gaussian(scale), D, "hadamard").fit(X),
        "Fastfood, orthogonal": fastfood(Gaussian(scale), D).fit(X),
        "RandomKitchenSinks": RandomKitchenSinks(Gaussian(scale), D, random_state=0).fit(X),
        "RBFSampler": RBFSampler(gamma=0.5 / d, n_components=D, random_state=0).fit(X),
    }


def batches(sizes: list[tuple[int, int, int]]) -> None:
    print("Many rows, float32, all threads: nanoseconds per feature and ratios")
    print(f"{'d':>6} {'D':>6} {'rows':>6}  {'map':22}{'ns':>8}{'RBFSampler /':>14}{'/ copyto':>10}")
    for d, D, n in sizes:
        X, out, copy = rows(n, d), np.ones((n, D), np.float32), np.ones((n, D), np.float32)
        maps = fitted_maps(d, D)
        times = best_times({**transforming(maps, X), "copyto": partial(np.copyto, copy, out)})
        for name in maps:
            print(
                f"{d:6} {D:6} {n:6}  {name:22}{1e9 * times[name] / (n * D):8.2f}"
                f"{times['RBFSampler'] / times[name]:14.1f}{times[name] / times['copyto']:10.1f}"
            )
        print()


def one_row(sizes: list[tuple[int, int]]) -> None:
    print("One row through transform, n frequencies (Le et al., Table 2): time and size")
    print(
        f"{'d':>6} {'n':>6}{'Fastfood':>12}{'dense sincos /':>16}{'RBFSampler /':>14}"
        f"{'dense size /':>14}"
    )
    for d, n in sizes:
        X = rows(1, d)
        scale = float(np.sqrt(d))
        structured = fastfood(Gaussian(scale), 2 * n).fit(X)
        dense = RandomKitchenSinks(Gaussian(scale), 2 * n, random_state=0).fit(X)
        sampler = RBFSampler(gamma=0.5 / d, n_components=n, random_state=0).fit(X)
        maps = {"Fastfood": structured, "dense": dense, "RBFSampler": sampler}
        times = best_times(transforming(maps, X))
        smaller = sampler.random_weights_.nbytes / len(pickle.dumps(structured))
        ratios = [times[name] / times["Fastfood"] for name in ("dense", "RBFSampler")]
        print(
            f"{d:6} {n:6}{1e6 * times['Fastfood']:9.0f} µs{ratios[0]:16.0f}{ratios[1]:14.0f}"
            f"{smaller:14.0f}"
        )
    print()


def hadamard() -> None:
    print("fwht in place on 4096 x 1024 float32, relative to np.copyto of that array")
    X = np.zeros((4096, 1024), np.float32)  # ones would grow without bounds
    target = np.ones_like(X)
    times = best_times(
        {"fwht": partial(fwht, X, overwrite_x=True), "copyto": partial(np.copyto, target, X)}
    )
    print(f"  {times['fwht'] / times['copyto']:.2f}\n")


# ---------------------------------------------------------------- growth

GROWTH_MAPS = ("Fastfood, orthogonal", "RandomKitchenSinks", "RBFSampler")


def growth() -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Seconds per row as d, D and n grow, for each map."""
    axes: dict[str, list[tuple[int, int, int]]] = {
        "columns d (D = 4096)": [(2**k, 4096, 512) for k in range(4, 14)],
        "features D (d = 784)": [(784, 2**k, 512) for k in range(6, 16)],
        "rows n (d = 784, D = 4096)": [(784, 4096, 2**k) for k in range(0, 13)],
    }
    curves: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for axis, sizes in axes.items():
        print(f"Microseconds per row as {axis} grows")
        print(f"{'':>8}" + "".join(f"{name:>20}" for name in GROWTH_MAPS))
        curves[axis] = {name: [] for name in GROWTH_MAPS}
        position = 0 if axis.startswith("columns") else 1 if axis.startswith("features") else 2
        for size in sizes:
            d, D, n = size
            X = rows(n, d)
            maps = fitted_maps(d, D)
            times = best_times(transforming({m: maps[m] for m in GROWTH_MAPS}, X), seconds=0.2)
            for name in GROWTH_MAPS:
                curves[axis][name].append((size[position], times[name] / n))
            print(
                f"{size[position]:8}" + "".join(f"{1e6 * times[m] / n:20.2f}" for m in GROWTH_MAPS)
            )
        print()
    return curves


def figures() -> dict[str, Action]:
    """A few cases whose times tell versions apart."""
    actions: dict[str, Action] = {}
    for d, D, n in [(64, 1024, 4096), (784, 4096, 1024), (1024, 32768, 1), (8192, 65536, 32)]:
        X, kernel = rows(n, d), Gaussian(float(np.sqrt(d)))
        maps: dict[str, Any] = {
            "Fastfood, hadamard": fastfood(kernel, D, "hadamard"),
            "Fastfood, orthogonal": fastfood(kernel, D),
        }
        if D <= 4096:
            maps["RandomKitchenSinks"] = RandomKitchenSinks(kernel, D, random_state=0)
        fitted = {f"{n} x {d} to {D}, {name}": maps[name].fit(X) for name in maps}
        actions.update(transforming(fitted, X))
    X = np.zeros((4096, 1024), np.float32)
    actions["fwht of 4096 x 1024"] = partial(fwht, X, overwrite_x=True)
    return actions


def main() -> None:
    parser = options_parser(__doc__)
    parser.add_argument("--picture", metavar="FILE", help="draw how the cost grows")
    options = begun(parser, figures)
    if options is None:
        return
    large = [] if options.quick else [(8192, 65536, 64), (8192, 65536, 256)]
    batches([(64, 1024, 4096), (64, 1024, 16384), (784, 4096, 1024), (784, 4096, 4096), *large])
    one_row([(1024, 16384), (4096, 32768)] + ([] if options.quick else [(8192, 65536)]))
    hadamard()
    if not options.quick:
        curves = growth()
        if options.picture:
            draw_curves(curves, "microseconds per row", 1e6, options.picture)


if __name__ == "__main__":
    main()
