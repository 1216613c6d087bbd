"""Which columns the predictions of a fitted model depend on."""

from __future__ import annotations

from typing import Any

import numpy as np

from kitchenette.learning.base import Array, FeatureLearner
from kitchenette.learning.importance import importance


class ExplainedMachine(FeatureLearner):
    """The importances of columns, as numbers and as a picture."""

    @property
    def feature_importances_(self) -> Array:
        """The importance of each column; see `importance`."""
        if self.statistics_ is None:
            raise AttributeError(
                "feature_importances_ needs the statistics of one pass over the rows, which this "
                "model does not have. sklearn.inspection.permutation_importance needs none."
            )
        if self.solved_model() is None:
            raise AttributeError(
                "feature_importances_ does not exist: rows were added or removed since this "
                f"{type(self).__name__} was solved. Call solve() first."
            )
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
        with self._held() as now:
            return importance(now._fitted, now._known(), now._model.coef, X)

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
        names = vars(self).get("feature_names_in_", np.arange(sizes.size))
        order = np.argsort(sizes)[-most:]
        ax.barh([str(name) for name in names[order]], sizes[order])
        ax.set(xlabel="root mean square derivative x spread, sum 1")
        return ax
