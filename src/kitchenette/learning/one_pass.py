"""Estimators that keep statistics of all rows and a sample of them, learned in one pass."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np

from kitchenette.files.registry import checked_state
from kitchenette.learning.accumulation import MOST_ROWS, accumulate, batch
from kitchenette.learning.base import Array
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.model import LinearModel
from kitchenette.learning.row_sample import RowSample
from kitchenette.learning.solution import Solution
from kitchenette.learning.summary import Summary, combined_samples
from kitchenette.learning.target_machine import TargetMachine
from kitchenette.maps.protocol import FittedMap

ONE_PASS = {"solver_": "onepass", "loss_": "squared", "n_iter_": 1}


def learned_in_one_pass(statistics: LeastSquares, sample: RowSample | None) -> dict[str, Any]:
    """The attributes of an estimator that has learned these statistics."""
    return {
        "statistics_": statistics,
        "_samples": {statistics.version: sample},
        "_model": None,
        "_posterior": None,
        **ONE_PASS,
    }


class OnePassMachine(TargetMachine):
    """Statistics and a sample of the same rows, which change together."""

    # The sample that belongs to each version of the statistics. During a change there are samples
    # for the versions before and after it, so that the right one is found after an interrupt.
    _samples: dict[int, RowSample | None]
    # A solved model and its solution with the factor of the Gram matrix; not pickled.
    _posterior: tuple[LinearModel, Solution] | None

    def accumulated(
        self, fitted: FittedMap, X: Any, targets: Any, weights: Array | None, n_sampled: int
    ) -> tuple[LeastSquares, RowSample | None]:
        """Statistics and a sample of a batch."""
        title = type(self).__name__ if self.verbose else None
        return accumulate(fitted, X, targets, self, weights, n_sampled=n_sampled, title=title)

    def summary_of_rows(
        self, fitted: FittedMap, X: Any, targets: Any, weights: Array | None, n_sampled: int
    ) -> Summary:
        """The summary of checked rows."""
        statistics, sample = self.accumulated(fitted, X, targets, weights, n_sampled)
        return replace(
            self.empty_summary(), n_rows=statistics.n_rows, statistics=statistics, sample=sample
        )

    def attributes_of(self, summary: Summary) -> dict[str, Any]:
        """The attributes that hold what is learned from the rows of a summary."""
        assert summary.statistics is not None
        return learned_in_one_pass(summary.statistics, summary.sample)

    def summary(self, origin: str) -> Summary:
        statistics = self._known()
        return replace(
            self.empty_summary(),
            origin=origin,
            n_rows=statistics.n_rows,
            statistics=statistics,
            sample=self._sample(),
        )

    def adopt(self, summary: Summary) -> None:
        self.set_at_once(self.attributes_of(summary))

    def learning_options(self) -> dict[str, Any]:
        return {"validation_rows": self.validation_rows}

    def empty_summary(self) -> Summary:
        """The summary of no rows."""
        return Summary(estimator=type(self).__name__, origin="")

    def learn_more(self, X: Any, targets: Any, weights: Array | None, remove: bool) -> None:
        """Add or remove checked rows."""
        statistics, sample = self._known(), self._sample()
        if X.shape[0] > MOST_ROWS and not remove:
            n_sampled = 0 if sample is None else sample.size
            self.add_statistics(*self.accumulated(self._fitted, X, targets, weights, n_sampled))
            return
        rows = batch(self._fitted, X, targets, self, weights, with_keys=sample is not None)
        if rows.Y.shape[1] != statistics.n_targets:
            raise ValueError(
                f"Y must have {statistics.n_targets} columns, as before; got {rows.Y.shape[1]}."
            )

        def changed(sample: RowSample) -> RowSample:
            assert rows.keys is not None
            if remove:
                return sample.without(rows.keys, weights)
            if np.any(rows.keys <= np.uint64(sample.last_key)):
                return sample.combined(RowSample.of(sample.size, rows.keys, *rows[:3]))
            return sample

        change = statistics.downdate if remove else statistics.update
        self.change(lambda: change(*rows[:3]), changed)

    def add_statistics(self, more: LeastSquares, theirs: RowSample | None) -> None:
        """Add statistics of other rows and their sample."""
        statistics = self._known()
        self.change(lambda: statistics.merge(more), lambda sample: combined_samples(sample, theirs))

    def change(
        self,
        action: Callable[[], object],
        changed: Callable[[RowSample], RowSample | None],
    ) -> None:
        """Change the statistics by one call, and with them the sample.

        The native call that changes the statistics also counts their version, which says whose
        sample counts. So there is no moment at which only one of both has changed, wherever an
        interrupt comes.
        """
        statistics = self._known()
        with statistics.unchanged():
            version, sample = statistics.version, self._sample()
            samples = {version: sample, version + 1: None if sample is None else changed(sample)}
            try:
                self._samples = samples
                action()
            finally:
                self._samples = {v: samples[v] for v in samples if v == statistics.version}

    @abstractmethod
    def merge_statistics(self, other: Any) -> None:
        """Add the statistics of another model with equal features, in one step."""

    def validation_sample(self) -> RowSample | None:
        """The sample with the weights that its rows have in the statistics."""
        return self._sample()

    def _sample(self) -> RowSample | None:
        """The sample of the rows; None if none is kept, or the statistics changed without it."""
        return None if self.statistics_ is None else self._samples.get(self.statistics_.version)

    def for_inference(self) -> Self:
        """A copy for prediction only, without statistics and therefore far smaller.

        Returns
        -------
        model : object
            It cannot learn from more rows, merge, or return standard deviations.

        Examples
        --------
        >>> import pickle
        >>> import numpy as np
        >>> from kitchenette import Fastfood, KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(X, X[:, 0])
        >>> small = model.for_inference()
        >>> bool(np.array_equal(small.predict(X), model.predict(X)))
        True
        >>> len(pickle.dumps(small)) < 0.1 * len(pickle.dumps(model))
        True
        """
        copied = self._without_statistics()
        copied.__dict__.update(_samples={}, _posterior=None)
        return copied

    def pickled(self) -> dict[str, Any]:
        state = super().pickled()
        if "_model" not in state:
            return state
        return {**state, "_posterior": None, "_samples": {0: self._sample()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # Versions of statistics are counted from zero again in a copy.
        statistics = vars(self).get("statistics_")
        if statistics is not None:
            self._samples = {statistics.version: self._samples[0]}

    def to_file(self) -> dict[str, Any]:
        """Parameters and fitted attributes, for a model file."""
        state = super().to_file()
        if "statistics_" in vars(self):
            state["fitted"]["sample"] = self._sample()
        return state

    def restore(self, fitted: dict[str, Any]) -> None:
        """Set fitted attributes from the untrusted values of a model file."""
        fitted = dict(fitted)
        types = {"sample": (RowSample, type(None))}
        sample = checked_state({"sample": fitted.pop("sample", None)}, types)["sample"]
        super().restore(fitted)
        statistics = vars(self).get("statistics_")
        self._samples = {} if statistics is None else {statistics.version: sample}
        self._posterior = None

    def check_restored(self) -> None:
        """Refuse fitted attributes that are not consistent."""
        shapes = []
        if "statistics_" in vars(self):
            if self.statistics_ is not None:
                shapes.append((self.statistics_.n_features, self.statistics_.n_targets))
            if self._model is not None:
                shapes.append(self._model.coef.shape)
            sample = self._sample()
            if sample is not None:
                shapes.append((sample.features.shape[1], sample.targets.shape[1]))
        if len({*shapes}) > 1:
            raise ValueError("statistics, sample and weights must have the same shape.")
        super().check_restored()
        self.check_targets(shapes[0][1] if shapes else None)
