"""Small files that ask for much memory or work: they are refused with a message, and soon."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import mutations
import numpy as np
import pandas as pd
import pytest
from programs import WITH_ONE_THREAD, printed_by
from sklearn.random_projection import GaussianRandomProjection

from kitchenette import (
    SRHT,
    AutoMap,
    CRAFTMap,
    Fastfood,
    KernelClassifier,
    KernelPCA,
    KernelRegressor,
    ModelFileError,
    load,
    save,
)
from kitchenette.columns.codings import HashedCategories
from kitchenette.columns.preparation import Columns, UnitRows
from kitchenette.data import source
from kitchenette.files import container, registry
from kitchenette.files.codec import encode
from kitchenette.jobs import Checkpoint
from kitchenette.kernels import (
    BesselMatern,
    Composition,
    Exponential,
    Gaussian,
    Kernel,
    Laplacian,
    Matern,
    Polynomial,
    VovkPolynomial,
)
from kitchenette.maps.craft import CRAFTSpecification
from kitchenette.maps.fastfood import FastfoodSpecification
from kitchenette.maps.kitchen_sinks import KitchenSinksSpecification
from kitchenette.maps.prepared import PreparedSpecification
from kitchenette.maps.random_maclaurin import MaclaurinSpecification
from kitchenette.maps.srht import SRHTSpecification
from kitchenette.maps.tensor_sketch import TensorSketchSpecification
from kitchenette.training import partial, partial_of, prepare

# Loading a file of less than 10 KB may take three seconds of work and a gigabyte. Work is counted
# in operations of about two nanoseconds, as `Budget` grants them before anything is drawn, because
# times depend on how busy the machine is.
OPERATIONS = 1.5e9
BYTES = 2**30
# The system ends the process if one file takes more processor time than this, so that work which
# no budget counts is noticed as well.
SECONDS = 15


def sinks(n_columns: int, n_components: int, kernel: Any = Gaussian(1.0), **options: Any) -> Any:
    return KitchenSinksSpecification(
        n_columns=n_columns, n_components=n_components, seed=0, kernel=kernel, **options
    )


def fastfood(n_columns: int, n_components: int, kernel: Any = Gaussian(1.0), **options: Any) -> Any:
    return FastfoodSpecification(
        n_columns=n_columns, n_components=n_components, seed=0, kernel=kernel, **options
    )


def maclaurin(kernel: Any, n_columns: int, n_components: int, last: int, **options: Any) -> Any:
    return MaclaurinSpecification(
        n_columns=n_columns,
        n_components=n_components,
        seed=0,
        kernel=kernel,
        last_degree=last,
        largest=1.0,
        **options,
    )


def spread_counts(n_terms: int, n_components: int) -> dict[str, Any]:
    """Equally many features for all degrees."""
    share = n_components // n_terms
    counts = np.full(n_terms, share)
    counts[0] += n_components - share * n_terms
    return {"counts": counts, "expected": counts.astype(np.float64)}


def srht(n_columns: int, n_components: int) -> SRHTSpecification:
    return SRHTSpecification(n_columns=n_columns, n_components=n_components, seed=0)


def sketch(kernel: Polynomial, n_columns: int, n_components: int, **options: Any) -> Any:
    return TensorSketchSpecification(
        n_columns=n_columns,
        n_components=n_components,
        seed=0,
        kernel=kernel,
        last_degree=kernel.degree,
        largest=1.0,
        **options,
    )


def craft(up: Any, n_components: int) -> CRAFTSpecification:
    return CRAFTSpecification(
        n_columns=up.n_columns,
        n_components=n_components,
        seed=0,
        up=up,
        down=srht(up.n_components, n_components),
    )


# The specification, and the name of its map's class.
TOO_MUCH: dict[str, tuple[Any, str]] = {
    "sketch of a high degree": (sketch(Polynomial(10**3), 5, 2**20), "TensorSketch"),
    "tree of a high degree": (sketch(Polynomial(10**3), 5, 2**20, tree=True), "TensorSketch"),
    "500 degrees, complex": (
        maclaurin(
            Exponential(), 10**5, 10**6, 499, projection="complex", **spread_counts(500, 10**6)
        ),
        "RandomMaclaurin",
    ),
    "orthogonal sinks": (sinks(3000, 6000, kind="orthogonal"), "RandomKitchenSinks"),
    "Vovk composition": (
        maclaurin(Composition(VovkPolynomial(10**7), Polynomial(1)), 5, 64, 10**7),
        "RandomMaclaurin",
    ),
    "Vovk composition, truncated": (
        maclaurin(
            Composition(VovkPolynomial(10**7), Polynomial(1)), 5, 64, 3, **spread_counts(4, 64)
        ),
        "RandomMaclaurin",
    ),
    "500 degrees": (
        maclaurin(Exponential(), 10**5, 10**6, 499, **spread_counts(500, 10**6)),
        "RandomMaclaurin",
    ),
    "500 degrees, rademacher": (
        maclaurin(Polynomial(499), 10**4, 10**4, 499, projection="rademacher", degrees="geometric"),
        "RandomMaclaurin",
    ),
    "local templates of many columns": (
        fastfood(10**5, 10**5, features="local", template_spread=0.5),
        "Fastfood",
    ),
    "many components": (fastfood(10, 10**9), "Fastfood"),
    "many columns": (fastfood(10**9, 10), "Fastfood"),
    "Bessel functions of a high order": (
        fastfood(10, 10**4, kernel=BesselMatern(10**6, 1.0)),
        "Fastfood",
    ),
    "wide SRHT": (srht(10**9, 1), "SRHT"),
    "unit rows of many columns": (
        PreparedSpecification.of(UnitRows(n_columns=10**9)),
        "PreparedMap",
    ),
    "copies of many columns": (
        PreparedSpecification.of(
            Columns(n_columns=10**9, parts=(UnitRows(n_columns=1),), columns=np.array([7]))
        ),
        "PreparedMap",
    ),
    "a huge map inside": (craft(sinks(10**5, 10**5), 10), "CRAFTMap"),
}
# Whether these are refused is a matter of their estimated cost, but they cannot be expensive.
NEAR_THE_LIMIT: dict[str, tuple[Any, str]] = {
    "sinks": (sinks(1000, 50_000), "RandomKitchenSinks"),
    "sinks of one column": (sinks(1, 2_500_000), "RandomKitchenSinks"),
    "sinks of Laplacian": (sinks(1000, 50_000, Laplacian(1.0)), "RandomKitchenSinks"),
    "orthogonal sinks of two columns": (
        sinks(2, 170_000, kind="orthogonal"),
        "RandomKitchenSinks",
    ),
    "quasi-random sinks": (sinks(50, 400_000, kind="quasi"), "RandomKitchenSinks"),
    "fastfood": (fastfood(100, 1_800_000), "Fastfood"),
    "fastfood of Matern": (fastfood(100, 1_100_000, Matern(1.5, 1.0)), "Fastfood"),
    "local": (fastfood(8192, 15_000, features="local", template_spread=0.5), "Fastfood"),
    "wide fastfood": (fastfood(1_600_000, 1), "Fastfood"),
    "srht": (srht(10, 4_000_000), "SRHT"),
    "wide srht": (srht(3_500_000, 10), "SRHT"),
    "maclaurin": (
        maclaurin(Exponential(), 100, 700_000, 19, **spread_counts(20, 700_000)),
        "RandomMaclaurin",
    ),
    "maclaurin rademacher": (
        maclaurin(Polynomial(5), 100, 300_000, 5, projection="rademacher", degrees="geometric"),
        "RandomMaclaurin",
    ),
    "sketch": (sketch(Polynomial(10), 100, 2**18), "TensorSketch"),
    "tree": (sketch(Polynomial(10), 100, 2**17, tree=True), "TensorSketch"),
    "tree of a high degree": (sketch(Polynomial(500), 10, 2048, tree=True), "TensorSketch"),
    "wide tree": (sketch(Polynomial(4), 2_000_000, 16, tree=True), "TensorSketch"),
    "complex maclaurin": (
        maclaurin(
            Exponential(), 100, 500_000, 19, projection="complex", **spread_counts(20, 500_000)
        ),
        "RandomMaclaurin",
    ),
    "wide complex maclaurin": (
        maclaurin(Polynomial(3), 300_000, 20, 3, projection="complex", **spread_counts(4, 20)),
        "RandomMaclaurin",
    ),
    "wide sketch": (sketch(Polynomial(4), 4_000_000, 16), "TensorSketch"),
    "wide sinks": (sinks(400_000, 1), "RandomKitchenSinks"),
    "wide orthogonal sinks": (sinks(200_000, 1, kind="orthogonal"), "RandomKitchenSinks"),
    "wide maclaurin rademacher": (
        maclaurin(Polynomial(2), 2_000_000, 5, 2, projection="rademacher", degrees="geometric"),
        "RandomMaclaurin",
    ),
}


def write(
    path: Path, specification: Any, class_name: str, fingerprint: Any = (0.0,) * 8, count: int = 1
) -> None:
    """A file with maps of this specification, by default with features that it does not have."""
    document, arrays = encode(specification)
    fitted = {"specification_": {"object": len(document["objects"]) - 1}}
    state = {
        "parameters": {"mapping": {"n_components": 1}},
        "fitted": {"mapping": fitted},
        "fingerprint": [*fingerprint],
    }
    document["objects"] += [{"class": class_name, "state": state}] * count
    with path.open("wb") as file:
        container.write(file, document, arrays)
    assert path.stat().st_size < 10_000


LOADING = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
import kitchenette, kitchenette.jobs
from kitchenette.files import models
from peak_memory import peak

class Counted(models.Budget):
    made = []

    def __init__(self, *limits):
        super().__init__(*limits)
        self.made.append(self)

def loaded(path):
    Counted.made.clear()
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + 1 + SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
    try:
        kitchenette.load(path)
        answer = ""
    except kitchenette.ModelFileError as error:
        answer = str(error)
    operations = sum(budget.spent_operations for budget in Counted.made)
    after = resource.getrusage(resource.RUSAGE_SELF)
    seconds = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    grown = peak() - start
    return {"answer": answer, "operations": operations, "grown": grown, "seconds": seconds}

models.Budget, start = Counted, peak()
print(json.dumps([loaded(path) for path in sys.argv[1:]]))
"""


