"""What regressor and classifier share: weights, validation, removal of rows, importances."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike

from kitchenette.data.collections import as_rows
from kitchenette.data.observations import RULES
from kitchenette.data.source import Source
from kitchenette.data.targets import array_of_targets
from kitchenette.estimators.base import Array, FeatureEstimator, of_model
from kitchenette.estimators.predictor import Answer, Predictor
from kitchenette.estimators.scoring import score_of_source
from kitchenette.learning.iterative import Earlier
from kitchenette.learning.linear_model import LinearModel
from kitchenette.learning.losses import loss_names
from kitchenette.parameters import check_choice
from kitchenette.selection import AutoMap
from kitchenette.selection.importance import importance
from kitchenette.training.model import Model
from kitchenette.training.problem import SOLVERS, is_text
from kitchenette.training.rows import encoded_rows
from kitchenette.training.train import refuse_targets_beside_source, with_names

TEXT, COUNT = (str, type(None)), (int, type(None))


def of_solution(name: str, field: str, doc: str) -> property:
    """A read-only attribute: a field of the solution, which does not exist before `solve`."""

    def get(self: KernelEstimator) -> Any:
        value = getattr(self._solution_or_error(name), field)
        return self.model_.prepared.coding.shaped(value)

    return property(get, doc=doc)


def learns_in_one_pass(estimator: Any) -> bool:
    """Whether methods that need statistics exist; an AttributeError says why not.

    For `sklearn.utils.metaestimators.available_if`.
    """
    problem = estimator.problem()
    reason = problem.without_one_pass("partial_fit")
    if reason is not None:
        raise AttributeError(reason)
    return True


class KernelEstimator(FeatureEstimator):
    """A linear model of random features, of numbers or of classes."""

    solution_class = LinearModel
    task: ClassVar[str]
    warm_start: Any
    default_map = "'auto'"
    abilities = (
        "predicts",
        "learn from more rows, merge with others, or tell how sure a prediction is",
    )

    alpha_ = of_solution("alpha_", "alpha", "The penalty that was used.")
    # Not `coef_`: tools of scikit-learn take that for a number for each column of the rows.
    feature_weights_ = of_solution(
        "feature_weights_", "coef", "The weights of the random features."
    )
    intercept_ = of_solution("intercept_", "intercept", "The constants.")
    loss_ = of_model(lambda m: m.loss if m.has_rows else None, "The loss that was minimized.")
    solver_ = of_model(lambda m: m.solver if m.has_rows else None, '"onepass" or "iterative".')
    n_iter_ = of_model(
        lambda m: m.n_iter if m.has_rows else None, "The number of steps of the iterative solver."
    )
    observation_rule_ = of_model(
        lambda m: m.prepared.observation_rule, "What repeated rows and weights count for."
    )
    target_names_ = of_model(
        lambda m: m.prepared.target_names, "The names of the columns to be predicted."
    )
    weight_name_ = of_model(lambda m: m.prepared.weight_name, "The name of the column of weights.")

    @property
    def log_marginal_likelihood_(self) -> float:
        """The log density of the targets."""
        found = self._solution_or_error("log_marginal_likelihood_").log_marginal_likelihood
        if np.isnan(found):
            raise AttributeError(
                "log_marginal_likelihood_ does not exist: an iterative solver computes it with "
                "alpha='evidence' only."
            )
        return float(found)

    @property
    def validation_score_(self) -> float:
        """The score of models without the validation rows on these rows."""
        score = self._solution_or_error("validation_score_").validation.score
        if score is None:
            raise AttributeError(
                "validation_score_ does not exist: there were no validation rows, or too few."
            )
        return float(score)

    def _unfitted_map(self, seed: int) -> Any:
        if self.feature_map is None or is_text(self.feature_map, "auto"):
            return AutoMap(task=self.task, random_state=seed)
        return self.feature_map

    def remember_names(self, source: Source) -> None:
        """Keep the names of the columns of a source that are targets and weights, if there are any.

        Parameters
        ----------
        source : Source
            What the model learns from.
        """
        self.model_ = replace(self.model_, prepared=with_names(self.model_.prepared, source))

    def _earlier(self) -> Earlier | None:
        if not self.warm_start or "model_" not in vars(self):
            return None
        model = self.model_
        solution, prepared = model.solution_if_known, model.prepared
        if solution is None:
            return None
        coef = prepared.coding.reduced(solution.coef, model.loss)
        intercept = prepared.coding.reduced(solution.intercept[None], model.loss)[0]
        return Earlier(prepared.fitted, prepared.n_columns, coef, intercept, model.loss)

    def downdate(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows that were learned before, the inverse of `partial_fit`.

        Parameters
        ----------
        X, y, sample_weight
            The rows, targets and weights as they were learned. Others are refused where they are
            found out: by the sample of ``validation_rows`` distinct rows, which knows all rows if
            there are no more, and by the statistics (`LeastSquares.downdate`). Accuracy is
            lost if the removed rows outweigh the remaining ones.

        Returns
        -------
        self : object
            This model.

        Examples
        --------
        >>> import numpy as np
        >>> from kitchenette import Fastfood, KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(X, X[:, 0])
        >>> model.downdate(X[:100], X[:100, 0]).statistics_.n_rows
        400
        """
        self._partial()
        problem, model = self.checked_problem(), self.model_
        if isinstance(X, Source):
            raise ValueError("Rows are removed as arrays or data frames, not as a source.")
        coding = model.prepared.coding
        _, X, targets, weights = encoded_rows(model.prepared, coding, X, y, sample_weight)
        model = replace(model, problem=problem, known=None)
        self.model_ = model.without_rows(X, targets, weights)
        return self

    def merge(self, other: Self) -> Self:
        """Add the rows of another model, which is not changed.

        Parameters
        ----------
        other : object
            A fitted model of the same class with an equal feature map. To share a map that
            depends on data, fit it once and pass it to both models in a
            `sklearn.frozen.FrozenEstimator`. Its rows are other ones: the model itself is refused,
            and a copy of it gets a warning, because rows would count twice.

        Returns
        -------
        self : object
            This model, as if fitted on the rows of both, with its own parameters.
        """
        return self._merged(other)

    @property
    def feature_importances_(self) -> Array:
        """The importance of each column; see `importance`."""
        if self.statistics_ is None:
            raise AttributeError(
                "feature_importances_ needs the statistics of one pass over the rows, which this "
                "model does not have. sklearn.inspection.permutation_importance needs none."
            )
        self._solution_or_error("feature_importances_")
        try:
            return self.importance()
        except ValueError as error:
            raise AttributeError(str(error)) from error

    def importance(self, X: Any = None) -> Array:
        """How much the predictions change with each column.

        The root mean square of the derivative of the prediction in the column, over all rows that
        the model has learned from, times the spread of the column, divided by their sum. It says
        what the model reacts to, at no cost; `sklearn.inspection.permutation_importance` says what
        its accuracy rests on, and needs many predictions.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns), optional
            Rows from which the spreads of the columns are computed. Without them, an `AutoMap`
            knows the spreads; for other maps, columns are compared in units of their length scales.

        Returns
        -------
        importances : ndarray of shape (n_columns,)
            Numbers that are not negative, with a sum of one. The derivatives of several targets or
            classes are added in square. The map must have Fourier features: `AutoMap`, `Fastfood`
            or `RandomKitchenSinks`, also after a scaler.

        Examples
        --------
        >>> import numpy as np
        >>> from kitchenette import Fastfood, KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0))
        >>> model = model.fit(X, 3 * X[:, 1] + X[:, 2])
        >>> model.importance(X).round(1)
        array([0. , 0.7, 0.3])
        """
        model, statistics = self._current(), self._partial().statistics
        assert statistics is not None
        return importance(model.prepared.fitted, statistics, model.solution.coef, X)

    def plot_importance(self, X: Any = None, *, most: int = 20, ax: Any = None) -> Any:
        """Draw the importances of the most important columns as bars.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, optional
            As in `importance`.
        most : int, default=20
            The largest number of columns.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure. Matplotlib must be installed.

        Returns
        -------
        ax : matplotlib Axes
            With a bar for each column, the most important one on top.

        Examples
        --------
        >>> import numpy as np
        >>> from kitchenette import Fastfood, KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(X, X[:, 1])
        >>> ax = model.plot_importance(X, most=2)  # doctest: +SKIP
        >>> len(ax.patches)  # doctest: +SKIP
        2
        """
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots()[1]
        sizes = self.importance(X)
        names = getattr(self, "feature_names_in_", np.arange(sizes.size))
        order = np.argsort(sizes)[-most:]
        ax.barh([str(name) for name in names[order]], sizes[order])
        ax.set(xlabel="root mean square derivative x spread, sum 1")
        return ax

    def _score(self, X: Any, y: Any, sample_weight: Any, of_arrays: Any) -> float:
        """`score` of rows anywhere; ``of_arrays`` is that of scikit-learn."""
        rows, given, weights = as_rows(X, y, sample_weight)
        if isinstance(rows, Source):
            refuse_targets_beside_source(given, weights)
            return score_of_source(self, rows)
        return float(of_arrays(X, array_of_targets(y), sample_weight))

    def _predictor(self, model: Model, dtype: DTypeLike | None, answer: Answer) -> Predictor:
        """A `Predictor`, by default in the precision of the features learned."""
        solution, prepared = model.solution, model.prepared
        if dtype is None:
            dtype = np.float32 if solution.has_float32 else np.float64
        return Predictor(
            prepared.fitted.for_inference(),
            solution.coef,
            solution.intercept,
            prepared.n_columns,
            np.dtype(dtype),
            answer,
            prepared.names,
        )

    # ------------------------------------------------------------ files

    def target_state(self, model: Model) -> dict[str, Any]:
        prepared = model.prepared
        state: dict[str, Any] = {
            "observation_rule_": prepared.observation_rule,
            "target_names_": prepared.target_names,
            "weight_name_": prepared.weight_name,
        }
        if model.has_rows:
            state |= {"solver_": model.solver, "loss_": model.loss, "n_iter_": model.n_iter}
        return state

    names_types: ClassVar[dict[str, Any]] = {
        "observation_rule_": TEXT,
        "target_names_": (np.ndarray, type(None)),
        "weight_name_": TEXT,
        "solver_": TEXT,
        "loss_": TEXT,
        "n_iter_": COUNT,
    }

    def restored_names(self, values: dict[str, Any]) -> dict[str, Any]:
        names = values["target_names_"]
        if names is not None and (names.ndim != 1 or names.dtype != object):
            raise ValueError("target_names_ must be names.")
        solver, loss = values["solver_"] or "onepass", values["loss_"] or "squared"
        if solver not in SOLVERS[1:] or loss not in loss_names(self.task):
            raise ValueError("solver_ and loss_ must be among those that exist.")
        rule = values["observation_rule_"] or RULES[0]
        check_choice("observation_rule_", rule, RULES)
        return {
            "observation_rule": rule,
            "target_names": names,
            "weight_name": values["weight_name_"],
        }
