"""Kernel classification by least squares on random features."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from kitchenette.data.collections import as_rows, in_parts
from kitchenette.data.csv_errors import NULLS
from kitchenette.data.keys import number_of
from kitchenette.data.schema import KnownColumn
from kitchenette.data.source import Source
from kitchenette.data.targets import array_of_targets
from kitchenette.files.registry import storable
from kitchenette.learning.availability import AvailableUnless
from kitchenette.learning.balanced_machine import BalancedMachine, check_class_weight
from kitchenette.learning.base import Array
from kitchenette.learning.calibration import BIAS_SPREAD, BIAS_SPREAD_WITHOUT, Calibration
from kitchenette.learning.codes import DECODINGS, OutputCode
from kitchenette.learning.labels import (
    are_sorted,
    labels_among,
    union_of_classes,
    with_one_type,
)
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.leave_one_out import LeaveOneOut
from kitchenette.learning.machine import _refuse_targets
from kitchenette.learning.machine_parameters import is_word, without_one_pass
from kitchenette.learning.many_passes import ONE_PASS_FEATURES, Lesson
from kitchenette.learning.model import Validation
from kitchenette.learning.predictor import Predictor
from kitchenette.learning.scores import Labels, Scores
from kitchenette.learning.scoring import score_of_source
from kitchenette.learning.solution import Solution
from kitchenette.learning.summary import Summary
from kitchenette.parameters import check_choice, check_count

CODES = ("onehot", "ecoc", "hadamard")


def _without_probabilities(model: KernelClassifier, method: str) -> str | None:
    if model.validation_rows > 0 or model.loss == "logistic":
        return None
    return (
        f"KernelClassifier has no {method} with validation_rows=0, because probabilities are "
        "calibrated on these rows. Keep some, 2000 for example, or use loss='logistic'."
    )


@storable
class KernelClassifier(ClassifierMixin, BalancedMachine):
    """Classification with a kernel, in one pass over any number of rows.

    Ridge regression of the classes on the features of a map, as `RidgeClassifier` does it. The
    rows are summed up in statistics whose size does not depend on their number, so a model
    can go on learning, models of different rows can be merged, and the penalty is chosen
    without a second look at the data. The cost hardly depends on the number of classes.

    Parameters
    ----------
    feature_map : transformer, "auto" or None, default=None
        A map of this package, any scikit-learn transformer that treats rows one by one, a
        pipeline, or a fitted map in a `sklearn.frozen.FrozenEstimator`. None and "auto" are
        `AutoMap`: 1024 features whose kernel, scales of the columns and width are chosen on a
        sample of the rows.
    alpha : float, {"auto", "gcv", "evidence"} or array-like, default="auto"
        The penalty of the weights; or the criterion that chooses it; or several penalties, of
        which "gcv" chooses one. "auto": the penalty of the largest marginal likelihood, unless
        another one predicts the validation rows better by more than two standard errors. "gcv":
        generalised cross-validation. "evidence": the marginal likelihood. The last two warn if
        the validation rows contradict them. In many passes, "auto" is the penalty that predicts
        the validation rows best, there is no "gcv", and "evidence" is an estimate that takes some
        tens of passes more.
    code : {"onehot", "ecoc", "hadamard"} or array-like of shape (n_classes, n_bits), \
