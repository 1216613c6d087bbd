"""The methods of `benchmarks.outofthebox`: how each is made and fitted.

Every method gets the same raw columns. What it does to them is part of it, and so is the time that
this takes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import (
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
)
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import kitchenette
from benchmarks.tables import Table
from kitchenette import (
    Fastfood,
    KernelClassifier,
    KernelRegressor,
    LeastSquares,
    RandomKitchenSinks,
)
from kitchenette.kernels import Gaussian, Laplacian, Matern, RationalQuadratic
from kitchenette.report.boosting import ROUNDS, boosted, installed

FEATURES = 1024  # of the default before, of the grid and of Nystroem
FOLDS = 5
GRID_ROWS = 10_000  # that the grid is compared on; the best setting then learns all rows
PENALTIES = np.logspace(-4, 3, 8)  # for RidgeCV
PENALTY_ROWS = 5000


@dataclass(frozen=True)
class Fitted:
    """A fitted model, and a note on what was left out to keep the time short."""

    model: Any
    note: str = ""


@dataclass(frozen=True)
class Method:
    """How a method fits a table.

    Attributes
    ----------
    label : str
        The name in tables and pictures.
    fit : callable
        ``fit(table, quick)`` returns the fitted model.
    version : callable
        ``version()`` changes when the method does; results of other versions are not reused.
    takes_strings : bool
        Whether it fits data frames with categories.
    """

    label: str
    fit: Callable[[Table, bool], Fitted]
    version: Callable[[], str] = lambda: "1"
    takes_strings: bool = False


# ------------------------------------------------------------ ours


def estimator(table: Table, *arguments: Any, **options: Any) -> Any:
    """Our estimator for the targets of a table."""
    kind = KernelClassifier if table.classes else KernelRegressor
    return kind(*arguments, random_state=0, **options)


def default(effort: str) -> Callable[[Table, bool], Fitted]:
    """Raw columns and nothing set but the seed and the effort."""

    def fit(table: Table, quick: bool) -> Fitted:
        return Fitted(estimator(table, effort=effort).fit(table.X, table.y))

    return fit


def package_version() -> str:
    """A digest of the package's modules, because the default follows from all of them."""
    digest = hashlib.sha256()
    root = Path(kitchenette.__file__).parent
    for path in sorted(root.rglob("*.*")):
        if path.suffix in {".py", ".so", ".pyd"}:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def before(table: Table, quick: bool) -> Fitted:
    """Standardized columns, the median distance as the length scale, the penalty by evidence."""
    feature_map = make_pipeline(StandardScaler(), Fastfood(Gaussian(), FEATURES, random_state=0))
    return Fitted(estimator(table, feature_map, alpha="evidence").fit(table.X, table.y))


# ------------------------------------------------------------ an expert's grid

KERNELS = (Gaussian(), Matern(1.5), RationalQuadratic(), Laplacian())
WIDTHS = (0.125, 0.25, 0.5, 1.0, 2.0)  # times the median distance
Setting = tuple[bool, Any, float]
SETTINGS: list[Setting] = list(product((False, True), KERNELS, WIDTHS))


def setting_map(setting: Setting, X: NDArray[Any]) -> Any:
    """The map of one setting, its length scale taken from the first rows of X."""
    standardized, kernel, width = setting
    scaler = StandardScaler() if standardized else None
    sample = X[:1000] if scaler is None else scaler.fit(X).transform(X[:1000])
    resolved = kernel.resolve(sample)
    scaled = resolved.set_params(length_scale=width * resolved.length_scale)
    kind = RandomKitchenSinks if isinstance(kernel, Laplacian) else Fastfood
    feature_map = kind(scaled, FEATURES, random_state=0)
    return feature_map if scaler is None else make_pipeline(StandardScaler(), feature_map)


def cross_validated_error(
    Z: NDArray[Any], Y: NDArray[np.float64], folds: list[NDArray[np.intp]], classes: bool
) -> float:
    """The error of ridge regression on features, the penalty chosen by evidence.

    The penalty is the ratio of two variances, so the one chosen on all rows serves every fold.
    Each fold is summed up once; the statistics of the other folds are the merged ones of them.
    """
    parts = [LeastSquares(Z.shape[1], Y.shape[1]).update(Z[rows], Y[rows]) for rows in folds]
    alpha = reduce(LeastSquares.combined, parts).solve("evidence").alpha
    total = 0.0
    for i, rows in enumerate(folds):
        others = reduce(LeastSquares.combined, parts[:i] + parts[i + 1 :])
        solution = others.solve(alpha)
        predicted = solution.predict(Z[rows])
        if classes:
            total += np.sum(predicted.argmax(axis=1) != Y[rows].argmax(axis=1))
        else:
            total += np.sum((predicted - Y[rows]) ** 2)
    return float(total) / len(Z)


