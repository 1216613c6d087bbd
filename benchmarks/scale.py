"""Very many features and other losses: error, time, memory and steps, beside peers.

python -m benchmarks.scale                       # everything, hours on two cores
python -m benchmarks.scale --part mnist --sizes 14,15 --maps Fastfood
python -m benchmarks.scale --part losses,steps   # cost, mnist, passes, steps, agreement, covtype
python -m benchmarks.scale --seconds 300         # interrupt our fits after five minutes

MNIST and other sets are read as docs/reproduction.md says. Every model is fitted in a process of
its own, so that its peak memory can be read. Beside the seconds of a clock stand those of the
processors, summed over the threads, which hardly depend on what else the machine does. A fit of
ours that takes longer than ``--seconds`` of each thread is interrupted as Ctrl-C would do it, which
keeps the best model so far: an asterisk marks it. Kernel principal components have their own
benchmark, `python -m benchmarks.kernel_pca`, and so have single passes, `python -m
benchmarks.passes`.
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import kitchenette
from benchmarks import passes
from benchmarks.learning import mnist
from benchmarks.timing import in_a_new_process, options_parser, peak_memory
from kitchenette import (
    TEFM,
    AutoMap,
    CRAFTMap,
    Fastfood,
    KernelClassifier,
    KernelRegressor,
    RandomKitchenSinks,
    RandomMaclaurin,
    TensorSketch,
    _core,
)
from kitchenette.kernels import Gaussian, Polynomial
from kitchenette.learning.conjugate_gradients import SquaredSolver
from kitchenette.learning.gram import ConjugateGradients
from kitchenette.learning.iterative import Settings
from kitchenette.learning.losses import Squared
from kitchenette.learning.passes import FeatureRows
from kitchenette.learning.preconditioner import Preconditioner, SampledRows, sample_size
from kitchenette.learning.target_coding import TargetCoding
from kitchenette.report.boosting import boosted, installed
from reproduction.data import load

KERNEL = Polynomial(7)
GAUSSIAN = Gaussian(0.7)  # chosen by hand on a part of the training rows of MNIST
MAPS: dict[str, Callable[[int], Any]] = {
    "CRAFTMap, RandomMaclaurin": lambda E: CRAFTMap(
        RandomMaclaurin(KERNEL, 8 * E, h01=True), E, random_state=0
    ),
    "CRAFTMap, TensorSketch": lambda E: CRAFTMap(TensorSketch(KERNEL, 8 * E), E, random_state=0),
    "RandomMaclaurin": lambda E: RandomMaclaurin(KERNEL, E, random_state=0),
    "Fastfood, hadamard": lambda E: Fastfood(GAUSSIAN, E, projection="hadamard", random_state=0),
    "Fastfood, orthogonal": lambda E: Fastfood(
        GAUSSIAN, E, projection="orthogonal", random_state=0
    ),
    "RandomKitchenSinks": lambda E: RandomKitchenSinks(GAUSSIAN, E, random_state=0),
    "TEFM, D = 2 E": lambda E: TEFM(
        Fastfood(GAUSSIAN, 2 * E, projection="orthogonal"), E, method="srht", random_state=0
    ),
}

# CRAFTMaps' Table 1-b: test errors in per cent, and seconds of projection and Hessian, 40 cores.
PRINTED = {
    ("CRAFTMap, RandomMaclaurin", 14): 1.79,
    ("CRAFTMap, TensorSketch", 14): 1.75,
    ("CRAFTMap, RandomMaclaurin", 15): 1.52,
    ("CRAFTMap, TensorSketch", 15): 1.44,
    ("CRAFTMap, RandomMaclaurin", 16): 1.27,
    ("CRAFTMap, TensorSketch", 16): 1.12,
}
PRINTED_SECONDS = {14: 157, 15: 521, 16: 1520}
SVC_C, SVC_GAMMA = 10.0, 1 / (2 * 0.7**2)
PARTS = ("cost", "mnist", "passes", "steps", "agreement", "covtype", "losses")


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Interrupt what runs in this block as Ctrl-C would, when each thread has used some seconds."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, seconds * _core.max_threads())
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@dataclass(frozen=True)
class Fit:
    """What a fit took, and whether it was interrupted before its end."""

    seconds: float
    processor_seconds: float
    gigabytes: float
    stopped: bool

    def __str__(self) -> str:
        return (
            f"{self.seconds:7.0f}{'*' if self.stopped else ' '}{self.processor_seconds:7.0f}"
            f"{self.gigabytes:9.2f}"
        )


HEADER = f"{'fit s':>8}{'CPU s':>7}{'peak GB':>9}"


def measured_fit(model: Any, X: Any, y: Any, limit: float = np.inf) -> Fit | None:
    """Fit a model and measure it; None if it has not learned anything within the limit."""
    start, processor_start = perf_counter(), process_time()
    try:
        with warnings.catch_warnings(record=True) as seen, interrupted_after(min(limit, 1e6)):
            warnings.simplefilter("always", ConvergenceWarning)
            model.fit(X, y)
    except KeyboardInterrupt:
        return None
    used = process_time() - processor_start
    stopped = any("Interrupted" in str(warning.message) for warning in seen)
    return Fit(perf_counter() - start, used, peak_memory() / 1024, stopped)


# ---------------------------------------------------------------- MNIST with up to 2^17 features


def fit_mnist(
    name: str, size: int, options: dict[str, Any], limit: float
) -> tuple[Fit, float, int, float] | None:
    """What a fit took, the test error in per cent, the steps and the penalty."""
    X, y, X_test, y_test = mnist()
    model = KernelClassifier(MAPS[name](2**size), random_state=0, **options)
    fit = measured_fit(model, X, y, limit)
    if fit is None:
        return None
    return fit, 100 * (1 - model.score(X_test, y_test)), model.n_iter_, model.alpha_


def fit_svc() -> tuple[Fit | None, float]:
    X, y, X_test, y_test = mnist()
    model = SVC(C=SVC_C, gamma=SVC_GAMMA, cache_size=1000)
    fit = measured_fit(model, X, y)
    return fit, 100 * (1 - model.score(X_test, y_test))


def mnist_part(sizes: list[int], maps: list[str], svc: bool, limit: float) -> None:
    print("MNIST, rows of norm one; iterative solver, penalty chosen; 60,000 rows")
    print("printed: CRAFTMaps' Table 1-b, and its seconds of projection and Hessian on 40 cores")
    print(f"{'map':28}{'features':>9}{'printed %':>11}{'printed s':>11}", end="")
    print(f"{'error %':>9}{HEADER}{'steps':>7}{'alpha':>9}")
    if svc:
        fit, error = in_a_new_process(fit_svc)
        print(f"{'SVC of scikit-learn':28}{'':31}{error:9.2f}{fit}", flush=True)
    for size in sizes:
        for name in maps:
            found = in_a_new_process(fit_mnist, name, size, {"solver": "iterative"}, limit)
            printed, seconds = PRINTED.get((name, size)), PRINTED_SECONDS.get(size)
            print(f"{name:28}{2**size:9}{f'{printed:.2f}' if printed else '':>11}", end="")
            print(f"{seconds if printed else '':>11}", end="")
            if found is None:
                print(f"  no step in {limit:.0f} s", flush=True)
                continue
            fit, error, steps, alpha = found
            print(f"{error:9.2f}{fit}{steps:7}{alpha:9.2g}", flush=True)
    print()


def cost_part(sizes: list[int], maps: list[str]) -> None:
    """What a step on all rows of MNIST takes, from a few of them."""
    n = 256
    print(f"Processor time of a gradient with 10 classes, for {n} rows of MNIST, and what follows")
    print("for a step on 60,000 rows")
    print(f"{'map':28}{'features':>9}{'ns per feature':>16}{'CPU s of a step':>17}")
    X = mnist()[0][:n]
    for size in sizes:
        for name in maps:
            operator = MAPS[name](2**size).fit(X).operator(X)
            used = passes.processor_seconds(passes.passes(operator, X, 10)["gradient"])
            each = 1e9 * used / (n * 2**size)
            print(f"{name:28}{2**size:9}{each:16.2f}{60_000 / n * used:17.1f}", flush=True)
    print()


# ---------------------------------------------------------------- one pass


def passes_part() -> None:
    print("One pass over 784 columns relative to the features alone (python -m benchmarks.passes)")
    for D in (4096, 16384, 65536):
        passes.compare("Fastfood", D, [10])
    for name in ("CRAFT, RandomMaclaurin", "CRAFT, TensorSketch"):
        passes.compare(name, 16384, [10])
    print()
    print("Growth of the time of a gradient: half and twice of n, D and k, where 1 is 4096 rows,")
    print("8192 features and 16 classes")
    base = {"n": 4096, "D": 8192, "k": 16}
    one = gradient_time(**base)
    for name, value in base.items():
        factors = [gradient_time(**{**base, name: value * m // 2}) / one for m in (1, 4)]
        print(f"{name}: half {factors[0]:.2f}, twice {factors[1]:.2f}", flush=True)
    print()


def gradient_time(n: int, D: int, k: int) -> float:
    X = passes.rows(n)
    operator = passes.operator_of("Fastfood", D, X)
    return passes.processor_seconds(passes.passes(operator, X, k)["gradient"])


# ---------------------------------------------------------------- steps


class Indicators(TargetCoding):
    """Indicators of classes as targets."""

    def __init__(self, n_classes: int):
        self._classes = np.arange(n_classes)

    def columns(self, targets: NDArray[Any]) -> NDArray[np.float64]:
        return (targets[:, None] == self._classes).astype(np.float64)

    def target_numbers(self, targets: NDArray[Any]) -> NDArray[np.float64]:
        return targets[:, None].astype(np.float64)


def steps_needed(X: Any, y: Any, D: int, alpha: float, goal: float, most: int) -> list[int | None]:
    """Steps to a residual; None for more than `most`.

    With the preconditioner, with that of an even sample of as many rows, and without one.
    """
    labels = np.unique(y, return_inverse=True)[1]
    fitted = Fastfood(n_components=D, random_state=0).fit(X)
    weights = np.ones(len(labels))
    rows = FeatureRows(fitted, X, labels, Indicators(labels.max() + 1), weights)
    moments = rows.moments()
    solver = SquaredSolver(rows, Squared(), Settings(alpha, True, most, goal, 0), None)
    by_leverage = solver.sampled_rows(moments.mean)
    first = np.random.default_rng(0).permutation(len(labels))[: by_leverage.n_rows]
    even = SampledRows(rows.some(first), moments.mean, float(len(labels)))

    def steps(inverse: Any) -> int | None:
        product = lambda W: rows.normal_product(W, moments.mean)  # noqa: E731
        solver = ConjugateGradients(product, moments.cross, [alpha], [inverse])
        for number in range(1, most + 1):
            solver.step()
            if solver.residuals[0] <= goal:
                return number
        return None

    inverses = Preconditioner(by_leverage, alpha), Preconditioner(even, alpha), lambda V: V
    return [steps(inverse) for inverse in inverses]


def steps_part() -> None:
    most, D = 60, 8192
    print(
        f"Steps of conjugate gradients to a residual of 0.01, {D} Fastfood features, 20,000 rows,"
    )
    size = sample_size(20_000, D, kept=True)
    print(f"with a preconditioner of {size} rows drawn by leverage, with one of as many rows drawn")
    print(f"evenly, and without (at most {most})")
    print(f"{'data':12}{'alpha':>8}{'leverage':>10}{'even':>7}{'without':>9}")
    for name in ("mnist", "letter", "covtype"):
        X, y, _, _ = prepared(name, 20_000)
        for alpha in (1.0, 0.1, 0.01):
            found = steps_needed(X, y, D, alpha, 0.01, most)
            shown = [f"{n}" if n else f"> {most}" for n in found]
            print(f"{name:12}{alpha:8.2g}{shown[0]:>10}{shown[1]:>7}{shown[2]:>9}", flush=True)
    print()


def prepared(name: str, most: int) -> tuple[Any, Any, Any, Any]:
    """Standardized training rows, at most so many, and test rows; a fixed random split."""
    arrays = load(name)
    if "X_train" in arrays:
        X, y, X_test, y_test = (arrays[n] for n in ("X_train", "y_train", "X_test", "y_test"))
    else:
        order = np.random.default_rng(0).permutation(len(arrays["y"]))
        n_test = len(order) // 5
        test, train = order[:n_test], order[n_test:]
        X, y = arrays["X"][train], arrays["y"][train]
        X_test, y_test = arrays["X"][test], arrays["y"][test]
    if len(y) > most:
        some = np.random.default_rng(1).permutation(len(y))[:most]
        X, y = X[some], y[some]
    scaler = StandardScaler().fit(X)
    return (
        scaler.transform(X).astype(np.float32),
        y,
        scaler.transform(X_test).astype(np.float32),
        y_test,
    )


# ---------------------------------------------------------------- agreement


def agreement_part() -> None:
    print("Largest difference of predictions of both solvers, relative to the targets' spread;")
    print("1500 rows, 512 features, alpha 0.1, tol 1e-8")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 8)) / 3
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=1500)
    weights = rng.uniform(0.1, 2, size=1500)
    for name, make in MAPS.items():
        differences = []
        for weight in (None, weights):
            models = [
                KernelRegressor(
                    make(512), alpha=0.1, solver=solver, tol=1e-8, validation_rows=0
                ).fit(X, y, weight)
                for solver in ("onepass", "iterative")
            ]
            a, b = (model.predict(X) for model in models)
            differences.append(np.abs(a - b).max() / y.std())
        print(f"{name:28}plain {differences[0]:.1e}, weighted {differences[1]:.1e}", flush=True)
    print()


# ---------------------------------------------------------------- covtype


def fit_covtype(make: Callable[[], Any], limit: float) -> tuple[Fit | None, float]:
    X, y, X_test, y_test = prepared("covtype", 10**9)
    model = make()
    fit = measured_fit(model, X, y, limit)
    return fit, np.nan if fit is None else 100 * (1 - model.score(X_test, y_test))


def ours(n_components: int, **options: Any) -> Any:
    return KernelClassifier(AutoMap(n_components=n_components, random_state=0), **options)


def nystroem(head: Any) -> Any:
    return make_pipeline(Nystroem(gamma=0.05, n_components=1000, random_state=0), head)


def covtype_part(quick: bool, limit: float) -> None:
    contestants: dict[str, Callable[[], Any]] = {
        "one pass, 1024": partial(ours, 1024, solver="onepass", random_state=0),
        "one pass, 4096": partial(ours, 4096, solver="onepass", random_state=0),
        "logistic, 4096": partial(ours, 4096, loss="logistic", random_state=0),
        "iterative, 16,384": partial(ours, 16_384, solver="iterative", random_state=0),
        **{name: partial(boosted, name, "classification") for name in installed()},
        "Nystroem 1000 + ridge": partial(nystroem, RidgeClassifier()),
        "Nystroem 1000 + logistic": partial(nystroem, LogisticRegression(max_iter=100)),
    }
    if not quick:
        contestants["iterative, 65,536"] = partial(ours, 65_536, solver="iterative", random_state=0)
    print("covtype, four fifths of 581,012 rows learned, one fifth tested")
    print(f"{'':28}{'error %':>7} {HEADER}")
    for name, make in contestants.items():
        mine = isinstance(make(), KernelClassifier)  # others do not keep what they have learned
        fit, error = in_a_new_process(fit_covtype, make, limit if mine else np.inf)
        print(f"{name:28}{error:7.2f} {fit or '  not finished'}", flush=True)
    print()


# ---------------------------------------------------------------- losses against scikit-learn


def losses_part(n_rows: int) -> None:
    X, y, X_test, y_test = mnist()
    X, y = X[:n_rows], y[:n_rows]
    feature_map = Fastfood(GAUSSIAN, 4096, random_state=0).fit(X)
    alpha = 0.05
    # With its default tolerance LogisticRegression stops at nearly twice the least objective.
    print(f"MNIST, {n_rows} rows, 4096 features, alpha {alpha}: our losses, features made again in")
    print("every pass, and scikit-learn's on features in memory; the same objectives")
    print(f"{'':28}{'error %':>7} {HEADER}")
    peers = {
        "logistic": LogisticRegression(C=1 / alpha, max_iter=1000, tol=1e-5),
        "squared_hinge": LinearSVC(C=1 / (2 * alpha), dual=False, tol=1e-3, max_iter=200),
    }
    Z, Z_test = feature_map.transform(X), feature_map.transform(X_test)
    for loss, peer in peers.items():
        model = KernelClassifier(
            feature_map, loss=loss, alpha=alpha, validation_rows=0, random_state=0
        )
        mine, theirs = measured_fit(model, X, y), measured_fit(peer, Z, y)
        assert mine is not None
        assert theirs is not None
        same = np.mean(model.predict(X_test) == peer.predict(Z_test))
        for name, fit, error in (
            (f"{loss}, {model.n_iter_} steps", mine, 1 - model.score(X_test, y_test)),
            (type(peer).__name__, theirs, 1 - peer.score(Z_test, y_test)),
        ):
            print(f"{name:28}{100 * error:7.2f} {fit}")
        print(
            f"ratio {theirs.seconds / mine.seconds:.1f}, of processor seconds "
            f"{theirs.processor_seconds / mine.processor_seconds:.1f}; {100 * same:.2f} % of the "
            "predictions are equal",
            flush=True,
        )
    print()


def main() -> None:
    parser = options_parser(__doc__)
    parser.add_argument("--part", default=",".join(PARTS), help="some of the parts, with commas")
    parser.add_argument("--sizes", default="14,15,16", help="powers of two of features on MNIST")
    parser.add_argument(
        "--maps", default="CRAFTMap,Fastfood, orthogonal", help="beginnings of names"
    )
    parser.add_argument("--no-svc", action="store_true", help="leave out SVC on all of MNIST")
    parser.add_argument("--rows", type=int, default=60_000, help="rows for the losses")
    parser.add_argument(
        "--seconds", type=float, default=600, help="of each thread, for a fit of MNIST or covtype"
    )
    options = parser.parse_args()
    kitchenette.show_config()
    print()
    chosen = options.part.split(",")
    beginnings = tuple(options.maps.replace(", ", "|").split(","))
    names = [n for n in MAPS if n.replace(", ", "|").startswith(beginnings)]
    sizes = [int(size) for size in options.sizes.split(",")]
    if "cost" in chosen:
        cost_part(sizes, names)
    if "mnist" in chosen:
        mnist_part(sizes, names, not options.no_svc, options.seconds)
    if "passes" in chosen:
        passes_part()
    if "steps" in chosen:
        steps_part()
    if "agreement" in chosen:
        agreement_part()
    if "covtype" in chosen:
        covtype_part(options.quick, options.seconds)
    if "losses" in chosen:
        losses_part(options.rows)


if __name__ == "__main__":
    main()
