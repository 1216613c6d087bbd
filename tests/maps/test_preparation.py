"""Preparation of columns: the numbers of scikit-learn's transformers, by native operators."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from kitchenette import TEFM, CRAFTMap, Fastfood, RandomMaclaurin, TensorSketch, _core
from kitchenette.columns.categories import OneHot, Substitute
from kitchenette.columns.codings import Vocabulary
from kitchenette.columns.preparation import (
    ColumnAffine,
    Columns,
    LinearColumns,
    PiecewiseLinear,
    Sequence,
    UnitRows,
)
from kitchenette.comparison import first_difference
from kitchenette.files.budget import Budget
from kitchenette.files.fields import checked, field_values, from_fields
from kitchenette.kernels import Polynomial
from kitchenette.maps.prepared import PreparedSpecification
from kitchenette.maps.prepared_map import PreparedMap
from kitchenette.maps.protocol import TransformerMap, fitted_map, specification_of
from kitchenette.maps.translation import prepared_map

SCALERS = {
    "standard": StandardScaler(),
    "standard without mean": StandardScaler(with_mean=False),
    "standard without spread": StandardScaler(with_std=False),
    "min max": MinMaxScaler(),
    "min max clipped": MinMaxScaler((-1, 2), clip=True),
    "max abs": MaxAbsScaler(),
    "robust": RobustScaler(),
    "robust without center": RobustScaler(with_centering=False),
    "robust without scale": RobustScaler(with_scaling=False),
    "uniform": QuantileTransformer(n_quantiles=40),
    "normal": QuantileTransformer(n_quantiles=40, output_distribution="normal"),
    "unit rows": Normalizer(),
    "unit sums": Normalizer("l1"),
    "unit largest": Normalizer("max"),
    "imputed": SimpleImputer(),
    "imputed with indicators": SimpleImputer(strategy="median", add_indicator=True),
    "imputed number": SimpleImputer(missing_values=3.0, strategy="constant", fill_value=-1.0),
    "categories": OneHotEncoder(handle_unknown="ignore"),
    "categories but one": OneHotEncoder(drop="first"),
    "categories but one of two": OneHotEncoder(drop="if_binary"),
    "rare categories": OneHotEncoder(min_frequency=20, handle_unknown="infrequent_if_exist"),
    "few categories but one": OneHotEncoder(max_categories=3, drop="first"),
    "scaled, then imputed": make_pipeline(StandardScaler(), SimpleImputer()),
    "nothing": make_pipeline("passthrough", None, MaxAbsScaler()),
    "columns": make_column_transformer(
        (StandardScaler(), [0, 1]), (OneHotEncoder(), [-1]), remainder="passthrough"
    ),
    "columns by slice and mask": make_column_transformer(
        (RobustScaler(), slice(0, 2)),
        ("passthrough", [False, False, True, False, False]),
        ("drop", [3]),
    ),
    "columns of pipelines": make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler(), Normalizer()), [0, 1, 2]),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), [4]),
    ),
    "frozen": make_pipeline(FrozenEstimator(StandardScaler().fit(np.eye(5))), Normalizer()),
}
WITH_MISSING = (
    "imputed",
    "imputed with indicators",
    "scaled, then imputed",
    "columns of pipelines",
)


def table(dtype: type = np.float64, missing: bool = False) -> np.ndarray:
    """Columns of several scales, one of them of few numbers, one with repeated ones."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)) * [1, 10, 1, 100, 1] + [0, 5, -3, 1000, 0]
    X[:, 2] = np.round(X[:, 2])
    X[:, 4] = rng.integers(0, 4, 200)
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X.astype(dtype)


def dense(Z):
    return Z.toarray() if sp.issparse(Z) else np.asarray(Z)


def mapped(scaler, **options):
    return make_pipeline(clone(scaler), Fastfood(n_components=24, random_state=0, **options))


