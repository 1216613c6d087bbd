"""`compare`: maps of several sizes and other models on the same data, within a time limit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix
from sklearn.utils import check_array, check_consistent_length
from threadpoolctl import threadpool_limits

from kitchenette.baselines import error_of, linear, trivial
from kitchenette.data.rows import table, take
from kitchenette.data.targets import array_of_targets
from kitchenette.parameters import check_choice
from kitchenette.report.advice import advised, recommended
from kitchenette.report.boosting import ROUNDS, boosted, installed
from kitchenette.report.comparison import (
    Comparison,
    Confusion,
    Measurement,
    Reliability,
    Residuals,
)
from kitchenette.report.contestants import (
    MAPS,
    exact,
    map_error,
    with_map,
)
from kitchenette.report.data import described_columns, described_data
from kitchenette.report.measuring import (
    PREDICTED_ROWS,
    cost_of,
    prediction_seconds,
    stored_size,
)
from kitchenette.selection.targets import TASKS, likely_task
from kitchenette.sketching.random import Stream, seed_from

PERMUTED_ROWS = 500  # whose predictions are compared; the importances have errors of a few percent
KERNEL_ROWS = 500  # rows whose inner products are compared with the kernel
KERNEL_NUMBERS = 1 << 25  # entries of these rows at most, as they become dense: 256 MB
FIRST_ROWS = 500  # of the first exact kernel machine, which takes milliseconds
THREADED_ROWS = 10_000  # with fewer rows, threads of trees mostly wait for each other
MOST_CLASSES = 30  # of a confusion matrix that fits on a page
BINS = 10  # of a calibration curve: with 1000 test rows one has about 100 of them
FIRST_ROUNDS = 5  # of trees, to estimate the time of all rounds
EXACT_SHARE, TREES_SHARE = 0.2, 0.2  # of the budget; most of it is for maps
GROWTH_OF_MAPS = 4.0  # a lower limit of the ratio of times for four times the features
ERROR_NAMES = {
    "classification": "share of wrong predictions",
    "regression": "root mean square error / standard deviation of the target",
}


def compare(
    X: Any,
    y: Any,
    *,
    maps: Sequence[str] = ("AutoMap", "Fastfood", "RandomKitchenSinks", "TEFM", "TensorSketch"),
    sizes: Sequence[int] = (256, 1024, 4096),
    task: str | None = None,
    test: float | tuple[Any, Any] = 0.2,
    budget: float = 60.0,
    columns: Sequence[str] | None = None,
    owners: Sequence[int] | NDArray[Any] | None = None,
    title: str = "Which map to take",
    progress: Callable[[str], None] | None = None,
    random_state: Any = 0,
) -> Comparison:
    """Compare feature maps of several sizes with each other and with other kinds of models.

    All models are fitted to the same rows and tested on the same other rows: a trivial and a linear
    model, the maps with least squares, small ones first, and gradient-boosted trees: those of
    LightGBM and XGBoost where they are installed, else scikit-learn's. Trees have at least the time
    of the slowest map. A support vector machine with the exact kernel is fitted to as many rows as
    its part of the time allows; there is no verdict on it if these are not all.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        Rows of finite numbers.
    y : array-like of shape (n_rows,) or (n_rows, n_targets)
        The targets; several for regression only.
    maps : sequence of str, optional
        Some of "AutoMap", "Fastfood", "RandomKitchenSinks", "TEFM", "TensorSketch",
        "RandomMaclaurin" and "CRAFTMap".
    sizes : sequence of int, default=(256, 1024, 4096)
        The numbers of features.
    task : {"classification", "regression"} or None, default=None
        None decides by the targets: more than 32 distinct numbers mean regression.
    test : float or tuple of (X, y), default=0.2
        The share of test rows, or test rows and their targets.
    budget : float, default=60
        The approximate time limit in seconds. Models that would take longer, estimated from the
        times with fewer rows or features, are left out or fitted to fewer rows, and the result
        says so. The smallest models are always fitted.
    columns : sequence of str, optional
        The names of the columns; by default those of a data frame, or numbers.
    owners : sequence of int, optional
        For encoded columns, such as indicators of categories, the index of the original column.
        Columns with the same owner are permuted together for their importance, because derivatives
        are not meaningful for indicators.
    title : str, optional
        The title of the result.
    progress : callable, optional
        Called with the name of each model before it is fitted.
    random_state : int, NumPy generator or None, default=0
        The seed of the split and of all models.

    Returns
    -------
    comparison : Comparison
        For `page`, or to read.

    See Also
    --------
    page : The comparison as an HTML page.
    kitchenette.choose : Which kernel and scales suit the data.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kitchenette.report import compare
    >>> X, y = load_digits(return_X_y=True)
    >>> found = compare(X, y, maps=("Fastfood",), sizes=(256,), budget=2, random_state=0)
    >>> found.recommended
    'Fastfood, 256 features'
    >>> errors = {row.family: row.error for row in found.measurements}
    >>> errors["Fastfood"] < errors["linear"] < errors["trivial"]
    True
    """
    start = perf_counter()
    for name in maps:
        check_choice("maps", name, tuple(MAPS))
    if not maps or not sizes:
        raise ValueError("maps and sizes must not be empty.")
    if task is not None:
        check_choice("task", task, TASKS)
    names = _column_names(X, columns)
    X, y = _checked(X, y)
    task = likely_task(y) if task is None else task
    seed = seed_from(random_state)
    if isinstance(test, tuple):
        X_test, y_test = _checked(*test)
    else:
        learned, tested = _split(X.shape[0], test, seed)
        X, y, X_test, y_test = take(X, learned), y[learned], take(X, tested), y[tested]
    if task == "regression":
        y, y_test = y.astype(np.float64), y_test.astype(np.float64)
    contest = _Contest(X, y, X_test, y_test, task, budget, seed, start, progress)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of solvers that stopped early; their errors are shown
        contest.run(maps, sorted(sizes))
        best = recommended(contest.measurements, maps)
        predictions = _predictions(contest.models[best.name], X_test, y_test, task)
        if owners is None or np.unique(owners).size == X.shape[1]:
            importances = _importances(contest.models[best.name], X)
        else:
            importances = permuted(contest.models[best.name], X, np.asarray(owners), seed)
    described = described_columns(X, names)
    if importances is not None and importances.size == len(described):
        described = tuple(
            replace(column, importance=float(value))
            for column, value in zip(described, importances, strict=True)
        )
    return Comparison(
        title=title,
        task=task,
        error_name=ERROR_NAMES[task],
        n_rows=X.shape[0],
        n_test_rows=X_test.shape[0],
        n_columns=X.shape[1],
        measurements=tuple(contest.measurements),
        recommended=best.name,
        advice=advised(contest.measurements, best, maps, task, contest.models[best.name]),
        data=described_data(X, y, task, described),
        columns=described,
        left_out=tuple(contest.left_out),
        **predictions,
        seconds=perf_counter() - start,
        seed=seed,
        version=version("kitchenette"),
    )


@dataclass
class _Contest:
    """Models that are fitted one after the other within a time limit."""

    X: Any
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]
    task: str
    budget: float
    seed: int
    start: float
    progress: Callable[[str], None] | None
    measurements: list[Measurement] = field(default_factory=list)
    models: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    @property
    def sparse(self) -> bool:
        """Whether rows are sparse."""
        return not isinstance(self.X, np.ndarray)

    @property
    def remaining(self) -> float:
        """The seconds that are left."""
        return self.budget - (perf_counter() - self.start)

    def run(self, maps: Sequence[str], sizes: Sequence[int]) -> None:
        n_targets = 1 if self.y.ndim == 1 else self.y.shape[1]
        self.measure("trivial model", "trivial", trivial(self.task))
        self.measure("linear model", "linear", linear(self.task, self.sparse))
        self.measure_exact(n_targets)
        for position, size in enumerate(sizes):
            for name in maps:
                self.measure_map(name, size, sizes[position - 1] if position else None)
        self.measure_trees(n_targets)

    def measure_trees(self, n_targets: int) -> None:
        """Fit trees on all rows, for at least as long as any map took.

        They come last, when that time is known. Those of scikit-learn are used if neither LightGBM
        nor XGBoost, which are faster and have the same algorithm, is installed.
        """
        libraries = installed(sparse=self.sparse)
        others = tuple(name for name in libraries if name != "HistGradientBoosting")
        if not libraries:
            self.left_out.append(
                "Gradient-boosted trees: scikit-learn's do not take sparse rows. Install LightGBM "
                "or XGBoost, which do."
            )
        slowest = max(
            (row.fit_seconds or 0.0 for row in self.measurements if row.n_components), default=0.0
        )
        allowed = max(TREES_SHARE * self.budget / max(1, len(others)), slowest)
        for library in others or libraries:
            try:
                self.boost(library, n_targets, allowed)
            except Exception as error:  # of another package: the comparison continues without it
                self.left_out.append(f"{library}: {error}")

    def boost(self, library: str, n_targets: int, allowed: float) -> None:
        """Fit trees with all of their rounds, or with as many as some time allows."""
        rounds = FIRST_ROUNDS
        while True:
            model = boosted(library, self.task, n_targets=n_targets, seed=self.seed, rounds=rounds)
            row = self.measured(library, "trees", model, self.X, self.y)
            seconds = row.fit_seconds or 0.0
            if rounds == ROUNDS or seconds >= allowed:
                break
            # Binning takes its time once, so that twice the rounds take less than twice as long:
            # more rounds follow until the time is used up.
            estimated = int(rounds * allowed / max(seconds, 1e-9))
            rounds = min(ROUNDS, max(2 * rounds, estimated))
        if rounds < ROUNDS:
            row = replace(row, name=f"{library}, {rounds} of {ROUNDS} rounds", unfinished=True)
            self.left_out.append(
                f"{library} with all {ROUNDS} rounds: {rounds} took {seconds:.0f} s."
            )
        self.keep(row, model)

    def measure_map(self, name: str, size: int, smaller: int | None) -> None:
        """Fit a map, unless that would exceed the time limit."""
        earlier = [
            row for row in self.measurements if (row.family, row.n_components) == (name, smaller)
        ]
        label = f"{name}, {size} features"
        if smaller is not None and (not earlier or earlier[0].fit_seconds is None):
            return  # the smaller one was left out already
        if smaller is not None:
            assert earlier[0].fit_seconds is not None
            expected = earlier[0].fit_seconds * max(GROWTH_OF_MAPS, size / smaller)
            if expected > self.remaining - TREES_SHARE * self.budget:
                self.left_out.append(f"{label}: it would take about {expected:.0f} s.")
                return
        model = with_map(self.task, name, size, self.seed, self.sparse)
        try:
            self.measure(label, name, model, size)
        except (ValueError, MemoryError) as error:
            self.left_out.append(f"{label}: {error}")

    def measure_exact(self, n_targets: int) -> None:
        """Fit the exact kernel machine on more and more rows, while its time allows."""
        name, power = "exact kernel machine", 2.0  # its time grows with the square of the rows
        n_rows, allowed = self.X.shape[0], EXACT_SHARE * self.budget
        order = np.argsort(Stream(self.seed, "growing").uniforms(1, n_rows)[0])
        size, spent = min(FIRST_ROWS, n_rows), 0.0
        measurements: list[Measurement] = []
        while True:
            model = exact(self.task, n_targets, self.sparse)
            training = np.sort(order[:size])
            row = self.measured(
                name, "exact kernel", model, take(self.X, training), self.y[training]
            )
            measurements.append(row)
            assert row.fit_seconds is not None
            spent += row.fit_seconds
            # The largest number of rows that the rest of the time allows, at most four times more.
            per_row = row.fit_seconds / size**power
            affordable = int((max(allowed - spent, 0.0) / max(per_row, 1e-12)) ** (1 / power))
            larger = min(n_rows, 4 * size, affordable)
            if larger < min(n_rows, 2 * size):
                break
            if size == n_rows:
                break
            size = larger
        last = measurements[-1]
        whole = last.n_rows == n_rows
        label = name if whole else f"{name} on {last.n_rows:,} rows"
        self.keep(replace(last, name=label), model)
        if not whole:
            self.keep(extrapolation(measurements, n_rows, f"{name} on all rows", power))
            self.left_out.append(
                f"{name.capitalize()} on all rows: fitted to {last.n_rows:,} of {n_rows:,}; the "
                "figures for all of them are extrapolated."
            )

    def measure(self, name: str, family: str, model: Any, n_components: int | None = None) -> None:
        """Fit a model on all rows."""
        row = self.measured(name, family, model, self.X, self.y)
        error = None
        if n_components is not None:
            rows = self.X_test[: max(2, min(KERNEL_ROWS, KERNEL_NUMBERS // self.X.shape[1]))]
            error = map_error(model.feature_map_, _dense(rows))
        self.keep(replace(row, n_components=n_components, kernel_error=error), model)

    def measured(self, name: str, family: str, model: Any, X: Any, y: NDArray[Any]) -> Measurement:
        if self.progress is not None:
            self.progress(f"{name}, {X.shape[0]} rows")
        with _threads(family, X.shape[0]):
            cost = cost_of(lambda: model.fit(X, y))
        with _threads(family, self.X_test.shape[0]):
            predicted = model.predict(self.X_test)
        with _threads(family, PREDICTED_ROWS):
            seconds = prediction_seconds(model, self.X_test)
        error, standard_error = error_of(predicted, self.y_test, self.task)
        return Measurement(
            name,
            family,
            X.shape[0],
            error=error,
            standard_error=standard_error,
            fit_seconds=cost.seconds,
            predict_seconds=seconds,
            fit_bytes=cost.n_bytes,
            model_bytes=stored_size(model),
        )

    def keep(self, row: Measurement, model: Any = None) -> None:
        self.measurements.append(row)
        if model is not None:
            self.models[row.name] = model


def extrapolation(
    measurement: Sequence[Measurement], n_rows: int, name: str, power: float = 2.0
) -> Measurement:
    """Times and sizes of a model for more rows, extrapolated from those for fewer.

    If there is only one measurement, times grow with this power of the number of rows.

    Examples
    --------
    >>> from kitchenette.report.comparing import extrapolation
    >>> from kitchenette.report import Measurement
    >>> found = [Measurement("SVC", "exact", n, fit_seconds=n**2 / 1e6) for n in (1000, 2000)]
    >>> extrapolation(found, 100_000, "SVC").fit_seconds
    10000.0
    """
    values: dict[str, Any] = {}
    for quantity in ("fit_seconds", "predict_seconds", "fit_bytes", "model_bytes"):
        points = [(row.n_rows, getattr(row, quantity)) for row in measurement]
        points = [(rows, value) for rows, value in points if value]
        if not points:
            continue
        rows, value = points[-1]
        if len(points) > 1:
            # From the widest span: between neighbors, a busy moment doubles the power.
            growth = _growth((points[0], points[-1]))
        else:
            growth = power if quantity == "fit_seconds" else 1.0
        predicted = value * (n_rows / rows) ** growth
        values[quantity] = round(predicted) if quantity.endswith("bytes") else float(predicted)
    return Measurement(name, measurement[-1].family, n_rows, extrapolated=True, **values)


def _threads(family: str, n_rows: int) -> Any:
    """A context that leaves trees a single thread for few rows.

    Their threads wait for each other after every split, which takes far longer than the work if
    there is little of it and other processes are busy.
    """
    return threadpool_limits(1 if family == "trees" and n_rows < THREADED_ROWS else None)


def _growth(points: Sequence[tuple[int, float]]) -> float:
    """The power of the number of rows with which something grows, between 0 and 3."""
    (few, little), (many, much) = points
    return float(np.clip(np.log(much / little) / np.log(many / few), 0.0, 3.0))


def _split(n_rows: int, share: float, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Random row indices of training and test rows."""
    if not 0 < share < 1:
        raise ValueError(f"test must be a share of the rows between 0 and 1; got {share!r}.")
    order = np.argsort(Stream(seed, "split").uniforms(1, n_rows)[0])
    n_test = round(share * n_rows)
    if not 0 < n_test < n_rows:
        raise ValueError(f"{n_rows} rows are too few to test on {share:.3g} of them.")
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def _checked(X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    X = table(X)
    X = check_array(
        X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
    )
    _refuse_missing(X)
    X = check_array(X, accept_sparse="csr", dtype=None)  # infinite numbers are refused
    y = check_array(array_of_targets(y), ensure_2d=False, dtype=None, input_name="y")
    check_consistent_length(X, y)
    return X, y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def _column_names(X: Any, given: Sequence[str] | None) -> list[str] | None:
    columns = getattr(X, "columns", None) if given is None else given
    return None if columns is None else [str(name) for name in columns]


def _dense(X: Any) -> NDArray[Any]:
    return X.toarray() if hasattr(X, "toarray") else X


def _importances(model: Any, X: Any) -> NDArray[Any] | None:
    try:
        importances: NDArray[Any] = model.importance(X)
    except ValueError:  # the map has no derivatives
        return None
    return importances


def permuted(model: Any, X: Any, owners: NDArray[Any], seed: int) -> NDArray[Any]:
    """Normalized changes of predictions when the columns of an owner are permuted together.

    The change of an owner is divided among its columns by their variances.
    """
    rng = np.random.default_rng(seed)
    rows = _dense(take(X, np.sort(rng.permutation(X.shape[0])[:PERMUTED_ROWS])))
    predict = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    before, changes = predict(rows), np.zeros(rows.shape[1])
    variances = rows.var(axis=0, dtype=np.float64)
    for owner in np.unique(owners):
        own = np.flatnonzero(owners == owner)
        total = variances[own].sum()
        if total > 0:
            changed = rows.copy()
            changed[:, own] = rows[np.ix_(rng.permutation(len(rows)), own)]
            size = np.sqrt(np.mean(np.square(predict(changed) - before)))
            changes[own] = size * variances[own] / total
    return changes / changes.sum() if changes.any() else np.full(changes.size, 1 / changes.size)


def _predictions(model: Any, X: Any, y: NDArray[Any], task: str) -> dict[str, Any]:
    """Calibration and confusion, or residuals, on the test rows."""
    if task == "classification":
        return {
            "reliability": reliability(model.predict_proba(X), model.classes_, y),
            "confusion": _confusion(model.predict(X), y, model.classes_),
        }
    if y.ndim == 2:
        return {}
    mean, std = model.predict(X, return_std=True)
    residuals = y - mean
    # A few extreme residuals would leave all others in one bin.
    low, high = np.quantile(residuals, [0.005, 0.995])
    counts, edges = np.histogram(np.clip(residuals, low, high), bins=2 * BINS)
    coverage = float(np.mean(np.abs(residuals) <= 1.96 * std))
    return {"residuals": Residuals(tuple(edges.tolist()), tuple(counts.tolist()), coverage)}


def reliability(
    probabilities: NDArray[Any], classes: NDArray[Any], targets: NDArray[Any]
) -> Reliability:
    """The accuracy of predicted classes in bins of equal width of their probability."""
    sure = probabilities.max(axis=1)
    right = classes[probabilities.argmax(axis=1)] == targets
    least = 1 / classes.size
    bins = np.clip((sure - least) / (1 - least) * BINS, 0, BINS - 1).astype(int)
    counts = np.bincount(bins, minlength=BINS)
    used = np.flatnonzero(counts)
    means = [np.bincount(bins, values, BINS)[used] / counts[used] for values in (sure, right)]
    return Reliability(
        tuple(means[0].tolist()), tuple(means[1].tolist()), tuple(counts[used].tolist())
    )


def _confusion(
    predicted: NDArray[Any], targets: NDArray[Any], classes: NDArray[Any]
) -> Confusion | None:
    if classes.size > MOST_CLASSES or not np.isin(targets, classes).any():
        return None
    counts = confusion_matrix(targets, predicted, labels=classes)
    return Confusion(tuple(map(str, classes.tolist())), tuple(map(tuple, counts.tolist())))


def _refuse_missing(X: Any) -> None:
    """Refuse missing values, which linear models and exact kernel machines do not take."""
    missing = np.isnan(X.data) if hasattr(X, "indices") else np.isnan(X).any(axis=0)
    if missing.any():
        place = int(np.argmax(missing))
        column = X.indices[place] if hasattr(X, "indices") else place
        raise ValueError(
            f"Input X contains NaN (missing values), for example in column {column}. Fill them "
            "first, for example with sklearn.impute.SimpleImputer, or use the command kitchenette "
            "compare on a file, which imputes medians."
        )
