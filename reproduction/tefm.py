"""Training-efficient feature maps (IJCAI 2015), Figure 1: errors of the Gaussian kernel.

python -m reproduction.tefm                 # all
python -m reproduction.tefm --quick         # fewer rows
python -m reproduction.tefm --picture FILE.png

|K - K'|_2 / |K|_2 for l features; TEFM and Comp (CRAFTMaps on Fourier features) squeeze d = 4 l
of them. Columns are standardised (MNIST: pixels / 255, a9a: as it is, 0/1), the length scale is the
median distance; the paper does not say. SliceLocalization is not among our data sets.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette import TEFM, CRAFTMap, Fastfood, RandomKitchenSinks
from kitchenette.kernels import Gaussian
from kitchenette.metrics import kernel_error
from reproduction.data import load

SIZES = [64, 128, 256, 512]
DATA = ["cpu_act", "a9a", "blog_feedback", "ujiindoorloc", "mnist"]

Maker = Callable[[Gaussian, int, int], Any]
MAPS: dict[str, Maker] = {
    "RKS": lambda k, n, s: RandomKitchenSinks(k, n, random_state=s),
    "Quasi": lambda k, n, s: RandomKitchenSinks(k, n, frequencies="quasi", random_state=s),
    "Ffood": lambda k, n, s: Fastfood(k, n, projection="hadamard", random_state=s),
    "Comp": lambda k, n, s: CRAFTMap(RandomKitchenSinks(k, 4 * n), n, random_state=s),
    "TEFM-G": lambda k, n, s: TEFM(RandomKitchenSinks(k, 4 * n), n, random_state=s),
    "TEFM-S": lambda k, n, s: TEFM(RandomKitchenSinks(k, 4 * n), n, method="srht", random_state=s),
    "TEFM-G, Fastfood": lambda k, n, s: TEFM(
        Fastfood(k, 4 * n, projection="orthogonal"), n, random_state=s
    ),
}


def rows(name: str, n: int) -> NDArray[np.float64]:
    arrays = load(name)
    X = arrays.get("X_train", arrays.get("X"))
    assert X is not None
    picks = np.random.default_rng(0).choice(len(X), size=min(n, len(X)), replace=False)
    X = X[picks].astype(np.float64)
    if name == "mnist":
        return X / 255
    if name == "a9a":
        return X
    spread = X.std(axis=0)
    return np.asarray((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1))


def errors(n: int, seeds: int) -> dict[str, dict[str, list[float]]]:
    results: dict[str, dict[str, list[float]]] = {}
    for name in DATA:
        X = rows(name, n)
        kernel = Gaussian().resolve(X[:1000])
        print(f"{name}: {X.shape[0]} x {X.shape[1]}, length scale {kernel.length_scale:.3g}")
        print(f"{'l':>18}" + "".join(f"{size:>10}" for size in SIZES))
        results[name] = {}
        for label, make in MAPS.items():
            values = []
            for size in SIZES:
                each = [
                    kernel_error(make(kernel, size, seed).fit(X), X, metric="relative_spectral")
                    for seed in range(seeds)
                ]
                values.append(float(np.mean(each)))
            results[name][label] = values
            print(f"{label:>18}" + "".join(f"{value:10.4f}" for value in values), flush=True)
        half = np.array(results[name]["TEFM-G"]) / np.array(results[name]["RKS"])
        print(f"{'TEFM-G / RKS':>18}" + "".join(f"{value:10.2f}" for value in half) + "\n")
    return results


def draw(results: dict[str, dict[str, list[float]]], path: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(results), figsize=(15, 3.4), layout="constrained")
    for panel, (name, by_map) in zip(panels, results.items(), strict=True):
        for label, values in by_map.items():
            panel.loglog(SIZES, values, "o-", label=label, markersize=4)
        panel.set_title(name)
        panel.set_xlabel("features l")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("relative spectral error")
    panels[-1].legend(fontsize="small")
    figure.savefig(path, dpi=110)
    print(f"wrote {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    parser.add_argument("--picture", metavar="FILE", help="draw the figure")
    options = parser.parse_args()
    results = errors(500 if options.quick else 2000, 1 if options.quick else 3)
    if options.picture:
        draw(results, options.picture)


if __name__ == "__main__":
    main()
