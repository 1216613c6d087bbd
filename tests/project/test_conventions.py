"""scikit-learn's own checks on every public estimator, and the sentences for bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from catalogue import MAPS, make
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from kitchenette import (
    TEFM,
    AutoMap,
    CRAFTMap,
    Fastfood,
    KernelRegressor,
    RandomKitchenSinks,
    RandomMaclaurin,
    TensorSketch,
)
from kitchenette.kernels import (
    BesselMatern,
    Cauchy,
    Composition,
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    Polynomial,
    SphericalPolynomial,
    VovkInfinite,
)

# Maps that do not take any rows: of any norm, or of more columns than there are features.
PARTICULAR = {
    "fastfood exponential on the sphere",
    "maclaurin exponential",
    "maclaurin h01",
    "maclaurin of polynomial",
    "sketch exponential",
    "sketch tree exponential",
    "sketch tree gaussian",
    "maclaurin complex geometric",
    "sketch gaussian",
    "maclaurin vovk on the sphere",
}
ESTIMATORS = [
    Fastfood(),
    RandomKitchenSinks(),
    RandomMaclaurin(Composition(Polynomial(2), Gaussian()), n_components=9),
    TensorSketch(),
    CRAFTMap(n_components=6),
    TEFM(n_components=3),
    make("srht", 8),
]
WITH_OPTIONS = [
    Fastfood(n_components=7, projection="orthogonal", features="offset"),
    RandomKitchenSinks(Laplacian(), n_components=7, frequencies="orthogonal", features="offset"),
    *(
        make(name, 3 if name.startswith("tefm") else 8)
        for name in sorted({*MAPS} - PARTICULAR - {"srht"})
    ),
]


# The array API check skips itself unless the environment variable SCIPY_ARRAY_API is set;
# it is about estimators that work on other arrays than NumPy's, which these are not.
@parametrize_with_checks([*ESTIMATORS, AutoMap(8, kernel=Gaussian(), scales="columns")])
def test_scikit_learns_estimator_checks(estimator, check):
    check(estimator)


@parametrize_with_checks(WITH_OPTIONS)
@pytest.mark.slow
def test_scikit_learns_estimator_checks_with_all_options(estimator, check):
    check(estimator)


def X() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(6, 3))


@pytest.mark.parametrize(
    ("feature_map", "sentence"),
    [
        (Fastfood("rbf"), "kernel must be a kernel from kitchenette.kernels.*got 'rbf'"),
        (Fastfood(n_components=0), "n_components must be a whole number of at least 1; got 0"),
        (Fastfood(n_components=2.5), "n_components must be a whole number"),
        (Fastfood(n_components=True), "n_components must be a whole number"),
        (Fastfood(projection="walsh"), "projection must be one of 'hadamard'.*got 'walsh'"),
        (Fastfood(features="cosine"), "features must be one of 'sincos', 'offset', 'local'"),
        (RandomKitchenSinks(features="local"), "features must be one of 'sincos', 'offset'; got"),
        (RandomKitchenSinks(frequencies="sobol"), "frequencies must be one of 'independent'"),
        (Fastfood(BesselMatern(), features="local"), "'local' is made for the Gaussian kernel"),
        (Fastfood(projection="fourier", features="local"), "uniform on the sphere"),
        (Fastfood(Laplacian()), "Fastfood does not support Laplacian.*RandomKitchenSinks supports"),
        (RandomKitchenSinks(Polynomial()), "does not support Polynomial.*kernel of the difference"),
        (Fastfood(Composition()), "Fastfood does not support Composition.*RandomMaclaurin support"),
        (Fastfood(Polynomial(), projection="fourier"), "uniform on the sphere"),
        (Fastfood(Polynomial(), features="offset"), "leave 'sincos' for Polynomial"),
        (Fastfood(Exponential()), "for rows of norm 1 only; these have norms from"),
        (Fastfood(SphericalPolynomial([-1.0])), "SphericalPolynomial needs a list of coeff"),
        (RandomMaclaurin(Gaussian()), "RandomMaclaurin does not support Gaussian.*Fastfood"),
        (
            RandomMaclaurin(Composition(Polynomial(), SphericalPolynomial())),
            "does not support Composition",
        ),
        (RandomMaclaurin(projection="gauss"), "projection must be one of 'hadamard', 'rademac"),
        (RandomMaclaurin(degrees="best"), "degrees must be one of 'least_error', 'optimal'"),
        (TensorSketch(tree=1), "tree must be True or False; got 1"),
        (RandomMaclaurin(base=1.0), "base must be a number greater than 1; got 1.0"),
        (RandomMaclaurin(h01="yes"), "h01 must be True or False; got 'yes'"),
        (RandomMaclaurin(Polynomial(2, 0.0), h01=True), "terms of degree 0 or 1.*has none"),
        (RandomMaclaurin(Composition(), h01=True), "h01 needs a dot-product kernel"),
        (RandomMaclaurin(h01=True, n_components=3), "at least 5; got 3"),
        (RandomMaclaurin(Polynomial(1), h01=True, n_components=3), "at least 4; got 3"),
        (RandomMaclaurin(VovkInfinite()), "norms below 1 only; the largest norm here is"),
        (RandomMaclaurin(Polynomial(2000)), "more than 500 terms.*of a lower degree"),
        (RandomMaclaurin(Polynomial(coef0=-1.0)), "coef0 to be a number at least 0; got -1.0"),
        (RandomKitchenSinks(Cauchy(), frequencies="best"), "frequencies must be one of"),
        (Fastfood(Gaussian(-1.0)), "length_scale must be a positive number"),
        (Fastfood(Gaussian([1.0, 2.0])), r"length_scale has shape \(2,\) but the data has 3"),
        (Fastfood(random_state=-3), "random_state must be"),
        (Fastfood(projection=None), "projection must be one of 'hadamard'.*got None"),
        (Fastfood(projection=np.ones(2)), "projection must be one of 'hadamard'"),
        (Fastfood(features=np.ones(2)), "features must be one of 'sincos'"),
        (RandomKitchenSinks(frequencies=np.ones(2)), "frequencies must be one of"),
        (Fastfood(BesselMatern("3")), "BesselMatern needs n_points to be a whole number"),
        (RandomKitchenSinks(Matern(10**400)), "Matern needs nu to be a number"),
    ],
)
def test_bad_parameters_get_a_sentence(feature_map, sentence):
    with pytest.raises(ValueError, match=sentence):
        feature_map.fit(X())


@pytest.mark.parametrize("kind", [Fastfood, RandomKitchenSinks])
def test_bad_rows_get_a_sentence(kind):
    fitted = kind(Gaussian(1.0), 8).fit(X())
    for bad, sentence in [
        (np.full((2, 3), np.nan), "contains NaN"),
        (np.full((2, 3), np.inf), "contains infinity"),
        (np.ones((2, 4)), "X has 4 features, but .* is expecting 3"),
        (np.ones((0, 3)), "Found array with 0 sample"),
        (np.ones(3), "Expected 2D array, got 1D"),
        ([["a", "b", "c"]], "could not convert"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            fitted.transform(bad)
    with pytest.raises(ValueError, match="overflowed float32 on these rows, whose largest entry"):
        fitted.transform(np.full((2, 3), 3e38, dtype=np.float32))
    with pytest.raises(NotFittedError):
        kind().transform(X())
    with pytest.raises(ValueError, match="0 feature"):
        kind().fit(np.ones((3, 0)))
    with pytest.raises(ValueError, match="two different rows"):
        kind().fit(np.ones((3, 2)))


STAMP = pd.Timestamp("2020-01-01")
DATES = {
    "dates": pd.Series(pd.date_range("2020", periods=6)),
    "objects": pd.Series([STAMP] * 6, dtype=object),
    "dates and others": pd.Series([1.0, 2.0, None, "3", 4.0, STAMP], dtype=object),
    "dates of Python": pd.Series([STAMP.date()] * 6, dtype=object),
    "lengths of time": pd.Series([pd.Timedelta(1, "D")] * 6, dtype=object),
    "periods": pd.Series(pd.period_range("2020", periods=6, freq="D")),
    "objects that are periods": pd.Series(
        list(pd.period_range("2020", periods=6, freq="D")), dtype=object
    ),
    "categories": pd.Series(pd.date_range("2020", periods=6)).astype("category"),
    "dates of NumPy": pd.Series(np.array([np.datetime64("2020")] * 6, dtype=object), dtype=object),
}


@pytest.mark.parametrize("column", DATES.values(), ids=DATES)
def test_columns_of_dates_get_a_sentence(column):
    frame = pd.DataFrame(X(), columns=["a", "b", "c"])
    dated = frame.assign(b=column)
    forms = [(frame, dated), (X(), dated.to_numpy(dtype=object)), (X(), dated.to_numpy().tolist())]
    sentence = "A column of dates or times .* is not a number"
    for good, bad in forms:
        for model in (Fastfood(Gaussian(1.0), 8), CRAFTMap(n_components=4)):
            fitted = clone(model).fit(good)
            for method in (model.fit, fitted.transform):
                with pytest.raises(ValueError, match=sentence):
                    method(bad)
        model = KernelRegressor(Fastfood(Gaussian(1.0), 8))
        fitted = clone(model).fit(good, np.arange(6.0))
        with pytest.raises(ValueError, match=sentence):
            model.fit(bad, np.arange(6.0))
        with pytest.raises(ValueError, match=sentence):
            fitted.predict(bad)


def test_objects_that_are_numbers_are_taken():
    numbers = pd.DataFrame(X(), columns=["a", "b", "c"]).astype(object)
    fitted = Fastfood(Gaussian(1.0), 8, random_state=0).fit(X())
    expected = fitted.transform(X())
    assert np.array_equal(fitted.transform(numbers.to_numpy()), expected)
    assert np.array_equal(clone(fitted).fit(numbers).transform(numbers), expected)


@pytest.mark.parametrize("kind", [Fastfood, RandomKitchenSinks])
@pytest.mark.parametrize(
    ("kernel", "dtype", "advice"),
    [
        (Matern(0.002, 1.0), np.float64, "a nu greater than 0.002"),
        (Matern(0.02, 1.0), np.float32, "a nu greater than 0.02 or rows in float64"),
        (Gaussian(1e-39), np.float32, "a larger length_scale or rows in float64"),
    ],
    ids=repr,
)
def test_infinite_frequencies_are_refused_in_fit(kind, kernel, dtype, advice):
    with pytest.raises(ValueError, match=f"overflow {np.dtype(dtype)}. Use .*{advice}"):
        kind(kernel, 512, random_state=0).fit(X().astype(dtype))


@pytest.mark.parametrize("kind", [Fastfood, RandomKitchenSinks])
def test_after_an_error_the_map_is_as_it_was(kind):
    feature_map = kind(Gaussian(1.0), 8, random_state=0).fit(X())
    before = feature_map.transform(X())
    state = set(vars(feature_map))
    feature_map.set_params(kernel=Laplacian([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"length_scale|Fastfood needs"):
        feature_map.fit(np.ones((5, 7)))
    assert set(vars(feature_map)) == state
    assert np.array_equal(feature_map.transform(X()), before)
    fresh = kind(Gaussian(-1.0))
    with pytest.raises(ValueError, match="length_scale"):
        fresh.fit(X())
    assert not hasattr(fresh, "n_features_in_")


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *WITH_OPTIONS], ids=str)
def test_pickling_and_cloning(estimator):
    fitted = clone(estimator).set_params(random_state=1).fit(X())
    Z = fitted.transform(X())
    copy = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copy.transform(X()), Z)
    assert np.array_equal(clone(fitted).fit_transform(X()), Z)


def test_parameters_of_other_libraries_get_a_sentence():
    with pytest.raises(TypeError, match="no parameter transform; use projection"):
        Fastfood(transform="orthogonal")
    with pytest.raises(TypeError, match="no parameter gamma; use a kernel's length_scale"):
        Fastfood(gamma=1.0)
    with pytest.raises(ValueError, match=r"write Gaussian\(\) with parentheses"):
        Fastfood(Gaussian).fit(X())


class Doubled(Fastfood):
    def transform(self, X):
        return 2 * super().transform(X)


def test_a_subclass_may_override_transform():
    plain = Fastfood(n_components=4, random_state=0).fit(X())
    doubled = Doubled(n_components=4, random_state=0).fit(X())
    assert np.array_equal(doubled.fit_transform(X()), 2 * plain.transform(X()))
    assert doubled.get_params() == plain.get_params()
    twin = pickle.loads(pickle.dumps(doubled))
    assert np.array_equal(twin.transform(X()), 2 * plain.transform(X()))
    named = doubled.set_output(transform="pandas").transform(X())
    assert np.array_equal(named, 2 * plain.transform(X()))
