"""Compact Random Feature Maps (Hamid et al. 2014): learning classifiers from features."""

from __future__ import annotations

import tempfile
from functools import lru_cache
from pathlib import Path
from time import process_time
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import FunctionTransformer

from kitchenette import Fastfood, KernelClassifier, RandomKitchenSinks
from kitchenette.data.rows import slices
from kitchenette.kernels import Gaussian, Kernel
from kitchenette.learning import OutputCode
from reproduction.craftmaps import make_map
from reproduction.data import Split, load, unit_rows
from reproduction.experiment import Numbers

BLOCK_ROWS = 4096
CODE_LENGTH = 200
UP_FACTOR = 8  # D = 8 E


@lru_cache(maxsize=2)
def rows_of(name: str, n_train: int, seed: int = 0) -> Split:
    """The customary split, or a random half if there is none; of the training rows the first ones.

    Rows have norm one, and labels are numbers from zero. Those of MNIST, USPS and Pendigits are in
    no order of classes.
    """
    arrays = load(name)
    if "X_train" in arrays:
        X, y, X_test, y_test = (arrays[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    else:
        order = np.random.default_rng(seed).permutation(len(arrays["X"]))
        train, test = np.split(order, 2)
        X, y, X_test, y_test = (arrays[k][rows] for rows in (train, test) for k in ("X", "y"))
    y, y_test = (np.searchsorted(np.unique(y), labels) for labels in (y, y_test))
    return Split(unit_rows(X[:n_train]), y[:n_train], unit_rows(X_test), y_test)


class KernelColumns(TransformerMixin, BaseEstimator):
    """The exact kernel between rows and some random training rows, as features."""

    def __init__(self, kernel: Kernel, n_components: int, random_state: int = 0):
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: NDArray[Any], y: Any = None) -> Self:
        picks = np.random.default_rng(self.random_state).permutation(len(X))[: self.n_components]
        self.rows_ = X[picks]
        return self

    def transform(self, X: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.kernel(X, self.rows_))


def make_features(row: str, kernel: Kernel, width: float, E: int, d: int, seed: int) -> Any:
    """The map of a row of Table 1."""
    if row == "Exact":
        return KernelColumns(kernel, E, seed)
    if row == "RKS":
        return RandomKitchenSinks(Gaussian(width), E, random_state=seed)
    if row.startswith("FastFood"):
        projection = "orthogonal" if row.endswith("ours") else "hadamard"
        return Fastfood(Gaussian(width), E, projection=projection, random_state=seed)
    return make_map(row, kernel, UP_FACTOR * E, E, d, seed)


def learned_in_one_pass(feature_map: Any, rows: Split) -> tuple[KernelClassifier, Numbers]:
    """A classifier of features, and processor times of the projection and of the statistics."""
    model = KernelClassifier(FunctionTransformer(), solver="onepass", random_state=0)
    map_seconds = statistics_seconds = 0.0
    classes = np.unique(rows.y)
    for part in slices(len(rows.X), BLOCK_ROWS):
        start = process_time()
        Z = feature_map.transform(rows.X[part])
        mapped = process_time()
        model.partial_fit(Z, rows.y[part], classes=classes)
        map_seconds += mapped - start
        statistics_seconds += process_time() - mapped
    return model, {"map_seconds": map_seconds, "statistics_seconds": statistics_seconds}


def learned_from_file(
    feature_map: Any, rows: Split, **options: Any
) -> tuple[KernelClassifier, Numbers]:
    """The same in many passes over features that are computed once, and kept in a file.

    Wide CRAFTMaps cost much more to compute than to read. The solver sees the same numbers as if
    the map computed them in every pass, so the model is the same for the same penalty when it
    has converged. (The rows that choose the penalty and when to stop are picked by what is in
    them, features here and columns there.)
    """
    as_they_are = FunctionTransformer()
    model = KernelClassifier(as_they_are, solver="iterative", random_state=0, **options)
    with tempfile.TemporaryDirectory() as folder:
        shape = len(rows.X), feature_map.transform(rows.X[:1]).shape[1]
        Z = np.memmap(Path(folder) / "features", np.float32, "w+", shape=shape)
        start = process_time()
        for part in slices(len(rows.X), BLOCK_ROWS):
            Z[part] = feature_map.transform(rows.X[part])
        mapped = process_time()
        model.fit(Z, rows.y)
        return model, {"map_seconds": mapped - start, "fit_seconds": process_time() - mapped}


def learned_in_passes(feature_map: Any, rows: Split) -> tuple[KernelClassifier, Numbers]:
    """The same with features that are computed again in every pass: cheap ones take less so."""
    start = process_time()
    model = KernelClassifier(feature_map, solver="iterative", random_state=0).fit(rows.X, rows.y)
    return model, {"fit_seconds": process_time() - start}


def errors_on_test_rows(model: KernelClassifier, feature_map: Any, rows: Split) -> Numbers:
    """Shares of wrong test rows, read one-hot, and through a random code with Hamming decoding.

    Least squares is linear in the targets, so the code is applied to the one-hot solution.

    Parameters
    ----------
    model : KernelClassifier
        The classifier.
    feature_map : transformer
        Makes what the model predicts from; the identity for a model that has its map.
    rows : Split
        Has the test rows.
    """
    n_classes = len(model.classes_)
    code = OutputCode.random(n_classes, CODE_LENGTH, seed=0)
    wrong = wrong_with_codes = 0
    for part in slices(len(rows.X_test), BLOCK_ROWS):
        decisions = model.decision_function(feature_map.transform(rows.X_test[part]))
        indicators = (decisions + 1) / 2
        y = rows.y_test[part]
        wrong += int(np.sum(indicators.argmax(axis=1) != y))
        decoded = code.decode(indicators @ code.codewords, "hamming")
        wrong_with_codes += int(np.sum(decoded != y))
    n = len(rows.y_test)
    return {"error": wrong / n, "error with codes": wrong_with_codes / n, "n_test": n}
