"""Estimators whose feature map is a pipeline with scalers, imputers and encoders in front."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    QuantileTransformer,
    StandardScaler,
)

from kitchenette import (
    TEFM,
    AutoMap,
    CRAFTMap,
    Fastfood,
    KernelClassifier,
    KernelPCA,
    KernelRegressor,
    ModelFileError,
    RandomMaclaurin,
    load,
    save,
)
from kitchenette.kernels import Gaussian
from kitchenette.maps.prepared_map import PreparedMap
from kitchenette.selection import automap, targets

MAP = Fastfood(n_components=48, random_state=0)
CRAFT = CRAFTMap(RandomMaclaurin(n_components=64, random_state=0), 16, random_state=0)
PIPELINES = {
    "standard": make_pipeline(StandardScaler(), MAP),
    "min max": make_pipeline(MinMaxScaler(clip=True), MAP),
    "ranks": make_pipeline(QuantileTransformer(n_quantiles=30, output_distribution="normal"), MAP),
    "unit rows": make_pipeline(StandardScaler(), Normalizer(), MAP),
    "imputed": make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), MAP),
    "categories": make_pipeline(OneHotEncoder(handle_unknown="ignore", min_frequency=2), MAP),
    "columns": make_pipeline(
        make_column_transformer((StandardScaler(), slice(0, 2)), ("passthrough", [3])), MAP
    ),
    "columns without a map": make_column_transformer(
        (StandardScaler(), [0, 1]), remainder="passthrough"
    ),
    "craft": make_pipeline(StandardScaler(), CRAFT),
    "tefm": make_pipeline(StandardScaler(), TEFM(MAP, 16, random_state=0)),
    "inside tefm": TEFM(make_pipeline(StandardScaler(), MAP), 16, random_state=0),
    "alone": StandardScaler(),
    "the map alone": make_pipeline(MAP),
}


def data(dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4)) * [1, 100, 0.01, 1] + [0, 300, 0, 2]
    X[:, 3] = rng.integers(0, 3, 150)
    y = np.tanh(X[:, 0]) + (X[:, 1] - 300) / 100 + 0.1 * rng.normal(size=150)
    return X.astype(dtype), y


def frame():
    X, y = data()
    made = pd.DataFrame(X, columns=[*"abcd"])
    made["e"] = np.array(["red", "green", "blue"])[X[:, 3].astype(int)]
    made["f"] = made["e"].where(np.arange(150) % 5 > 0, None).astype(object)
    made["id"] = [f"row {k}" for k in range(150)]
    made.loc[::6, "b"] = np.nan
    return made, y


def of_frames(columns=("a", "b")):
    return make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), columns),
            (OneHotEncoder(handle_unknown="ignore"), ["e", "f", "d"]),
        ),
        MAP,
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def again(model, path, **options):
    save(model, path, **options)
    return load(path)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=pytest.mark.slow if number % 2 == place else ())
        for number, name in enumerate(PIPELINES)
        for place, dtype in enumerate((np.float64, np.float32))
    ],
)
def test_a_pipeline_keeps_all_abilities(name, dtype, path):
    X, y = data(dtype)
    model = KernelRegressor(clone(PIPELINES[name]), alpha=0.1, random_state=0).fit(X[:100], y[:100])
    assert hasattr(model.model_.prepared.fitted, "specification_")
    features = model.feature_map_.transform(X[:100])
    features = features.toarray() if sp.issparse(features) else features
    expected = features @ model.feature_weights_ + model.intercept_
    np.testing.assert_allclose(model.predict(X[:100]), expected, rtol=1e-3, atol=1e-3)
    loaded = again(model, path)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    np.testing.assert_array_equal(again(model, path, statistics=False).predict(X), model.predict(X))
    assert repr(loaded.feature_map) == repr(model.feature_map)
    for estimator in (model, loaded):
        estimator.partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.warns(UserWarning, match="the same statistics"):
        assert model.merge(loaded).statistics_.n_rows == 300
    predict = loaded.predictor()
    np.testing.assert_allclose(
        [predict(row) for row in X[:5]], loaded.predict(X[:5]), rtol=1e-4, atol=1e-4
    )
    np.testing.assert_array_equal(again(loaded, path).predict(X), loaded.predict(X))
    loaded.fit(X, y)  # the loaded pipeline is fitted anew, on other rows
    fresh = clone(model).fit(X, y)
    np.testing.assert_allclose(loaded.predict(X), fresh.predict(X), rtol=1e-6, atol=1e-6)


def test_frames_with_words_and_missing_values(path):
    X, y = frame()
    model = KernelClassifier(of_frames(), alpha=0.1).fit(X, y > 0)
    assert isinstance(model.model_.prepared.fitted, PreparedMap)
    loaded = again(model, path)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    loaded.partial_fit(X[:20], y[:20] > 0).merge(model)
    predict = model.predictor()
    for k in range(5):
        row = X.iloc[k].to_numpy(dtype=object)
        assert predict(row) == model.predict(X[k : k + 1])[0]
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(predict))(X.to_numpy(dtype=object)), model.predict(X)
    )
    with pytest.raises(ValueError, match="A row must have 7 columns"):
        predict(X.to_numpy(dtype=object)[0, :3])


def test_words_do_not_merge_with_other_words():
    X, y = frame()
    one = KernelRegressor(of_frames()).fit(X, y)
    other = KernelRegressor(of_frames()).fit(X.assign(e=X["e"].replace("red", "rosy")), y)
    with pytest.raises(ValueError, match=r"feature maps differ.*vocabularies"):
        one.merge(other)
    with pytest.raises(ValueError, match="feature maps differ"):
        one.merge(KernelRegressor(of_frames()).fit(X.assign(a=X["a"] * 2), y))


def test_a_frozen_pipeline_is_shared(path):
    X, y = data()
    frozen = FrozenEstimator(clone(PIPELINES["standard"]).fit(X))
    parts = [KernelRegressor(frozen).fit(X[s], y[s]) for s in (slice(70), slice(70, None))]
    merged = again(parts[0], path).merge(again(parts[1], path))
    whole = KernelRegressor(frozen).fit(X, y)
    np.testing.assert_allclose(merged.predict(X), whole.predict(X), rtol=1e-5, atol=1e-5)
    loaded = again(whole, path)
    assert loaded.feature_map is loaded.feature_map_
    assert isinstance(loaded.feature_map.estimator, PreparedMap)
    np.testing.assert_array_equal(clone(loaded).fit(X, y).predict(X), whole.predict(X))


def test_a_pipeline_with_a_function_becomes_a_frozen_map(path):
    X, y = frame()
    model = KernelRegressor(of_frames(make_column_selector("^[ab]$"))).fit(X, y)
    loaded = again(model, path)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert isinstance(loaded.feature_map, FrozenEstimator)
    with pytest.raises(ModelFileError, match=r"make_column_selector.* cannot be stored"):
        save(clone(model), path)


def test_unfitted_pipelines_are_stored(path):
    model = KernelRegressor(of_frames(slice("a", "b")), alpha=2.0)
    assert repr(again(model, path)) == repr(model)


def test_rows_that_a_pipeline_refuses():
    X, y = frame()
    model = KernelRegressor(of_frames()).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X.assign(e="unheard of"))
    X.loc[3, "a"] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.predict(X)
    Z, y = data()
    plain = KernelRegressor(clone(PIPELINES["min max"])).fit(Z, y)
    Z[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        plain.predict(Z)
    with pytest.raises(ValueError, match="NaN or infinity"):
        plain.predictor()(Z[0])
    with pytest.raises(ValueError, match="infinity"):
        plain.partial_fit(Z, y)


def test_sparse_rows():
    X, y = data()
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0
    pipeline = make_pipeline(StandardScaler(with_mean=False), MAP)
    dense = KernelRegressor(clone(pipeline), alpha=1.0).fit(X, y)
    sparse = KernelRegressor(clone(pipeline), alpha=1.0).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.predict(sp.csr_array(X)), dense.predict(X), rtol=1e-9)
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(X)), sparse.predict(X))


# ---------------------------------------------------------------- seed and task of the estimator

UNSEEDED = {
    "automatic": AutoMap(32, kernel=Gaussian(), scales="columns"),
    "automatic in a pipeline": make_pipeline(
        StandardScaler(), AutoMap(32, kernel=Gaussian(), scales="columns")
    ),
    "map": Fastfood(n_components=32),
    "map of a map": CRAFTMap(RandomMaclaurin(n_components=64), 16),
    "foreign step": make_pipeline(QuantileTransformer(n_quantiles=30, subsample=50), MAP),
}


def small_rows():
    X = np.random.default_rng(0).normal(size=(120, 3))
    return X, np.round(3 * np.sin(X[:, 0]))


@pytest.mark.parametrize("name", UNSEEDED)
def test_the_seed_of_the_estimator_decides_maps_without_one(name):
    X, y = small_rows()
    for seed in (0, 2**40):
        predictions = [
            KernelRegressor(UNSEEDED[name], random_state=seed).fit(X, y).predict(X)
            for _ in range(2)
        ]
        np.testing.assert_array_equal(*predictions)


def test_a_map_keeps_its_own_seed_and_is_not_changed():
    X, y = small_rows()
    given, free = Fastfood(n_components=32, random_state=7), Fastfood(n_components=32)
    assert KernelRegressor(given, random_state=3).fit(X, y).feature_map_.seed_ == 7
    assert KernelRegressor(free, random_state=3).fit(X, y).feature_map_.seed_ == 3
    assert KernelPCA(2, free, random_state=3).fit(X).feature_map_.seed_ == 3
    assert free.random_state is None


def test_maps_side_by_side_have_different_seeds():
    X, y = small_rows()
    union = make_union(Fastfood(n_components=16), Fastfood(n_components=16))
    fitted = KernelRegressor(union, random_state=0).fit(X, y).feature_map_
    first, second = (step.seed_ for _, step in fitted.transformer_list)
    assert first != second


@pytest.mark.parametrize("name", ["automatic", "automatic in a pipeline"])
def test_an_automatic_map_gets_the_task_of_the_estimator(name, monkeypatch):
    X, y = small_rows()
    tasks = []
    monkeypatch.setattr(
        automap, "pilot_targets", lambda y, task, *more: tasks.append(task) or pilot(y, task, *more)
    )
    pilot = targets.pilot_targets
    y = y.astype(int)  # whole numbers may be classes
    KernelRegressor(UNSEEDED[name], random_state=0).fit(X, y)
    KernelClassifier(UNSEEDED[name], random_state=0).fit(X, y.astype(float))
    assert tasks == ["regression", "classification"]
