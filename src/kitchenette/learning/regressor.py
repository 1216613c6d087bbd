"""Kernel regression by least squares on random features."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags, check_array

from kitchenette.learning.blocks import features_of, rows_of, slices
from kitchenette.learning.machine import BLOCK_NUMBERS, KernelMachine
from kitchenette.learning.packed import Array
from kitchenette.learning.predictor import Predictor
from kitchenette.maps.base import unchanged_on_error


class KernelRegressor(RegressorMixin, KernelMachine):
    """Regression with a kernel, in one pass over any number of rows.

    Ridge regression on the features of a map, which approximates kernel ridge regression and
    the mean of Gaussian process regression. The rows are summed up in statistics whose size
    does not depend on their number, so a model can go on learning, models of different rows
    can be merged, and the penalty is chosen without a second look at the data.

    Parameters
    ----------
    feature_map : transformer, default=None
        A map of this package, or any scikit-learn transformer that treats rows one by one;
        also a pipeline (of `StandardScaler` and a map, if columns differ in scale), or a fitted
        map as `sklearn.frozen.FrozenEstimator`. None is
        ``Fastfood(random_state=0)``: 1024 features for the Gaussian kernel, whose
        length scale is the median distance of rows.
    alpha : float, {"gcv", "evidence"} or array-like, default="gcv"
        The penalty of the weights; or what chooses it among all numbers: generalised
        cross-validation or the marginal likelihood; or penalties of which "gcv" chooses
        one. With less than some ten rows per feature prefer "evidence": "gcv" may choose far
        too little there.
    fit_intercept : bool, default=True
        Whether to add a constant that is not penalised.
    verbose : bool, default=False
        Show progress while rows are learned: a bar if rich is installed, lines if not.

    Attributes
    ----------
    feature_map_ : transformer
        The fitted map.
    statistics_ : LeastSquares
        All that is known of the rows.
    alpha_ : float
        The penalty that was used.
    coef_ : ndarray of shape (n_components,) or (n_targets, n_components)
        The weights of the features.
    intercept_ : float or ndarray of shape (n_targets,)
        The constant.
    collapsed_coef_ : ndarray of shape (n_base_components, n_targets), or None
        If the map is a `TEFM`, the weights of its base features that predict the same.
    log_marginal_likelihood_ : float
        The log density of the targets seen, with the weights integrated out and the noise
        at its most likely; of all targets together. It serves to compare kernels.
    n_features_in_ : int
        The number of columns of the data.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if there are any.

    See Also
    --------
    KernelClassifier : The same for classes.
    LeastSquares : The statistics by themselves.

    Notes
    -----
    *Model.* y = c + w' z(x) + noise, with a normal prior for w of variance s^2 / alpha in
    every direction and noise of variance s^2: as the features' inner products approximate
    a kernel k, this approximates Gaussian process regression with the covariance
    function s^2 k / alpha. `predict` returns the posterior mean; its standard deviation
    includes the noise. See `kitchenette.learning.Solution` for the formulas.

    *Batches.* `partial_fit` and `merge` only add up; the weights are computed when a
    prediction or one of the attributes alpha_, coef_, intercept_ or log_marginal_likelihood_
    is asked for, and then kept. A map that depends on data is fitted on the first batch.
    The model does not depend on how rows are split or in which order they are merged,
    and a prediction not on the rows beside it, up to rounding errors.

    *Cost.* n_components^2 operations for a row, n_components^3 / 3 for a solution, and one to
    three solutions for the choice of alpha. Memory: 4 n_components^2 bytes for the
    statistics, up to twice as many again while solving, and blocks of 4096 rows.
    (`partial_fit` with more than 4096 rows at a time needs statistics for those.)

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

    Learning goes on, here or elsewhere:

    >>> model.partial_fit(X[1000:1500], y[1000:1500]).statistics_.n_rows
    1500
    >>> other = KernelRegressor(model.feature_map).fit(X[1500:], y[1500:])
    >>> model.merge(other).statistics_.n_rows
    2000
    """

    _target_ndim: int

    _stored: ClassVar[dict[str, Any]] = {**KernelMachine._stored, "_target_ndim": int}
    _required: ClassVar[tuple[str, ...]] = (*KernelMachine._required, "_target_ndim")

    def __init__(
        self,
        feature_map: Any = None,
        *,
        alpha: Any = "gcv",
        fit_intercept: bool = True,
        verbose: bool = False,
    ):
        self.feature_map = feature_map
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from more rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Rows; the feature map is fitted on those of the first call.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            Targets.
        sample_weight : array-like of shape (n_rows,), optional
            Weights, as in `fit`.

        Returns
        -------
        self : KernelRegressor
            This model.
        """
        with unchanged_on_error(self):
            self._check_parameters()
            self._learn(X, y, sample_weight)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict targets.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Rows.
        return_std : bool, default=False
            Also return how far observations are expected to be from the prediction.

        Returns
        -------
        y : ndarray of shape (n_rows,) or (n_rows, n_targets)
            The mean of the posterior; float32 if the features are.
        std : ndarray like y
            The standard deviation of a new observation, noise included; with ``return_std``
            alone. The first time, it costs some factorizations of the Gram matrix; then
            n_components^2 operations for a row.
        """
        mean: Any = self._outputs(X)
        mean = mean[:, 0] if self._target_ndim == 1 else mean
        return (mean, self._std(X).astype(mean.dtype)) if return_std else mean

    def predictor(self, *, dtype: DTypeLike | None = None) -> Predictor:
        """A light callable that predicts one row, or a few, with the least delay.

        Parameters
        ----------
        dtype : float32 or float64, optional
            The precision in which it computes; by default that of the features the model
            was fitted with.

        Returns
        -------
        predictor : Predictor
            Takes a row and returns its prediction; see `kitchenette.learning.Predictor`.
        """
        self._check_fitted()
        single = self._target_ndim == 1
        return self._predictor(dtype, lambda outputs: outputs[:, 0] if single else outputs)

    def _std(self, X: Any) -> Array:
        X = self._checked(X, reset=False)
        posterior = self._posterior
        variance = np.empty((X.shape[0], posterior.rss.size))
        for rows in slices(X.shape[0], max(16, BLOCK_NUMBERS // posterior.coef.shape[0])):
            variance[rows] = posterior.variance(features_of(self.feature_map_, rows_of(X, rows)))
        std = np.sqrt(variance)
        return std[:, 0] if self._target_ndim == 1 else std

    def _restore(self, max_bytes: int) -> int:
        if vars(self).get("_target_ndim") not in (1, 2):
            raise ValueError(f"_target_ndim must be 1 or 2; got {self._target_ndim}.")
        return super()._restore(max_bytes)

    def _encode(self, y: Any, first: bool) -> NDArray[Any]:
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        if first:
            self._target_ndim = y.ndim
        if y.ndim not in (1, 2) or y.ndim != self._target_ndim:
            axes = ("one axis", "two axes")
            expected = " or ".join(axes) if first else f"{axes[self._target_ndim - 1]}, as before"
            raise ValueError(f"y must have {expected}; got an array of shape {y.shape}.")
        return y.reshape(y.shape[0], -1)

    def _columns(self, targets: NDArray[Any]) -> Array:
        return targets

    def _shaped(self, values: Array) -> Any:
        return values[0] if self._target_ndim == 1 else values

    def _merge_statistics(self, other: Any) -> None:
        if self._target_ndim != other._target_ndim:
            raise ValueError(
                "Cannot merge models of which one was given vectors of targets and the other "
                "matrices."
            )
        self._known().merge(other._known())
