"""Rows that a fit does not learn, and its error on them beside those of simple models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from kitchenette.data import Block, DataError, Source, sampled_rows
from kitchenette.data.rows import take
from kitchenette.jobs.checkpoint import Checkpoint
from kitchenette.jobs.settings import FitSettings
from kitchenette.maps.protocol import thawed
from kitchenette.report.contestants import linear, trivial
from kitchenette.report.measuring import error_of

MOST_TEST_ROWS = 20_000
TEST_SEED = 1  # added to the seed, so that test rows are not those of the sample
MOST_COLUMNS_OF_LINEAR = 2000
CHANCE = 2.0  # standard errors


class HeldOut:
    """Rows that are not learned, and simple models to compare the errors on them with.

    Parameters
    ----------
    source : Source
        The rows of the fit.
    test : Source or None
        Other rows to test on.
    state : Checkpoint
        The fit.
    settings : FitSettings
        Its settings.

    Attributes
    ----------
    rows : ndarray of int
        The numbers of the rows of the source that are held out.
    """

    def __init__(
        self, source: Source, test: Source | None, state: Checkpoint, settings: FitSettings
    ):
        self._source, self._test, self._state, self._settings = source, test, state, settings
        held_out = state.facts["held_out"]
        self.rows = test_rows(state.n_rows, settings) if held_out else np.empty(0, np.int64)
        self._kept: list[Block] = []
        self._others: dict[str, Any] = {}

    def fit_others(self, sample: Block | None) -> None:
        """Fit a linear and a trivial model on the sample, which is drawn again if it is None."""
        if self._test is None and self.rows.size == 0:
            return
        state, task = self._state, self._state.facts["task"]
        if sample is None:
            numbers = sampled_rows(state.n_rows, state.facts["n_sample"], self._settings.seed)
            sample = self._source.take(np.setdiff1d(numbers, self.rows))
        rows = self._prepared(sample.X)
        narrow = isinstance(rows, np.ndarray) and rows.shape[1] <= MOST_COLUMNS_OF_LINEAR
        if narrow:
            filled = SimpleImputer(strategy="median", keep_empty_features=True)
            self._others["linear"] = make_pipeline(filled, linear(task)).fit(rows, sample.y)
        self._others["trivial"] = trivial(task).fit(rows, sample.y)

    def keep_some(self, block: Block) -> Block:
        """The rows of a block that are to be learned; the others are kept for the test."""
        mask = is_among(self.rows, block)
        if mask.any():
            kept = without(block, ~mask)
            self._check(kept)
            self._kept.append(kept)
        return without(block, mask)

    def check_others(self) -> None:
        """Refuse other test rows that cannot be used, before the work of a fit is done."""
        if self._test is not None:
            for block in self._blocks():
                self._check(block)

    def _check(self, block: Block) -> None:
        """Refuse rows that no model can predict, which a test would find too late."""
        if block.y is None:
            raise DataError("The test rows have no target.")
        X = self._prepared(block.X)
        if np.isinf(X.data if sp.issparse(X) else X).any():
            raise DataError("The rows to test on have infinite numbers.")

    def errors(self, model: Any) -> tuple[dict[str, float], list[str], int]:
        """Errors on the rows that were not learned, and the number of these rows.

        Also the names of the simple models that the model does not beat by more than chance.
        """
        blocks = self._blocks()
        if not blocks:
            return {}, [], 0
        y, task = np.concatenate([block.y for block in blocks]), self._state.facts["task"]
        predicted = {"model": np.concatenate([model.predict(block.X) for block in blocks])}
        for name, other in self._others.items():
            found = [other.predict(self._prepared(block.X)) for block in blocks]
            predicted[name] = np.concatenate(found)
        errors = {name: error_of(part, y, task)[0] for name, part in predicted.items()}
        own = predicted.pop("model")
        equal = [name for name, part in predicted.items() if not beats(own, part, y, task)]
        return errors, equal, len(y)

    def _blocks(self) -> list[Block]:
        if self._test is not None:
            return [self._test.sample(MOST_TEST_ROWS, self._settings.seed)]
        if sum(block.n_rows for block in self._kept) == self.rows.size:
            return self._kept
        return [self._source.take(self.rows)]  # some were read before the fit was resumed

    def _prepared(self, X: Any) -> Any:
        """Rows as numbers; those of tables are prepared as for the map."""
        if not self._source.is_table:
            return X
        return thawed(self._state.prepared.feature_map).prepared_rows(X)


def beats(predicted: NDArray[Any], others: NDArray[Any], targets: NDArray[Any], task: str) -> bool:
    """Whether predictions are better than others by more than chance.

    Chance is two standard errors of the mean difference between the squared errors of the same
    rows, or between wrong labels.
    """
    n_rows = targets.shape[0]
    if task == "classification":
        gains = (others != targets).astype(float) - (predicted != targets)
    else:
        targets = targets.reshape(n_rows, -1).astype(float)
        spreads = targets.std(axis=0)
        own, other = (
            np.square((targets - part.reshape(n_rows, -1)) / np.where(spreads > 0, spreads, 1.0))
            for part in (predicted, others)
        )
        gains = (other - own).mean(axis=1)
    return bool(gains.mean() > CHANCE * gains.std() / np.sqrt(n_rows))


def test_rows(n_rows: int, settings: FitSettings) -> NDArray[np.int64]:
    """The numbers of the rows that are held out."""
    size = min(MOST_TEST_ROWS, int(settings.test * n_rows))
    if size == 0:
        return np.empty(0, np.int64)
    return sampled_rows(n_rows, size, settings.seed + TEST_SEED)


def is_among(rows: NDArray[np.int64], block: Block) -> NDArray[np.bool_]:
    """Which rows of a block are among those of some increasing numbers."""
    mask = np.zeros(block.n_rows, bool)
    low, high = np.searchsorted(rows, [block.start, block.stop])
    mask[rows[low:high] - block.start] = True
    return mask


@dataclass(frozen=True)
class Without:
    """A reduction of a source that leaves out some rows, given by increasing numbers."""

    reduction: Any
    rows: NDArray[np.int64]
    numbered = True

    def of(self, block: Block) -> Any:
        return self.reduction.of(without(block, is_among(self.rows, block)))

    def combined(self, a: Any, b: Any) -> Any:
        return self.reduction.combined(a, b)


def without(block: Block, left_out: NDArray[np.bool_]) -> Block:
    """A block without some of its rows."""
    if not left_out.any():
        return block
    kept = np.flatnonzero(~left_out)
    y, weight = (None if part is None else part[kept] for part in (block.y, block.weight))
    return Block(take(block.X, kept), y, weight, block.start)
