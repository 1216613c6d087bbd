"""Files with pipelines: only listed classes, no functions, no folders of pickles."""

from __future__ import annotations

import json

import mutations
import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from kitchenette import Fastfood, KernelRegressor, ModelFileError, load, save
from kitchenette.maps.prepared_map import PreparedMap

X = np.random.default_rng(0).normal(size=(60, 3))
WORDS = np.array([["a", "x"], ["b", "y"], ["a", "y"]], dtype=object)


def model(*steps):
    return KernelRegressor(make_pipeline(*steps, Fastfood(n_components=8, random_state=0)))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def edit(path, name, change):
    """Change the state of the first object of a class, under a checksum that is right."""
    header, document, data = mutations.split(path.read_bytes())
    change(next(entry["state"] for entry in document["objects"] if entry["class"] == name))
    path.write_bytes(mutations.joined(header, document, data))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": "os.system"}, "there is no step"),
        ({"name": "RBFSampler"}, "there is no step"),
        ({"name": ["Pipeline"]}, "name cannot be"),
        ({"parameters": {"mapping": {"func": "print"}}}, "func of a step does not come from files"),
        ({"parameters": {"mapping": {"memory": "/tmp"}}}, "memory of a step does not come"),
        ({"parameters": {"mapping": {"x": 1}}}, "there is no parameter 'x'"),
        ({"parameters": {"mapping": {"copy": {"mapping": {}}}}}, "unknown form"),
        ({"more": 1}, "there is no value 'more'"),
    ],
)
def test_steps_are_of_listed_classes_and_have_plain_parameters(change, sentence, path):
    save(model(StandardScaler()), path)
    edit(path, "UnfittedStep", lambda state: state.update(change))
    with pytest.raises(ModelFileError, match=sentence):
        load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ColumnAffine", {"low": {"number": "nan"}}),
        ("ColumnAffine", {"n_columns": 4}),
        ("PreparedSpecification", {"inner": None}),
        ("PreparedSpecification", {"n_components": 9}),
        ("PreparedSpecification", {"preparation": 3}),
        ("PreparedSpecification", {"vocabularies": {"tuple": [1]}}),
        ("PreparedMap", {"fingerprint": None}),
        ("PreparedMap", {"fingerprint": [0.0] * 8}),
        ("PreparedMap", {"fitted": {"mapping": {}}}),
    ],
)
def test_prepared_maps_are_checked(name, change, path):
    save(model(StandardScaler()).fit(X, X[:, 0]), path)
    edit(path, name, lambda state: state.update(change))
    with pytest.raises(ModelFileError, match="is not valid"):
        load(path)


def test_the_map_inside_must_be_that_of_the_specification(path):
    save(model(StandardScaler()).fit(X, X[:, 0]), path)
    for change in ({"map_": 1}, {"map_": {"object": 0}}, {"by_name_": True}, {"by_name_": 1}):
        before = path.read_bytes()
        edit(path, "PreparedMap", lambda state, c=change: state["fitted"]["mapping"].update(c))
        with pytest.raises(ModelFileError, match="PreparedMap is not valid"):
            load(path)
        path.write_bytes(before)


@pytest.mark.parametrize("words", [["a", "a"], ["a", 1], [], ["b"]])
def test_words_are_checked(words, path):
    encoder = KernelRegressor(OneHotEncoder()).fit(WORDS, [0.0, 1.0, 2.0])
    save(encoder, path)
    edit(path, "Vocabulary", lambda state: state["categories"].update(tuple=words))
    if words in (["a", "a"], ["a", 1]):
        with pytest.raises(ModelFileError, match="categories"):
            load(path)
    else:  # words that are missing are unknown ones
        with pytest.raises(ValueError, match="unknown categories"):
            load(path).predict(WORDS)


def test_pipelines_with_functions_or_memory_cannot_name_them(path, tmp_path):
    for unfitted, sentence in (
        (model(FunctionTransformer(np.tanh)), r"tanh.* cannot be stored"),
        (model(StandardScaler()).set_params(feature_map__memory=str(tmp_path)), "memory of a step"),
    ):
        with pytest.raises(ModelFileError, match=sentence):
            save(unfitted, path)
    cached = model(StandardScaler()).set_params(feature_map__memory=str(tmp_path)).fit(X, X[:, 0])
    save(cached, path)
    loaded = load(path)
    assert isinstance(loaded.feature_map, FrozenEstimator)
    np.testing.assert_array_equal(loaded.predict(X), cached.predict(X))


def test_a_file_has_numbers_and_names_of_steps_only(path):
    steps = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), [0, 1]), remainder="passthrough"
    )
    save(model(steps).fit(X, X[:, 0]), path, statistics=False)
    document = json.dumps(mutations.split(path.read_bytes())[1])
    assert "sklearn" not in document
    assert isinstance(load(path).feature_map_, PreparedMap)
    assert path.stat().st_size < 12_000
