"""The models that are compared: maps with least squares, and the usual alternatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from kitchenette.baselines import column_scaler
from kitchenette.estimators import KernelClassifier, KernelRegressor
from kitchenette.kernels import Gaussian, Polynomial
from kitchenette.maps import (
    TEFM,
    CRAFTMap,
    Fastfood,
    RandomKitchenSinks,
    RandomMaclaurin,
    TensorSketch,
)
from kitchenette.maps.prepared import PreparedSpecification
from kitchenette.selection import AutoMap

DEGREE = 3  # of the polynomial kernels, the default of scikit-learn
WIDER = 4  # ratio of the widths of a wide and a compact map, as in docs/accuracy.md
PENALTY_OF_SUPPORT_VECTORS = 10.0  # C, as in docs/recipes.md


def _of_distances(make: Callable[[int, int], Any]) -> Callable[[str, int, int, bool], Any]:
    """Maps of kernels of distances, for columns of equal spread."""
    return lambda task, size, seed, sparse: make_pipeline(column_scaler(sparse), make(size, seed))


def _of_products(make: Callable[[int, int], Any]) -> Callable[[str, int, int, bool], Any]:
    """Maps of kernels of inner products, for rows of unit length."""
    return lambda task, size, seed, sparse: make_pipeline(
        column_scaler(sparse), Normalizer(), make(size, seed)
    )


# By name: a function of the task, the number of features, the seed and whether rows are sparse.
MAPS: dict[str, Callable[[str, int, int, bool], Any]] = {
    "AutoMap": lambda task, size, seed, sparse: AutoMap(size, task=task, random_state=seed),
    "Fastfood": _of_distances(lambda size, seed: Fastfood(Gaussian(), size, random_state=seed)),
    "RandomKitchenSinks": _of_distances(
        lambda size, seed: RandomKitchenSinks(
            Gaussian(), size, frequencies="orthogonal", random_state=seed
        )
    ),
    "TEFM": _of_distances(
        lambda size, seed: TEFM(
            Fastfood(Gaussian(), WIDER * size, random_state=seed), size, random_state=seed
        )
    ),
    "TensorSketch": _of_products(
        lambda size, seed: TensorSketch(Polynomial(DEGREE), size, random_state=seed)
    ),
    "RandomMaclaurin": _of_products(
        lambda size, seed: RandomMaclaurin(Polynomial(DEGREE), size, random_state=seed)
    ),
    "CRAFTMap": _of_products(
        lambda size, seed: CRAFTMap(
            RandomMaclaurin(Polynomial(DEGREE), WIDER * size, random_state=seed),
            size,
            random_state=seed,
        )
    ),
}


def with_map(task: str, name: str, size: int, seed: int, sparse: bool = False) -> Any:
    """A kernel machine with a map of some size."""
    estimator = KernelClassifier if task == "classification" else KernelRegressor
    return estimator(MAPS[name](task, size, seed, sparse), random_state=seed)


def exact(task: str, n_targets: int, sparse: bool = False) -> Any:
    """A support vector machine with the exact Gaussian kernel."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.multioutput import MultiOutputRegressor
    from sklearn.svm import SVC, SVR

    if task == "classification":
        return make_pipeline(column_scaler(sparse), SVC(C=PENALTY_OF_SUPPORT_VECTORS))
    machine: Any = SVR(C=PENALTY_OF_SUPPORT_VECTORS)
    if n_targets > 1:
        machine = MultiOutputRegressor(machine)
    scaled = TransformedTargetRegressor(machine, transformer=StandardScaler())
    return make_pipeline(column_scaler(sparse), scaled)


def map_error(feature_map: Any, X: NDArray[Any]) -> float | None:
    """The error of the inner products of a fitted map, relative to the exact kernel's.

    It is the root mean square error over the root mean square for all pairs of the rows; None
    if the kernel is not known.
    """
    if hasattr(feature_map, "steps"):
        kernel, rows = getattr(feature_map[-1], "kernel_", None), feature_map[:-1].transform(X)
    else:
        specification = feature_map.specification_
        if not isinstance(specification, PreparedSpecification):
            return None
        kernel = feature_map.kernel_
        rows = specification.preparation.prepared(X)
    if kernel is None:
        return None
    features = np.asarray(feature_map.transform(X), dtype=np.float64)
    K = np.asarray(kernel(rows), dtype=np.float64)
    return float(np.linalg.norm(features @ features.T - K) / np.linalg.norm(K))
