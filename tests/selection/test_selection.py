"""The pieces of a choice: derivatives from statistics, importances, leading statistics, reports."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kitchenette
from kitchenette import Fastfood, KernelRegressor, LeastSquares, RandomKitchenSinks
from kitchenette.kernels import Gaussian, Matern
from kitchenette.selection.candidates import weighted_candidate
from kitchenette.selection.columns import (
    column_scales,
    find_placeholders,
    robust_spread,
)
from kitchenette.selection.importance import gradient_outer_product, squared_derivatives
from kitchenette.selection.search import learned_mixing
from kitchenette.selection.settings import (
    EFFORTS,
    SEARCH,
    effort_of,
    most_components,
    operations_of,
    pilot_sizes,
    trial_cost,
)


@pytest.mark.parametrize("kind", [RandomKitchenSinks, Fastfood])
@pytest.mark.parametrize("kernel", [Gaussian(1.5), Matern(1.5, [1.0, 2.0, 3.0])])
def test_squared_derivatives_equal_finite_differences(kind, kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    Y = np.c_[np.sin(X[:, 0]), X[:, 1] ** 2]
    weights = rng.uniform(0.5, 2, size=300)
    fitted = kind(kernel, 64, random_state=0).fit(X)
    statistics = LeastSquares(64, 2).update(fitted.transform(X), Y, weights)
    coef = statistics.solve(1e-3).coef
    found = squared_derivatives(fitted.specification_, statistics, coef)
    for j, step in enumerate(1e-5 * np.eye(3)):
        slope = (fitted.transform(X + step) - fitted.transform(X - step)) @ coef / 2e-5
        expected = np.average(np.square(slope).sum(axis=1), weights=weights)
        assert found[j] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("kind", [RandomKitchenSinks, Fastfood])
def test_the_outer_product_of_gradients_equals_finite_differences(kind):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    Y = np.c_[np.sin(X[:, 0] + X[:, 1]), X[:, 1] * X[:, 2]]
    fitted = kind(Gaussian(1.5), 65, random_state=0).fit(X)
    statistics = LeastSquares(65, 2).update(fitted.transform(X), Y)
    coef = statistics.solve(1e-3).coef
    coef[-1] = 0  # an odd feature has no sine and is ignored
    slopes = [
        (fitted.transform(X + step) - fitted.transform(X - step)) @ coef / 2e-5
        for step in 1e-5 * np.eye(3)
    ]
    expected = np.einsum("jit,kit->jk", slopes, slopes) / 300
    found = gradient_outer_product(fitted.specification_, statistics, coef)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8 * expected.max())
    squares = squared_derivatives(fitted.specification_, statistics, coef)
    np.testing.assert_allclose(np.diag(found), squares, rtol=1e-10)


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_a_new_linear_map_is_the_root_of_the_outer_product(power):
    rng = np.random.default_rng(0)
    form = column_scales("columns", rng.normal(size=(50, 3)))
    gradients = rng.normal(size=(10, 3)) * [1, 0.5, 0.2]
    outer, old = gradients.T @ gradients, np.diag([1.0, 0.5, 0.25])
    start = weighted_candidate(Matern(1.5, 1.0), form, np.ones(3), 1.0, 0, old)
    mixing = learned_mixing(start, outer, power)
    # With half a step twice, the metric goes all the way: the geometric mean is a midpoint.
    values, vectors = np.linalg.eigh(outer)
    expected = old @ (vectors * values**power) @ vectors.T @ old.T
    np.testing.assert_allclose(mixing @ mixing.T, expected / np.linalg.norm(expected, 2), atol=1e-5)


def test_a_placeholder_is_far_from_all_others_and_frequent():
    rng = np.random.default_rng(0)
    X = rng.uniform(-90, -30, size=(500, 6))
    X[rng.random(X.shape) < 0.5] = 100.0
    X[:, 1] = rng.normal(size=500)  # nothing stands out
    X[:, 2] = rng.integers(0, 10, size=500)  # all numbers are frequent and near others
    X[:2, 3], X[2:, 3] = -50.0, 100.0  # too few others to tell, but as in the first column
    X[:, 4] = np.where(X[:, 4] == 100.0, -999.0, X[:, 4])  # at the other end
    X[:3, 5], X[3:, 5] = 1e6, rng.normal(size=497)  # far, but only three rows
    found = find_placeholders(X)
    np.testing.assert_array_equal(found.columns, [0, 3, 4])
    np.testing.assert_array_equal(found.values, [100.0, 100.0, -999.0])
    others = X[X[:, 0] < 100.0, 0]
    assert (found.low[0], found.high[0]) == (others.min(), others.max())
    below, above = (moved.prepared(X) for moved in found.moved())
    missing = X[:, 0] == 100.0
    assert (below[missing, 0] < others.min()).all()
    assert (above[missing, 0] > others.max()).all()
    for moved in (below, above):
        np.testing.assert_array_equal(moved[~missing, 0], others)
        np.testing.assert_array_equal(moved[:, [1, 2, 5]], X[:, [1, 2, 5]])
    assert find_placeholders(X[:, [1, 2]]) is None
    assert find_placeholders(sp.csr_matrix(X)) is None


@pytest.mark.parametrize("m", [1, 5, 16, 17, 30, 33])
@pytest.mark.parametrize("n", [33, 34])
def test_leading_statistics_are_those_of_the_first_features(m, n):
    rng = np.random.default_rng(0)
    Z, Y = rng.normal(size=(100, n)) + 3, rng.normal(size=(100, 2))
    whole = LeastSquares(n, 2).update(Z, Y)
    part, expected = whole.leading(m), LeastSquares(m, 2).update(Z[:, :m], Y)
    np.testing.assert_allclose(part.gram.full(), expected.gram.full(), rtol=1e-10)
    np.testing.assert_allclose(part.solve(0.1).coef, expected.solve(0.1).coef, rtol=1e-8)
    part.update(Z[:, :m], Y)  # a copy: the whole does not change
    assert whole.n_rows == 100


def test_leading_refuses_more_features_than_there_are():
    with pytest.raises(ValueError, match="at most 3"):
        LeastSquares(3).leading(4)


def test_importances_of_any_fourier_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3)) * [1, 10, 100]
    y = X[:, 0] + 2 * X[:, 1] / 10
    for feature_map in (
        make_pipeline(StandardScaler(), Fastfood(n_components=128, random_state=0)),
        RandomKitchenSinks(Gaussian([3.0, 30.0, 300.0]), 128, random_state=0),
        Fastfood(Gaussian([3.0, 30.0, 300.0]), 127, random_state=0),
        kitchenette.AutoMap(128, random_state=0),
    ):
        model = KernelRegressor(feature_map, alpha=1e-3).fit(X, y)
        for found in (model.importance(X), model.importance()):
            assert found.sum() == pytest.approx(1)
            np.testing.assert_allclose(found, [1 / 3, 2 / 3, 0], atol=0.1)


def test_importances_need_derivatives():
    X = np.random.default_rng(0).normal(size=(50, 3))
    model = KernelRegressor(kitchenette.TensorSketch(n_components=32), alpha=1.0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="cosines and sines"):
        model.importance()
    assert not hasattr(model, "feature_importances_")


def test_spread_is_not_moved_by_few_far_numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    X[:3, 0] = 1e6
    spread = robust_spread(X)
    assert spread[0] < 4
    assert spread[1] == pytest.approx(1, rel=0.1)
    assert robust_spread(np.full((9, 1), 0.1)) == 0
    assert robust_spread(np.array([[1e300], [-1e300], [0.0]])) > 1e299


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["common", "columns"])
def test_scales_of_columns_whose_squares_overflow(name):
    X = np.random.default_rng(0).normal(size=(200, 3))
    huge = 2.0**1000  # a power of two, so that nothing is rounded
    expected, found = (column_scales(name, rows) for rows in (X, X * huge))
    np.testing.assert_allclose(found.spread, expected.spread)
    np.testing.assert_allclose(found.scaling.offset, expected.scaling.offset * huge)
    np.testing.assert_allclose(found.scaling.factor * huge, expected.scaling.factor)
    np.testing.assert_allclose(found.rows, expected.rows, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["compressed", "ranks"])
def test_transformed_columns_increase_and_have_unit_spread(name):
    rng = np.random.default_rng(0)
    for column in (rng.normal(size=500), rng.poisson(0.3, 500), np.exp(5 * rng.normal(size=500))):
        rows = np.sort(column.astype(float))[:, None]
        preparation = column_scales(name, rows).preparation(np.ones(1))
        prepared = np.empty_like(rows)
        preparation.operator(np.float64).write(rows, prepared)
        assert (np.diff(prepared[:, 0])[np.diff(rows[:, 0]) > 0] > 0).all()
        assert prepared.std() == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize("name", ["compressed", "ranks"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transformed_columns_end_with_the_data_but_for_standard_deviations(name, dtype):
    rng = np.random.default_rng(0)
    for column in (rng.uniform(-3, 3, 500), rng.poisson(0.3, 500), rng.standard_t(1.5, 500)):
        rows = column.astype(dtype)[:, None]
        preparation = column_scales(name, rows).preparation(np.ones(1))
        spread, ends = robust_spread(rows)[0], np.array([rows.min(), rows.max()])
        largest = float(np.finfo(dtype).max)
        reach = np.abs(ends - np.median(rows))

        def distances(numbers, dtype=dtype, preparation=preparation.beyond(), ends=ends):
            """Of prepared numbers from the prepared ends of the data."""
            both = np.array([*numbers, *ends], dtype=dtype)[:, None]
            prepared = preparation.prepared(both)[:, 0].astype(float)
            return (prepared[:2] - prepared[2:]) * [-1, 1]

        assert (distances([-largest, largest], preparation=preparation) == 0).all()
        np.testing.assert_array_equal(
            preparation.prepared(rows), preparation.beyond().prepared(rows)
        )

        a_little, far = 0.08 * np.maximum(reach, spread), np.maximum(reach, 10 * spread)
        near = distances(ends + a_little * [-1, 1])
        # As near as in "columns" at most, and a new extreme number of a heavy tail is near.
        assert (near > 0).all()
        assert (near < np.minimum(1.01 * a_little / spread, 1)).all()
        assert (distances(ends + far * [-1, 1]) >= 7).all()
        overflow = distances([-largest, largest])
        assert (overflow > 999).all()
        assert (overflow < 1002).all()


@pytest.mark.parametrize("n_rows", [10, 100, 3000, 49_999, 50_000, 10**6, 10**8])
@pytest.mark.parametrize("n_components", [1, 100, 1024, 8192])
@pytest.mark.parametrize("effort", EFFORTS)
def test_pilots_keep_to_their_budget(n_rows, n_components, effort):
    chosen = effort_of(effort)
    rows, features, more = pilot_sizes(n_rows, 50, n_components, chosen)
    assert 1 <= rows <= n_rows
    assert 1 <= features <= more <= n_components
    screening = SEARCH.n_screened * trial_cost(rows, features, 50)
    cost = screening + SEARCH.n_finalists * trial_cost(rows, more, 50)
    assert cost <= operations_of(n_rows, n_components, chosen)
    if n_rows >= 50_000 and n_components >= 1024:
        assert cost <= 0.5 * n_rows * n_components**2
    assert pilot_sizes(n_rows, 50, n_components, effort_of(0.01))[1] <= features


@pytest.mark.parametrize("effort", EFFORTS)
def test_more_rows_may_have_more_features_in_proportional_time(effort):
    chosen = effort_of(effort)
    n_rows = [10, 100, 1000, 5000, 20_000, 50_000, 10**6, 10**9]
    sizes = [most_components(n, chosen) for n in n_rows]
    assert all(chosen.fewest <= size <= chosen.most for size in sizes)
    assert sizes[4:] == [sizes[4]] * 4 or sizes[4:] == sorted(sizes[4:])
    for n, size in zip(n_rows, sizes, strict=True):
        if size > chosen.fewest:
            seconds = chosen.fit_seconds * max(1, n / SEARCH.planned_rows)
            assert n * size**2 <= seconds * SEARCH.operations_per_second


def test_choose_reports_and_gives_a_map():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 4))
    y = np.sin(2 * X[:, 0])
    choice = kitchenette.choose(X, y, n_components=128, random_state=0)
    assert choice.sentence in str(choice)
    assert choice.chosen in choice.table
    assert KernelRegressor(choice.feature_map, alpha=1e-3).fit(X, y).score(X, y) > 0.9


@pytest.mark.slow
def test_importances_are_drawn_with_the_largest_on_top():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    X = np.random.default_rng(0).normal(size=(500, 3))
    model = KernelRegressor(Fastfood(random_state=0)).fit(X, 3 * X[:, 1] + X[:, 2])
    ax = model.plot_importance(X, most=2)
    sizes = [bar.get_width() for bar in ax.patches]
    assert sizes == sorted(model.importance(X))[1:]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["2", "1"]
    assert model.plot_importance(X, ax=ax) is ax
    matplotlib.pyplot.close(ax.figure)


def test_a_choice_draws_itself():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    choice = kitchenette.choose(X, X[:, 0], n_components=32, random_state=0)
    assert choice.plot().get_xlabel()
