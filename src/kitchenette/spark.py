"""Kernel machines on Spark, as estimators of `pyspark.ml`.

Needs ``pip install 'kitchenette[spark]'`` and Java 17.
"""

from kitchenette.backends.spark import (
    KernelClassifier,
    KernelClassifierModel,
    KernelRegressor,
    KernelRegressorModel,
    SparkSource,
    Traffic,
    frame_source,
    over_files,
)

__all__ = [
    "KernelClassifier",
    "KernelClassifierModel",
    "KernelRegressor",
    "KernelRegressorModel",
    "SparkSource",
    "Traffic",
    "frame_source",
    "over_files",
]
