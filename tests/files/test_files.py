"""Model files: what is saved is loaded, and nothing else is."""

from __future__ import annotations

import json
import os
import pickle
import stat
import tracemalloc
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import catalogue
import mutations
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from programs import WITH_ONE_THREAD, printed_by
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import StandardScaler

import kitchenette
from kitchenette import (
    SRHT,
    TEFM,
    CRAFTMap,
    Fastfood,
    KernelClassifier,
    KernelRegressor,
    LeastSquares,
    ModelFileError,
    RandomMaclaurin,
    _core,
    kernels,
    load,
    save,
)
from kitchenette.files import Budget, storable
from kitchenette.files.registry import storage_named
from kitchenette.kernels import (
    BesselMatern,
    Cauchy,
    Composition,
    DotProductKernel,
    Exponential,
    Gaussian,
    Laplacian,
    Maclaurin,
    Matern,
    Polynomial,
    RationalQuadratic,
    SphericalPolynomial,
    VovkInfinite,
    VovkPolynomial,
)
from kitchenette.learning import OutputCode

OWN_MAPS = {
    "fastfood with scales": Fastfood(
        Matern(2.5, np.full(5, 0.7)), n_components=33, projection="fourier"
    ),
    "maclaurin without randomness": RandomMaclaurin(Maclaurin([0.5, 1.0]), 6, h01=True),
    "maclaurin vovk": RandomMaclaurin(VovkPolynomial(4), n_components=9, projection="rademacher"),
    "maclaurin of maclaurin": RandomMaclaurin(
        Composition(Polynomial(2), Exponential()), n_components=20
    ),
    "craft fastfood": CRAFTMap(Fastfood(n_components=50, random_state=3), n_components=20),
    "tefm iterated": TEFM(Polynomial(2), n_components=4, power_iterations=1),
    "tefm of craft": TEFM(CRAFTMap(Polynomial(2), 30), n_components=8),
}
MAPS = {**{name: catalogue.make(name, 30) for name in catalogue.MAPS}, **OWN_MAPS}
KERNELS = [
    BesselMatern(2, 3.0),
    Cauchy(),
    Composition(Exponential(2.0), Composition(Polynomial(2), Matern(0.5, 1.5))),
    Gaussian([1.0, 2.0]),
    Laplacian(np.float32(0.1)),
    Maclaurin(np.array([0.0, 1.0, 0.5])),
    RationalQuadratic(0.3, 2.0),
    SphericalPolynomial((0.0, 1.0)),
    VovkInfinite(),
    VovkPolynomial(np.int64(4)),
]


def rows(dtype: type = np.float64) -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(40, 5))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def again(model, path):
    save(model, path)
    return load(path)


def state_of(objects, name):
    """The state of the last object of a class in a document."""
    return [entry["state"] for entry in objects if entry["class"] == name][-1]


def edit(path, change, **changes):
    """Change the document of a file, under a checksum that is right."""
    header, document, data = mutations.split(path.read_bytes())
    header["__metadata__"].update(changes)
    change(document["objects"])
    path.write_bytes(mutations.joined(header, document, data))


# ---------------------------------------------------------------- round trips


def test_a_range_finder_goes_on_after_loading(path):
    X = rows()
    streamed = TEFM(Gaussian(1.0), 6, random_state=0).partial_fit(X[:20])
    loaded = again(streamed, path).partial_fit(X[20:])
    np.testing.assert_allclose(
        loaded.range_.sums, streamed.partial_fit(X[20:]).range_.sums, atol=1e-12
    )


