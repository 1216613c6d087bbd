"""Fits, predicts and stores under Spark Connect; run by test_spark.py in a process of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import spark_sessions
from spark_data import rows_and_targets


def main(folder: Path) -> dict[str, Any]:
    spark = spark_sessions.session("connect")
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql.functions import array, lit, spark_partition_id, when
    from pyspark.sql.utils import is_remote

    import kitchenette
    from kitchenette.spark import KernelRegressor

    X, y, _ = rows_and_targets(1000)
    names = ["a", "b", "c"]
    rows = [(*x, y_i) for x, y_i in zip(X.tolist(), y.tolist(), strict=True)]
    frame = spark.createDataFrame(rows, [*names, "label"]).repartition(3)
    plain = kitchenette.KernelRegressor(random_state=0, solver="onepass", validation_rows=200)
    machine = KernelRegressor(plain)
    pipeline = Pipeline(stages=[VectorAssembler(inputCols=names, outputCol="features"), machine])
    model = pipeline.fit(frame)
    path = str(folder / "pipeline")
    model.write().overwrite().save(path)
    found = model.transform(frame).toPandas()
    again = PipelineModel.load(path).transform(frame).toPandas()
    expected = plain.fit(X, y).predict(found[names].to_numpy())
    bad = frame.select(
        when(spark_partition_id() == 1, array(lit(1.0))).otherwise(array(*names)).alias("features"),
        "label",
    )
    problem = ""
    try:
        machine.fit(bad)
    except ValueError as error:
        problem = str(error)
    remote = is_remote()
    spark.stop()
    return {
        "is_remote": remote,
        "difference": float(np.abs(found["prediction"] - expected).max()),
        "stored": float(np.abs(found["prediction"] - again["prediction"]).max()),
        "problem": problem,
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