def grid(table: Table, quick: bool) -> Fitted:
    """The best of 40 settings by cross-validation: an afternoon of an expert."""
    pilot = table.first(GRID_ROWS)
    if table.classes:
        Y = (pilot.y[:, None] == np.unique(pilot.y)).astype(np.float64)
    else:
        Y = pilot.y[:, None]
    order = np.random.default_rng(0).permutation(len(pilot.X))
    folds = np.array_split(order, FOLDS)
    errors = []
    for setting in SETTINGS:
        Z = setting_map(setting, pilot.X).fit_transform(pilot.X)
        errors.append(cross_validated_error(Z, Y, folds, table.classes))
    best = SETTINGS[int(np.argmin(errors))]
    standardized, kernel, width = best
    model = estimator(table, setting_map(best, table.X), alpha="evidence").fit(table.X, table.y)
    columns = "standardized" if standardized else "raw"
    return Fitted(model, f"{type(kernel).__name__}, {columns}, {width:g} x median")


# ------------------------------------------------------------ trees

FEW_ROUNDS = 20  # for many classes of many columns, where all of them take minutes


def trees(library: str) -> Callable[[Table, bool], Fitted]:
    """Gradient boosting of a library, with the settings of `kitchenette.report.boosting`."""

    def fit(table: Table, quick: bool) -> Fitted:
        task = "classification" if table.classes else "regression"
        many = table.n_classes * table.X.shape[1] > 50_000
        rounds = FEW_ROUNDS if many else ROUNDS
        model = boosted(library, task, rounds=rounds).fit(table.X, table.y)
        return Fitted(model, f"{rounds} rounds" if many else "")

    return fit


def catboost(table: Table, quick: bool) -> Fitted:
    """CatBoost with its defaults, which are 1000 rounds."""
    import catboost as library

    kind = library.CatBoostClassifier if table.classes else library.CatBoostRegressor
    frame: Any = table.X
    strings = [*frame.select_dtypes("category")] if table.has_strings else []
    model = kind(verbose=0, allow_writing_files=False, cat_features=strings, random_seed=0)
    model.fit(table.X, table.y)
    return Fitted(Flattened(model))


class Flattened:
    """A model whose predictions have one dimension."""

    def __init__(self, model: Any):
        self.model = model

    def predict(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.model.predict(X)).reshape(len(X))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


# ------------------------------------------------------------ scikit-learn


def support_vectors(table: Table, quick: bool) -> Fitted:
    """SVC or SVR with its defaults, columns and targets standardized, on at most 10,000 rows."""
    most = min(10_000, 4_000_000 // table.X.shape[1]) if quick else 10_000
    part = table.first(most)
    if table.classes:
        model: Any = make_pipeline(StandardScaler(), SVC())
    else:
        model = make_pipeline(
            StandardScaler(), TransformedTargetRegressor(SVR(), transformer=StandardScaler())
        )
    note = f"{len(part.X)} rows" if len(part.X) < len(table.X) else ""
    return Fitted(model.fit(part.X, part.y), note)


def nystroem(table: Table, quick: bool) -> Fitted:
    """Nystroem's features of standardized columns, and ridge regression.

    The penalty is chosen on 5000 rows, because `RidgeCV` decomposes the matrix of all features.
    """
    part = table.first(50_000)
    features = Nystroem(n_components=min(FEATURES, len(part.X)), random_state=0)
    Z = make_pipeline(StandardScaler(), features).fit(part.X).transform(part.X[:PENALTY_ROWS])
    chooser = (RidgeClassifierCV if table.classes else RidgeCV)(alphas=PENALTIES)
    alpha = chooser.fit(Z, part.y[:PENALTY_ROWS]).alpha_
    ridge = (RidgeClassifier if table.classes else Ridge)(alpha=alpha)
    note = f"{len(part.X)} rows" if len(part.X) < len(table.X) else ""
    model = make_pipeline(StandardScaler(), features, ridge)
    return Fitted(model.fit(part.X, part.y), note)


def neighbors(table: Table, quick: bool) -> Fitted:
    """Five nearest neighbors in standardized columns."""
    kind = KNeighborsClassifier if table.classes else KNeighborsRegressor
    return Fitted(make_pipeline(StandardScaler(), kind()).fit(table.X, table.y))


def linear(table: Table, quick: bool) -> Fitted:
    """Logistic regression, or ridge regression, of standardized columns."""
    last = LogisticRegression(max_iter=200) if table.classes else RidgeCV(alphas=PENALTIES)
    return Fitted(make_pipeline(StandardScaler(), last).fit(table.X, table.y))


METHODS = {
    "default": Method("default", default("balanced"), package_version, takes_strings=True),
    "fast": Method('effort="fast"', default("fast"), package_version, takes_strings=True),
    "best": Method('effort="best"', default("best"), package_version, takes_strings=True),
    "before": Method("default before", before),
    "grid": Method("grid of 40", grid),
    **{
        library: Method(library, trees(library), lambda: "2", takes_strings=True)
        for library in reversed(installed())
    },
    "svm": Method("SVC / SVR", support_vectors),
    "nystroem": Method("Nystroem + ridge", nystroem),
    "neighbors": Method("5 neighbors", neighbors),
    "linear": Method("linear", linear),
}
if find_spec("catboost") is not None:
    METHODS["CatBoost"] = Method("CatBoost", catboost, takes_strings=True)