default="onehot"
        The output code. "onehot": each class against all others. "ecoc": random codewords of
        ``code_length`` bits, far from each other (error-correcting output codes).
        "hadamard": rows of a Hadamard matrix. A matrix: a codeword of +1 and -1, or of 1 and 0,
        for each class in the order of ``classes_``.
    code_length : int, optional
        The number of bits for "ecoc"; 200 by default, or more from 1024 classes on.
    decoding : {"soft", "hamming"}, default="soft"
        How codewords are compared with the predicted bits: by the inner product, or by the
        number of equal signs. It may be changed after fitting.
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of rows, by their labels; labels that are not in it have 1.
        "balanced": inversely proportional to the number of rows of the class seen so far, of which
        a row of weight 2 is two. The statistics of each class are then kept apart, in as many times
        the memory.
    fit_intercept : bool, default=True
        Whether to add a constant that is not penalised.
    validation_rows : int, default=2000
        The number of rows that are kept, as features, to check the model: a sample of the distinct
        rows that does not depend on their order and batches. They choose the penalty, calibrate
        `predict_proba` and give ``validation_score_``; the final weights are learned from all rows.
        At 0 no rows are kept; "auto" is then the same as "evidence".
    loss : {"squared", "logistic", "squared_hinge", "auto"}, default="squared"
        What is minimised, plus the penalty. Only the squared loss learns in one pass.
        "logistic": multinomial logistic regression, whose probabilities need no calibration.
        "squared_hinge": a support vector machine, each class against all others. "auto": the
        squared or the logistic loss, whichever predicts the validation rows better; the squared
        loss if there are too few rows to hold some out.
    solver : {"auto", "onepass", "iterative"}, default="auto"
        "onepass": from statistics, with all that they allow. "iterative": in many passes, in which
        the features are computed again; it needs no memory for pairs of features, and chooses
        the penalty and when to stop on the validation rows, before all rows are learned. "auto":
        one pass for the squared loss up to 8192 features.
    max_iter : int, default=100
        The largest number of steps of the iterative solver, for each penalty.
    tol : float, default=1e-3
        The residual, relative to its size at the start, at which the iterative solver stops.
    warm_start : bool, default=False
        Whether `fit` with the iterative solver begins with the weights of the last fit, which may
        have had another penalty, or fewer features of the same map.
    random_state : int, NumPy generator or None, default=None
        The seed of the random code, and of the map and the steps of a pipeline that have none of
        their own. None draws one; see ``seed_``.
    verbose : bool, default=False
        Show progress while rows are learned: a bar if rich is installed, lines if not.

    Attributes
    ----------
    feature_map_ : transformer
        The fitted map.
    statistics_ : LeastSquares
        The sufficient statistics of the rows; the targets are indicators of the classes.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    alpha_ : float
        The penalty that was used.
    feature_weights_ : ndarray of shape (n_classes, n_components)
        The weights of the random features that predict the indicator, 1 or 0, of each class.
    intercept_ : ndarray of shape (n_classes,)
        The constants.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much predictions change with each column, computed on access; see `importance`. It
        exists for Fourier features learned in one pass, and lets `SelectFromModel` and `RFE` of
        scikit-learn choose columns.
    log_marginal_likelihood_ : float
        The log marginal likelihood of the indicators, as in `KernelRegressor`.
    code_ : ndarray of shape (n_classes, n_bits), or None
        The codewords of +1 and -1; None for "onehot".
    validation_score_ : float
        The accuracy on the validation rows, of models without a third of them. It does not exist if
        there are fewer than 20.
    observation_rule_ : {"weights", "rows", "pairs"}
        What rows that repeat and weights count for; see `kitchenette.data.observations`.
    loss_ : str
        The loss that was minimised.
    solver_ : str
        "onepass" or "iterative".
    n_iter_ : int
        The number of steps of the iterative solver, or 1.
    seed_ : int
        The seed that was used.
    n_features_in_ : int
        The number of columns of the data.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the columns, if there are any.
    target_names_ : ndarray of shape (n_targets,)
        The names of the columns to be predicted, if it was fitted on a source that has them.
    weight_name_ : str
        The name of the column of weights, if it was fitted on a source that has one.

    See Also
    --------
    KernelRegressor : The same model for numerical targets.
    kitchenette.learning.OutputCode : The codes by themselves.

    Notes
    -----
    *Codes.* Least squares is linear in the targets: with W the weights for the indicators and C
    the matrix of codewords, W C are the weights for the bits. Every code is therefore applied to
    the same solution, and gives the same result as a model trained for each bit.

    *Probabilities.* Scores of least squares are not probabilities. `predict_proba` calibrates
    them on the validation rows, by a softmax or by isotonic regression, whichever has the smaller
    log loss there; see `kitchenette.learning.calibration`.

    *Weights* say how much rows matter relative to each other: multiplied by a constant, they change
    nothing if alpha is chosen. How many observations repeated and weighted rows count for is said
    by ``observation_rule_``; see `kitchenette.data.observations`.

    *Batches.* `partial_fit`, `merge` and `downdate` only update the statistics; the weights are
    computed by the next prediction or `solve`, and then cached. Until then the attributes alpha_,
    feature_weights_, intercept_ and feature_importances_ do not exist. A map that depends on data
    is fitted on the first batch. Up to rounding errors, the model does not depend on how rows are
    split or in which order they are merged, and the scores of a row not on other rows. Merging
    models of different classes gives a model of all their classes.

    *Cost.* n_components^2 operations for a row, n_components^3 / 3 for a solution. The choice of
    alpha takes an eigendecomposition, as long as 24 solutions, up to 1024 features, and about
    four solutions beyond. Memory: 4 n_components^2 bytes for the statistics, up to twice as much
    again while solving, blocks of 4096 rows, and the features of the validation rows, in float64
    and twice while solving. Above 16,384 features of float32 data the statistics are kept in
    float32, and memory is saved elsewhere: 2 n_components^2 bytes, as much again while solving, and
    the features of the validation rows once; see `LeastSquares`. What does not fit is refused
    before it starts. (`partial_fit` with more than 4096 rows needs a second copy of the
    statistics.)

    References
    ----------
    Hamid, Xiao, Gittens and DeCoste, Compact random feature maps, ICML 2014 (section 5).
    Dietterich and Bakiri, Solving multiclass learning problems via error-correcting output
    codes, JAIR 1995.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kitchenette import Fastfood, KernelClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KernelClassifier(Fastfood(n_components=1024, random_state=0))
    >>> model.fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.94
    True
    >>> predict = model.predictor()
    >>> bool(predict(X[1200]) == y[1200])
    True
    """

    code_: NDArray[np.int8] | None
    seed_: int

    task = "classification"
    losses = ("squared", "logistic", "squared_hinge", "auto")
    target_attributes: ClassVar[dict[str, Any]] = {
        "classes_": np.ndarray,
        "code_": (np.ndarray, type(None)),
        "_by_class": (list, type(None)),
    }

    def __init__(
        self,
        feature_map: Any = None,
        *,
        alpha: Any = "auto",
        code: Any = "onehot",
        code_length: int | None = None,
        decoding: str = "soft",
        class_weight: Any = None,
        fit_intercept: bool = True,
        validation_rows: int = 2000,
        loss: str = "squared",
        solver: str = "auto",
        max_iter: int = 100,
        tol: float = 1e-3,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ):
        self.feature_map = feature_map
        self.alpha = alpha
        self.code = code
        self.code_length = code_length
        self.decoding = decoding
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.validation_rows = validation_rows
        self.loss = loss
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @AvailableUnless(without_one_pass)
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: ArrayLike | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from more rows.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), or Source
            Rows; the feature map is fitted on the rows of the first call.
        y : array-like of shape (n_rows,)
            Labels.
        classes : array-like of shape (n_classes,), optional
            All labels that may occur in any call; required in the first call, unless the rows come
            from a source.
        sample_weight : array-like of shape (n_rows,), optional
            Weights, as in `fit`.

        Returns
        -------
        self : KernelClassifier
            This model.
        """
        self._check_parameters()
        X, y, sample_weight = as_rows(X, y, sample_weight)
        first = not self._is_prepared
        if first and classes is None and not isinstance(X, Source):
            raise ValueError(
                "classes must be passed on the first call to partial_fit: all labels that "
                "there are, as the first rows may not have all of them."
            )
        if classes is not None and not first:
            given = labels_among(classes)
            if not np.array_equal(given, self.classes_):
                raise ValueError(
                    f"classes={given.tolist()} is not the same as in the first call to "
                    f"partial_fit: {self.classes_.tolist()}."
                )
        return self.learn_batch(X, y, sample_weight, classes)

    @in_parts
    def decision_function(self, X: Any) -> NDArray[Any]:
        """The scores of the classes.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), or Source
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes), or (n_rows,) for two classes
            The class with the largest score is predicted; for two classes, a positive score
            means the second one. With "onehot" the scores are those of `RidgeClassifier`, about
            1 for the class and -1 for the others; with codes, those of `OutputCode.scores`.
        """
        now = self.snapshot()
        outputs, dtype = now.outputs(X)
        return now.scores_of(outputs).astype(dtype, copy=False)

    @in_parts
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), or Source
            Rows.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            Labels.
        """
        now = self.snapshot()
        return now.labels_of(now.outputs(X)[0])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows whose label is predicted, by weight.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), or Source
            Rows. Dask collections stay where they are; a source has its own targets and weights.
        y : array-like of shape (n_rows,)
            The true labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        score : float
        """
        rows, given, weights = as_rows(X, y, sample_weight)
        if isinstance(rows, Source):
            _refuse_targets(given, weights)
            return score_of_source(self, rows)
        return float(super().score(X, array_of_targets(y), sample_weight))

    @AvailableUnless(_without_probabilities)
    @in_parts
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), or Source
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            Calibrated on the validation rows, in the order of ``classes_``. The predicted
            class has the largest one. With fewer than 20 rows that could be held out, the
            calibration is a guess.
        """
        now = self.snapshot()
        return now.probabilities_of(now.outputs(X)[0])

    @AvailableUnless(_without_probabilities)
    @in_parts
    def predict_log_proba(self, X: Any) -> Array:
        """The logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), or Source
            Rows.

        Returns
        -------
        logarithms : ndarray of shape (n_rows, n_classes)
        """
        return np.log(self.predict_proba(X))

    def labels_of(self, outputs: Array) -> NDArray[Any]:
        """The labels that outputs stand for, so that outputs can be computed once for several."""
        return Labels(self.classes_, self._scores())(outputs)

    def scores_of(self, outputs: Array) -> Array:
        """The scores of the classes that outputs stand for."""
        return self._scores()(outputs)

    def probabilities_of(self, outputs: Array) -> Array:
        """The probabilities of the classes that outputs stand for."""
        calibration = self._current().validation.calibration
        if calibration is None:
            calibration = Calibration.unfitted(self.classes_.size)
        return calibration(self._class_scores(outputs))

    def predictor(self, *, dtype: DTypeLike | None = None, scores: bool = False) -> Predictor:
        """A callable that classifies one or a few rows with low latency.

        Parameters
        ----------
        dtype : float32 or float64, optional
            The precision of the features; by default that in which the model was fitted.
        scores : bool, default=False
            Whether it returns the scores of `decision_function` instead of labels.

        Returns
        -------
        predictor : Predictor
            Takes a row and returns its label; see `kitchenette.learning.Predictor`.
        """
        now = self.snapshot()
        answer = now._scores()
        return now.make_predictor(dtype, answer if scores else Labels(now.classes_, answer))

    def known_columns(self) -> dict[str, KnownColumn]:
        found, names = super().known_columns(), vars(self).get("target_names_", ())
        if len(names) == 1 and self.classes_.dtype.kind in "OUS":
            words = {label for label in self.classes_.tolist() if isinstance(label, str)}
            found[str(names[0])] = KnownColumn("category", frozenset(NULLS & words))
        return found

    def _scores(self) -> Scores:
        self._check_fitted()
        return self._scores_of(self.loss_)

    def _scores_of(self, loss: str) -> Scores:
        check_choice("decoding", self.decoding, DECODINGS)
        return Scores(self.code_, self.decoding, self.classes_.size == 2, loss != "squared")

    def check_targets(self, n_targets: int | None) -> None:
        n_targets = self.classes_.size if n_targets is None else n_targets
        if self.classes_.shape != (n_targets,) or not are_sorted(self.classes_):
            raise ValueError(f"classes_ must be {n_targets} different labels, sorted.")
        code = self.code_
        if code is not None and (code.dtype != np.int8 or OutputCode(code).n_classes != n_targets):
            raise ValueError("code_ must have a row of int8 numbers for each class.")
        parts = self._by_class
        if parts is None:
            return
        if self.statistics_ is None or len(parts) != n_targets or all(p is None for p in parts):
            raise ValueError("_by_class must have the statistics of each class.")
        shape = self.statistics_.n_features, n_targets
        for part in parts:
            if part is not None and (
                not isinstance(part, LeastSquares) or (part.n_features, part.n_targets) != shape
            ):
                raise ValueError("_by_class must have statistics like those of the model.")

    def for_inference(self) -> Self:
        copied = super().for_inference()
        copied._by_class = None
        return copied

    def encode(self, y: Any, first: bool) -> NDArray[Any]:
        y = column_or_1d(with_one_type(array_of_targets(y)), warn=True)
        y = check_array(y, dtype=None, ensure_2d=False, input_name="y")
        check_classification_targets(y)
        if first:
            if "classes_" not in vars(self):
                self.classes_ = np.unique(y)
            if self.classes_.size < 2:
                raise ValueError(
                    "KernelClassifier needs rows of at least two classes; the data has one "
                    f"class: {self.classes_.tolist()}."
                )
            self.code_ = self._make_code(self.classes_.size)
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(
                f"y has labels that are not among the classes: {unknown[:5].tolist()}; the "
                f"classes are {self.classes_.tolist()}."
            )
        return np.searchsorted(self.classes_, y)

    def columns(self, targets: NDArray[Any]) -> Array:
        return (targets[:, None] == np.arange(self.classes_.size)).astype(np.float64)

    def decoded(self, targets: NDArray[Any]) -> NDArray[Any]:
        return self.classes_[targets]

    def target_numbers(self, targets: NDArray[Any]) -> Array:
        return np.array([number_of(label) for label in self.classes_])[targets, None]

    def validated(self, held_out: LeaveOneOut, solution: Solution) -> Validation:
        labels = held_out.rows.targets.argmax(axis=1)
        outputs = held_out.outputs(solution.alpha)
        weights, counts = held_out.rows.weights, held_out.counts
        found = self.validated_by("squared", outputs, labels, weights, counts)
        rows, weights, outputs = held_out.without_folds(solution)
        return replace(found, score=self._accuracy(outputs, labels[rows], weights, "squared"))

    def _accuracy(self, outputs: Array, targets: NDArray[Any], weights: Array, loss: str) -> float:
        right = self._class_scores(outputs, loss).argmax(axis=1) == targets
        return float(weights @ right / weights.sum())

    def validated_by(
        self, loss: str, outputs: Array, targets: NDArray[Any], weights: Array, counts: Array
    ) -> Validation:
        # The outputs of the logistic loss are logarithms of probabilities already.
        natural = Calibration(1.0, np.zeros(self.classes_.size), [], 0.0)
        calibration = natural if loss == "logistic" else None
        if weights.size == 0:
            return Validation(calibration=calibration)
        if calibration is None:
            scores = self._class_scores(outputs, loss)
            spread = BIAS_SPREAD if self.fit_intercept else BIAS_SPREAD_WITHOUT
            calibration = Calibration.fit(scores, targets, weights, counts, bias_spread=spread)
        return Validation(self._accuracy(outputs, targets, weights, loss), calibration)

    def expanded(self, outputs: Array) -> Array:
        # One output, the difference of both classes, is as good as two of opposite sign.
        if self.classes_.size > 2 or outputs.shape[1] != 1:
            return outputs
        return np.hstack([-outputs, outputs]) / 2

    def reduced(self, outputs: Array, loss: str) -> Array:
        if outputs.shape[1] > 2 or loss == "squared":
            return outputs
        return np.ascontiguousarray(outputs[:, 1:] - outputs[:, :1])

    def learned_iteratively(self, lesson: Lesson) -> dict[str, Any]:
        given = lesson.weights
        if self.is_balanced:
            unbalanced = np.ones(lesson.targets.size) if given is None else given
            weights = self.balanced_weights(lesson.targets, unbalanced)
            lesson = replace(lesson, weights=weights, unbalanced=unbalanced)
        if self.loss != "auto":
            return super().learned_iteratively(lesson) | {"_by_class": None}
        return self._of_the_better_loss(lesson, given)

    def _of_the_better_loss(self, lesson: Lesson, given: Array | None) -> dict[str, Any]:
        """What is learned with the squared or the logistic loss.

        Both are tried on the same held-out rows. The logistic loss must predict more of them than
        the squared one, which is faster and has statistics.
        """
        found: dict[str, dict[str, Any]] = {}
        scores: dict[str, float] = {}
        for loss in ("squared", "logistic"):
            try:
                learned, interrupted = self.in_passes(lesson, loss)
            except KeyboardInterrupt:
                if not found:
                    raise
                warnings.warn(
                    "Interrupted before the logistic loss was tried: the model is that of the "
                    "squared loss, the best one so far.",
                    ConvergenceWarning,
                    stacklevel=5,
                )
                return found["squared"]
            found[loss] = learned | {"_by_class": None}
            scores[loss] = learned["_model"].validation.score or 0.0
            if interrupted:
                return found[max(scores, key=lambda loss: scores[loss])]
        if scores["logistic"] > scores["squared"]:
            return found["logistic"]
        if self.solver == "iterative" or lesson.fitted.n_features_out_ > ONE_PASS_FEATURES:
            return found["squared"]
        return self.learned(lesson.fitted, lesson.X, lesson.targets, given)

    def _class_scores(self, outputs: Array, loss: str | None = None) -> Array:
        """The scores of all classes, also of two."""
        make = self._scores() if loss is None else self._scores_of(loss)
        scores = make(outputs)
        return np.stack([-scores, scores], axis=1) / 2 if scores.ndim == 1 else scores

    def attributes_of(self, summary: Summary) -> dict[str, Any]:
        learned, classes = super().attributes_of(summary), summary.classes
        if classes is None or np.array_equal(classes, self.classes_):
            return learned
        return {**learned, "classes_": classes, "code_": self._make_code(classes.size)}

    def know_labels(self, classes: Any) -> None:
        if classes is not None:
            self.classes_ = labels_among(classes)

    def with_labels_of(self, y: Any) -> Self:
        known = super().with_labels_of(y)
        labels = np.empty(0) if y is None else with_one_type(array_of_targets(y))
        if labels.size:
            known.classes_ = union_of_classes(self.classes_, labels_among(labels.ravel()))
            if known.classes_ is not self.classes_:
                known.code_ = self._make_code(known.classes_.size)
        return known

    def shaped(self, values: Any) -> Any:
        return np.ascontiguousarray(values.T) if isinstance(values, np.ndarray) else values

    def _make_code(self, n_classes: int) -> NDArray[np.int8] | None:
        if not isinstance(self.code, str):
            code = OutputCode(self.code)
            if code.n_classes != n_classes:
                raise ValueError(
                    f"code has {code.n_classes} rows, but there are {n_classes} classes."
                )
            return code.codewords
        if self.code == "ecoc":
            return OutputCode.random(n_classes, self.code_length, seed=self.seed_).codewords
        return OutputCode.hadamard(n_classes).codewords if self.code == "hadamard" else None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("decoding", self.decoding, DECODINGS)
        check_class_weight(self.class_weight)
        if isinstance(self.code, str):
            check_choice("code", self.code, CODES)
        else:
            OutputCode(self.code)  # refuses what is no matrix of bits
        if self.loss != "squared" and not is_word(self.code, "onehot"):
            raise ValueError(
                f"Output codes are for loss='squared', which is linear in the targets; got "
                f"loss={self.loss!r} and code={self.code!r}."
            )
        if self.loss == "auto" and self.validation_rows == 0:
            raise ValueError(
                "loss='auto' is decided on the validation rows, but validation_rows=0: keep some, "
                "2000 for example, or choose a loss."
            )
        if self.code_length is None:
            return
        check_count("code_length", self.code_length)
        if not isinstance(self.code, str) or self.code != "ecoc":
            raise ValueError(
                f"code_length={self.code_length} is for code='ecoc', whose length is free; "
                "leave it away for other codes."
            )
