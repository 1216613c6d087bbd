"""Sequences of updates, merges, removals and copies, against a model fitted on the rows it has."""

from __future__ import annotations

import pickle
import tempfile
from collections import Counter
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from numpy.testing import assert_allclose
from sklearn.base import clone

import kitchenette
from kitchenette import Fastfood, KernelClassifier, KernelRegressor
from kitchenette.data import source
from kitchenette.kernels import Gaussian

N_POOL = 90
MOST_COPIES = 3
FEWEST_ROWS = 25  # that are left by removals
FEWEST_MERGED = 10  # rows of a model that is merged; no penalty can be chosen by one row
RNG = np.random.default_rng(0)
# All values are float32 numbers, so that rows are the same in both precisions.
X = RNG.normal(size=(N_POOL, 3)).astype(np.float32).astype(np.float64)
SIGNAL = np.sin(2 * X[:, 0]) + X[:, 1]
NUMBERS = SIGNAL + 0.3 * RNG.normal(size=N_POOL)
SEVERAL = np.stack([NUMBERS, X[:, 2] + 0.3 * RNG.normal(size=N_POOL)], axis=1)
LABELS = np.array(["high", "low", "middle"])[np.digitize(NUMBERS, [-0.7, 0.7])]
WEIGHTS = RNG.uniform(0.5, 2.0, size=N_POOL)
QUERIES = RNG.normal(size=(25, 3))
MAP = Fastfood(Gaussian(2.0), 16, random_state=0)

CASES = {
    "regressor": (KernelRegressor(MAP, alpha=0.05), NUMBERS),
    "regressor, automatic penalty": (KernelRegressor(MAP), NUMBERS),
    "regressor, evidence": (KernelRegressor(MAP, alpha="evidence", validation_rows=0), NUMBERS),
    "several targets": (KernelRegressor(MAP), SEVERAL),
    "classifier": (KernelClassifier(MAP, alpha=0.05), LABELS),
    "classifier, automatic penalty": (KernelClassifier(MAP), LABELS),
    "balanced": (KernelClassifier(MAP, alpha=0.05, class_weight="balanced"), LABELS),
    "balanced, automatic penalty": (KernelClassifier(MAP, class_weight="balanced"), LABELS),
    "weighted classes": (KernelClassifier(MAP, class_weight={"high": 3.0}), LABELS),
    "few validation rows": (KernelRegressor(MAP, alpha=0.05, validation_rows=25), NUMBERS),
    "few, balanced": (
        KernelClassifier(MAP, alpha=0.05, class_weight="balanced", validation_rows=25),
        LABELS,
    ),
}
# Relative to the largest number. Features differ in the seventh digit between the precisions.
TOLERANCE = {"float64": 1e-8, "float32": 1e-5, "mixed": 1e-4}

Rows = list[tuple[int, float]]  # indices in the pool and weights, for each copy of a row
indices = st.lists(st.integers(0, N_POOL - 1), min_size=1, max_size=25, unique=True)
many_indices = st.lists(st.integers(0, N_POOL - 1), min_size=30, max_size=60, unique=True)
weightings = st.sampled_from(["none", "different", "some zero"])
containers = st.sampled_from([np.asarray, sp.csr_matrix])


def close(actual, desired, tolerance):
    scale = np.max(np.abs(desired), initial=0.0)
    assert_allclose(actual, desired, rtol=0, atol=tolerance * max(scale, 1e-3))


