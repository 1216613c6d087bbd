"""How the error falls with the number of features: Figure 1 of the Fastfood paper in miniature.

python -m benchmarks.figure_1                     # five minutes
python -m benchmarks.figure_1 --picture FILE.png  # also draws it
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette import Fastfood, RandomKitchenSinks
from kitchenette.kernels import Gaussian

Map = Callable[[Gaussian, int, int], Any]

MAPS: dict[str, Map] = {
    "RandomKitchenSinks": lambda k, D, s: RandomKitchenSinks(k, D, random_state=s),
    "RandomKitchenSinks, orthogonal": lambda k, D, s: RandomKitchenSinks(
        k, D, frequencies="orthogonal", random_state=s
    ),
    "RandomKitchenSinks, quasi": lambda k, D, s: RandomKitchenSinks(
        k, D, frequencies="quasi", random_state=s
    ),
    "Fastfood, hadamard": lambda k, D, s: Fastfood(k, D, projection="hadamard", random_state=s),
    "Fastfood, orthogonal": lambda k, D, s: Fastfood(k, D, projection="orthogonal", random_state=s),
    "Fastfood, fourier": lambda k, D, s: Fastfood(k, D, projection="fourier", random_state=s),
}
SIZES = [2**k for k in range(6, 14)]
LENGTH_SCALES = [0.5, 1.0, 2.0]


def mean_absolute_error(
    make: Map, scale: float, n: int, X: NDArray[Any], Y: NDArray[Any], seeds: int
) -> float:
    """Averaged over pairs of rows and over seeds; n frequencies, 2n features."""
    exact = np.exp(-0.5 * np.sum(((X - Y) / scale) ** 2, axis=1))
    errors = []
    for seed in range(seeds):
        feature_map = make(Gaussian(scale), 2 * n, seed).fit(X[:1])
        for start in range(0, len(X), 500):
            part = slice(start, start + 500)
            products = np.einsum(
                "ij,ij->i", feature_map.transform(X[part]), feature_map.transform(Y[part])
            )
            errors.append(np.abs(products - exact[part]).mean())
    return float(np.mean(errors))


def measure(d: int) -> dict[float, dict[str, list[float]]]:
    """Errors by length scale and map, for 4000 uniform points of [0, 1]^d, taken in pairs."""
    points = np.random.default_rng(0).uniform(size=(4000, d))
    X, Y = points[:2000], points[2000:]
    results: dict[float, dict[str, list[float]]] = {}
    for scale in LENGTH_SCALES:
        print(f"Mean absolute error, uniform points of [0, 1]^{d}, length scale {scale}")
        print(f"{'n':>32}" + "".join(f"{n:>9}" for n in SIZES))
        results[scale] = {}
        for name, make in MAPS.items():
            row = [
                mean_absolute_error(make, scale, n, X, Y, seeds=max(12, 4096 // n)) for n in SIZES
            ]
            results[scale][name] = row
            print(f"{name:>32}" + "".join(f"{error:9.5f}" for error in row))
        independent = np.array(results[scale]["RandomKitchenSinks"])
        for name in ("Fastfood, hadamard", "Fastfood, orthogonal"):
            ratios = np.array(results[scale][name]) / independent
            slope = np.polyfit(np.log(SIZES), np.log(results[scale][name]), 1)[0]
            print(
                f"{name + ' / sinks':>32}"
                + "".join(f"{ratio:9.2f}" for ratio in ratios)
                + f"   falls like n^{slope:.2f}"
            )
        print()
    return results


def draw(results: dict[float, dict[str, list[float]]], path: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(results), figsize=(12, 4.2), layout="constrained")
    for panel, (scale, by_map) in zip(panels, results.items(), strict=True):
        for name, row in by_map.items():
            style = "o-" if name.startswith("Fastfood") else "s--"
            panel.loglog(SIZES, row, style, label=name, markersize=4)
        panel.set_title(f"length scale {scale}")
        panel.set_xlabel("frequencies n")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("mean absolute error")
    panels[0].legend(fontsize=7)
    figure.savefig(path, dpi=130)
    print(f"wrote {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--columns", type=int, default=10, help="the dimension of the points")
    parser.add_argument("--picture", metavar="FILE", help="draw the errors")
    options = parser.parse_args()
    results = measure(options.columns)
    if options.picture:
        draw(results, options.picture)


if __name__ == "__main__":
    main()
