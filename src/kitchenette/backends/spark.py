"""Kernel machines as estimators of `pyspark.ml`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.ml import Estimator, Model
from pyspark.ml.functions import array_to_vector
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasPredictionCol, HasProbabilityCol, HasRawPredictionCol
from pyspark.ml.util import (
    DefaultParamsReader,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote
from sklearn.base import clone

from kitchenette import estimators
from kitchenette.backends.spark_files import over_files
from kitchenette.backends.spark_rows import (
    FrameColumns,
    SparkSource,
    column,
    frame_source,
)
from kitchenette.backends.spark_tree import Traffic
from kitchenette.estimators.base import KernelEstimator
from kitchenette.files import load, save
from kitchenette.parameters import check_count

STORED_BYTES = 1 << 20  # of a model in one row of a stored stage
ANSWERS = "__answers"  # the column that predictions are taken from

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


def _names(value: Any) -> Any:
    """The name of a column, or several."""
    if isinstance(value, list | tuple | np.ndarray):
        return TypeConverters.toListString(value)
    return TypeConverters.toString(value)


class _Columns(HasPredictionCol):
    """The columns that estimators and models have in common."""

    featuresCol: Any = Param(
        Params._dummy(),
        "featuresCol",
        "a column of vectors or arrays, or a list of columns of numbers, strings or booleans",
        _names,
    )
    labelCol: Any = Param(
        Params._dummy(), "labelCol", "the column to be predicted, or a list of columns", _names
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(featuresCol="features", labelCol="label", predictionCol="prediction")

    def getFeaturesCol(self) -> str | list[str]:
        """The columns to predict from."""
        return self.getOrDefault(self.featuresCol)

    def getLabelCol(self) -> str | list[str]:
        """The column to be predicted, or several."""
        return self.getOrDefault(self.labelCol)

    def setParams(self, **values: Any) -> Self:
        """Set parameters by their names; None leaves one as it is."""
        return self._set(**{name: value for name, value in values.items() if value is not None})


class _ProbabilityColumns(HasProbabilityCol, HasRawPredictionCol):
    """The columns that classifiers add to the predictions."""

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(probabilityCol="probability", rawPredictionCol="rawPrediction")


# ---------------------------------------------------------------- persistence


class _Writer(MLWriter):
    """Writes parameters as Spark does, and a plain estimator as a model file in rows of bytes."""

    def __init__(self, stage: Any, plain: Any):
        super().__init__()
        self._stage, self._plain = stage, plain

    def saveImpl(self, path: str) -> None:
        """Write the parameters and the estimator to two folders."""
        session = self.sparkSession
        parameters = {
            param.name: value
            for param, value in self._stage._paramMap.items()
            if param.name != "estimator"
        }
        stored = {"hasModel": self._plain is not None}
        DefaultParamsWriter.saveMetadata(self._stage, path, session, stored, parameters)
        if self._plain is None:
            return
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model.safetensors")
            save(self._plain, file)
            data = file.read_bytes()
        starts = range(0, len(data), STORED_BYTES)
        rows = [(start, data[start : start + STORED_BYTES]) for start in starts]
        frame = session.createDataFrame(rows, "start long, data binary")
        frame.coalesce(1).write.parquet(f"{path}/model")

    def _handleOverwrite(self, path: str) -> None:
        if is_remote():
            from pyspark.ml.connect.readwrite import RemoteMLWriter

            RemoteMLWriter.handleOverwrite(path, True)
        else:
            super()._handleOverwrite(path)


class _Reader(MLReader):
    """Reads what `_Writer` wrote."""

    def __init__(self, cls: Any):
        super().__init__()
        self._cls = cls

    def load(self, path: str) -> Any:
        """The stage."""
        name = f"{self._cls.__module__}.{self._cls.__name__}"
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        if metadata["class"] != name:
            raise ValueError(f"{path} has a {metadata['class']}, not a {name}.")
        stage = self._cls()
        stage._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(stage, metadata)
        if metadata["hasModel"]:
            stage._adopt(self._stored(path))
        return stage

    def _stored(self, path: str) -> Any:
        rows = self.sparkSession.read.parquet(f"{path}/model").orderBy("start")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model.safetensors")
            with file.open("wb") as stream:
                for row in rows.toLocalIterator():
                    stream.write(row["data"])
            return load(file, max_operations=float("inf"))


class _Stored(MLReadable, MLWritable):
    """A stage that can be written and read, also as a part of a pipeline."""

    def write(self) -> MLWriter:
        """What writes this stage."""
        return _Writer(self, self._plain())

    @classmethod
    def read(cls) -> MLReader:
        """What reads a stage of this class."""
        return _Reader(cls)


# ---------------------------------------------------------------- estimators


class _KernelEstimator(_Columns, Estimator, _Stored):
    """What regressor and classifier have in common."""

    estimator: Any = Param(
        Params._dummy(), "estimator", "a plain estimator of kitchenette, which is not fitted"
    )
    parameters: Any = Param(
        Params._dummy(),
        "parameters",
        "parameters of the plain estimator by name, as for its set_params, for example "
        '{"alpha": 0.1, "feature_map__n_components": 512}',
    )
    weightCol: Any = Param(
        Params._dummy(), "weightCol", "the column of weights", TypeConverters.toString
    )
    numTasks: Any = Param(
        Params._dummy(),
        "numTasks",
        "the number of tasks that read rows; by default one for each core",
        TypeConverters.toInt,
    )
    plain_class: ClassVar[type[KernelEstimator]]
    model_class: ClassVar[type[_KernelModel]]

    def __init__(self, estimator: Any, **values: Any):
        super().__init__()
        self.setParams(estimator=estimator, **values)

    def local(self) -> Any:
        """The plain estimator with all parameters, not fitted; it learns on one machine.

        Returns
        -------
        estimator : kitchenette.KernelRegressor or kitchenette.KernelClassifier
        """
        given = self._plain()
        if given is not None and not isinstance(given, self.plain_class):
            raise ValueError(
                f"estimator must be a kitchenette.{self.plain_class.__name__}; got {given!r:.80}."
            )
        plain = self.plain_class() if given is None else clone(given)
        if self.isSet(self.parameters):
            plain.set_params(**self.getOrDefault(self.parameters))
        return plain

    def _plain(self) -> Any:
        return self.getOrDefault(self.estimator) if self.isSet(self.estimator) else None

    def _adopt(self, plain: Any) -> None:
        self._set(estimator=plain)

    def _fit(self, dataset: DataFrame) -> Any:
        plain = self.local()
        if plain.loss not in ("squared", "auto") or plain.solver == "iterative":
            raise ValueError(
                "On Spark, rows are learned in one pass: loss='squared' and solver='onepass' or "
                f"'auto'; got loss={plain.loss!r} and solver={plain.solver!r}."
            )
        rows = frame_source(
            dataset,
            self.getFeaturesCol(),
            self.getLabelCol(),
            self.getOrDefault(self.weightCol) if self.isSet(self.weightCol) else None,
            self._n_tasks(),
        )
        model = self.model_class(plain.set_params(solver="onepass").fit(rows))
        model.traffic = tuple(rows.traffic)
        return self._copyValues(model)

    def _n_tasks(self) -> int | None:
        if not self.isSet(self.numTasks):
            return None
        return check_count("numTasks", self.getOrDefault(self.numTasks))


class _KernelModel(_Columns, Model, _Stored):
    """What the fitted regressor and classifier have in common."""

    #: What traveled for each pass over the rows.
    traffic: tuple[Traffic, ...] = ()

    def __init__(self, local: Any = None):
        super().__init__()
        self._local = local

    def local(self) -> Any:
        """The plain estimator, which predicts on one machine, can be saved, and learns more.

        Returns
        -------
        estimator : kitchenette.KernelRegressor or kitchenette.KernelClassifier
        """
        return self._local

    _plain = local

    def _adopt(self, plain: Any) -> None:
        self._local = plain

    @property
    def numFeatures(self) -> int:
        """The number of columns."""
        return int(self._local.n_features_in_)

    def _transform(self, dataset: DataFrame) -> DataFrame:
        wanted = {name: self.getOrDefault(name) for name in self._answers()}
        wanted = {name: out for name, out in wanted.items() if out}
        if not wanted:
            return dataset
        columns = FrameColumns.of(dataset, self.getFeaturesCol())
        rows = (
            columns.matrix(dataset) if columns.is_matrix else F.struct(*map(column, columns.names))
        )
        answers = _answers_udf(self._local.for_inference(), columns, self._types(wanted))
        answered = dataset.withColumn(ANSWERS, answers(rows))
        for name, out in wanted.items():
            value = F.col(f"{ANSWERS}.{name}")
            answered = answered.withColumn(
                out, value if name == "predictionCol" else array_to_vector(value)
            )
        return answered.drop(ANSWERS)

    def _answers(self) -> list[str]:
        """The parameters that name columns of answers."""
        return ["predictionCol"]

    def _types(self, wanted: dict[str, str]) -> dict[str, str]:
        """The Spark types of the answers."""
        types = dict.fromkeys(wanted, "array<double>")
        if "predictionCol" in types:
            types["predictionCol"] = _type_of(self._local)
        return types


def _type_of(plain: Any) -> str:
    """The Spark type of a prediction."""
    classes = getattr(plain, "classes_", None)
    if classes is None:
        return "array<double>" if plain.feature_weights_.ndim == 2 else "double"
    return {"b": "boolean", "O": "string", "U": "string"}.get(classes.dtype.kind, "double")


def _answers_udf(plain: Any, columns: FrameColumns, types: dict[str, str]) -> Any:
    """A function of columns to predict from that gives predictions and what else is wanted."""

    def answers(parts: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for part in parts:
            yield _answered(plain, columns.of_column(part), types)

    return F.arrow_udf(answers, ", ".join(f"{name} {kind}" for name, kind in types.items()))


def _answered(plain: Any, X: Any, types: dict[str, str]) -> pa.Array:
    """The answers for some rows, as Spark takes them."""
    values = _values(plain, X) if X.shape[0] else dict.fromkeys(types, lambda: np.empty((0, 1)))
    arrays = [_arrow_array(values[name](), kind) for name, kind in types.items()]
    return pa.StructArray.from_arrays(arrays, names=[*types])


def _values(plain: Any, X: Any) -> dict[str, Callable[[], NDArray[Any]]]:
    """What computes the answers for some rows, whose outputs are computed once."""
    if not isinstance(plain, estimators.KernelClassifier):
        return {"predictionCol": lambda: plain.predict(X)}
    outputs, _ = plain.outputs(X)
    return {
        "predictionCol": lambda: plain.labels_of(outputs),
        "probabilityCol": lambda: plain.probabilities_of(outputs),
        "rawPredictionCol": lambda: _for_each_class(plain.scores_of(outputs)),
    }


def _for_each_class(scores: NDArray[Any]) -> NDArray[Any]:
    """A score for each class, also if there are two."""
    return np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores


def _arrow_array(values: NDArray[Any], kind: str) -> pa.Array:
    """Answers as an array of a Spark type."""
    if kind == "array<double>":
        lists = np.asarray(values, np.float64)
        bounds = np.arange(0, lists.size + 1, lists.shape[1], dtype=np.int32)
        return pa.ListArray.from_arrays(bounds, lists.ravel())
    if kind == "double":
        return pa.array(np.asarray(values, np.float64).ravel())
    return pa.array(values.ravel().tolist(), pa.bool_() if kind == "boolean" else pa.string())


class KernelRegressor(_KernelEstimator):
    """A `kitchenette.KernelRegressor` that learns from a Spark data frame.

    The model is the one that a single machine learns from the same rows, up to rounding, whatever
    the partitions. Rows stay where they are: a sample of them comes to the driver, which chooses
    the feature map; then each task sends the statistics of its rows, which are combined in a tree
    on the executors. It works in `pyspark.ml.Pipeline` and `pyspark.ml.tuning.CrossValidator`, and
    under Spark Connect.

    Parameters
    ----------
    estimator : kitchenette.KernelRegressor, optional
        The plain estimator, which is not changed; by default one with default parameters.
    parameters : dict, optional
        Parameters of the plain estimator by name, as for its ``set_params``; for a grid of a
        `CrossValidator`.
    featuresCol : str or list of str, default="features"
        A column of vectors or arrays, or the columns to predict from, which may have strings,
        booleans and missing values.
    labelCol : str or list of str, default="label"
        The column to be predicted; with several of them, predictions are arrays.
    weightCol : str, optional
        The column of weights.
    predictionCol : str, default="prediction"
        The column that ``transform`` adds.
    numTasks : int, optional
        The number of tasks that read rows; by default one for each core. Each of them sends one
        value, of about 4 n_components^2 bytes.

    See Also
    --------
    KernelRegressorModel : What ``fit`` returns.

    Notes
    -----
    Losses other than the squared one, and iterative solvers, need an order of rows, which Spark
    does not promise; they are refused. More than 8192 features are learned in one pass, too.

    Executors need the package installed. The data frame is read twice, so that it pays to cache one
    that takes long to compute.

    Examples
    --------
    >>> import kitchenette
    >>> from kitchenette.spark import KernelRegressor
    >>> rows = spark.range(1000).selectExpr("id / 100 as x", "sin(id / 100) as label")
    >>> plain = kitchenette.KernelRegressor(random_state=0)
    >>> model = KernelRegressor(plain, featuresCol=["x"]).fit(rows)
    >>> errors = model.transform(rows).selectExpr("abs(prediction - label) as error")
    >>> errors.agg({"error": "max"}).first()[0] < 0.01
    True
    >>> model.local()
    KernelRegressor(random_state=0, solver='onepass')
    """

    plain_class = estimators.KernelRegressor

    def __init__(
        self,
        estimator: estimators.KernelRegressor | None = None,
        *,
        parameters: dict[str, Any] | None = None,
        featuresCol: str | list[str] | None = None,
        labelCol: str | list[str] | None = None,
        weightCol: str | None = None,
        predictionCol: str | None = None,
        numTasks: int | None = None,
    ):
        super().__init__(
            estimator,
            parameters=parameters,
            featuresCol=featuresCol,
            labelCol=labelCol,
            weightCol=weightCol,
            predictionCol=predictionCol,
            numTasks=numTasks,
        )


class KernelRegressorModel(_KernelModel):
    """A fitted `kitchenette.spark.KernelRegressor`.

    Examples
    --------
    >>> import kitchenette
    >>> from kitchenette.spark import KernelRegressor
    >>> rows = spark.range(200).selectExpr("array(id / 20) as features", "id as label")
    >>> model = KernelRegressor(kitchenette.KernelRegressor(random_state=0)).fit(rows)
    >>> model.numFeatures, model.local().predict([[5.0]]).round()
    (1, array([100.]))
    """


class KernelClassifier(_KernelEstimator, _ProbabilityColumns):
    """A `kitchenette.KernelClassifier` that learns from a Spark data frame.

    Parameters
    ----------
    estimator : kitchenette.KernelClassifier, optional
        The plain estimator, which is not changed; by default one with default parameters.
    parameters, featuresCol, weightCol, predictionCol, numTasks
        As for `KernelRegressor`.
    labelCol : str, default="label"
        The column of labels: numbers, strings or booleans. Predictions are of the same type, but
        for whole numbers, which become doubles, as in all models of Spark.
    probabilityCol : str, default="probability"
        The column of vectors of probabilities, in the order of ``model.local().classes_``; an empty
        name leaves it out.
    rawPredictionCol : str, default="rawPrediction"
        The column of vectors of scores, in the same order.

    See Also
    --------
    KernelRegressor : What is said there holds here, too.

    Examples
    --------
    >>> import kitchenette
    >>> from kitchenette.spark import KernelClassifier
    >>> rows = spark.range(1000).selectExpr(
    ...     "id / 100 as x", "if(sin(id / 100) > 0, 'up', 'down') as label"
    ... )
    >>> plain = kitchenette.KernelClassifier(random_state=0)
    >>> model = KernelClassifier(plain, featuresCol=["x"]).fit(rows)
    >>> found = model.transform(rows)
    >>> found.where("prediction = label").count() > 980
    True
    >>> len(found.first()["probability"]), model.local().classes_.tolist()
    (2, ['down', 'up'])
    """

    plain_class = estimators.KernelClassifier

    def __init__(
        self,
        estimator: estimators.KernelClassifier | None = None,
        *,
        parameters: dict[str, Any] | None = None,
        featuresCol: str | list[str] | None = None,
        labelCol: str | None = None,
        weightCol: str | None = None,
        predictionCol: str | None = None,
        probabilityCol: str | None = None,
        rawPredictionCol: str | None = None,
        numTasks: int | None = None,
    ):
        super().__init__(
            estimator,
            parameters=parameters,
            featuresCol=featuresCol,
            labelCol=labelCol,
            weightCol=weightCol,
            predictionCol=predictionCol,
            probabilityCol=probabilityCol,
            rawPredictionCol=rawPredictionCol,
            numTasks=numTasks,
        )


class KernelClassifierModel(_KernelModel, _ProbabilityColumns):
    """A fitted `kitchenette.spark.KernelClassifier`.

    Examples
    --------
    >>> import kitchenette
    >>> from kitchenette.spark import KernelClassifier
    >>> rows = spark.range(200).selectExpr("array(id / 20) as features", "id > 100 as label")
    >>> model = KernelClassifier(kitchenette.KernelClassifier(random_state=0)).fit(rows)
    >>> model.numClasses, model.transform(rows).columns
    (2, ['features', 'label', 'prediction', 'probability', 'rawPrediction'])
    """

    @property
    def numClasses(self) -> int:
        """The number of classes."""
        return int(self._local.classes_.size)

    def _answers(self) -> list[str]:
        names = ["predictionCol", "probabilityCol", "rawPredictionCol"]
        return names if hasattr(self._local, "predict_proba") else [names[0], names[2]]


KernelRegressor.model_class = KernelRegressorModel
KernelClassifier.model_class = KernelClassifierModel
