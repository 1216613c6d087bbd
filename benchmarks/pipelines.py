"""What scikit-learn's scalers and encoders in front of a map cost: one row, and many.

python -m benchmarks.pipelines            # half a minute
python -m benchmarks.pipelines --quick    # fewer pipelines

The steps of a pipeline are translated to operators of the native core. Beside that is what calling
the steps themselves takes, as for transformers that are not translated.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    QuantileTransformer,
    StandardScaler,
)

import kitchenette
from benchmarks.timing import Action, best_times, fastfood, options_parser, print_figures
from kitchenette import KernelRegressor
from kitchenette.kernels import Gaussian

ROWS, COLUMNS, FEATURES = 4096, 32, 1024


WORDS = np.array(["red", "green", "blue", "black", "white"], dtype=object)


def data(name: str = "") -> NDArray[Any]:
    """Numbers; the last four columns are strings for pipelines with words in their name."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    categories = rng.integers(0, 5, size=(ROWS, 4))
    X[:, -4:] = categories
    if "words" not in name:
        return X
    return np.hstack([X[:, :-4].astype(object), WORDS[categories]])


def steps(quick: bool) -> dict[str, list[Any]]:
    """Pipelines by name, without their map."""
    few: dict[str, list[Any]] = {
        "StandardScaler": [StandardScaler()],
        "QuantileTransformer": [QuantileTransformer(output_distribution="normal")],
    }
    if quick:
        return few
    mixed = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), slice(0, -4)),
        (OneHotEncoder(handle_unknown="ignore"), slice(-4, None)),
    )
    return {
        **few,
        "MinMaxScaler": [MinMaxScaler(clip=True)],
        "StandardScaler, Normalizer": [StandardScaler(), Normalizer()],
        "SimpleImputer, StandardScaler": [SimpleImputer(), StandardScaler()],
        "ColumnTransformer with OneHotEncoder": [mixed],
        "ColumnTransformer with OneHotEncoder of words": [mixed],
    }


def identity(X: Any) -> Any:
    return X


def model(X: NDArray[Any], front: list[Any], called: bool = False) -> KernelRegressor:
    """A model of a pipeline; a function among its steps lets scikit-learn's own code be called."""
    function = [FunctionTransformer(identity)] if called else []
    feature_map: Any = fastfood(Gaussian(float(np.sqrt(COLUMNS))), FEATURES)
    if front:
        feature_map = make_pipeline(*function, *front, feature_map)
    return KernelRegressor(feature_map, alpha=1.0).fit(X, X[:, 0].astype(float))


def actions(quick: bool) -> dict[str, Action]:
    made: dict[str, Action] = {}
    for name, front in {"no step": [], **steps(quick)}.items():
        X = data(name)
        for called in (False, True) if front else (False,):
            fitted = model(X, front, called)
            key = f"{name}, called" if called else name
            one: Action = partial(fitted.predict, X[:1])
            if not (called and "words" in name):  # a function among the steps is given numbers
                one = partial(fitted.predictor(), X[0])
            made[f"{key}: one row"] = one
            made[f"{key}: many rows"] = partial(fitted.predict, X)
    return made


def main() -> None:
    options = options_parser(__doc__).parse_args()
    if options.json:
        print_figures(actions(quick=True))
        return
    kitchenette.show_config()
    times = best_times(actions(options.quick), seconds=0.5)
    print(
        f"\nFastfood, {COLUMNS} columns, {FEATURES} features, float32; microseconds of predictor() "
        f"for one row, milliseconds of predict for {ROWS} rows\n"
    )
    print(
        "| before the map | one row | to no step | steps called | many rows | to no step "
        "| steps called |\n|---|---:|---:|---:|---:|---:|---:|"
    )
    for name in ["no step", *steps(options.quick)]:
        cells = []
        for what, unit in (("one row", 1e6), ("many rows", 1e3)):
            seconds = times[f"{name}: {what}"]
            called = times.get(f"{name}, called: {what}")
            ratio = seconds / times[f"no step: {what}"]
            cells += [f"{seconds * unit:.1f}", f"{ratio:.2f}"]
            cells.append("" if called is None else f"{called * unit:.1f}")
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