def loaded_elsewhere(*paths: Path) -> list[dict[str, Any]]:
    """What loading each file says, in a process whose memory and time for each are limited.

    The growth of the memory is its peak for this file and all before it.
    """
    pytest.importorskip("resource", reason="memory is limited with resource, on Unix only")
    program = LOADING.replace("SECONDS", str(SECONDS))
    answers: list[dict[str, Any]] = json.loads(printed_by(program, *paths, **WITH_ONE_THREAD))
    assert len(answers) == len(paths)
    for path, found in zip(paths, answers, strict=True):
        print(f"{path.name}: {found['seconds']:.2f} s, {found['grown'] / 1e6:.0f} MB")
        assert found["operations"] < OPERATIONS, path.name
        assert found["grown"] < BYTES, path.name
    return answers


def test_small_files_that_ask_for_much_are_refused_in_words(tmp_path):
    paths = {tmp_path / name: given for name, given in TOO_MUCH.items()}
    for path, (specification, class_name) in paths.items():
        write(path, specification, class_name)
    for found in loaded_elsewhere(*paths):
        sentence = found["answer"]
        assert re.search(r"its \w+ is not valid: .*(larger max_|degree|inner map)", sentence), (
            sentence
        )
        assert found["grown"] < BYTES / 4


@pytest.mark.slow
@pytest.mark.parametrize("name", NEAR_THE_LIMIT)
def test_what_is_not_refused_is_cheap(name, tmp_path):
    write(tmp_path / "model", *NEAR_THE_LIMIT[name])
    [found] = loaded_elsewhere(tmp_path / "model")
    sentence = found["answer"]
    assert "gives other features" in sentence or "larger max_" in sentence, sentence


