"""CRAFTMap against its parts and against a dense projection of materialized features.

python -m benchmarks.compact            # MNIST rows if there are, else random ones
python -m benchmarks.compact --quick    # fewer rows
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.random_projection import GaussianRandomProjection

from benchmarks.timing import Action, begun, best_times, fastfood, options_parser
from kitchenette import SRHT, TEFM, CRAFTMap, RandomMaclaurin, TensorSketch
from kitchenette.kernels import Gaussian, Polynomial
from reproduction.data import directory, sample_rows

E, D = 4096, 32768


def rows(n: int) -> NDArray[np.float32]:
    if directory() is not None:
        return sample_rows("mnist", n)
    X = np.random.default_rng(0).normal(size=(n, 784)).astype(np.float32)
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def materialized(up: Any, down: Any, X: NDArray[np.float32]) -> NDArray[np.float32]:
    return down.transform(up.transform(X))


def craft(n: int) -> None:
    X = rows(n)
    kernel = Polynomial(7)
    ups: dict[str, Any] = {
        "RandomMaclaurin": RandomMaclaurin(kernel, D, random_state=0),
        "RandomMaclaurin, H0/1": RandomMaclaurin(kernel, D, h01=True, random_state=0),
        "TensorSketch": TensorSketch(kernel, D, random_state=0),
    }
    print(f"CRAFTMap, {n} rows of {X.shape[1]} columns, D = {D}, E = {E}, float32, all threads:")
    print("microseconds per row, and relative to CRAFTMap")
    print(
        f"{'up':24}{'CRAFTMap':>10}{'up alone':>11}{'CRAFTMap / up':>15}{'dense down':>12}"
        f"{'dense / CRAFTMap':>18}"
    )
    for name, up in ups.items():
        compact = CRAFTMap(up, E, random_state=0).fit(X)
        up.fit(X)
        dense = GaussianRandomProjection(E, random_state=0).fit(np.zeros((1, D), np.float32))
        few = X[: max(1, n // 8)]
        times = best_times(
            {
                "compact": partial(compact.transform, X),
                "up": partial(up.transform, X),
                "dense": partial(materialized, up, dense, few),
            }
        )
        per_row = {key: 1e6 * time / len(X) for key, time in times.items()}
        per_row["dense"] = 1e6 * times["dense"] / len(few)
        print(
            f"{name:24}{per_row['compact']:10.1f}{per_row['up']:11.1f}"
            f"{per_row['compact'] / per_row['up']:15.2f}{per_row['dense']:12.0f}"
            f"{per_row['dense'] / per_row['compact']:18.1f}"
        )
    print()


MEMORY = """
import numpy as np
from benchmarks.timing import peak_memory
from sklearn.random_projection import GaussianRandomProjection
from kitchenette import CRAFTMap, RandomMaclaurin
from kitchenette.kernels import Polynomial
X = np.random.default_rng(0).normal(size=({n}, 784)).astype(np.float32) / 28
up = RandomMaclaurin(Polynomial(7), {D}, random_state=0)
compact = CRAFTMap(up, {E}, random_state=0).fit(X)
compact.transform(X[:1])
up.fit(X)
dense = GaussianRandomProjection({E}, random_state=0)
before = peak_memory()
if {compact}:
    compact.transform(X)
else:
    dense.fit_transform(up.transform(X))
print(peak_memory() - before)
"""


def memory(n: int) -> None:
    print(f"Peak memory of transforming {n} rows, MB beyond input and wide map (the answer has")
    print(f"{4 * n * E / 2**20:.0f} MB, the wide features {4 * n * D / 2**20:.0f} MB)")
    for name, compact in (("CRAFTMap", True), ("materialized, dense projection", False)):
        code = MEMORY.format(n=n, D=D, E=E, compact=compact)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        print(f"  {name:32}{float(done.stdout):8.0f}")
    print()


def projections(n: int) -> None:
    d, k = 8192, 1024
    X = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    fast = SRHT(k, random_state=0).fit(X)
    dense = GaussianRandomProjection(k, random_state=0).fit(X)
    times = best_times({"SRHT": partial(fast.transform, X), "dense": partial(dense.transform, X)})
    print(f"SRHT from {d} to {k} columns: {1e6 * times['SRHT'] / n:.1f} microseconds per row,")
    print(f"  GaussianRandomProjection / SRHT {times['dense'] / times['SRHT']:.0f}\n")


def tefm(n: int) -> None:
    X = rows(n)
    width, k = 4096, 1024
    base = fastfood(Gaussian(1.0), width)
    print(f"TEFM from {width} to {k} features, {n} rows: microseconds per row")
    fitted = {m: TEFM(base, k, method=m, random_state=0).fit(X) for m in ("gaussian", "srht")}
    actions: dict[str, Any] = {
        f"fit, {m}": partial(TEFM(base, k, method=m, random_state=0).fit, X) for m in fitted
    }
    actions["transform"] = partial(fitted["gaussian"].transform, X)
    actions["base features alone"] = partial(fitted["gaussian"].base_.transform, X)
    for name, time in best_times(actions).items():
        print(f"  {name:24}{1e6 * time / n:8.1f}")
    print()


def figures() -> dict[str, Action]:
    """A few cases whose times tell versions apart."""
    X, kernel = rows(256), Polynomial(7)
    wide = np.random.default_rng(0).normal(size=(256, 8192)).astype(np.float32)
    base = fastfood(Gaussian(1.0), 4096)
    over_maclaurin = CRAFTMap(RandomMaclaurin(kernel, D, random_state=0), E, random_state=0)
    over_sketch = CRAFTMap(TensorSketch(kernel, D, random_state=0), E, random_state=0)
    projected = TEFM(base, 1024, random_state=0)
    return {
        "CRAFTMap(RandomMaclaurin)": partial(over_maclaurin.fit(X).transform, X),
        "CRAFTMap(TensorSketch)": partial(over_sketch.fit(X).transform, X),
        "SRHT": partial(SRHT(1024, random_state=0).fit(wide).transform, wide),
        "TEFM, transform": partial(projected.fit(X).transform, X),
        "TEFM, fit": partial(TEFM(base, 1024, random_state=0).fit, X),
    }


def main() -> None:
    options = begun(options_parser(__doc__), figures)
    if options is None:
        return
    n = 256 if options.quick else 2048
    craft(n)
    memory(n)
    projections(n)
    tefm(n)


if __name__ == "__main__":
    main()
