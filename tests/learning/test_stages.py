"""Prepare, learn, combine, finish: the model of all rows, whatever the parts and their order."""

from __future__ import annotations

import pickle
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.frozen import FrozenEstimator

import kitchenette
from kitchenette import Fastfood, KernelClassifier, KernelPCA, KernelRegressor
from kitchenette.data import source
from kitchenette.files.fields import from_fields
from kitchenette.training import Partial, combine, finish, partial, partial_of, prepare

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1]
SEVERAL = np.stack([NUMBERS, X[:, 2]], axis=1)
LABELS = np.array(["low", "middle", "high"])[np.digitize(NUMBERS, [-0.8, 0.8])]
WEIGHTS = RNG.uniform(0.5, 2.0, size=600)
MAP = FrozenEstimator(Fastfood(n_components=32, random_state=0).fit(X))

CASES = {
    "regressor": (KernelRegressor(MAP), NUMBERS, None),
    "weights": (KernelRegressor(MAP), NUMBERS, WEIGHTS),
    "several targets": (KernelRegressor(MAP), SEVERAL, None),
    "no validation rows": (KernelRegressor(MAP, validation_rows=0), NUMBERS, None),
    "classifier": (KernelClassifier(MAP), LABELS, None),
    "balanced": (KernelClassifier(MAP, class_weight="balanced"), LABELS, WEIGHTS),
    "weighted classes": (KernelClassifier(MAP, class_weight={"low": 3.0}), LABELS, None),
    "code": (KernelClassifier(MAP, code="ecoc", code_length=20, random_state=0), LABELS, None),
    "components": (KernelPCA(3, MAP), None, WEIGHTS),
}


def some(values, rows):
    return None if values is None else values[rows]


def predictions(model):
    if isinstance(model, KernelClassifier):
        return model.decision_function(X)
    return model.transform(X) if isinstance(model, KernelPCA) else model.predict(X)


def parts_of(prepared, y, weights, parts):
    return [partial(prepared, X[rows], some(y, rows), some(weights, rows)) for rows in parts]


@pytest.mark.parametrize("case", CASES)
def test_parts_in_any_order_give_the_model_of_all_rows(case):
    model, y, weights = CASES[case]
    whole = model.fit(X, y, sample_weight=weights)
    prepared = prepare(model, X[:80], some(y, slice(80)), some(weights, slice(80)))
    assert not hasattr(prepared, "statistics_")
    cuts = [0, 250, 250, 260, 430, 600]
    parts = [slice(a, b) for a, b in pairwise(cuts)]
    learned = parts_of(prepared, y, weights, parts)
    assert [part.n_rows for part in learned] == [250, 0, 10, 170, 170]
    for order in (learned, learned[::-1]):
        found = finish(prepared, reduce(combine, order))
        assert found.statistics_.n_rows == 600
        assert_allclose(predictions(found), predictions(whole), rtol=1e-8, atol=1e-9)
        if hasattr(whole, "validation_score_"):
            assert found.validation_score_ == pytest.approx(whole.validation_score_, abs=1e-9)


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(0, 600), max_size=5), st.randoms(use_true_random=False))
def test_any_partition_gives_the_same_statistics(cuts, random):
    model, y, _ = CASES["classifier"]
    prepared = prepare(model, X[:80], y[:80])
    cuts = [0, *sorted(cuts), 600]
    learned = parts_of(prepared, y, None, [slice(*pair) for pair in pairwise(cuts)])
    random.shuffle(learned)
    found = reduce(combine, learned)
    whole = partial(prepared, X, y)
    assert_allclose(found.statistics.gram.values, whole.statistics.gram.values, atol=1e-10)
    assert np.array_equal(found.sample.keys, whole.sample.keys)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_labels_that_appear_later_are_added(class_weight):
    model = KernelClassifier(MAP, class_weight=class_weight)
    early = np.flatnonzero(LABELS != "low")
    late = np.flatnonzero(LABELS == "low")
    prepared = prepare(model, X[early[:50]], LABELS[early[:50]])
    assert prepared.classes_.tolist() == ["high", "middle"]
    both = combine(
        partial(prepared, X[early], LABELS[early]), partial(prepared, X[late], LABELS[late])
    )
    found = finish(prepared, both)
    assert found.classes_.tolist() == ["high", "low", "middle"]
    whole = model.fit(X, LABELS)
    assert_allclose(found.decision_function(X), whole.decision_function(X), atol=1e-9)
    assert prepared.classes_.tolist() == ["high", "middle"]
    with pytest.raises(ValueError, match="numbers for labels"):
        partial(prepared, X[:2], [0, 1])


