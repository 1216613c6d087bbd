"""Kernel machines on Spark are those of one machine; they fit into pipelines, and can be stored."""

from __future__ import annotations

import doctest
import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spark_sessions
from spark_data import CLASSES, a_table, rows_and_targets

import kitchenette

WHY_NOT = spark_sessions.why_not()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or ""),
    pytest.mark.filterwarnings("default"),  # pyspark has warnings of its own
]
HERE = Path(__file__).parent
MODULES = ("spark", "spark_files", "spark_rows", "spark_tree")


@pytest.fixture(scope="module")
def spark():
    session = spark_sessions.session("local[2]")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def backend(spark):
    return importlib.import_module("kitchenette.spark")


def frame_of(spark, X, y, weights, n_partitions):
    """A data frame of vectors, some of them sparse, with partitions of different sizes."""
    from pyspark.ml.linalg import Vectors

    rows = [
        (
            Vectors.sparse(len(x), dict(enumerate(x))) if i % 3 == 0 else Vectors.dense(x),
            y_i,
            float(weight),
            min(int(n_partitions * (i / len(X)) ** 2), n_partitions - 1),
        )
        for i, (x, y_i, weight) in enumerate(zip(X.tolist(), y.tolist(), weights, strict=True))
    ]
    frame = spark.createDataFrame(rows, ["features", "label", "weight", "part"])
    return frame.repartitionById(n_partitions, frame["part"].cast("int"))


def largest_difference(found, model, X):
    """Of the predictions in the rows of a frame from those of a plain model."""
    there = np.array([row["prediction"] for row in found.collect()])
    return np.abs(np.sort(there) - np.sort(model.predict(X))).max()


@pytest.mark.parametrize(("n_partitions", "n_tasks"), [(1, 1), (7, 2), (9, 5)])
def test_a_regressor_is_that_of_one_machine(spark, backend, n_partitions, n_tasks):
    X, y, weights = rows_and_targets(3000)
    plain = kitchenette.KernelRegressor(random_state=0, validation_rows=200)
    here = plain.set_params(solver="onepass").fit(X, y, weights)
    frame = frame_of(spark, X, y, weights, n_partitions)
    there = backend.KernelRegressor(plain, weightCol="weight", numTasks=n_tasks).fit(frame)
    local = there.local()
    assert local.statistics_.n_rows == len(X)
    assert local.alpha_ == pytest.approx(here.alpha_, rel=1e-9)
    assert local.prepared.origin() == here.prepared.origin()
    spread = np.abs(here.predict(X)).max()
    assert np.abs(local.predict(X) - here.predict(X)).max() <= 1e-9 * spread
    assert largest_difference(there.transform(frame), here, X) <= 1e-9 * spread
    assert there.traffic[-1].leaves == min(n_partitions, n_tasks)


def test_a_classifier_of_columns_with_words_and_gaps_is_that_of_one_machine(spark, backend):
    table = a_table(2000)
    names = ["x", "city", "z"]
    plain = kitchenette.KernelClassifier(random_state=0, validation_rows=200, solver="onepass")
    here = plain.fit(table.select(names), table["label"].to_numpy())
    frame = spark.createDataFrame(table).repartition(5, "x")
    there = backend.KernelClassifier(plain, featuresCol=names).fit(frame)
    assert there.local().classes_.tolist() == CLASSES
    probabilities = here.predict_proba(table.select(names))
    found = there.transform(frame).toPandas()
    assert [*found["prediction"]] == [*here.predict(frame.select(names).toArrow())]
    order = np.argsort(found["x"].to_numpy())
    mine = np.stack([row.toArray() for row in found["probability"]])[order]
    assert np.abs(mine - probabilities[np.argsort(table["x"].to_numpy())]).max() <= 1e-9
    raw = np.stack([row.toArray() for row in found["rawPrediction"]])
    assert [CLASSES[i] for i in raw.argmax(axis=1)] == [*found["prediction"]]


def test_several_targets_give_arrays(spark, backend):
    X, y, weights = rows_and_targets(500)
    frame = frame_of(spark, X, y, weights, 2).withColumn("other", spark_column("-label"))
    plain = kitchenette.KernelRegressor(kitchenette.Fastfood(n_components=64, random_state=0))
    model = backend.KernelRegressor(plain, labelCol=["label", "other"]).fit(frame)
    first, second = model.transform(frame).first()["prediction"]
    assert first == pytest.approx(-second, rel=1e-6)


