"""Model files that were altered at random, and what becomes of them.

Half of them are altered anywhere. The others have a checksum that is right, so that what
comes after it is reached: names, numbers and arrays that make no sense.
"""

from __future__ import annotations

import json
import random
import struct
import sys
import tempfile
import time
import warnings
from collections import Counter
from copy import deepcopy
from hashlib import blake2b
from pathlib import Path

import numpy as np
from peak_memory import peak
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    Normalizer,
    OneHotEncoder,
    QuantileTransformer,
    StandardScaler,
)

import kitchenette
from kitchenette import (
    TEFM,
    CRAFTMap,
    Fastfood,
    KernelClassifier,
    KernelRegressor,
    LeastSquares,
    RandomKitchenSinks,
    RandomMaclaurin,
    TensorSketch,
)
from kitchenette.columns.categories import Substitute
from kitchenette.columns.preparation import LinearColumns, Sequence
from kitchenette.kernels import Composition, Exponential, Gaussian, Polynomial, SphericalPolynomial
from kitchenette.learning import OutputCode
from kitchenette.maps.prepared import PreparedSpecification
from kitchenette.maps.prepared_map import PreparedMap

MAX_BYTES = 2**22
MAX_OPERATIONS = 1e7
# Values that mean something somewhere else, or too much.
VALUES = [
    None, True, False, 0, 1, -1, 2, 7, 64, 10**3, 10**6, 10**12, 2**63, 2**64, 10**400, 0.0, -0.5,
    1e-300, 1e300, "", "float64", "offset", "local", "orthogonal", "fourier", "geometric", "median",
    "rademacher", "quasi", "\ud800", [], [1.0, 2.0], [[0]], {}, {"number": "nan"},
    {"number": "inf"}, {"object": 0}, {"object": 1}, {"object": 2}, {"array": "gram"},
    {"tuple": [1, 2]}, {"mapping": {}}, {"mapping": {"features": "local"}}, {"strings": ["a"]},
]  # fmt: skip
CLASSES = [
    "Fastfood", "Gaussian", "Polynomial", "LeastSquares", "FastfoodSpecification",
    "KernelRegressor", "SRHTSpecification", "os", "PreparedMap", "Columns", "UnfittedStep",
]  # fmt: skip
NAMES = ["class", "state", "fitted", "parameters", "x"]


def models() -> list[object]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    maps = [
        Fastfood(n_components=8, random_state=0),
        Fastfood(Gaussian(np.full(5, 2.0)), n_components=9, features="local", random_state=0),
        Fastfood(Exponential(), n_components=9, projection="orthogonal", random_state=0),
        Fastfood(SphericalPolynomial(), n_components=9, random_state=0),
        RandomKitchenSinks(n_components=8, frequencies="orthogonal", random_state=0),
        RandomMaclaurin(Exponential(), n_components=9, h01=True, random_state=0),
        RandomMaclaurin(Polynomial(2), n_components=9, projection="rademacher", random_state=0),
        RandomMaclaurin(Composition(Polynomial(2), Gaussian()), n_components=9, random_state=0),
        TensorSketch(n_components=7, random_state=0),
        CRAFTMap(TensorSketch(n_components=16, random_state=0), n_components=5, random_state=0),
        TEFM(Fastfood(n_components=8, random_state=0), n_components=3, random_state=0),
    ]
    statistics = LeastSquares(5, 2).update(X, X[:, :2])
    labels = np.where(X[:, 0] > 0, "yes", "no")
    frozen = FrozenEstimator(Fastfood(n_components=8, random_state=0).fit(X))
    estimators = [
        KernelClassifier(frozen, random_state=0).fit(X, labels),
        KernelRegressor(TensorSketch(n_components=7, random_state=0), alpha=0.1).fit(X, X[:, :2]),
        KernelRegressor(pipeline(), alpha=0.1).fit(X, X[:, 0]),
    ]
    for estimator in estimators:
        estimator.predict(X)  # solves
    words = np.array([["a", "x"], ["b", "y"], ["a", "y"]], dtype=object)
    estimators.append(KernelRegressor(OneHotEncoder()).fit(words, [0.0, 1.0, 2.0]))
    mixed = Sequence.of(
        Substitute(
            n_columns=5,
            columns=np.array([1, 3]),
            replaced=np.array([100.0, 0.0]),
            substitute=np.array([-1.0, 1.0]),
        ),
        LinearColumns.of(np.eye(5, 3)),
    )
    inner = Fastfood(n_components=8, random_state=0).fit(X[:, :3]).specification_
    estimators.append(PreparedMap.of(PreparedSpecification.of(mixed, inner)))
    return [*(m.fit(X) for m in maps), statistics, OutputCode.random(4, 9, seed=0), *estimators]


