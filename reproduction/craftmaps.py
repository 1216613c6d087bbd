"""Compact Random Feature Maps (Hamid et al. 2014): the maps that its experiments compare."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette import CRAFTMap, RandomMaclaurin, TensorSketch
from kitchenette.kernels import Kernel, Polynomial

KERNEL = Polynomial(7)
PLAIN_RFM = "RFM without H0/1"
COMPACT = "CM "  # begins the names of CRAFTMaps, as in the paper's Table 1
# What the paper compares, and our defaults beside it.
PRINTED_MAPS = ("RFM", "TS", "CM RFM", "CM TS")
MAPS = (*PRINTED_MAPS, "RFM, ours", "CM RFM, ours")
WHAT_MAPS_ARE = (
    "RFM is Random Maclaurin with random degrees, and with H0/1 wherever it has more features than "
    "rows have columns; its projections are Hadamard matrices also where they are "
    "not squeezed; TS is Tensor Sketch; CM are CRAFTMaps over them. In the rows called ours, "
    "Random Maclaurin has the numbers of features of each degree that have the least variance, and "
    "no H0/1."
)


def make_map(
    name: str, kernel: Kernel, D: int, E: int, n_columns: int, seed: int | None = None
) -> Any:
    """A map with E features; CRAFTMaps squeeze D features into these."""
    if name.startswith(COMPACT):
        wide = make_map(name.removeprefix(COMPACT), kernel, D, D, n_columns)
        return CRAFTMap(wide, E, random_state=seed)
    if name == "TS":
        return TensorSketch(kernel, E, random_state=seed)
    if name == "RFM, ours":
        return RandomMaclaurin(kernel, E, degrees="optimal", random_state=seed)
    h01 = name == "RFM" and n_columns + 1 < E
    return RandomMaclaurin(kernel, E, degrees="geometric", h01=h01, random_state=seed)


def approximations(
    name: str, kernel: Kernel, D: int, sizes: list[int], X: NDArray[Any], seed: int
) -> list[NDArray[np.float64]]:
    """The kernel matrix of a map for each of these numbers of features, which grow.

    A CRAFTMap with fewer features consists of the first ones of a larger map, up to their scale,
    so its wide features are computed once.
    """
    compact = name.startswith(COMPACT)
    found = []
    product = np.zeros((len(X), len(X)))
    Z, done = np.empty((len(X), 0)), 0
    for E in sizes:
        if not compact or not done:
            size = sizes[-1] if compact else E
            Z = make_map(name, kernel, D, size, X.shape[1], seed).fit_transform(X)
            product[:], done = 0, 0
        part = Z[:, done:E].astype(np.float64)
        product += part @ part.T
        done = E
        found.append(product * (Z.shape[1] / E))
    return found