@pytest.mark.slow
def test_many_maps_of_one_specification_are_counted_each(tmp_path):
    path, specification = tmp_path / "model", fastfood(100, 1_000_000)
    # The right features, so that loading goes on from map to map.
    fingerprint = [round(number, 6) for number in specification.fingerprint()]
    write(path, specification, "Fastfood", fingerprint, count=30)
    [found] = loaded_elsewhere(path)
    assert "using a FastfoodSpecification once more may take" in found["answer"]


def test_a_larger_limit_lets_a_large_map_in(tmp_path):
    path = tmp_path / "model"
    write(path, fastfood(10, 2000), "Fastfood")
    with pytest.raises(ModelFileError, match="larger max_operations if you trust it"):
        load(path, max_operations=1e5)
    with pytest.raises(ModelFileError, match="gives other features"):
        load(path, max_operations=np.inf)


def test_objects_that_refer_to_each_other_do_not_multiply(tmp_path):
    """A message about a chain of 40 pairs of kernels would be a text of 2^40 kernels."""
    path = tmp_path / "model"
    entries: list[dict[str, Any]] = [{"class": "Gaussian", "state": {"length_scale": 1.0}}]
    for number in range(40):
        pair = {"outer": {"object": number}, "inner": {"object": number}}
        entries.append({"class": "Composition", "state": pair})
    kernel = {"object": len(entries) - 1}
    values = {"n_columns": 3, "n_components": 4, "seed": 0, "kernel": kernel}
    entries.append({"class": "KitchenSinksSpecification", "state": values})
    with path.open("wb") as file:
        container.write(file, {"objects": entries}, {})
    with pytest.raises(ModelFileError, match="refer to each other too often"):
        load(path)


