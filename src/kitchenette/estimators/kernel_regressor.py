"""Kernel regression by least squares on random features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from kitchenette.data.border import in_parts
from kitchenette.estimators.base import Array, KernelEstimator, learns_in_one_pass
from kitchenette.estimators.predictor import Predictor
from kitchenette.files.registry import storable
from kitchenette.learning.target_coding import NumberCoding


@storable
class KernelRegressor(RegressorMixin, KernelEstimator):
    """Regression with a kernel, in one pass over any number of rows.

    Ridge regression on the features of a map, which approximates kernel ridge regression and
    the mean of Gaussian process regression. The rows are summed up in statistics whose size
    does not depend on their number, so a model can go on learning, models of different rows
    can be merged, and the penalty is chosen without a second look at the data.

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
        another one predicts the validation rows better by more than two standard errors. "gcv":
        generalized cross-validation. "evidence": the marginal likelihood. The last two warn if
        the validation rows contradict them. In many passes, "auto" is the penalty that predicts
        the validation rows best, there is no "gcv", and "evidence" is an estimate that takes some
        tens of passes more.
    fit_intercept : bool, default=True
        Whether to add a constant that is not penalized.
    validation_rows : int, default=2000
        The number of rows that are kept, as features, to check the model: a sample of the distinct
        rows that does not depend on their order and batches. They choose the penalty, scale
        standard deviations and give ``validation_score_``; the final weights are learned from all
        rows.
        At 0 no rows are kept; "auto" is then the same as "evidence".
    loss : {"squared", "huber", "quantile"}, default="squared"
        What is minimized, plus the penalty. Only the squared loss learns in one pass.
        "huber": squared for small errors and linear for large ones, so that outliers matter less.
        "quantile": the predictions are quantiles. For these two, targets are divided by
        the spread of the errors of a first small model, to which alpha refers then.
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
    quantile : float, default=0.5
        The quantile of loss="quantile", between 0 and 1.
    random_state : int, NumPy generator or None, default=None
        The seed of the map and of the steps of a pipeline that have none of their own. None draws
        one; see ``seed_``.
    verbose : bool, default=False
        Show progress while rows are learned: a bar if rich is installed, lines if not.

    Attributes
    ----------
    feature_map_ : transformer
        The fitted map.
    statistics_ : LeastSquares
        The sufficient statistics of the rows seen.
    alpha_ : float
        The penalty that was used.
    feature_weights_ : ndarray of shape (n_components,) or (n_targets, n_components)
        The weights of the random features.
    intercept_ : float or ndarray of shape (n_targets,)
        The constant.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much predictions change with each column, computed on access; see `importance`. It
        exists for Fourier features learned in one pass, and lets `SelectFromModel` and `RFE` of
        scikit-learn choose columns.
    log_marginal_likelihood_ : float
        The log marginal likelihood of the targets, summed over them, with the weights integrated
        out and the noise variance at its maximum. Use it to compare kernels.
    validation_score_ : float
        R^2 on the validation rows, of models without a third of them. It does not exist if there
        are fewer than 20.
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
    KernelClassifier : The same model for classes.
    LeastSquares : The statistics by themselves.

    Notes
    -----
    *Model.* y = c + w' z(x) + noise, with a normal prior for w of variance s^2 / alpha in
    every direction and noise of variance s^2: as the features' inner products approximate
    a kernel k, this approximates Gaussian process regression with the covariance
    function s^2 k / alpha. `predict` returns the posterior mean; its standard deviation
    includes the noise. See `kitchenette.learning.Solution` for the formulas.

    *Batches.* `partial_fit`, `merge` and `downdate` only update the statistics; the weights are
    computed by the next prediction or `solve`, and then cached. Until then the attributes alpha_,
    feature_weights_, intercept_, feature_importances_ and log_marginal_likelihood_ do not exist.
    A map that depends on data is fitted on the first batch. Up to rounding errors, the model does
    not depend on how rows are split or in which order they are merged, and the prediction of a row
    not on other rows.

    *Cost.* n_components^2 operations for a row, n_components^3 / 3 for a solution. The choice of
    alpha takes an eigendecomposition, as long as 24 solutions, up to 1024 features, and about
    seven solutions beyond. Memory: 4 n_components^2 bytes for the statistics, up to twice as much
    again while solving, blocks of 4096 rows, and the features of the validation rows, in float64
    and twice while solving. Above 16,384 features of float32 data the statistics are kept in
    float32, and memory is saved elsewhere: 2 n_components^2 bytes, as much again while solving, and
    the features of the validation rows once; see `LeastSquares`. What does not fit is refused
    before it starts. (`partial_fit` with more than 4096 rows needs a second copy of the
    statistics.)

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.kernels import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(2000, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=2000)
    >>> model = KernelRegressor(Fastfood(Gaussian(0.5), 200, random_state=0))
    >>> model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.97
    True
    >>> mean, std = model.predict(X[1000:], return_std=True)
    >>> covered = np.abs(y[1000:] - mean) < 1.96 * std
    >>> bool(0.92 < covered.mean() < 0.98)
    True

    A model can learn more rows, or be merged with a model of other rows:

    >>> model.partial_fit(X[1000:1500], y[1000:1500]).statistics_.n_rows
    1500
    >>> other = KernelRegressor(model.feature_map).fit(X[1500:], y[1500:])
    >>> model.merge(other).statistics_.n_rows
    2000
    """

    task = "regression"

    def __init__(
        self,
        feature_map: Any = None,
        *,
        effort: str | float = "balanced",
        alpha: Any = "auto",
        fit_intercept: bool = True,
        validation_rows: int = 2000,
        loss: str = "squared",
        quantile: float = 0.5,
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
        self.fit_intercept = fit_intercept
        self.validation_rows = validation_rows
        self.loss = loss
        self.quantile = quantile
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @available_if(learns_in_one_pass)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), or Source
            Rows; the feature map is fitted on the rows of the first call.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            Targets.
        sample_weight : array-like of shape (n_rows,), optional
            Weights, as in `fit`.

        Returns
        -------
        self : KernelRegressor
            This model.
        """
        return self._updated(X, y, sample_weight)

    @in_parts
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict targets.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), or Source
            Rows.
        return_std : bool, default=False
            Whether to return the standard deviation of new observations as well.

        Returns
        -------
        y : ndarray of shape (n_rows,) or (n_rows, n_targets)
            The posterior mean; float32 if both features and targets are, else float64.
        std : ndarray like y
            The standard deviation of a new observation, noise included; only with ``return_std``.
            The first call factors the Gram matrix; each row costs n_components^2 operations.
        """
        model = self._current()
        if return_std:
            self._partial()
        outputs, precision = model.outputs(X)
        coding: NumberCoding = model.prepared.coding
        answer = TargetShape(coding.ndim, np.result_type(precision, coding.dtype).name)
        mean = answer(outputs)
        return (mean, answer(np.sqrt(model.variances(X)))) if return_std else mean

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The R^2 of predictions, the mean of those of several targets.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), or Source
            Rows. Dask collections stay where they are; a source has its own targets and weights.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            The true targets.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        score : float
        """
        return self._score(X, y, sample_weight, super().score)

    def predictor(self, *, dtype: DTypeLike | None = None) -> Predictor:
        """A callable that predicts one or a few rows with low latency.

        Parameters
        ----------
        dtype : float32 or float64, optional
            The precision of the features; by default that in which the model was fitted.

        Returns
        -------
        predictor : Predictor
            Takes a row and returns its prediction; see `kitchenette.estimators.Predictor`.
        """
        model = self._current()
        return self._predictor(model, dtype, TargetShape(model.prepared.coding.ndim, "float64"))


@dataclass(frozen=True)
class TargetShape:
    """Predicted columns in the shape and precision of the targets."""

    ndim: int
    dtype: str

    def __call__(self, outputs: Array) -> NDArray[Any]:
        outputs = outputs.astype(self.dtype, copy=False)
        return outputs[:, 0] if self.ndim == 1 else outputs