def pipeline() -> Pipeline:
    """Every kind of preparation before a map."""
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler(), Normalizer()), [0, 1]),
        (QuantileTransformer(n_quantiles=4), [2]),
        (OneHotEncoder(handle_unknown="ignore"), [3]),
        remainder="passthrough",
    )
    return make_pipeline(columns, Fastfood(n_components=8, random_state=0))


def split(content: bytes) -> tuple[dict, dict, bytes]:
    """Header, document and data of a file."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["model"]), content[8 + length :]


def joined(header: dict, document: object, data: bytes) -> bytes:
    """A file with the right checksum."""
    metadata = header["__metadata__"]
    metadata.update(model=json.dumps(document), checksum="0" * 64)
    text = json.dumps(header).encode()
    checksum = blake2b(text + data, digest_size=32).hexdigest()
    text = text.replace(b"0" * 64, checksum.encode(), 1)
    return struct.pack("<Q", len(text)) + text + data


def damaged(content: bytes, rng: random.Random) -> bytes:
    """One to three changes anywhere."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            del changed[at:]
        elif kind == 1:
            del changed[at : at + rng.randint(1, 16)]
        elif kind == 2:
            changed[at:at] = rng.randbytes(rng.randint(1, 16))
        elif kind == 3:
            changed[at : at + 8] = rng.randbytes(8)
        elif at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
    return bytes(changed)


def places(value: object) -> list[tuple[object, object]]:
    """All containers and keys in a JSON value."""
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    else:
        return []
    return [(value, key) for key, _ in items] + [p for _, item in items for p in places(item)]


def edited(content: bytes, rng: random.Random) -> bytes:
    """One to three changes of values, names or numbers, under a new checksum."""
    header, document, data = split(content)
    numbers = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        if not places(document):
            break
        kind = rng.randrange(10)
        tables = {name: entry for name, entry in header.items() if name != "__metadata__"}
        container, key = rng.choice(places(tables if kind == 0 and tables else document))
        if kind == 1 and numbers:
            at = rng.randrange(len(numbers) // 8 or 1) * 8
            numbers[at : at + 8] = struct.pack("<d", rng.choice([0.0, -1.0, 1e300, np.nan, 7.0]))
        elif kind == 2 and numbers:
            at = rng.randrange(len(numbers) // 8 or 1) * 8
            numbers[at : at + 8] = struct.pack("<q", rng.choice([0, -1, 1, 9, 2**31, 2**62]))
        elif kind == 3:
            del container[key]
        elif kind == 4 and isinstance(container, dict):
            container[rng.choice(["class", "state", "fitted", "parameters", "x"])] = container.pop(
                key
            )
        elif kind == 5 and isinstance(container, list):
            container.insert(key, deepcopy(container[key]))
        elif isinstance(container[key], int) and rng.random() < 0.5:
            container[key] += rng.choice([-1, 1])
        elif key == "class":
            container[key] = rng.choice(CLASSES)
        else:
            container[key] = deepcopy(rng.choice(VALUES))
    return joined(header, document, bytes(numbers))


def main(count: int, seed: int) -> None:
    warnings.simplefilter("error")
    rng = random.Random(seed)
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        originals = []
        for model in models():
            kitchenette.save(model, path)
            originals.append(path.read_bytes())
            kitchenette.load(path)
        before = peak()
        start = time.perf_counter()
        for number in range(count):
            content = originals[number % len(originals)]
            altered = (damaged if number % 2 else edited)(content, rng)
            path.write_bytes(altered)
            try:
                kitchenette.load(path, max_bytes=MAX_BYTES, max_operations=MAX_OPERATIONS)
                outcomes["loaded"] += 1
            except kitchenette.ModelFileError as error:
                outcomes[str(error).split(": ", 1)[1][:40]] += 1
    seconds = time.perf_counter() - start
    print(json.dumps({"grown": peak() - before, "seconds": seconds, **outcomes}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