# ---------------------------------------------------------------- the numbers of scikit-learn


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", SCALERS)
def test_the_numbers_are_those_of_scikit_learn(name, dtype):
    X = table(dtype, missing=name in WITH_MISSING)
    scaler = clone(SCALERS[name]).fit(X)
    prepared = fitted_map(scaler, X)
    assert isinstance(prepared, PreparedMap)
    Z = prepared.transform(X)
    assert Z.dtype == dtype
    tolerance = {np.float64: 1e-12, np.float32: 2e-5}[dtype]
    np.testing.assert_allclose(Z, dense(scaler.transform(X)), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", SCALERS)
def test_the_features_are_those_of_the_pipeline(name, dtype):
    X = table(dtype, missing=name in WITH_MISSING)
    pipeline = mapped(SCALERS[name]).fit(X)
    prepared = fitted_map(pipeline, X)
    assert isinstance(prepared, PreparedMap)
    tolerance = {np.float64: 1e-11, np.float32: 2e-4}[dtype]
    np.testing.assert_allclose(prepared.transform(X), pipeline.transform(X), atol=tolerance)


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
def test_ranks_of_repeated_and_foreign_numbers(distribution):
    rng = np.random.default_rng(1)
    X = np.column_stack(
        [
            rng.integers(0, 3, 300),
            np.zeros(300),
            np.repeat([1.0, 2.0, 7.0], 100),
            rng.normal(size=300),
        ]
    )
    scaler = QuantileTransformer(n_quantiles=100, output_distribution=distribution).fit(X)
    Y = rng.normal(size=(500, 4)) * 4
    Y[:100] = X[:100]
    Y[100:200] = X[rng.permutation(300)[:100]] + rng.choice([-1e-8, 0, 1e-8], (100, 4))
    Y[200] = np.nan
    found = np.empty_like(Y)
    prepared_map(scaler).specification_.preparation.operator(np.float64).write(Y, found)
    np.testing.assert_allclose(found, scaler.transform(Y), rtol=1e-12, atol=1e-12)


def test_means_far_from_zero_do_not_harm_float32():
    X = (np.random.default_rng(0).normal(size=(500, 3)) + 1e6).astype(np.float32)
    scaler = StandardScaler().fit(X.astype(np.float64))
    found = fitted_map(scaler, X).transform(X)
    np.testing.assert_allclose(found, scaler.transform(X.astype(np.float64)), rtol=1e-6, atol=1e-6)


def test_categories_that_are_unknown_or_missing():
    X = np.array([[1.0], [1.0], [2.0], [5.0], [np.nan]])
    new = np.array([[3.0], [np.nan], [5.0]])
    for options in (
        {"handle_unknown": "ignore"},
        {"handle_unknown": "infrequent_if_exist", "min_frequency": 2},
    ):
        encoder = OneHotEncoder(**options).fit(X)
        np.testing.assert_array_equal(
            fitted_map(encoder, X).transform(new), dense(encoder.transform(new))
        )
    strict = fitted_map(OneHotEncoder().fit(X), X)
    with pytest.raises(ValueError, match="unknown categories"):
        strict.transform(new[:1])
    np.testing.assert_array_equal(strict.transform(new[1:])[:, 2:], [[0, 1], [1, 0]])


def test_columns_that_are_only_missing_are_left_out_as_by_the_imputer():
    X = table(missing=True)
    X[:, 1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for imputer in (SimpleImputer(), SimpleImputer(keep_empty_features=True)):
            found = fitted_map(imputer.fit(X), X).transform(X)
            np.testing.assert_array_equal(found, imputer.transform(X))


@pytest.mark.parametrize(
    "estimator",
    [
        FunctionTransformer(np.tanh),
        PolynomialFeatures(),
        make_pipeline(StandardScaler(), PolynomialFeatures()),
        ColumnTransformer([("a", StandardScaler(), [0, 1])], transformer_weights={"a": 2.0}),
        type("Own", (StandardScaler,), {})(),
    ],
)
def test_other_transformers_are_called(estimator):
    X = table()
    pipeline = mapped(estimator).fit(X)
    assert prepared_map(clone(estimator).fit(X)) is None
    fitted = fitted_map(pipeline, X)
    assert isinstance(fitted, TransformerMap)
    Z = np.empty((200, 24))
    assert fitted.operator(X).write(X, Z)
    np.testing.assert_array_equal(Z, pipeline.transform(X))


def test_a_scaler_that_is_not_fitted_has_no_preparation():
    assert prepared_map(StandardScaler()) is None


# ---------------------------------------------------------------- rows


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    made = pd.DataFrame(
        {
            "height": rng.normal(size=120) * 100,
            "color": rng.choice(["red", "green", "blue"], 120),
            "weight": rng.normal(size=120),
            "size": rng.choice(["S", "M"], 120),
            "name": [f"row {k}" for k in range(120)],
        }
    )
    made.loc[::7, "weight"] = np.nan
    made["size"] = made["size"].astype(object)
    made.loc[::9, "size"] = np.nan
    return made


def of_frames(**options) -> Pipeline:
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(**options))
    columns = make_column_transformer(
        (numbers, ["height", "weight"]), (words, ["size"]), (OneHotEncoder(**options), ["color"])
    )
    return make_pipeline(columns, Fastfood(n_components=20, random_state=0))


def test_frames_with_words_and_missing_values_in_any_order():
    X = frame()
    pipeline = of_frames().fit(X)
    prepared = fitted_map(pipeline, X)
    assert isinstance(prepared, PreparedMap)
    for some in (X, X[X.columns[::-1]], X.drop(columns="name"), X.assign(more=1.0)):
        np.testing.assert_allclose(prepared.transform(some), pipeline.transform(some), atol=1e-14)
    with pytest.raises(ValueError, match="columns are missing: color"):
        prepared.transform(X.drop(columns="color"))
    with pytest.raises(ValueError, match="unknown categories"):
        prepared.transform(X.assign(color="black"))


def test_unknown_words_are_ignored_if_the_encoder_ignores_them():
    X = frame()
    pipeline = of_frames(handle_unknown="ignore").fit(X)
    new = X.assign(color="black", size="XXL")
    np.testing.assert_allclose(
        fitted_map(pipeline, X).transform(new), pipeline.transform(new), atol=1e-14
    )


def test_arrays_of_objects():
    X = frame()[["height", "color", "size"]].to_numpy(dtype=object)
    columns = make_column_transformer(
        (StandardScaler(), [0]), (OneHotEncoder(handle_unknown="ignore"), [1, 2])
    )
    pipeline = make_pipeline(columns, Fastfood(n_components=20, random_state=0)).fit(X)
    prepared = fitted_map(pipeline, X)
    assert [word.column for word in prepared.specification_.vocabularies] == [1, 2]
    np.testing.assert_allclose(prepared.transform(X), pipeline.transform(X), atol=1e-14)
    X[0, 1] = None
    np.testing.assert_allclose(prepared.transform(X), pipeline.transform(X), atol=1e-14)


def test_arrays_of_strings():
    X = np.array([["a", "x"], ["b", "y"], ["a", "y"]])
    encoder = OneHotEncoder(drop="first").fit(X)
    np.testing.assert_array_equal(fitted_map(encoder, X).transform(X), dense(encoder.transform(X)))


def test_categories_of_strings_and_of_numbers_side_by_side():
    X = frame().assign(size=np.arange(120) % 3 - 2, flag=np.arange(120) % 2 == 0)
    encoder = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer((encoder, ["size", "color", "flag"])).fit(X)
    new = X.assign(size=-X["size"])
    np.testing.assert_array_equal(
        fitted_map(columns, X).transform(new), dense(columns.transform(new))
    )


def test_what_is_not_filled_is_refused():
    X = table()
    prepared = fitted_map(mapped(MinMaxScaler(clip=True)).fit(X), X)
    new = X.copy()
    new[3, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        prepared.transform(new)
    new[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        prepared.transform(new)
    assert not prepared.operator(new).write(new, np.empty((200, 24)))
    with pytest.raises(ValueError, match="5 features"):
        prepared.transform(X[:, :3])
    scaled = fitted_map(StandardScaler().fit(X * 1e-20), X)
    with pytest.raises(ValueError, match="overflowed float32"):
        scaled.transform(np.full((1, 5), 1e38, dtype=np.float32))


def test_names_of_frames_are_checked():
    X = pd.DataFrame(table(), columns=[*"abcde"])
    prepared = fitted_map(mapped(StandardScaler()).fit(X), X)
    with pytest.raises(ValueError, match="same order"):
        prepared.transform(X[[*"edcba"]])


def test_rows_are_checked_as_the_map_demands():
    kernel = Polynomial(3, coef0=0.0)
    X = table()
    pipeline = make_pipeline(Normalizer(), Fastfood(kernel, n_components=16, random_state=0))
    pipeline.fit(X)
    prepared = fitted_map(pipeline, X)
    np.testing.assert_allclose(prepared.transform(X), pipeline.transform(X), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "name",
    [
        "standard without mean",
        "max abs",
        "unit rows",
        "unit sums",
        "unit largest",
        "imputed number",
    ],
)
def test_sparse_rows_stay_sparse_and_give_the_bits_of_dense_ones(name, dtype):
    X = table(dtype)
    X[np.random.default_rng(3).random(X.shape) < 0.6] = 0
    sparse = sp.csr_matrix(X)
    for last in (Fastfood(n_components=24, random_state=0), TensorSketch(n_components=16)):
        pipeline = make_pipeline(clone(SCALERS[name]), last).fit(sparse)
        prepared = fitted_map(pipeline, sparse)
        assert isinstance(prepared, PreparedMap)
        assert sp.issparse(prepared.rows(sparse))
        np.testing.assert_array_equal(prepared.transform(sparse), prepared.transform(X))
        weights = np.ones((last.n_components, 1))
        outputs = np.empty((2, 200, 1))
        linear = prepared.operator(X).linear(weights, [0.0])
        assert linear.write(sparse, outputs[0])
        assert linear.write(X, outputs[1])
        np.testing.assert_array_equal(*outputs)
        operator, zeros, loss = prepared.operator(X), np.zeros((200, 1)), _core.Loss("squared")
        gradients, sums = np.zeros((2, last.n_components, 1)), np.zeros((2, 1))
        for k, rows in enumerate((sparse, X)):
            arguments = rows, weights, np.zeros(1), zeros, None, loss, outputs[k]
            assert operator.gradient(*arguments, gradients[k], sums[k]) > 0
            assert operator.add_transposed(rows, outputs[k], gradients[k])
        np.testing.assert_array_equal(*gradients)
        np.testing.assert_array_equal(*sums)
        np.testing.assert_allclose(
            prepared.transform(sparse), pipeline.transform(sparse), atol=1e-4, rtol=1e-4
        )


def test_sparse_rows_are_refused_after_steps_that_move_zeros():
    X = table()
    prepared = fitted_map(StandardScaler().fit(X), X)
    with pytest.raises(ValueError, match="Sparse rows are accepted after steps that keep zeros"):
        prepared.transform(sp.csr_matrix(X))
    sparse = sp.csr_matrix(np.abs(X))
    assert isinstance(
        fitted_map(QuantileTransformer(n_quantiles=9).fit(sparse), sparse), TransformerMap
    )


# ---------------------------------------------------------------- values


def test_a_row_does_not_depend_on_others():
    X = table()
    for name in ("normal", "columns", "unit rows"):
        operator = fitted_map(clone(SCALERS[name]).fit(X), X).operator(X)
        whole, single = np.empty((2, 200, operator.n_features))
        operator.write(X, whole)
        for k in range(200):
            operator.write(X[k : k + 1], single[k : k + 1])
        np.testing.assert_array_equal(whole, single)


def test_preparations_are_values():
    X = table()
    for name, scaler in SCALERS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one, other = (
                prepared_map(clone(scaler).fit(rows)).specification_.preparation
                for rows in (X, X * [[1, 1, 1, 1, 3]])
            )
        assert one == pickle.loads(pickle.dumps(one))
        assert hash(one) == hash(pickle.loads(pickle.dumps(one)))
        assert first_difference(one, pickle.loads(pickle.dumps(one))) is None
        if name != "imputed number" and not isinstance(one, UnitRows | Sequence | Columns):
            assert one != other


def test_any_map_can_follow():
    X = table()
    for last in (
        RandomMaclaurin(Polynomial(2), 20, random_state=0),
        CRAFTMap(RandomMaclaurin(Polynomial(2), 64, random_state=0), 8, random_state=0),
        TEFM(Fastfood(n_components=40, random_state=0), 8, random_state=0),
        Fastfood(n_components=20, projection="fourier", random_state=0),
    ):
        pipeline = make_pipeline(StandardScaler(), last).fit(X)
        operator = fitted_map(pipeline, X).operator(X)
        Z = np.empty((200, operator.n_features))
        assert operator.write(X, Z)
        np.testing.assert_allclose(Z, pipeline.transform(X), rtol=1e-9, atol=1e-9)
        weights = np.random.default_rng(0).normal(size=(operator.n_features, 2))
        cheaper, collapsed = operator.collapse(weights)
        out = np.empty((200, 2))
        assert cheaper.linear(collapsed, np.zeros(2)).write(X, out)
        np.testing.assert_allclose(out, Z @ weights, rtol=1e-8, atol=1e-8)


def test_compact_maps_know_the_specification_of_a_pipeline():
    X = table()
    pipeline = make_pipeline(StandardScaler(), Fastfood(n_components=40, random_state=0)).fit(X)
    inner = specification_of(pipeline, X)
    assert isinstance(inner, PreparedSpecification)
    compact = CRAFTMap(FrozenEstimator(pipeline), 8, random_state=0).fit(X)
    assert compact.specification_.up == inner


def test_a_prepared_map_is_not_fitted_itself():
    X = table()
    prepared = fitted_map(mapped(StandardScaler()).fit(X), X)
    for call in (prepared.fit, clone(prepared).fit, lambda X: prepared.choose(X, 0)):
        with pytest.raises(ValueError, match="what a fitted pipeline became"):
            call(X)


# ---------------------------------------------------------------- bad values


def changed(good, **values):
    return from_fields(type(good), {**field_values(good), **values}, Budget(1e9, 1e9))


AFFINE = ColumnAffine.of([0.0, 1.0], [1.0, 2.0])
PIECES = PiecewiseLinear.of([[0.0, 1.0], [0.0, 2.0, 2.0]], [[0.0, 1.0], [0.0, 0.5, 1.0]])
HOT = OneHot(
    n_columns=1,
    keys=np.array([1.0, 2.0]),
    targets=np.array([0, 1]),
    starts=np.array([0, 2]),
    widths=np.array([2]),
    unknown=np.array([-2]),
    missing=np.array([-1]),
)
LINEAR = LinearColumns.of([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]])
MOVED = Substitute(
    n_columns=3,
    columns=np.array([0, 2]),
    replaced=np.array([100.0, -999.0]),
    substitute=np.array([-1.0, 2.5]),
)
SIDES = Columns(n_columns=3, parts=(AFFINE, HOT), columns=np.array([0, 2, 1]))


@pytest.mark.parametrize(
    ("good", "values"),
    [
        (AFFINE, {"offset": np.zeros(3)}),
        (AFFINE, {"factor": np.array([1.0, np.nan])}),
        (AFFINE, {"factor": np.ones(2, dtype=np.float32)}),
        (AFFINE, {"low": 2.0, "high": 1.0}),
        (AFFINE, {"n_columns": 0}),
        (PIECES, {"knots": np.array([1.0, 0.0, 0.0, 2.0])}),
        (PIECES, {"starts": np.array([0, 4, 4])}),
        (PIECES, {"starts": np.array([0, 9, 4])}),
        (PIECES, {"at": np.zeros(3)}),
        (UnitRows(n_columns=2), {"norm": "l3"}),
        (HOT, {"targets": np.array([0, 2])}),
        (HOT, {"keys": np.array([2.0, 1.0])}),
        (HOT, {"unknown": np.array([-3])}),
        (HOT, {"widths": np.array([4])}),
        (HOT, {"widths": np.array([2.0])}),
        (LINEAR, {"matrix": np.ones((3, 2))}),
        (LINEAR, {"matrix": np.ones(2)}),
        (LINEAR, {"matrix": np.full((2, 3), np.inf)}),
        (MOVED, {"columns": np.array([0, 0])}),
        (MOVED, {"columns": np.array([0, 3])}),
        (MOVED, {"substitute": np.zeros(1)}),
        (SIDES, {"columns": np.array([0, 3, 1])}),
        (SIDES, {"columns": np.array([0, 1])}),
        (SIDES, {"parts": ()}),
        (SIDES, {"parts": (AFFINE, "x")}),
        (Sequence(n_columns=2, steps=(AFFINE,)), {"steps": (AFFINE, HOT)}),
        (PreparedSpecification.of(AFFINE), {"n_components": 3}),
        (PreparedSpecification.of(AFFINE), {"n_columns": 3}),
        (PreparedSpecification.of(AFFINE), {"vocabularies": (Vocabulary(2, ("a",)),)}),
        (PreparedSpecification.of(AFFINE), {"vocabularies": (Vocabulary(0, ("a",)),) * 2}),
        (PreparedSpecification.of(AFFINE), {"inner": PreparedSpecification.of(HOT)}),
    ],
)
def test_values_that_cannot_be_are_refused(good, values):
    checked(good)
    with pytest.raises(ValueError, match=r"\w+ .*\."):
        changed(good, **values)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linear_columns_are_products_with_a_matrix(dtype):
    X = np.random.default_rng(0).normal(size=(20, 2)).astype(dtype)
    made, out = Sequence.of(AFFINE, LINEAR), np.empty((20, 3), dtype)
    assert made.operator(dtype).write(X, out)
    np.testing.assert_allclose(out, (X - AFFINE.offset) * AFFINE.factor @ LINEAR.matrix, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_substitute_stands_for_one_number_only(dtype):
    X = np.array([[100, 100, 100], [99, -999, -999]], dtype=dtype)
    out = np.empty_like(X)
    assert MOVED.operator(dtype).write(X, out)
    np.testing.assert_array_equal(out, [[-1, 100, 100], [99, -999, 2.5]])


def test_a_sequence_of_sequences_is_one():
    both = Sequence.of(Sequence.of(AFFINE, AFFINE), LINEAR)
    assert isinstance(both, Sequence)
    assert both.steps == (AFFINE, AFFINE, LINEAR)
    assert Sequence.of(AFFINE) is AFFINE


def test_a_function_with_jumps():
    x = np.array([[-1.0], [0.0], [0.5], [1.0], [1.5], [2.0], [3.0], [np.nan]])
    made = PiecewiseLinear.of([[0.0, 1.0, 1.0, 2.0]], [[0.0, 1.0, 3.0, 4.0]])
    out = np.empty((8, 1))
    assert made.operator(np.float64).write(x, out)
    np.testing.assert_array_equal(out[:, 0], [0, 0, 0.5, 2, 3.5, 4, 4, np.nan])
