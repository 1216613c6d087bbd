"""The same rows give the same model, by whatever route they come.

Equal means: predictions that differ by at most 1e-9 of the spread of the targets (probabilities by
at most 1e-9), the same map, penalty, calibration and validation score. Differences are rounding
errors of sums in another order, times the condition number of the equations. Targets have noise
here, so that penalties are not tiny and the condition number is moderate; for others see
`tests/backends/test_dask.py`. Maps that belong to places of rows, such as `TEFM`, are left out.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import routes
import spark_sessions
from numpy.testing import assert_allclose
from routes import categories, numbers, strings, with_labels, with_weights
from sklearn.base import clone

from kitchenette import (
    AutoMap,
    Fastfood,
    KernelClassifier,
    KernelRegressor,
    RandomKitchenSinks,
    RandomMaclaurin,
)
from kitchenette.kernels import Exponential, Gaussian, Matern, Polynomial
from kitchenette.maps.protocol import thawed

dask = pytest.importorskip("dask")

TOLERANCE = 1e-9
FEW = 1500  # rows, of which samples of 700 are taken in these tests
MANY = 24_000  # rows, of which estimators take samples of 20,000


@dataclass(frozen=True)
class Case:
    """An estimator, and how the rows are made that it learns and predicts."""

    model: Any
    rows: Any
    seed: int
    tolerance: float = TOLERANCE  # of predictions, relative to the spread of the targets

    def learned(self, n_rows: int) -> routes.Rows:
        return self.rows(n_rows, self.seed)

    def later(self) -> routes.Rows:
        """Rows that were not learned."""
        return self.rows(300, self.seed + 100)


def gaps(n_rows, seed):
    return numbers(n_rows, seed, gaps=0.1)


def labels(make):
    return lambda n_rows, seed: with_labels(make(n_rows, seed))


def weighted(make):
    return lambda n_rows, seed: with_weights(make(n_rows, seed))


def regressor(feature_map, seed, **options):
    return KernelRegressor(feature_map, random_state=seed, validation_rows=200, **options)


def classifier(feature_map, seed, **options):
    return KernelClassifier(feature_map, random_state=seed, validation_rows=200, **options)


SMALL = AutoMap(32, kernel=Gaussian(), scales="columns")  # whose choice does not take long
QUICK = {
    "numbers": Case(classifier(SMALL, 1), labels(numbers), 11),
    "strings": Case(regressor(SMALL, 2), weighted(strings), 12),
    "missing": Case(regressor(Fastfood(Matern(), 64), 3), gaps, 13),
    "classes": Case(
        classifier(Fastfood(n_components=64), 4, class_weight="balanced"), labels(strings), 14
    ),
}
OPTIONS = {
    "all kernels": Case(regressor(AutoMap(64), 5), numbers, 15),
    "strings": Case(classifier(AutoMap(64), 6), weighted(labels(strings)), 16),
    "missing": Case(classifier(AutoMap(64), 7, class_weight="balanced"), labels(gaps), 17),
    "weights": Case(regressor(AutoMap(64, random_state=3), 8, alpha=0.5), weighted(numbers), 18),
    "evidence": Case(
        regressor(RandomKitchenSinks(n_components=64), 9, alpha="evidence"), numbers, 19
    ),
    "gcv": Case(regressor(Fastfood(n_components=64), 10, alpha="gcv"), weighted(strings), 20),
    "weights of classes": Case(
        classifier(
            RandomMaclaurin(Polynomial(2), 64),
            11,
            alpha=1.0,
            class_weight={"low": 2.0, "middle": 1.0, "high": 0.5},
        ),
        labels(numbers),
        21,
    ),
    "categories": Case(classifier(AutoMap(64), 13), categories, 23),
    "a map of all rows": Case(regressor(RandomMaclaurin(Polynomial(2), 64), 14), strings, 24),
    "a map of all filled rows": Case(regressor(RandomMaclaurin(Exponential(), 64), 15), gaps, 25),
    "output code": Case(
        classifier(Fastfood(n_components=64), 12, code="hadamard", fit_intercept=False),
        labels(strings),
        22,
    ),
}
DEFAULTS = {
    "regressor": Case(KernelRegressor(random_state=0), numbers, 31),
    "classifier": Case(KernelClassifier(alpha=0.1, random_state=0), labels(strings), 32),
    # It chooses the penalty 3e-8, and so a condition number of 4e9 for the rounding errors.
    "classifier with its own penalty": Case(
        KernelClassifier(random_state=0), labels(strings), 32, tolerance=1e-8
    ),
    "regressor, missing": Case(KernelRegressor(random_state=1), weighted(gaps), 33),
}
LARGE = {
    "numbers": Case(KernelRegressor(AutoMap(64), random_state=1), numbers, 41),
    "strings": Case(KernelClassifier(AutoMap(64), random_state=2), labels(strings), 42),
    "missing": Case(KernelRegressor(Fastfood(n_components=128), random_state=3), gaps, 43),
}


# ---------------------------------------------------------------- comparing


def outputs(model, rows):
    named = hasattr(model, "feature_names_in_")
    ask = model.predict_proba if isinstance(model, KernelClassifier) else model.predict
    return ask(rows.frame if named else rows.array)


def inner_map(model):
    """The map behind the preparation of columns of tables."""
    fitted = thawed(model.feature_map_)
    return getattr(fitted, "map_", None) or fitted


def assert_same_model(found, expected, case, n_rows):
    rows = case.learned(n_rows)
    assert found.statistics_.n_rows == expected.statistics_.n_rows
    assert inner_map(found).specification_ == inner_map(expected).specification_
    assert found.observation_rule_ == expected.observation_rule_
    assert found.alpha_ == pytest.approx(expected.alpha_, rel=TOLERANCE)
    assert found.validation_score_ == pytest.approx(expected.validation_score_, abs=TOLERANCE)
    mine, theirs = (model.model_.solution.validation for model in (found, expected))
    if isinstance(expected, KernelClassifier):
        assert found.classes_.tolist() == expected.classes_.tolist()
        mine, theirs, spread = mine.calibration, theirs.calibration, 1.0
        assert mine.slope == pytest.approx(theirs.slope, rel=1e-8)
        assert_allclose(mine.biases, theirs.biases, rtol=1e-8, atol=1e-8)
        assert len(mine.curves) == len(theirs.curves)
    else:
        spread = rows.y.std()
        assert_allclose(mine.spread, theirs.spread, rtol=TOLERANCE)
    for some in (rows, case.later()):
        difference = np.abs(outputs(found, some) - outputs(expected, some)).max()
        assert difference <= case.tolerance * spread


@cache
def reference(case, n_rows):
    """The model of an array, or of a data frame if there are strings."""
    rows = case.learned(n_rows)
    route = routes.of_array if rows.is_numeric else routes.of_pandas
    return route(clone(case.model), rows, None)


def check(case, n_rows, route, folder):
    found = route(clone(case.model), case.learned(n_rows), folder)
    assert_same_model(found, reference(case, n_rows), case, n_rows)
    return found


# ---------------------------------------------------------------- one process


@pytest.fixture
def small_samples(monkeypatch):
    """Samples of 700 rows instead of 20,000, of which 500 instead of 8000 are chosen on."""
    modules = {name: sys.modules[f"kitchenette.{name}"] for name in SAMPLING}
    for name in ("training.feature_maps", "data.source"):
        monkeypatch.setattr(modules[name], "sample_size", lambda n_columns: 700)
    auto = modules["selection.automap"]
    monkeypatch.setattr(auto, "SEARCH", replace(auto.SEARCH, pilot_rows=500))


SAMPLING = ("training.feature_maps", "data.source", "selection.automap")


@pytest.fixture(autouse=True)
def _one_after_the_other():
    with dask.config.set(scheduler="synchronous"):
        yield


def possible(cases, n_rows=30):
    """Cases and the routes that their rows can take."""
    return [
        pytest.param(case, route, id=f"{name}-{route}")
        for name, case in cases.items()
        for route in routes.ROUTES
        if routes.can_go(case.learned(n_rows), route)
    ]


@pytest.mark.parametrize(("case", "route"), possible(QUICK))
def test_same_rows_same_model(small_samples, case, route, tmp_path):
    found = check(case, FEW, routes.ROUTES[route], tmp_path)
    if isinstance(case.model.feature_map, AutoMap):
        assert 500 <= inner_map(found).choice_.n_rows < 700  # rows were sampled


@pytest.mark.slow
@pytest.mark.parametrize(("case", "route"), possible(OPTIONS))
def test_same_rows_same_model_with_other_options(small_samples, case, route, tmp_path):
    check(case, FEW, routes.ROUTES[route], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "route"), possible(LARGE))
def test_many_rows_are_sampled_alike(case, route, tmp_path):
    check(case, MANY, routes.ROUTES[route], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", DEFAULTS.values(), ids=DEFAULTS)
@pytest.mark.parametrize("route", ["polars", "hive folders", "CSV", "resumed", "Dask frame"])
def test_defaults_give_the_same_model(case, route, tmp_path):
    check(case, MANY, routes.ROUTES[route], tmp_path)


# ---------------------------------------------------------------- many processes


@contextmanager
def dask_workers(n_workers):
    distributed = pytest.importorskip("distributed")
    settings = {"distributed.scheduler.allowed-failures": 100, "scheduler": "distributed"}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit=0,
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def kill_a_busy_worker(client, killed):
    """Kill the first worker that has tasks, and note its process."""
    for _ in range(600):
        time.sleep(0.1)
        busy = {address for address, tasks in client.processing().items() if tasks}
        for nanny in client.cluster.workers.values():
            if nanny.worker_address in busy and nanny.pid is not None:
                killed.append(nanny.pid)
                os.kill(nanny.pid, signal.SIGKILL)
                return


@pytest.mark.slow
# Sockets of a worker that was killed are closed by nobody.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("n_workers", "kills"), [(1, 0), (3, 0), (3, 1)])
def test_dask_workers_give_the_same_model(n_workers, kills, tmp_path):
    cloudpickle = pytest.importorskip("cloudpickle")
    cloudpickle.register_pickle_by_value(routes)  # workers cannot import tests
    killed = []
    with dask_workers(n_workers) as client:
        for name, case in LARGE.items():
            frame = name == "strings"
            route = routes.of_dask_frame if frame else routes.of_dask_array
            killer = threading.Thread(target=kill_a_busy_worker, args=(client, killed))
            if kills and not killed:
                killer.start()
                pause = 1.0
            else:
                pause = 0.0
            check(case, MANY, lambda *given, r=route, p=pause: r(*given, pause=p), tmp_path)
            if pause:
                killer.join()
    assert len(killed) == kills


@pytest.fixture(scope="module")
def spark():
    session = spark_sessions.session("local[2]")
    yield session
    session.stop()


SPARK_CASES = {**LARGE, **DEFAULTS}


@pytest.mark.slow
@pytest.mark.skipif(spark_sessions.why_not() is not None, reason=spark_sessions.why_not() or "")
@pytest.mark.filterwarnings("default")  # pyspark has warnings of its own
@pytest.mark.parametrize("case", SPARK_CASES.values(), ids=SPARK_CASES)
@pytest.mark.parametrize("route", routes.SPARK)
def test_spark_gives_the_same_model(spark, case, route, tmp_path):
    check(case, MANY, routes.SPARK[route], tmp_path)