# ---------------------------------------------------------------- every number of a small file


def small_models() -> dict[str, Any]:
    """Objects of all classes that are stored beside maps, in files of less than ten kilobytes."""
    rng = np.random.default_rng(0)
    X, feature_map = rng.normal(size=(24, 3)), Fastfood(n_components=4, random_state=0)
    regressor = KernelRegressor(feature_map, alpha=1.0, validation_rows=8).fit(X, X[:, 0])
    balanced = KernelClassifier(feature_map, alpha=1.0, class_weight="balanced")
    balanced.fit(X, np.arange(24) % 2)
    frame = pd.DataFrame(
        {
            "city": np.array(["Oslo", "Rome"])[np.arange(24) % 2],
            "day": pd.date_range("2020-01-01", periods=24),
            "size": np.where(np.arange(24) % 5, X[:, 0], np.nan),
            "y": X[:, 1],
        }
    )
    rows = source(frame, target="y", dates="days")
    prepared = prepare(KernelRegressor(feature_map, validation_rows=8), rows)
    projections = CRAFTMap(feature_map, 2, down=GaussianRandomProjection(2), random_state=0)
    checkpoint = Checkpoint("a fingerprint", {"seed": 0}, prepared, {"n_sample": 24}, 24)
    return {
        "regressor": regressor,
        "partial": partial_of(regressor),
        "classifier": balanced,
        "partial of classes": partial_of(balanced),
        "iterative": KernelRegressor(feature_map, solver="iterative").fit(X, X[:, 0]),
        "components": KernelPCA(2, feature_map).fit(X),
        "projections": projections.fit(X).specification_,
        "transform": SRHT(2, random_state=0).fit(X),
        "automatic map": AutoMap(4, random_state=0).fit(X, X[:, 0]),
        "table": prepared,
        "checkpoint": replace(checkpoint, partial=partial(prepared, rows), stop=24),
        "hashed categories": HashedCategories(0, 8),
    }


