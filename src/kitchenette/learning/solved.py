"""Estimators whose weights are solved from statistics, with a penalty checked on sampled rows."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kitchenette.data.rows import slices, take
from kitchenette.data.source import Source
from kitchenette.learning.base import Array
from kitchenette.learning.checks import checked_alpha
from kitchenette.learning.extrapolation import predictive_variance
from kitchenette.learning.leave_one_out import LeaveOneOut
from kitchenette.learning.machine_parameters import is_word
from kitchenette.learning.model import LinearModel, Validation
from kitchenette.learning.one_pass import OnePassMachine
from kitchenette.learning.solution import VARIANCE_ROWS

VARIANCE_NUMBERS = 1 << 20  # the number of features in a block of `variances`


def solved(name: str, field: str, doc: str) -> property:
    """A read-only attribute: a field of the solved model, which does not exist before."""

    def get(self: SolvedMachine) -> Any:
        return self.shaped(getattr(self._solved_or_error(name), field))

    return property(get, doc=doc)


class SolvedMachine(OnePassMachine):
    """The solution of the statistics: when it is computed, its penalty, and what it says."""

    alpha_ = solved("alpha_", "alpha", "The penalty that was used.")
    # Not `coef_`: tools of scikit-learn take that for a number for each column of the rows.
    feature_weights_ = solved("feature_weights_", "coef", "The weights of the random features.")
    intercept_ = solved("intercept_", "intercept", "The constants.")

    @property
    def log_marginal_likelihood_(self) -> float:
        """The log density of the targets."""
        found = self._solved_or_error("log_marginal_likelihood_").log_marginal_likelihood
        if np.isnan(found):
            raise AttributeError(
                "log_marginal_likelihood_ is not there: an iterative solver computes it with "
                "alpha='evidence' only."
            )
        return found

    def _solved_or_error(self, name: str) -> LinearModel:
        model = self.solved_model()
        if model is None:
            raise AttributeError(
                f"{name} is not there: rows came or went since this {type(self).__name__} was "
                "solved. Call solve() first."
            )
        return model

    @property
    def validation_score_(self) -> float:
        """The score of models without the validation rows on these rows."""
        score = self._solved_or_error("validation_score_").validation.score
        if score is None:
            raise AttributeError(
                "validation_score_ is not there: there were no validation rows, or too few."
            )
        return score

    def solve(self) -> Self:
        """Compute the weights, unless they are up to date.

        `fit` and the prediction methods call it. After `partial_fit`, `merge` and `downdate` it
        is deferred to the next prediction, because a solution costs as much as many rows. Call
        it before the model is shared by threads, or to choose when the time is spent.

        Returns
        -------
        self : object
            This model.

        Examples
        --------
        >>> import numpy as np
        >>> from kitchenette import Fastfood, KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0))
        >>> for part in (X[:200], X[200:]):
        ...     model = model.partial_fit(part, part[:, 0])
        >>> model.solve().alpha_ > 0
        True
        """
        self._current()
        return self

    def _solved(self) -> LinearModel:
        statistics, version, held_out = self._known(), self._known().version, self._held_out()
        alpha, n_observations = self.alpha, self._n_observations()
        if is_word(alpha, "auto"):
            alpha = self._automatic_penalty(held_out, n_observations)
        known = None if held_out is None else held_out.solution(checked_alpha(alpha))
        solution = known or statistics.solve(
            alpha, fit_intercept=self.fit_intercept, n_observations=n_observations
        )
        validation = Validation()
        if held_out is not None:
            validation = self.validated(held_out, solution)
            if isinstance(self.alpha, str) and self.alpha != "auto":
                self._warn_of_contradiction(held_out, solution.alpha)
        return LinearModel.of(solution, statistics.has_float32, version, validation)

    def _held_out(self) -> LeaveOneOut | None:
        """Sampled rows with predictions of models without them; None if there are too few."""
        sample = self.validation_sample()
        if sample is None:
            return None
        equations = self._known().equations(self.fit_intercept, self._n_observations())
        counts = self._sample_counts()
        held_out = LeaveOneOut(equations, sample, counts)
        return held_out if held_out.enough else None

    def _n_observations(self) -> float:
        """The number of observations, or of rows if there is no sample to estimate it from."""
        sample, n_rows = self._sample(), self._known().n_rows
        return float(n_rows) if sample is None else sample.n_observations(n_rows, self.rule)

    def _sample_counts(self) -> Array | None:
        """The number of observations that each sampled row stands for."""
        sample = self._sample()
        return None if sample is None else sample.counts(self.rule)

    def _automatic_penalty(self, held_out: LeaveOneOut | None, n_observations: float) -> Any:
        if n_observations <= 1 + self.fit_intercept:
            # One row, or two, say nothing of the function, so that it is nearly constant.
            return max(1.0, float(self._known().gram.diagonal().sum()))
        return "evidence" if held_out is None or held_out.is_constant else held_out.chosen()

    def _warn_of_contradiction(self, held_out: LeaveOneOut, alpha: float) -> None:
        better = None if held_out.is_constant else held_out.contradiction(alpha)
        if better is not None:
            warnings.warn(
                f"alpha={self.alpha!r} chose {alpha:.3g}, but rows that were held out are "
                f"predicted better with {better:.3g}. Use alpha='auto', which looks at both.",
                UserWarning,
                stacklevel=9,
            )

    def snapshot_with_posterior(self) -> Self:
        """A `snapshot` with the factor of the Gram matrix, computed again because it is large."""
        with self._held() as now:
            model = now._model
            if now._posterior is None or now._posterior[0] is not model:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)  # issued by `solve`
                    found = now._known().solve(
                        model.alpha,
                        fit_intercept=model.fit_intercept,
                        n_observations=now._n_observations(),
                    )
                now._posterior = self._posterior = model, found
        now.statistics_ = None
        return now

    def variances(self, X: Any) -> Array:
        """Variances of new observations, noise included, by a `snapshot_with_posterior`."""
        if isinstance(X, Source):
            return np.concatenate([self.variances(b.X) for b in self._to_predict(X).blocks()])
        assert self._posterior is not None
        X, posterior = self._checked(X), self._posterior[1]
        variance = np.empty((X.shape[0], posterior.rss.size))
        size = max(VARIANCE_ROWS, VARIANCE_NUMBERS // posterior.coef.shape[0])
        for part in slices(X.shape[0], size):
            variance[part] = predictive_variance(posterior, self._fitted, take(X, part))
        spread = self._model.validation.spread
        return variance if spread is None else variance * np.square(spread)