def spark_column(text):
    from pyspark.sql import functions

    return functions.expr(text)


def test_a_cross_validator_finds_the_better_penalty_in_a_pipeline_that_can_be_stored(
    spark, backend, tmp_path
):
    from pyspark.ml import Pipeline
    from pyspark.ml.evaluation import RegressionEvaluator
    from pyspark.ml.feature import VectorAssembler
    from pyspark.ml.tuning import CrossValidator, CrossValidatorModel, ParamGridBuilder

    table = a_table(400)
    frame = spark.createDataFrame(table.select(["x", "number"])).repartition(2).cache()
    plain = kitchenette.KernelRegressor(kitchenette.Fastfood(n_components=64, random_state=0))
    machine = backend.KernelRegressor(plain, labelCol="number", numTasks=2)
    pipeline = Pipeline(stages=[VectorAssembler(inputCols=["x"], outputCol="features"), machine])
    grid = ParamGridBuilder().addGrid(machine.parameters, [{"alpha": 1e9}, {"alpha": 1e-3}])
    search = CrossValidator(
        estimator=pipeline,
        estimatorParamMaps=grid.build(),
        evaluator=RegressionEvaluator(labelCol="number"),
        numFolds=2,
        seed=0,
    )
    found = search.fit(frame)
    assert found.avgMetrics[1] < found.avgMetrics[0]
    assert found.bestModel.stages[1].local().alpha_ == 1e-3
    assert plain.alpha == "auto"  # is not changed
    path = str(tmp_path / "search")
    found.write().overwrite().save(path)
    again = CrossValidatorModel.load(path)
    before, after = (model.transform(frame).collect() for model in (found, again))
    assert before == after
    assert "alpha" not in plain.get_params() or machine.local().alpha == "auto"
    machine.write().save(str(tmp_path / "machine"))
    assert repr(backend.KernelRegressor.load(str(tmp_path / "machine")).local()) == repr(plain)


def test_bad_partitions_are_named_and_nothing_is_lost(spark, backend):
    from kitchenette.backends.plan import PartitionError

    X, y, weights = rows_and_targets(200)
    plain = kitchenette.KernelRegressor(kitchenette.Fastfood(n_components=32, random_state=0))
    machine = backend.KernelRegressor(plain)
    frame = frame_of(spark, X, y, weights, 6)
    arrays = frame.selectExpr(
        "transform(array(1, 2, 3), i -> label * i) as features", "label", "part"
    )
    before = repr(machine.local())
    for features, sentence in (
        (
            "if(part = 4, transform(features, x -> double('Infinity')), features)",
            r"partition 4: .*infinit",
        ),
        ("if(part = 3, array(1D), features)", "partition 3: .* 1 columns"),
        ("if(part in (2, 5), array(1D, 2D), features)", r"partition 2: (.|\n)*partition 5: "),
        ("if(part = 1, null, features)", "partition 1: .* no value"),
    ):
        bad = arrays.withColumn("features", spark_column(features))
        with pytest.raises(PartitionError, match=sentence):
            machine.fit(bad)
    with pytest.raises(PartitionError, match=r"partition 2: .*'label' is a target"):
        machine.fit(arrays.withColumn("label", spark_column("if(part = 2, null, label)")))
    assert repr(machine.local()) == before
    # Empty partitions, and partitions of one class, are not bad.
    some = arrays.where("part not in (0, 2, 5)")
    labels = some.withColumn("label", spark_column("part"))
    assert machine.fit(some).local().statistics_.n_rows == some.count()
    classifier = backend.KernelClassifier(
        kitchenette.KernelClassifier(kitchenette.Fastfood(n_components=32, random_state=0))
    )
    assert classifier.fit(labels).local().classes_.tolist() == [1, 3, 4]
    with pytest.raises(ValueError, match="no rows"):
        machine.fit(arrays.where("part > 100"))
    with pytest.raises(ValueError, match=r"labelCol: there is no column 'lable'.*'label'"):
        machine.fit(arrays, {machine.labelCol: "lable"})
    with pytest.raises(ValueError, match="one pass"):
        machine.fit(arrays, {machine.parameters: {"loss": "absolute"}})