@pytest.mark.parametrize("begun", [False, True])
def test_directions_that_rows_leave_open_are_stored(begun, path):
    # 10 rows do not determine 32 directions, so rounding does, and elsewhere it is another.
    X = rows()

    def fitted():
        tefm = TEFM(Gaussian(1.0), 32, random_state=0)
        return tefm.partial_fit(X[:5]).partial_fit(X[5:10]) if begun else tefm.fit(X[:10])

    save(saved := fitted(), path)
    pickled = pickle.dumps(kept := fitted())

    def again_elsewhere(A):
        raise AssertionError("the basis is computed again")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kitchenette.maps.tefm, "_orthonormal_basis", again_elsewhere)
        for loaded, before in ((load(path), saved), (pickle.loads(pickled), kept)):
            assert np.array_equal(loaded.transform(X), before.transform(X))
            assert np.array_equal(loaded.collapse(np.ones(32)), before.collapse(np.ones(32)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("feature_map", MAPS.values(), ids=MAPS)
def test_a_loaded_map_gives_the_same_bits(feature_map, dtype, path):
    X = rows(dtype)
    fitted = clone(feature_map).fit(X)
    loaded = again(fitted, path)
    assert type(loaded) is type(fitted)
    assert repr(loaded) == repr(fitted)
    assert loaded.seed_ == fitted.seed_
    assert loaded.specification_ == fitted.specification_
    if not isinstance(fitted, SRHT):
        assert loaded.kernel_ == fitted.kernel_
    for given in (X, X.astype(np.float32), X.astype(np.float64)):
        assert np.array_equal(loaded.transform(given), fitted.transform(given))
    assert set(vars(loaded)) == set(vars(fitted))
    assert list(loaded.get_feature_names_out()) == list(fitted.get_feature_names_out())
    # A file of a loaded model is the same file.
    content = path.read_bytes()
    save(loaded, path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("feature_map", MAPS.values(), ids=MAPS)
def test_a_map_that_was_not_fitted_stays_so(feature_map, path):
    loaded = again(feature_map, path)
    assert repr(loaded) == repr(feature_map)
    with pytest.raises(NotFittedError):
        loaded.transform(rows())
    loaded.set_params(random_state=3).fit(rows())
    same = clone(feature_map).set_params(random_state=3).fit(rows())
    assert np.array_equal(loaded.transform(rows()), same.transform(rows()))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels(kernel, path):
    loaded = again(kernel, path)
    assert loaded == kernel
    assert repr(loaded) == repr(kernel) or isinstance(kernel, Laplacian | VovkPolynomial)


def test_every_public_class_is_stored():
    abstract = {"Kernel", "DotProductKernel", "RadialKernel", "ShiftInvariantKernel"}
    # A Solution is made by its statistics, and a Predictor by its model.
    made = {"Predictor", "Solution"}
    for module in (kernels, kitchenette.maps, kitchenette.learning):
        for name in module.__all__:
            cls = getattr(module, name)
            if storage_named(name) is not None:
                assert storage_named(name).cls is cls
                assert name not in abstract
            elif isinstance(cls, type) and hasattr(cls, "get_params"):
                assert name in abstract | made


class Arc(DotProductKernel):
    """scale * (<x, y> + <x, y>^3), a kernel of somebody else."""

    last_degree = 3

    def __init__(self, scale=1.0):
        self.scale = scale

    def check_parameters(self, n_columns):
        assert self.scale > 0

    def log_coefficients(self, n):
        return np.where(n % 2 == 1, np.log(self.scale), -np.inf)

    def function(self, t):
        return self.scale * (t + t**3)


class Doubling:
    """A model of somebody else."""

    def __init__(self, by):
        self.by = by

    def to_file(self):
        return {"by": self.by}

    @classmethod
    def from_file(cls, state, budget):
        budget.spend(state["by"].nbytes, 0, "a Doubling")
        return cls(state["by"])


def test_classes_of_others_can_be_registered(path):
    with pytest.raises(ModelFileError, match=r"Arc is an object of .*files\.storable for a class"):
        save(Arc(), path)
    for cls in (Arc, Doubling):
        assert storable(cls) is cls
        assert storable(cls) is cls  # once more, as after reloading a module
    assert again(Arc(2.0), path) == Arc(2.0)
    fitted = RandomMaclaurin(Arc(0.5), 20, random_state=0).fit(rows())
    loaded = again(fitted, path)
    assert loaded.kernel_ == Arc(0.5)
    assert np.array_equal(loaded.transform(rows()), fitted.transform(rows()))
    assert again(Doubling(np.arange(3)), path).by.tolist() == [0, 1, 2]
    with pytest.raises(ModelFileError, match="a Doubling may take 24 bytes, and 10 are left"):
        load(path, max_bytes=10)


def test_classes_that_cannot_be_registered():
    with pytest.raises(TypeError, match=r"needs a method to_file\(\) and a class method from_file"):
        storable(StandardScaler)

    class Gaussian(Doubling):
        pass

    with pytest.raises(ValueError, match=r"a class Gaussian already, kitchenette\.kernels"):
        storable(Gaussian)


def test_names_of_columns(path):
    frame = pd.DataFrame(rows(), columns=["a", "b", "ü", "\N{SNOWMAN}", '"'])
    fitted = Fastfood(n_components=8, random_state=0).fit(frame)
    loaded = again(fitted, path)
    assert loaded.feature_names_in_.dtype == object
    assert list(loaded.feature_names_in_) == list(frame.columns)
    assert np.array_equal(loaded.transform(frame), fitted.transform(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.transform(frame[frame.columns[::-1]])


def test_parameters_that_were_set_after_fit_do_not_change_the_map(path):
    fitted = Fastfood(Gaussian(1.0), n_components=8, random_state=0).fit(rows())
    fitted.set_params(
        projection="fourier", n_components=9, kernel__length_scale=5.0, random_state=7
    )
    loaded = again(fitted, path)
    assert np.array_equal(loaded.transform(rows()), fitted.transform(rows()))
    assert repr(loaded) == repr(fitted)
    assert np.array_equal(loaded.fit_transform(rows()), fitted.fit_transform(rows()))


@pytest.mark.parametrize(
    ("fitted", "changed"),
    [
        ({"class_weight": "balanced"}, {"class_weight": None}),
        ({}, {"class_weight": "balanced"}),
        ({"class_weight": {0: 1.0, 1: 5.0}}, {"class_weight": {0: 2, 1: 1.5}}),
        ({"class_weight": {0: 1.0, 1: 5.0}}, {}),
        ({}, {"validation_rows": 0}),
        ({"validation_rows": 0}, {"validation_rows": 50}),
    ],
)
def test_parameters_that_were_set_after_fit_do_not_change_how_rows_are_learned(
    fitted, changed, path
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + rng.normal(size=400) > 0.5).astype(int)
    feature_map = Fastfood(n_components=32, random_state=0)
    model = KernelClassifier(feature_map, random_state=0, **fitted).fit(X[:100], y[:100])
    save(model.set_params(**changed), path)
    loaded = load(path)
    assert loaded.get_params()["class_weight"] == model.class_weight
    for one in (model, loaded):
        one.partial_fit(X[100:], y[100:])
        assert one.statistics_.n_rows == one.learned_partial().n_rows == 400
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    save(loaded, path)
    assert_array_equal(load(path).decision_function(X), model.decision_function(X))


def test_statistics_go_on(path):
    X = rows()
    half = LeastSquares(5, 2).update(X[:20].astype(np.float32), X[:20, :2])
    loaded = again(half, path)
    assert repr(loaded) == repr(half)
    for name, value in half.state().items():
        assert np.array_equal(loaded.state()[name], value)
    ours, theirs = half.update(X[20:], X[20:, 1:3]), loaded.update(X[20:], X[20:, 1:3])
    assert np.array_equal(ours.solve(0.1).coef, theirs.solve(0.1).coef)
    assert again(LeastSquares(3), path).n_rows == 0


def test_statistics_are_read_into_the_memory_that_they_keep(path):
    n = 1000
    Z = np.random.default_rng(0).normal(size=(50, n))
    save(LeastSquares(n, 2).update(Z, Z[:, :2]), path)
    del Z
    tracemalloc.start()
    loaded = load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A second copy would make it twice the size; the check for infinities takes an eighth.
    assert peak < 1.3 * path.stat().st_size
    assert loaded.n_rows == 50


def test_output_codes(path):
    code = OutputCode.random(10, 50, seed=1)
    loaded = again(code, path)
    assert np.array_equal(loaded.codewords, code.codewords)
    assert loaded.codewords.dtype == np.int8
    assert loaded.distance == code.distance


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_regressors(dtype, path):
    X, Y = rows(dtype), rows()[:, :2] ** 2
    for y in (Y[:, 0], Y):
        model = KernelRegressor(Fastfood(n_components=16, random_state=0)).fit(X, y)
        predicted = model.predict(X)
        loaded = again(model, path)
        assert repr(loaded) == repr(model)
        assert np.array_equal(loaded.predict(X), predicted)
        assert np.array_equal(loaded.predict(X, return_std=True)[1], model.predict(X, True)[1])
        assert loaded.log_marginal_likelihood_ == model.log_marginal_likelihood_
        ours, theirs = model.partial_fit(X, y), loaded.partial_fit(X, y)
        assert np.array_equal(ours.predict(X), theirs.predict(X))
        assert np.array_equal(again(ours, path).predict(X), ours.predict(X))


@pytest.mark.parametrize("code", ["onehot", "ecoc", "hadamard", np.eye(3)])
@pytest.mark.parametrize("labels", [[0, 1, 5], ["a", "b", "\N{SNOWMAN}"], [-1.0, 0.0, 2.0]])
def test_classifiers(code, labels, path):
    X = rows()
    y = np.array(labels)[np.argmax(X[:, :3], axis=1)]
    for given in (y, y.astype(object)) if y.dtype.kind == "U" else (y,):
        frozen = FrozenEstimator(Fastfood(n_components=16, random_state=0).fit(X))
        model = KernelClassifier(frozen, code=code, decoding="hamming", random_state=1)
        loaded = again(model.fit(X, given), path)
        assert np.array_equal(loaded.predict(X), model.predict(X))
        assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
        assert loaded.classes_.dtype == model.classes_.dtype
        assert loaded.feature_map_ is loaded.feature_map
        model.merge(loaded.partial_fit(X[:9], given[:9]))
        assert np.array_equal(again(model, path).predict(X), model.predict(X))


def test_estimators_of_foreign_transformers_are_refused(path):
    model = KernelRegressor(RBFSampler()).fit(rows(), rows()[:, 0])
    sentence = "feature_map is an object of sklearn.*Use pickle or skops"
    with pytest.raises(ModelFileError, match=sentence):
        save(model, path)


def test_frozen_maps_and_what_is_shared(path):
    frozen = FrozenEstimator(Fastfood(Gaussian(2.0), n_components=8).fit(rows()))
    loaded = again(frozen, path)
    assert isinstance(loaded, FrozenEstimator)
    assert np.array_equal(loaded.transform(rows()), frozen.transform(rows()))
    square = Polynomial(2)
    loaded = again(Composition(square, Composition(square, Gaussian(1.0))), path)
    assert loaded.outer is loaded.inner.outer


@pytest.mark.parametrize("kind", [CRAFTMap, TEFM])
def test_frozen_maps_inside_of_compact_maps(kind, path):
    X = rows()
    for frozen in (
        FrozenEstimator(Fastfood(Gaussian(2.0), 64, random_state=0).fit(X)),
        FrozenEstimator(FrozenEstimator(RandomMaclaurin(Polynomial(2), 64).fit(X))),
    ):
        fitted = kind(frozen, 8, random_state=0).fit(X)
        loaded = again(fitted, path)
        assert np.array_equal(loaded.transform(X), fitted.transform(X))
        name = kind.inner_name
        assert isinstance(getattr(loaded, name), FrozenEstimator)
        assert isinstance(getattr(loaded, f"{name}_"), FrozenEstimator)
        assert loaded.kernel_.get_params() == fitted.kernel_.get_params()
        # Fitting again leaves the frozen map as it is.
        assert np.array_equal(loaded.fit(X).transform(X), fitted.transform(X))
        model = KernelRegressor(kind(frozen, 8, random_state=0)).fit(X, X[:, 0])
        assert np.array_equal(again(model, path).predict(X), model.predict(X))


def test_a_generator_of_a_projection_is_stored(path):
    X = rows()
    down = SRHT(8, random_state=np.random.default_rng(5))
    fitted = CRAFTMap(Polynomial(2), 8, down=down, random_state=0).fit(X)
    loaded = again(fitted, path)
    assert np.array_equal(loaded.transform(X), fitted.transform(X))
    assert loaded.down.random_state == fitted.down_.seed_
    assert np.array_equal(loaded.fit(X).transform(X), fitted.transform(X))
    model = KernelRegressor(clone(fitted)).fit(X, X[:, 0])
    assert np.array_equal(again(model, path).predict(X), model.predict(X))
    with pytest.raises(ModelFileError, match="random_state of SRHT is a generator"):
        save(clone(fitted), path)


def test_a_generator_is_stored_as_the_seed_that_it_gave(path):
    fitted = Fastfood(n_components=8, random_state=np.random.default_rng(0)).fit(rows())
    loaded = again(fitted, path)
    assert loaded.random_state == fitted.seed_
    with pytest.raises(ModelFileError, match="random_state of Fastfood is a generator"):
        save(Fastfood(random_state=np.random.RandomState(0)), path)


def test_generators_inside_of_fitted_models(path):
    X = rows()
    up = RandomMaclaurin(Polynomial(2), 64, random_state=np.random.default_rng(0))
    feature_map = CRAFTMap(up, 16, random_state=np.random.RandomState(0))
    model = KernelRegressor(feature_map).fit(X, X[:, 0])
    loaded = again(model, path)
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.feature_map.up.random_state == model.feature_map_.up_.seed_
    assert isinstance(up.random_state, np.random.Generator)
    with pytest.raises(ModelFileError, match="random_state of CRAFTMap is a generator"):
        save(KernelRegressor(feature_map), path)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_statistics_a_model_is_small_and_predicts(dtype, path):
    X = rows(dtype)
    y = np.argmax(X[:, :3], axis=1)
    base = Fastfood(n_components=256, random_state=0)
    tefm = TEFM(base, 32, random_state=0)
    fitted = clone(tefm).fit(X)
    for feature_map in (base, tefm, fitted, FrozenEstimator(fitted)):
        regressor = KernelRegressor(feature_map).fit(X, X[:, 0])
        classifier = KernelClassifier(feature_map, code="ecoc", random_state=0).partial_fit(
            X, y, classes=[0, 1, 2]
        )
        for model in (regressor, classifier):
            save(model, path, statistics=False)
            loaded = load(path)
            assert path.stat().st_size < 80_000  # of which the basis of TEFM has 66,000
            if feature_map is not base:
                frozen = isinstance(feature_map, FrozenEstimator)
                assert (loaded.feature_map is loaded.feature_map_) == frozen
                assert np.array_equal(
                    loaded.feature_map_.transform(X), model.feature_map_.transform(X)
                )
                small = loaded.feature_map_.estimator if frozen else loaded.feature_map_
                with pytest.raises(ValueError, match="saved without statistics: it transforms"):
                    small.partial_fit(X)
                assert model.statistics_ is not None
                assert feature_map is model.feature_map
            content = path.read_bytes()
            save(loaded, path, statistics=False)  # once more
            assert path.read_bytes() == content
            assert np.array_equal(loaded.predict(X), model.predict(X))
            assert loaded.predictor()(X[0]) == model.predictor()(X[0])
            assert model.statistics_.n_rows == len(X)
            for call in (
                lambda m=loaded: m.partial_fit(X, y),
                lambda m=loaded: m.merge(m),
                lambda m=loaded, o=model: o.merge(m),
            ):
                with pytest.raises(ValueError, match="saved without its statistics"):
                    call()
            assert np.array_equal(again(loaded, path).predict(X), model.predict(X))
            assert np.array_equal(loaded.fit(X, y).predict(X), clone(model).fit(X, y).predict(X))
        save(regressor, path, statistics=False)
        with pytest.raises(ValueError, match="saved without its statistics"):
            load(path).predict(X, return_std=True)
    save(fitted, path, statistics=False)
    assert load(path).range_ is None
    assert fitted.range_ is not None
    with pytest.raises(ModelFileError, match="statistics=False is for a KernelRegressor"):
        save(Gaussian(1.0), path, statistics=False)
    with pytest.raises(NotFittedError):
        save(KernelRegressor(), path, statistics=False)


def test_frozen_models_without_statistics_stay_frozen(path):
    X = rows()
    model = FrozenEstimator(KernelRegressor(Fastfood(n_components=16)).fit(X, X[:, 0]))
    save(model, path, statistics=False)
    loaded = load(path)
    assert isinstance(loaded, FrozenEstimator)
    assert loaded.estimator.statistics_ is None
    for wrong in (KernelRegressor, 3):
        with pytest.raises(ModelFileError, match="statistics=False is for a KernelRegressor"):
            save(wrong, path, statistics=False)
    with pytest.raises(ModelFileError, match="which model files do not have"):
        save(KernelRegressor(Fastfood), path)


def test_a_map_saved_without_statistics_is_the_map_it_was(path):
    X = rows()
    y = X[:, 0]
    tefm = TEFM(Fastfood(n_components=256, random_state=0), 32, random_state=0)
    model = KernelRegressor(tefm).fit(X, y)
    save(model, path, statistics=False)
    here = KernelRegressor(FrozenEstimator(load(path).feature_map_)).fit(X[:20], y[:20])
    there = KernelRegressor(FrozenEstimator(model.feature_map_)).fit(X[20:], y[20:])
    assert here.merge(there).statistics_.n_rows == len(X)
    other = KernelRegressor(FrozenEstimator(clone(tefm).fit(X[:20]))).fit(X[:20], y[:20])
    with pytest.raises(ValueError, match="feature maps differ"):
        here.merge(other)


@pytest.mark.parametrize("statistics", [True, False])
def test_maps_that_are_frozen_twice(statistics, path):
    X = rows()
    base = Fastfood(n_components=64, random_state=0)
    for feature_map in (base, TEFM(base, 8, random_state=0)):
        frozen = FrozenEstimator(FrozenEstimator(feature_map.fit(X)))
        model = KernelRegressor(frozen).fit(X, X[:, 0])
        save(model, path, statistics=statistics)
        loaded = load(path)
        assert isinstance(loaded.feature_map_, FrozenEstimator)
        assert np.array_equal(loaded.predict(X), model.predict(X))
        assert loaded.predictor()(X[0]) == model.predictor()(X[0])


def test_a_basis_that_does_not_fit_is_refused(path):
    tefm = TEFM(Fastfood(n_components=64, random_state=0), 8, random_state=0).fit(rows())
    save(tefm, path)
    content = path.read_bytes()
    basis = tefm.basis_

    def swap(objects):
        basis = state_of(objects, "TEFMSpecification")
        sums = state_of(objects, "Range")
        basis["basis"], sums["sums"] = sums["sums"], basis["basis"]

    for change, sentence in [
        (swap, "gives other features"),
        (lambda o: state_of(o, "TEFMSpecification").pop("basis"), "basis is missing"),
    ]:
        path.write_bytes(content)
        edit(path, change)
        with pytest.raises(ModelFileError, match=sentence):
            load(path)
    for wrong in (basis[:, 1:], basis.astype(np.float32), np.inf * basis):
        save(replace(tefm.specification_, basis=wrong), path)
        with pytest.raises(ModelFileError, match=r"basis (must be|cannot be) .*array of float"):
            load(path)


def test_a_checksum_and_a_length_that_are_none(path):
    save(Gaussian(1.0), path)
    content = path.read_bytes()
    header, _, data = mutations.split(content)
    header["__metadata__"]["checksum"] = "\ud800" * 64
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    with pytest.raises(ModelFileError, match="metadata"):
        load(path)
    for length in (0, 1):
        path.write_bytes(length.to_bytes(8, "little") + b'{"a":[' + b"[]," * 1000 + b"[]]}")
        with pytest.raises(ModelFileError, match="not a model file"):
            load(path)


def test_a_code_of_many_classes_takes_no_square_of_memory(path):
    words = (np.arange(20_000)[:, None] >> np.arange(15) & 1).astype(np.int8)
    save(OutputCode(words), path)
    tracemalloc.start()
    loaded = load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 2**20
    assert loaded.n_classes == 20_000


def test_solutions_that_do_not_fit_are_refused(path):
    X = rows()
    base = Fastfood(n_components=64, random_state=0)
    regressor = KernelRegressor(TEFM(base, 8, random_state=0)).fit(X, np.sin(X[:, 0]))
    classifier = KernelClassifier(base).fit(X, np.argmax(X[:, :3], axis=1))
    spoils = [
        ("LinearModel", "coef", np.full((8, 1), np.nan), "coef"),
        ("LinearModel", "coef", np.ones((8, 1), np.int8), "coef"),
        ("LinearModel", "coef", np.ones((7, 1)), "same shape"),
        ("LinearModel", "intercept", np.ones(2), r"coef must be an array of shape \(any, 2\)"),
        ("LinearModel", "alpha", {"number": "inf"}, "alpha"),
        ("LinearModel", "alpha", -1.0, "alpha"),
        ("LinearModel", "alpha", None, "alpha"),
        ("KernelRegressor", "model", {"object": 0}, "model"),
        ("Model", "given_solution", {"object": 0}, "given_solution"),
        ("Model", "solver", "fast", "solver"),
        ("Model", "loss", "hinge", "loss"),
        ("Model", "n_iter", 0, "n_iter"),
        ("Prepared", "feature_map", {"object": 0}, "feature_map"),
        ("Prepared", "n_columns", 4, "columns"),
        ("Prepared", "seed", -1, "seed"),
        ("Prepared", "names", {"strings": ["a", "b"]}, "names"),
        ("Prepared", "observation_rule", "none", "observation_rule"),
        ("Prepared", "medians", np.ones(2), "medians_"),
        ("Prepared", "medians", np.full(X.shape[1], np.nan), "medians_"),
        ("Prepared", "medians", np.ones(X.shape[1], np.int8), "medians"),
        ("Prepared", "medians", 1.0, "medians"),
        ("NumberCoding", "ndim", 3, "ndim"),
        ("ClassCoding", "classes", {"strings": ["b", "a", "c"]}, "classes"),
        ("ClassCoding", "classes", {"strings": ["a", "b"]}, "each class"),
        ("ClassCoding", "codewords", np.eye(2, dtype=np.int8), "codewords"),
    ]
    of_classes = ("KernelClassifier", "ClassCoding")
    for name, attribute, value, sentence in spoils:
        save(classifier if name in of_classes else regressor, path)
        header, document, data = mutations.split(path.read_bytes())
        state = state_of(document["objects"], name)
        assert attribute in state
        if isinstance(value, np.ndarray):
            code = {"float64": "F64", "int8": "I8"}[value.dtype.name]
            ends = [len(data), len(data) + value.nbytes]
            header["spoilt"] = {"dtype": code, "shape": value.shape, "data_offsets": ends}
            data += value.tobytes()
            value = {"array": "spoilt"}
        state[attribute] = value
        path.write_bytes(mutations.joined(header, document, data))
        with pytest.raises(ModelFileError, match=sentence):
            load(path)
    for name, attribute in (
        ("Prepared", "seed"),
        ("ClassCoding", "classes"),
        ("Prepared", "feature_map"),
    ):
        save(classifier, path)
        edit(path, lambda o, n=name, a=attribute: state_of(o, n).pop(a))
        with pytest.raises(ModelFileError, match=f"{attribute} is missing"):
            load(path)


def test_arrays_keep_type_shape_and_order(path):
    storable(Doubling)
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    for array in (
        matrix,
        np.asfortranarray(matrix),
        matrix[:, ::2],
        matrix.astype(">f8"),
        np.zeros((0, 3)),
        np.array(3),
        np.array([True, False]),
        np.array(["a", "bc"]),
    ):
        loaded = again(Doubling(array), path).by
        assert loaded.dtype == array.dtype.newbyteorder("=")
        assert np.array_equal(loaded, array)
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        assert loaded.flags.c_contiguous != fortran
        assert loaded.flags.writeable


def test_numbers_that_are_not_finite(path):
    loaded = again(Composition(Polynomial(coef0=np.inf, gamma=-np.inf), Gaussian(np.nan)), path)
    assert (loaded.outer.coef0, loaded.outer.gamma) == (np.inf, -np.inf)
    assert np.isnan(loaded.inner.length_scale)


def test_models_with_foreign_parts_are_refused(path):
    class Subclass(Fastfood):
        pass

    for model, sentence in [
        (StandardScaler(), "StandardScaler is an object of sklearn.*Use pickle or skops"),
        (FrozenEstimator(StandardScaler()), r"FrozenEstimator.estimator is an object of sklearn"),
        (Subclass(), "Subclass is an object of"),
        (
            Fastfood(Polynomial(1j)),
            "kernel.degree is an object of builtins.complex",
        ),
        (Maclaurin(np.array([1 + 2j])), "array of complex128, which files do not have"),
        (Maclaurin(np.array([1, "a"], dtype=object)), "not all strings"),
        (3, "models of kitchenette, one at a time; got 3"),
        ([Fastfood()], "one at a time"),
    ]:
        with pytest.raises(ModelFileError, match=sentence):
            save(model, path)
    assert not list(path.parent.iterdir())


def test_pickle_and_skops_work_as_well():
    skops = pytest.importorskip("skops.io")
    for feature_map in MAPS.values():
        fitted = clone(feature_map).fit(rows())
        Z = fitted.transform(rows())
        assert np.array_equal(pickle.loads(pickle.dumps(fitted)).transform(rows()), Z)
        dumped = skops.dumps(fitted)
        types = skops.get_untrusted_types(data=dumped)
        assert all(name.startswith(("kitchenette.", "numpy.")) for name in types)
        assert np.array_equal(skops.loads(dumped, trusted=types).transform(rows()), Z)


# ---------------------------------------------------------------- the file


def test_a_map_takes_a_kilobyte_whatever_its_size(path):
    X = np.random.default_rng(0).normal(size=(50, 784)).astype(np.float32)
    save(Fastfood(n_components=16384, random_state=0).fit(X), path)
    print(f"Fastfood with 16384 features: {path.stat().st_size} bytes")
    assert path.stat().st_size < 2000
    save(RandomMaclaurin(Exponential(20.0), n_components=16384).fit(X), path)
    print(f"RandomMaclaurin with 16384 features: {path.stat().st_size} bytes")
    assert path.stat().st_size < 4000


def test_a_file_serves_every_instruction_set(simd, path):
    for feature_map in MAPS.values():
        fitted = clone(feature_map).fit(rows(np.float32))
        save(fitted, path)
        for variant in _core.simd_variants():
            _core.set_simd(variant)
            Z = load(path).transform(rows())
            assert np.allclose(Z, fitted.transform(rows()))
        _core.set_simd(simd)


def test_the_safetensors_library_can_read_it(path):
    safetensors = pytest.importorskip("safetensors")
    statistics = LeastSquares(5).update(rows(), rows()[:, 0])
    save(statistics, path)
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata()["format"] == "kitchenette model"
        assert np.array_equal(file.get_tensor("LeastSquares.cross"), statistics.cross)
        assert np.array_equal(file.get_tensor("LeastSquares.gram"), statistics.gram.values)
    for feature_map in MAPS.values():
        save(clone(feature_map).fit(rows()), path)
        with safetensors.safe_open(path, "np") as file:
            assert all(file.get_tensor(name).ndim >= 1 for name in file.keys())  # noqa: SIM118


def test_a_failed_save_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    save(Gaussian(1.0), path)

    def full(descriptor):
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            save(Gaussian(2.0), path)
    with pytest.raises(ModelFileError):
        save(StandardScaler(), path)
    assert load(path) == Gaussian(1.0)
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(OSError, match="there is no folder"):
        save(Gaussian(1.0), path.parent / "missing" / "model")


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions_and_links_are_kept(path):
    before = os.umask(0o027)
    try:
        save(Gaussian(1.0), path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    link = path.with_name("link")
    link.symlink_to(path)
    save(Gaussian(2.0), link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert load(path) == load(link) == Gaussian(2.0)


# ---------------------------------------------------------------- files that are refused


def test_missing_files_and_folders_are_the_systems_errors(path):
    with pytest.raises(FileNotFoundError):
        load(path)
    with pytest.raises(OSError, match=r"directory|denied"):
        load(path.parent)
    with pytest.raises(FileNotFoundError, match=r"Cannot save to .*there is no folder .*nowhere"):
        save(Gaussian(), path.parent / "nowhere" / "model.safetensors")


def test_foreign_files_get_a_sentence(path):
    numpy_file, safetensors_file = path.with_name("a.npz"), path.with_name("a.safetensors")
    np.savez(numpy_file, a=np.ones(3))
    header = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    safetensors_file.write_bytes(len(header).to_bytes(8, "little") + header + b"abcd")
    for content in (
        b"",
        b"{",
        b"\0" * 100,
        b"a,b\n1,2\n",
        b'{"format": "kitchenette model"}',
        pickle.dumps(Fastfood()),
        numpy_file.read_bytes(),
        safetensors_file.read_bytes(),
    ):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="is not a model file of kitchenette"):
            load(path)


def test_a_file_that_was_cut_or_altered_anywhere_is_refused(path):
    save(Gaussian(np.array([1.0, 2.0])), path)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match=r"cut short|not a model file"):
            load(path)
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        with pytest.raises(ModelFileError):
            load(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(ModelFileError, match="longer than its arrays"):
        load(path)


def test_a_newer_format_is_named(path):
    save(Gaussian(1.0), path)
    edit(path, lambda objects: None, format_version="2", kitchenette_version="9.9")
    with pytest.raises(ModelFileError, match=r"format version 2.*kitchenette '9\.9'.*Upgrade"):
        load(path)
    edit(path, lambda objects: None, format_version="9" * 5000)
    with pytest.raises(ModelFileError, match="Upgrade"):
        load(path)
    edit(path, lambda objects: None, format_version="one")
    with pytest.raises(ModelFileError, match="its format version is 'one'"):
        load(path)


def test_parameters_that_a_newer_version_left_out_have_their_defaults(path):
    def parameters(objects):
        return objects[-1]["state"]["parameters"]["mapping"]

    save(Fastfood(n_components=3), path)
    edit(path, lambda objects: parameters(objects).pop("features"))
    assert load(path).features == "sincos"
    edit(path, lambda objects: parameters(objects).update(color="red"))
    with pytest.raises(ModelFileError, match="'color'"):
        load(path)
    save(Gaussian(1.0), path)
    edit(path, lambda objects: objects[-1]["state"].update(color="red"))
    with pytest.raises(ModelFileError, match="no parameter 'color'; is it of a newer version"):
        load(path)
    save(SRHT(3).fit(rows()), path)
    edit(path, lambda objects: state_of(objects, "SRHTSpecification").update(color="red"))
    with pytest.raises(ModelFileError, match="no value 'color'; is it of a newer version"):
        load(path)


@pytest.mark.parametrize("feature_map", MAPS.values(), ids=MAPS)
def test_a_map_that_comes_out_different_is_refused(feature_map, path):
    fitted = clone(feature_map).set_params(random_state=5).fit(rows())
    save(fitted, path)

    def change(objects):
        for entry in objects:
            if entry["class"].endswith("Specification"):
                entry["state"]["seed"] = 6
        if fitted.get_params().get("kernel") == Maclaurin([0.5, 1.0]):  # nothing is random
            objects[-1]["state"]["fingerprint"].reverse()

    edit(path, change)
    with pytest.raises(ModelFileError, match="it gives other features than the one that was saved"):
        load(path)


def test_another_maps_specification_is_refused(path):
    save(SRHT(3).fit(rows()), path)
    edit(path, lambda objects: objects[-1].update({"class": "RandomKitchenSinks"}))
    with pytest.raises(ModelFileError, match="the specification is that of another map"):
        load(path)


def test_no_class_is_looked_up_elsewhere(path):
    save(Gaussian(1.0), path)
    for name in ("os.system", "StandardScaler", "Kernel", "Solution", "", None, ["Gaussian"], {}):
        edit(path, lambda objects, name=name: objects[0].update({"class": name}))
        with pytest.raises(ModelFileError, match="unknown class"):
            load(path)


def test_objects_refer_to_earlier_ones_only(path):
    for number in (2, 3, -1, True, "0", None, 1.0):
        save(Composition(), path)
        edit(path, lambda o, number=number: o[-1]["state"].update(outer={"object": number}))
        with pytest.raises(ModelFileError, match="unknown form 'object'"):
            load(path)


def nested(levels):
    kernel = Gaussian(1.0)
    for _ in range(levels):
        kernel = Composition(Polynomial(), kernel)
    return kernel


def doubled(objects):
    """Go on with the chain of objects in a document as long as it is."""
    last = objects[-1]
    for number in range(len(objects) - 1, 2 * len(objects)):
        objects.append(deepcopy(last))
        objects[-1]["state"]["inner"] = {"object": number}


def test_levels_are_counted(path):
    assert again(nested(30), path) == nested(30)
    with pytest.raises(ModelFileError, match="too many levels"):
        save(nested(100), path)
    save(nested(60), path)
    edit(path, doubled)
    with pytest.raises(ModelFileError, match="too many levels"):
        load(path)
    save(Gaussian(1.0), path)
    for value in (json.loads("[" * 150 + "]" * 150), {"tuple": [{"mapping": {"a": {"tuple": 3}}}]}):
        edit(path, lambda objects, value=value: objects[0]["state"].update(length_scale=value))
        with pytest.raises(ModelFileError, match=r"levels|unknown form 'tuple'"):
            load(path)
    header, _, data = mutations.split(path.read_bytes())
    for text in ("[" * 100_000 + "]" * 100_000, "NaN", "[1e", '"\\x"', "1" * 5000):
        mutations_file = mutations.joined(header, None, data)
        assert b'"null"' in mutations_file
        header["__metadata__"].update(model=text, checksum="0" * 64)
        blank = json.dumps(header).encode()
        checksum = mutations.blake2b(blank + data, digest_size=32).hexdigest()
        blank = blank.replace(b"0" * 64, checksum.encode(), 1)
        path.write_bytes(len(blank).to_bytes(8, "little") + blank + data)
        with pytest.raises(ModelFileError, match="should be JSON is not"):
            load(path)


SIZES = ("n_components", "n_columns", "last_degree", "degree", "order")
FIRST_OF_CLASS = {type(feature_map): name for name, feature_map in reversed(MAPS.items())}
FEW_MAPS = [
    pytest.param(
        feature_map,
        id=name,
        marks=[] if name == FIRST_OF_CLASS[type(feature_map)] else pytest.mark.slow,
    )
    for name, feature_map in MAPS.items()
]


@pytest.mark.parametrize("feature_map", FEW_MAPS)
def test_no_size_is_believed(feature_map, path):
    save(clone(feature_map).fit(rows()), path)
    content = path.read_bytes()

    def enlarge(objects, value):
        for entry in objects:
            entry["state"].update({name: value for name in SIZES if name in entry["state"]})

    for value in (10**6, 10**9, 10**12, 10**18, 10**30, 10**400):
        path.write_bytes(content)
        edit(path, lambda objects, value=value: enlarge(objects, value))
        tracemalloc.start()
        try:
            with pytest.raises(ModelFileError):
                load(path, max_bytes=2**22, max_operations=1e8)
            assert tracemalloc.get_traced_memory()[1] < 2**23
        finally:
            tracemalloc.stop()
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"Load it with a larger max_bytes if you trust it"):
        load(path, max_bytes=100)
    with pytest.raises(ModelFileError, match=r"Load it with a larger max_operations if you trust"):
        load(path, max_operations=100)


@pytest.mark.parametrize("feature_map", FEW_MAPS)
def test_drawing_takes_no_more_memory_than_load_allows(feature_map, path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 300))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    n_components = 300 if isinstance(feature_map, TEFM) else 3000
    sized = clone(feature_map).set_params(n_components=n_components)
    for name in ("base", "up"):
        if f"{name}__n_components" in sized.get_params():
            sized.set_params(**{f"{name}__n_components": 4 * n_components})
    if not np.isscalar(sized.get_params().get("kernel__length_scale", 1.0)):
        sized.set_params(kernel__length_scale=1.0)
    save(sized.fit(X), path)
    budgets = []

    class Remembered(Budget):
        def __init__(self, *limits):
            super().__init__(*limits)
            budgets.append(self)

    monkeypatch.setattr(kitchenette.files.models, "Budget", Remembered)
    tracemalloc.start()
    try:
        load(path, max_operations=np.inf)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    in_file = path.stat().st_size
    assert peak < budgets[0].spent_bytes + in_file + 2**17


def test_strings_are_not_widened_without_end(path):
    save(Gaussian(1.0), path)
    strings = ["a" * 10**5, *["b"] * 10**5]
    edit(path, lambda o: o[0]["state"].update(length_scale={"strings": strings}))
    with pytest.raises(ModelFileError, match="an array of strings may take 4e"):
        load(path)


@pytest.mark.slow
def test_20000_mutated_files_load_or_raise_the_one_exception():
    """In a process of its own, whose memory is limited and measured."""
    pytest.importorskip("resource", reason="memory is limited with resource, on Unix only")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32)); "
    program = limit + "import mutations; mutations.main(20_000, 0)"
    outcomes = json.loads(printed_by(program, **WITH_ONE_THREAD))
    assert outcomes["grown"] < 4 * mutations.MAX_BYTES
    assert outcomes["loaded"] > 100
    assert sum(number for name, number in outcomes.items() if name.startswith("its ")) > 5000