def test_known_classes_need_not_be_in_the_sample():
    prepared = prepare(KernelClassifier(MAP), X[:9], np.repeat("low", 9), classes=["low", "high"])
    assert prepared.classes_.tolist() == ["high", "low"]
    with pytest.raises(ValueError, match="has no classes"):
        prepare(KernelRegressor(MAP), X[:9], NUMBERS[:9], classes=[1, 2])


@pytest.mark.parametrize("case", CASES)
def test_all_values_travel_by_pickle_and_file(case, tmp_path):
    model, y, weights = CASES[case]
    prepared = prepare(model, X[:80], some(y, slice(80)), some(weights, slice(80)))
    learned = partial(prepared, X, y, weights)
    expected = predictions(finish(prepared, learned))
    for name, value in (("prepared", prepared), ("partial", learned)):
        kitchenette.save(value, tmp_path / f"{name}.safetensors")
    stored = [kitchenette.load(tmp_path / f"{n}.safetensors") for n in ("prepared", "partial")]
    for other, restored in (pickle.loads(pickle.dumps((prepared, learned))), stored):
        assert np.array_equal(predictions(finish(other, restored)), expected)
        again = partial(other, X, y, weights)
        assert combine(again, learned).n_rows == 1200


@pytest.mark.parametrize("case", CASES)
def test_no_stage_changes_its_arguments(case):
    model, y, weights = CASES[case]
    prepared = prepare(model, X[:80], some(y, slice(80)), some(weights, slice(80)))
    first, second = parts_of(prepared, y, weights, [slice(300), slice(300, 600)])
    before = pickle.dumps((first, second))
    found = finish(prepared, combine(first, second), solve=False)
    found.partial_fit(X, y, sample_weight=weights)
    assert pickle.dumps((first, second)) == before
    assert not hasattr(prepared, "statistics_")


def test_a_fitted_model_goes_on():
    model = KernelRegressor(MAP).fit(X[:200], NUMBERS[:200])
    more = combine(partial_of(model), partial(model, X[200:], NUMBERS[200:]))
    found = finish(model, more)
    assert model.statistics_.n_rows == 200
    assert_allclose(found.predict(X), KernelRegressor(MAP).fit(X, NUMBERS).predict(X), atol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_a_prepared_estimator_learns_by_partial_fit(case):
    model, y, weights = CASES[case]
    prepared = prepare(model, X[:80], some(y, slice(80)), some(weights, slice(80)))
    fingerprint = prepared.feature_map_
    prepared.partial_fit(X, y, sample_weight=weights)
    assert prepared.feature_map_ is fingerprint
    whole = model.fit(X, y, sample_weight=weights)
    assert_allclose(predictions(prepared), predictions(whole), atol=1e-9)


def test_what_does_not_belong_together_is_refused():
    one = prepare(KernelRegressor(Fastfood(n_components=8, random_state=0)), X[:9], NUMBERS[:9])
    two = prepare(KernelRegressor(Fastfood(n_components=8, random_state=1)), X[:9], NUMBERS[:9])
    first, second = partial(one, X, NUMBERS), partial(two, X, NUMBERS)
    with pytest.raises(ValueError, match="differently prepared"):
        combine(first, second)
    with pytest.raises(ValueError, match="not made by this"):
        finish(one, second)
    with pytest.raises(ValueError, match="no row to learn"):
        finish(one, partial(one, X[:3], NUMBERS[:3], np.zeros(3)))
    with pytest.raises(ValueError, match="statistics of one pass"):
        prepare(KernelRegressor(loss="huber"), X, NUMBERS)
    with pytest.raises(ValueError, match="combined with another one"):
        combine(first, None)


def test_a_summary_from_a_file_is_checked(tmp_path):
    prepared = prepare(KernelRegressor(MAP), X[:9], NUMBERS[:9])
    good = partial(prepared, X, NUMBERS).to_file()
    for wrong in ({"n_rows": 5}, {"settled": None}, {"target_dtype": "int8"}, {"n_rows": -1}):
        with pytest.raises(ValueError, match=r"must be|must have"):
            from_fields(Partial, {**good, **wrong}, kitchenette.files.Budget(1e9, 1e9))


def test_components_of_no_rows_are_refused_or_wait():
    prepared = prepare(KernelPCA(2, MAP), X[:50])
    prepared.partial_fit(X[:5], sample_weight=np.zeros(5))
    assert not hasattr(prepared, "statistics_")
    assert prepared.partial_fit(X).statistics_.n_rows == 600
    assert prepared.partial_fit(X[:5], sample_weight=np.zeros(5)).statistics_.n_rows == 600
    with pytest.raises(kitchenette.data.DataError, match="no row of positive weight"):
        prepared.partial_fit(source(X[:5], weight=np.zeros(5)))
    assert prepared.partial_fit(source(X[:5])).statistics_.n_rows == 605