def test_a_fit_of_files_is_that_of_one_machine(spark, backend, tmp_path):
    import pyarrow.parquet as pq

    from kitchenette.jobs import FitSettings, fit_rows

    pq.write_table(a_table(9000).drop(["number"]), tmp_path / "rows.parquet")
    files = kitchenette.data.source(tmp_path / "rows.parquet", target="label")
    settings = FitSettings(map="Fastfood", kernel="gaussian", components=64)
    rows = files.take(np.arange(100)).X
    with backend.over_files(files, "local[2]") as there:
        assert there.n_partitions == 3
        here = fit_rows(files, tmp_path / "here.safetensors", settings)
        found = fit_rows(there, tmp_path / "there.safetensors", settings)
        assert found.n_rows == here.n_rows
        assert found.errors["model"] == pytest.approx(here.errors["model"], rel=1e-9)
        mine, theirs = (fitted.model.decision_function(rows) for fitted in (here, found))
        assert np.abs(mine - theirs).max() <= 1e-9
        # Two steps of a solver in many passes.
        feature_map = kitchenette.Fastfood(n_components=32, random_state=0)
        logistic = kitchenette.KernelClassifier(
            feature_map, loss="logistic", alpha=1.0, max_iter=2, random_state=0, validation_rows=0
        )
        mine, theirs = (logistic.fit(one).decision_function(rows) for one in (files, there))
        assert np.abs(mine - theirs).max() <= 1e-6


def test_what_travels_is_bounded_by_the_depth_of_the_tree(spark, backend):
    X, y, weights = rows_and_targets(2000)
    plain = kitchenette.KernelRegressor(
        kitchenette.Fastfood(n_components=256, random_state=0), validation_rows=0
    )
    n_tasks = 8
    model = backend.KernelRegressor(plain, numTasks=n_tasks).fit(frame_of(spark, X, y, weights, 16))
    sample, statistics = model.traffic
    assert statistics.leaves == n_tasks
    assert statistics.depth == 1 + np.log2(n_tasks)
    assert 4 * 256**2 <= statistics.result <= 1.1 * 4 * 256**2
    assert statistics.sent / n_tasks <= 2 * statistics.result
    assert sample.sent / n_tasks <= 2 * sample.result


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(spark, name):
    module = importlib.import_module(f"kitchenette.backends.{name}")
    assert doctest.testmod(module, extraglobs={"spark": spark}).failed == 0


def run(script, *arguments):
    """What a script prints at the end, as JSON."""
    command = [sys.executable, str(HERE.parent / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_it_works_under_spark_connect(tmp_path):
    pytest.importorskip("grpc", reason="Spark Connect is not installed")
    found = run("spark_connect.py", tmp_path)
    assert found["is_remote"]
    assert found["difference"] <= 1e-9
    assert found["stored"] == 0.0
    assert "partition 1: " in found["problem"]


def test_rows_count_once_when_executors_are_killed_and_tasks_are_run_twice(tmp_path):
    found = run("spark_kills.py", tmp_path, 5)
    assert found["executors_killed"] >= 5
    assert found["workers_killed"] >= 2
    assert found["run_again"] >= 2  # copies of the slow tasks of both passes
    for fit in [*found["fits"], found["copied"]]:
        assert fit["n_rows"] == found["n_rows"]
        assert fit["difference"] <= 1e-9
    assert found["stored_rows"] == found["n_rows"]


def test_workers_without_the_package_are_explained(tmp_path):
    """In a process of its own, because a session keeps the Python of its workers."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'kitchenette':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Without())\n"
    )
    worker = tmp_path / "python"
    worker.write_text(
        f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec "{sys.executable}" "$@"\n'
    )
    worker.chmod(0o755)
    program = f"""
import os, spark_sessions
from kitchenette import Fastfood, KernelRegressor
spark_sessions.prepare_environment()
os.environ["PYSPARK_PYTHON"] = {str(worker)!r}
spark_sessions.prepare_environment = lambda: None
session = spark_sessions.session("local[1]")
from kitchenette.spark import frame_source
frame = session.createDataFrame([(float(i), float(i % 3)) for i in range(20)], ["a", "t"])
try:
    KernelRegressor(Fastfood(n_components=8)).fit(frame_source(frame, ["a"], "t"))
except ImportError as error:
    print("explained:", error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"explained: The Python of Spark's workers, {sys.executable}, cannot" in done.stdout, (
        done.stderr
    )
    assert "set PYSPARK_PYTHON" in done.stdout