def with_huge_numbers(content: bytes) -> list[bytes]:
    """Files in each of which one whole number is huge."""
    header, document, data = mutations.split(content)
    found = []
    for holder, key in mutations.places(document):
        value = holder[key]
        if type(value) is not int:
            continue
        for huge in (10**6, 2 * 10**7, 2**62):
            holder[key] = huge
            found.append(mutations.joined(header, document, data))
        holder[key] = value
    return found


def _is_of_the_package(cls: type) -> bool:
    """Whether a class is neither from a test nor from an example in a docstring that has run."""
    module = sys.modules.get(cls.__module__)
    return cls.__module__.startswith("kitchenette.") and getattr(module, cls.__name__, None) is cls


def test_all_classes_that_files_have_are_tried():
    """A class that is new in files needs a case in this module or in `mutations`."""
    specifications = [given for given, _ in (*TOO_MUCH.values(), *NEAR_THE_LIMIT.values())]
    tried = set()
    for model in (*specifications, *small_models().values(), *mutations.models()):
        tried |= {entry["class"] for entry in encode(model)[0]["objects"]}
    stored = {
        name
        for name, storage in registry._BY_NAME.items()
        if not issubclass(storage.cls, Kernel) and _is_of_the_package(storage.cls)
    }
    assert stored - tried == set()


@pytest.mark.slow
def test_no_number_of_a_small_file_makes_loading_expensive(tmp_path):
    paths = []
    for name, model in small_models().items():
        path = tmp_path / name
        save(model, path)
        assert path.stat().st_size < 10_000
        for number, content in enumerate(with_huge_numbers(path.read_bytes())):
            paths.append(tmp_path / f"{name} {number}")
            paths[-1].write_bytes(content)
    assert len(paths) > 200
    refused = [found for found in loaded_elsewhere(*paths) if found["answer"]]
    assert len(refused) > len(paths) / 2


WRONG_PARAMETERS = {
    "alpha": ["much", -1.0, {"a": 1}, [[1.0]], True],
    "fit_intercept": ["yes", 1, None],
    "validation_rows": [-1, 2.5, "many", None],
    "loss": ["none", 3, None],
    "solver": ["fast", 0],
    "max_iter": [0, 1.5, "all"],
    "tol": [2.0, "small", None],
    "warm_start": ["no", 2],
    "random_state": ["seed", -1, 1.5, True, 2**64],
    "verbose": ["loud", None, [1]],
    "feature_map": [3, "fast", Gaussian(1.0), [1]],
}
OF_CLASSIFIERS = {
    "class_weight": ["fair", 2, [1.0], {"a": "heavy"}, {"a": -1.0}, {"a": None}],
    "code": ["two", 1, [1]],
    "decoding": ["hard", 1],
}
CHANGED = [
    (cls, name, value)
    for cls in (KernelRegressor, KernelClassifier)
    for name, values in (
        WRONG_PARAMETERS | (OF_CLASSIFIERS if cls is KernelClassifier else {})
    ).items()
    for value in values
]
CHANGED += [(KernelPCA, "n_components", 1.5), (KernelPCA, "whiten", "yes")]
CHANGED += [(Fastfood, "n_components", "many"), (Fastfood, "features", 3)]
CHANGED += [(Fastfood, "random_state", "seed"), (AutoMap, "scales", 1)]


@pytest.mark.parametrize(("cls", "name", "value"), CHANGED)
def test_parameters_that_fit_refuses_are_refused_in_files(cls, name, value, tmp_path):
    good, bad = tmp_path / "good", tmp_path / "bad"
    save(cls(), good)
    assert type(load(good)) is cls
    forged = cls()
    vars(forged)[name] = value
    save(forged, bad)
    with pytest.raises(ModelFileError, match=name):
        load(bad)
