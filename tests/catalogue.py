"""The maps and options that parametrized tests go through, each with a name and told once."""

from __future__ import annotations

from typing import Any

import numpy as np

from kitchenette import (
    SRHT,
    TEFM,
    CRAFTMap,
    Fastfood,
    RandomKitchenSinks,
    RandomMaclaurin,
    TensorSketch,
)
from kitchenette.kernels import (
    BesselMatern,
    Cauchy,
    Composition,
    Exponential,
    Gaussian,
    Laplacian,
    Maclaurin,
    Matern,
    Polynomial,
    RationalQuadratic,
    SphericalPolynomial,
    VovkInfinite,
)

# Name: class and options. Rows of any norm will do unless the name ends in "on the sphere".
MAPS: dict[str, tuple[type, dict[str, Any]]] = {
    "sinks": (RandomKitchenSinks, {}),
    "sinks offset": (RandomKitchenSinks, {"features": "offset"}),
    "sinks orthogonal": (RandomKitchenSinks, {"frequencies": "orthogonal"}),
    "sinks quasi": (RandomKitchenSinks, {"frequencies": "quasi"}),
    "sinks laplacian": (RandomKitchenSinks, {"kernel": Laplacian(2.0)}),
    "sinks cauchy": (RandomKitchenSinks, {"kernel": Cauchy(1.5)}),
    "fastfood hadamard": (Fastfood, {"projection": "hadamard"}),
    "fastfood hadamard offset": (Fastfood, {"projection": "hadamard", "features": "offset"}),
    "fastfood hadamard local": (Fastfood, {"projection": "hadamard", "features": "local"}),
    "fastfood orthogonal": (Fastfood, {"projection": "orthogonal"}),
    "fastfood orthogonal local": (Fastfood, {"projection": "orthogonal", "features": "local"}),
    "fastfood fourier": (Fastfood, {"projection": "fourier"}),
    "fastfood matern": (Fastfood, {"kernel": Matern(1.5, 2.0), "projection": "hadamard"}),
    "fastfood rational quadratic": (
        Fastfood,
        {"kernel": RationalQuadratic(0.7, 2.0), "projection": "orthogonal"},
    ),
    "fastfood bessel": (Fastfood, {"kernel": BesselMatern(2, 1.0), "projection": "orthogonal"}),
    "fastfood polynomial": (Fastfood, {"kernel": Polynomial(4), "projection": "hadamard"}),
    "fastfood homogeneous": (
        Fastfood,
        {"kernel": Polynomial(3, coef0=0.0), "projection": "orthogonal"},
    ),
    "fastfood powers": (
        Fastfood,
        {"kernel": SphericalPolynomial([1.0, 0.5, 2.0]), "projection": "hadamard"},
    ),
    "fastfood exponential on the sphere": (
        Fastfood,
        {"kernel": Exponential(), "projection": "orthogonal"},
    ),
    "maclaurin": (RandomMaclaurin, {"kernel": Polynomial(4), "degrees": "optimal"}),
    "maclaurin h01": (
        RandomMaclaurin,
        {"kernel": Polynomial(3), "h01": True, "degrees": "optimal"},
    ),
    "maclaurin exponential": (RandomMaclaurin, {"kernel": Exponential(1.3), "degrees": "optimal"}),
    "maclaurin geometric": (
        RandomMaclaurin,
        {"kernel": Maclaurin([1.0, 0.5, 0.1]), "degrees": "geometric"},
    ),
    "maclaurin rademacher": (
        RandomMaclaurin,
        {"kernel": Polynomial(3), "projection": "rademacher", "degrees": "optimal"},
    ),
    "maclaurin rademacher geometric": (
        RandomMaclaurin,
        {
            "kernel": Maclaurin([0.0, 0.0, 1.0, 0.5]),
            "projection": "rademacher",
            "degrees": "geometric",
        },
    ),
    "maclaurin of gaussian": (
        RandomMaclaurin,
        {"kernel": Composition(Polynomial(2), Gaussian(3.0)), "degrees": "optimal"},
    ),
    "maclaurin of laplacian": (
        RandomMaclaurin,
        {"kernel": Composition(Polynomial(2), Laplacian(3.0)), "degrees": "optimal"},
    ),
    "maclaurin of polynomial": (
        RandomMaclaurin,
        {"kernel": Composition(Exponential(), Polynomial(1, gamma=0.1)), "degrees": "optimal"},
    ),
    "maclaurin vovk on the sphere": (
        RandomMaclaurin,
        {
            "kernel": Composition(VovkInfinite(), Polynomial(1, coef0=0.0, gamma=0.3)),
            "degrees": "optimal",
        },
    ),
    "sketch": (TensorSketch, {"kernel": Polynomial(3, coef0=0.5)}),
    "sketch frequency": (TensorSketch, {"kernel": Polynomial(3, coef0=0.5), "output": "frequency"}),
    "sketch homogeneous": (TensorSketch, {"kernel": Polynomial(2, coef0=0.0)}),
    "srht": (SRHT, {}),
    "maclaurin gaussian": (
        RandomMaclaurin,
        {"kernel": Polynomial(3), "projection": "gaussian", "degrees": "optimal"},
    ),
    "sketch exponential": (TensorSketch, {"kernel": Exponential(1.3)}),
    "sketch gaussian": (TensorSketch, {"kernel": Gaussian(1.1)}),
    "sketch tree": (TensorSketch, {"kernel": Polynomial(5, coef0=0.5), "tree": True}),
    "sketch tree frequency": (
        TensorSketch,
        {"kernel": Polynomial(4, coef0=0.0), "tree": True, "output": "frequency"},
    ),
    "sketch tree exponential": (TensorSketch, {"kernel": Exponential(1.3), "tree": True}),
    "sketch tree gaussian": (TensorSketch, {"kernel": Gaussian(1.1), "tree": True}),
    "maclaurin complex": (
        RandomMaclaurin,
        {"kernel": Polynomial(4), "projection": "complex", "degrees": "optimal"},
    ),
    "maclaurin complex geometric": (
        RandomMaclaurin,
        {"kernel": Exponential(1.3), "projection": "complex", "degrees": "geometric"},
    ),
    "maclaurin least error": (
        RandomMaclaurin,
        {"kernel": Polynomial(7), "degrees": "least_error"},
    ),
    "craft maclaurin": (CRAFTMap, {"up": RandomMaclaurin(Polynomial(3), 700, degrees="optimal")}),
    "craft sketch": (CRAFTMap, {"up": TensorSketch(Polynomial(2), 700)}),
    "tefm": (TEFM, {"base": RandomKitchenSinks(Gaussian(1.0), 700)}),
    "tefm srht": (TEFM, {"base": RandomKitchenSinks(Gaussian(1.0), 700), "method": "srht"}),
}

WITHOUT_KERNEL = (SRHT, CRAFTMap, TEFM)


def make(name: str, n_components: int, kernel: Any = None, random_state: Any = 0) -> Any:
    """A map of the catalogue, for this kernel unless its options name another."""
    kind, options = MAPS[name]
    given: dict[str, Any] = {"n_components": n_components, "random_state": random_state}
    if kind not in WITHOUT_KERNEL and kernel is not None:
        given["kernel"] = kernel
    return kind(**{**given, **options})


def plain_rows(n_rows: int, n_columns: int, *, unit: bool = False) -> np.ndarray:
    """Rows that are the same everywhere, whatever the version of NumPy."""
    words = np.arange(1, n_rows * n_columns + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    rows = (words >> np.uint64(40)).astype(np.float64).reshape(n_rows, n_columns) / 2.0**23 - 1
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) if unit else rows / np.sqrt(n_columns)
