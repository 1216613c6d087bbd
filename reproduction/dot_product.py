"""Errors of the maps for dot-product kernels at equal size, on real data.

python -m reproduction.dot_product            # all
python -m reproduction.dot_product --quick    # fewer seeds

Root mean square error of the kernel matrix over its root mean square (NRMSE), the median over
seeds, on 1000 unit-norm rows. The kernels are those of CRAFTMaps' Figure 5 (degree 7, constant 1),
of Tensor Sketch's Figure 1 (homogeneous and not), and the exponential one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from kitchenette import Fastfood, RandomMaclaurin, TensorSketch
from kitchenette.kernels import Exponential, Kernel, Polynomial
from kitchenette.metrics import kernel_error
from reproduction.data import sample_rows

KERNELS: list[Kernel] = [
    Polynomial(7),
    Polynomial(2),
    Polynomial(2, coef0=0.0),
    Polynomial(4, coef0=0.0),
    Exponential(),
]

Maker = Callable[[Kernel, int, int], Any]


def maclaurin(**options: Any) -> Maker:
    return lambda kernel, D, seed: RandomMaclaurin(kernel, D, random_state=seed, **options)


MAPS: dict[str, Maker] = {
    f"RandomMaclaurin, {degrees}, {projection}{', H0/1' if h01 else ''}": maclaurin(
        degrees=degrees, projection=projection, h01=h01
    )
    for h01 in (False, True)
    for degrees in ("geometric", "optimal")
    for projection in ("rademacher", "hadamard")
}
MAPS["TensorSketch"] = lambda kernel, D, seed: TensorSketch(kernel, D, random_state=seed)
MAPS["Fastfood, hadamard"] = lambda kernel, D, seed: Fastfood(
    kernel, D, projection="hadamard", random_state=seed
)
MAPS["Fastfood, orthogonal"] = lambda kernel, D, seed: Fastfood(
    kernel, D, projection="orthogonal", random_state=seed
)


def error(make: Maker, kernel: Kernel, D: int, X: Any, seeds: int) -> float | None:
    """The median NRMSE over seeds; None if the map does not serve the kernel."""
    try:
        return float(
            np.median([kernel_error(make(kernel, D, seed).fit(X), X) for seed in range(seeds)])
        )
    except ValueError:
        return None


def table(name: str, D: int, seeds: int) -> dict[str, list[float | None]]:
    X = sample_rows(name, 1000)
    print(f"{name}: 1000 unit-norm rows of {X.shape[1]} columns, D = {D}, {seeds} seeds")
    names = [
        repr(k).replace("Polynomial", "Poly").replace("degree=", "").replace("coef0=0.0, ", "hom. ")
        for k in KERNELS
    ]
    print(f"{'':46}" + "".join(f"{name:>15}" for name in names))
    results = {}
    for label, make in MAPS.items():
        errors = [error(make, kernel, D, X, seeds) for kernel in KERNELS]
        results[label] = errors
        cells = "".join(f"{'-':>15}" if e is None else f"{e:15.4f}" for e in errors)
        print(f"{label:46}{cells}", flush=True)
    print()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer seeds")
    options = parser.parse_args()
    for name in ("a9a", "mnist"):
        table(name, 4096, seeds=3 if options.quick else 9)


if __name__ == "__main__":
    main()
