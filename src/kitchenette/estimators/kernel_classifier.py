"""Kernel classification by least squares on random features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from kitchenette.data.border import as_source, in_parts
from kitchenette.estimators.base import (
    Array,
    KernelEstimator,
    learns_in_one_pass,
    of_model,
)
from kitchenette.estimators.predictor import Predictor
from kitchenette.files.registry import storable
from kitchenette.learning.calibration import Calibration
from kitchenette.learning.losses import LOSSES
from kitchenette.learning.output_codes import DECODINGS
from kitchenette.learning.target_coding import ClassCoding, Scores, labels_among
from kitchenette.parameters import check_choice
from kitchenette.training.model import Model


def _has_probabilities(model: KernelClassifier) -> bool:
    if model.validation_rows > 0 or getattr(LOSSES.get(model.loss), "link", None) == "softmax":
        return True
    raise AttributeError(
        "KernelClassifier has no probabilities with validation_rows=0, because they are "
        "calibrated on these rows. Keep some, 2000 for example, or use loss='logistic'."
    )


@storable
class KernelClassifier(ClassifierMixin, KernelEstimator):
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
        `AutoMap`, whose kernel, scales of the columns, width and number of features are chosen on a
        sample of the rows.
    effort : {"fast", "balanced", "best"} or float, default="balanced"
        How long the choice of the default map and the fit may take, see `AutoMap`: "fast" about a
        second for some thousand rows, "balanced" up to eight for 20,000, "best" up to one minute.
    alpha : float, {"auto", "gcv", "evidence"} or array-like, default="auto"
        The penalty of the weights; or the criterion that chooses it; or several penalties, of
        which "gcv" chooses one. "auto": the penalty of the largest marginal likelihood, unless
        another one predicts the validation rows better, by the log loss of calibrated scores and
        more than a standard error. "gcv": generalized cross-validation. "evidence": the marginal
        likelihood. The last two warn if the validation rows contradict them. In many passes,
        "auto" is the penalty that predicts the validation rows best, there is no "gcv", and
        "evidence" is an estimate that takes some tens of passes more.
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
        Whether to add a constant that is not penalized.
    validation_rows : int, default=2000
        The number of rows that are kept, as features, to check the model: a sample of the distinct
        rows that does not depend on their order and batches. They choose the penalty, calibrate
        `predict_proba` and give ``validation_score_``; the final weights are learned from all rows.
        At 0 no rows are kept; "auto" is then the same as "evidence".
    loss : {"squared", "logistic", "squared_hinge", "auto"}, default="squared"
        What is minimized, plus the penalty. Only the squared loss learns in one pass.
        "logistic": multinomial logistic regression, whose probabilities need no calibration.
        "squared_hinge": a support vector machine, each class against all others. "auto": the
        squared loss, or the logistic one if that has clearly less log loss on validation rows;
        the squared loss where nothing can decide: with output codes, criteria of the statistics,
        ``solver="onepass"``, or too few rows. Statistics are kept with either loss: after
        `partial_fit`, `merge` or `downdate` the model is that of the squared loss.
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
        The loss that was minimized.
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

    classes_ = of_model(lambda model: model.prepared.coding.classes, "The labels, sorted.")
    task = "classification"

    @property
    def code_(self) -> NDArray[np.int8] | None:
        """The codewords of +1 and -1; None for "onehot"."""
        if "model_" not in vars(self):
            raise AttributeError("This KernelClassifier is not fitted yet.")
        codewords: NDArray[np.int8] | None = self.model_.prepared.coding.codewords
        return codewords

    def __init__(
        self,
        feature_map: Any = None,
        *,
        effort: str | float = "balanced",
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
        self.effort = effort
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

    @available_if(learns_in_one_pass)
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
        first = "model_" not in vars(self)
        if first and classes is None and as_source(X, y).whole() is not None:
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
        return self._updated(X, y, sample_weight, classes)

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
        model = self._current()
        outputs, dtype = model.outputs(X)
        return self._scores(model)(outputs).astype(dtype, copy=False)

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
        model = self._current()
        return self._scores(model).labels(model.outputs(X)[0])

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
        return self._score(X, y, sample_weight, super().score)

    @available_if(_has_probabilities)
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
        model = self._current()
        return self._probabilities(model, model.outputs(X)[0])

    @available_if(_has_probabilities)
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
        return self._scores(self._current()).labels(outputs)

    def scores_of(self, outputs: Array) -> Array:
        """The scores of the classes that outputs stand for."""
        return self._scores(self._current())(outputs)

    def probabilities_of(self, outputs: Array) -> Array:
        """The probabilities of the classes that outputs stand for."""
        return self._probabilities(self._current(), outputs)

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
            Takes a row and returns its label; see `kitchenette.estimators.Predictor`.
        """
        model = self._current()
        answer = self._scores(model)
        return self._predictor(model, dtype, answer if scores else answer.labels)

    def _scores(self, model: Model) -> Scores:
        """What makes scores of the outputs of a model."""
        check_choice("decoding", self.decoding, DECODINGS)
        coding: ClassCoding = model.prepared.coding
        return coding.scores(model.loss, self.decoding)

    def _probabilities(self, model: Model, outputs: Array) -> Array:
        calibration = model.solution.validation.calibration
        if calibration is None:
            calibration = Calibration.unfitted(model.prepared.coding.classes.size)
        return calibration(self._scores(model).of_all_classes(outputs))

    def _labels(self, classes: Any) -> Any:
        return None if classes is None else labels_among(classes)