class ModelAndRows(RuleBasedStateMachine):
    """A model that changes, and all rows that it should know."""

    def __init__(self, estimator, y):
        super().__init__()
        self.estimator, self.y = estimator, y
        self.classifies = isinstance(estimator, KernelClassifier)
        self.model = None
        self.rows: Rows = []
        self.has_removed = False
        self.left_behind = []  # models that were copied, and the rows that they had

    # ------------------------------------------------------------ batches

    def batch(self, chosen, weighting):
        """Index and weight of each row; rows of weight zero do not count."""
        if weighting == "none":
            return [(i, 1.0) for i in chosen]
        zero = weighting == "some zero" and len(chosen) > 1
        return [
            (i, 0.0 if zero and k % 3 == 2 else float(WEIGHTS[i])) for k, i in enumerate(chosen)
        ]

    def arguments(self, rows: Rows, container=np.asarray, number=0):
        """X, y and sample_weight, which is left out if all weights are one."""
        chosen = [i for i, _ in rows]
        weights = np.array([weight for _, weight in rows])
        single = self.precision == "float32" or (self.precision == "mixed" and number % 2)
        batch = container(X[chosen].astype(np.float32 if single else np.float64))
        weighting = {} if np.all(weights == 1) else {"sample_weight": weights}
        return {"X": batch, "y": self.y[chosen], **weighting}

    def first_batch(self, rows, container, by_batches):
        """A new model of these rows, by `fit` or by `partial_fit`."""
        model, arguments = clone(self.estimator), self.arguments(rows, container)
        if not by_batches:
            return model.fit(**arguments)
        classes = {"classes": np.unique(self.y[[i for i, _ in rows]])} if self.classifies else {}
        return model.partial_fit(**arguments, **classes)

    def of_known_classes(self, chosen):
        """Rows whose labels the model has; `partial_fit` refuses others."""
        if not self.classifies:
            return chosen
        return [i for i in chosen if self.y[i] in self.model.classes_]

    def not_too_often(self, chosen):
        """Rows with few copies. Many copies of a row may change ``observation_rule_``, which the
        first batch decides for `partial_fit` and all rows decide for `fit`.
        """
        copies = Counter(i for i, _ in self.rows)
        return [i for i in chosen if copies[i] < MOST_COPIES]

    def add(self, rows: Rows):
        self.rows += [row for row in rows if row[1] > 0]

    # ------------------------------------------------------------ changes

    @initialize(
        chosen=many_indices,
        weighting=weightings,
        container=containers,
        precision=st.sampled_from(sorted(TOLERANCE)),
        by_batches=st.booleans(),
        without=st.sampled_from(["", "", "low"]),
    )
    def start(self, chosen, weighting, container, precision, by_batches, without):
        self.precision = precision
        if self.classifies:
            chosen = [i for i in chosen if self.y[i] != without]
            for label in np.unique(self.y):  # no class is left without rows
                if label != without:
                    chosen += np.flatnonzero(self.y == label)[:2].tolist()
        rows = self.batch(chosen, "none" if weighting == "some zero" else weighting)
        self.model = self.first_batch(rows, container, by_batches)
        self.add(rows)

    @rule(chosen=indices, weighting=weightings, container=containers, number=st.integers(0, 1))
    def partial_fit(self, chosen, weighting, container, number):
        rows = self.batch(self.not_too_often(self.of_known_classes(chosen)), weighting)
        if rows:
            self.model.partial_fit(**self.arguments(rows, container, number))
            self.add(rows)

    @rule(chosen=indices, weighting=weightings)
    def partial_fit_of_a_source(self, chosen, weighting):
        rows = self.batch(self.not_too_often(self.of_known_classes(chosen)), weighting)
        if any(weight > 0 for _, weight in rows):
            given = self.arguments(rows)
            self.model.partial_fit(
                source(given["X"], target=given["y"], weight=given.get("sample_weight"))
            )
            self.add(rows)

    @rule(
        chosen=many_indices,
        weighting=weightings,
        container=containers,
        by_batches=st.booleans(),
        into_other=st.booleans(),
    )
    def merge(self, chosen, weighting, container, by_batches, into_other):
        rows = self.batch(self.not_too_often(chosen), weighting)
        others = [row for row in rows if row[1] > 0]
        if len(others) < FEWEST_MERGED or Counter(others) == Counter(self.rows):
            return  # equal models are taken for copies, with a warning
        if self.classifies and not {"high", "middle"} <= set(self.y[[i for i, _ in others]]):
            return  # one class is refused, and so are weights of missing classes
        rows = rows if by_batches and not self.classifies else others
        other = self.first_batch(rows, container, by_batches)
        mine, theirs = (other, self.model) if into_other else (self.model, other)
        self.left_behind.append((theirs, list(self.rows if into_other else others)))
        self.model = mine.merge(theirs)
        self.add(rows)

    @rule(data=st.data(), container=containers)
    def downdate(self, data, container):
        positions = data.draw(
            st.lists(st.integers(0, len(self.rows) - 1), min_size=1, max_size=12, unique=True)
        )
        kept = list(self.rows)
        removed: Rows = []
        for position in positions:
            row = self.rows[position]
            alike = [i for i, _ in kept if not self.classifies or self.y[i] == self.y[row[0]]]
            if len(kept) > FEWEST_ROWS and len(alike) > 1:  # every class keeps a row
                kept.remove(row)
                removed.append(row)
        if removed:
            self.model.downdate(**self.arguments(removed, container))
            self.rows, self.has_removed = kept, True

    @precondition(lambda self: self.estimator.validation_rows > 1000)
    @rule(i=st.integers(0, N_POOL - 1))
    def downdate_of_other_rows_is_refused(self, i):
        if any(i == j for j, _ in self.rows) or not self.of_known_classes([i]):
            return
        with pytest.raises(ValueError, match=r"Cannot remove|was learned"):
            self.model.downdate(X[[i]], self.y[[i]])

    # ------------------------------------------------------------ copies

    def go_on_with(self, copied):
        """Change the copy from now on; the model itself must stay as it is."""
        self.left_behind.append((self.model, list(self.rows)))
        self.model = copied

    @rule()
    def pickled(self):
        self.go_on_with(pickle.loads(pickle.dumps(self.model)))

    @rule()
    def copied(self):
        self.go_on_with(deepcopy(self.model))

    @rule()
    def saved_and_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.safetensors"
            kitchenette.save(self.model, path)
            self.go_on_with(kitchenette.load(path))

    @rule()
    def solve(self):
        self.model.solve()

    # ------------------------------------------------------------ comparisons

    @rule()
    def predictions_for_inference_are_the_same(self):
        small = self.model.for_inference()
        for a, b in zip(self.predictions(small), self.predictions(self.model), strict=True):
            assert np.array_equal(a, b)

    @invariant()
    def rows_and_classes_are_those_of_all_batches(self):
        if self.model is not None:
            assert self.model.statistics_.n_rows == len(self.rows)
            if self.classifies:
                labels = np.unique(self.y[[i for i, _ in self.rows]])
                assert np.array_equal(self.model.classes_, labels)

    @rule()
    def the_model_is_the_one_of_all_rows(self):
        self.compare(self.model, self.rows)

    def teardown(self):
        if self.model is not None:
            self.compare(self.model, self.rows)
            for model, rows in self.left_behind:
                assert model.statistics_.n_rows == len(rows)
            for model, rows in self.left_behind[-2:]:
                self.compare(model, rows)

    def predictions(self, model):
        if self.classifies:
            found = [model.decision_function(QUERIES)]
            return (
                [*found, model.predict_proba(QUERIES)] if self.estimator.validation_rows else found
            )
        return [model.predict(QUERIES)]

    def compare(self, model, rows):
        assert model.statistics_.n_rows == len(rows)
        whole = clone(self.estimator).fit(**self.arguments(rows))
        tolerance = TOLERANCE[self.precision]
        if isinstance(self.estimator.alpha, str) and self.precision != "float64":
            tolerance *= 100  # small penalties amplify rounding errors of float32 features
        assert model.observation_rule_ == whole.observation_rule_
        scores, *probabilities = self.predictions(model)
        expected, *expected_probabilities = self.predictions(whole)
        close(scores, expected, tolerance)
        assert model.alpha_ == pytest.approx(whole.alpha_, rel=tolerance)
        if self.classifies:
            assert np.array_equal(model.classes_, whole.classes_)
            ordered = np.sort(expected, axis=1) if expected.ndim == 2 else np.abs(expected)
            margin = ordered[:, -1] - ordered[:, -2] if expected.ndim == 2 else ordered
            clear = margin > 1e-3
            assert np.array_equal(model.predict(QUERIES)[clear], whole.predict(QUERIES)[clear])
        # Removed validation rows are not replaced by others if there are more rows than these.
        if not (self.has_removed and self.estimator.validation_rows < N_POOL):
            for a, b in zip(probabilities, expected_probabilities, strict=True):
                close(a, b, 100 * tolerance)
            a, b = (getattr(m, "validation_score_", None) for m in (model, whole))
            assert (a is None) == (b is None)
            if a is not None:
                assert a == pytest.approx(b, abs=100 * tolerance)


def check(case, **options):
    estimator, y = CASES[case]
    run_state_machine_as_test(
        lambda: ModelAndRows(estimator, y),
        settings=settings(deadline=None, suppress_health_check=list(HealthCheck), **options),
    )


@pytest.mark.parametrize("case", CASES)
def test_any_sequence_of_changes_gives_the_model_of_the_rows_that_are_left(case):
    check(case, max_examples=7, stateful_step_count=14)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_long_sequences_of_changes_give_the_model_of_the_rows_that_are_left(case):
    check(case, max_examples=30, stateful_step_count=30)
