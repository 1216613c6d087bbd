"""One native operator of every kind, and rows for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from kitchenette import _core
from kitchenette.sketching.combinations import concatenate
from kitchenette.sketching.count_sketch import draw_buckets, draw_signs, tensor_power_sketch
from kitchenette.sketching.dense import matrix_product
from kitchenette.sketching.operators import NativeOperator, affine, chain
from kitchenette.sketching.products import (
    draw_complex_products,
    draw_hadamard_products,
    draw_rademacher_products,
)
from kitchenette.sketching.sketch_tree import draw_tree, tree_of_sketches
from kitchenette.sketching.structured import draw_fastfood, draw_orthogonal

D_IN = 11
TYPES = [np.float32, np.float64]


def product(height, width, dtype):
    return matrix_product(matrix(height, width, dtype), dtype)


def power_tail(n, dtype, row_power, degrees=None):
    degrees = np.resize([2, 1, 0], n) if degrees is None else degrees
    return _core.Nonlinearity(
        "power",
        terms=np.ones(n, dtype),
        degrees=degrees.astype(np.int32),
        leading=np.ones(2, dtype),
        trailing=np.zeros(2, dtype),
        row_power=row_power,
    )


def tails(n, dtype):
    """All tails, for projections whose arrays have n numbers."""
    return {
        "identity": _core.Nonlinearity("identity"),
        "sincos": _core.Nonlinearity("sincos", 0.5, unpaired_offset=1.0),
        "offset": _core.Nonlinearity("offset", 0.5, terms=np.linspace(0, 6, n).astype(dtype)),
        "local": _core.Nonlinearity("local", terms=np.zeros(n, dtype), row_weight=0.5),
        "power": power_tail(n, dtype, 2),
        "plain power": power_tail(n, dtype, -1),
        "constant power": power_tail(n, dtype, 0, np.zeros(n)),
    }


def panels(n_frequencies, n_columns, dtype):
    rng = np.random.default_rng(5)
    shape = (-(-n_frequencies // 64), n_columns, 64)
    return rng.normal(size=shape).astype(dtype)


def operators(dtype):
    """One operator of every kind, by name; some have several tails."""
    made = {}
    fastfood = draw_fastfood(300, D_IN, 0, dtype)
    orthogonal = draw_orthogonal(150, D_IN, 0, dtype)
    for name, tail in tails(fastfood.scales.size, dtype).items():
        made[f"fastfood {name}"] = fastfood.operator(tail, 299)
    for name, tail in tails(orthogonal.scales.size, dtype).items():
        made[f"orthogonal {name}"] = orthogonal.operator(tail, 150)
    for name in ("identity", "sincos", "offset"):
        tail = tails(200, dtype)[name]
        native = _core.dense(tail, panels=panels(200, D_IN, dtype), n_features=199)
        made[f"dense {name}"] = NativeOperator(native)
    for draw in (draw_hadamard_products, draw_rademacher_products):
        for kind, degrees in {
            "mixed": np.resize([3, 2, 1, 0], 150),
            "constant": np.zeros(90),
        }.items():
            products = draw(degrees.astype(np.int32), np.ones(degrees.size), D_IN, 0, dtype)
            made[f"{draw.__name__} {kind}"] = products.operator()
    for degree, D, frequency in [(1, 50, False), (1, 64, True), (2, 50, True), (3, 64, False)]:
        buckets = draw_buckets(degree, D_IN + 1, D, 0)
        signs = draw_signs(degree, D_IN + 1, 0) * 0.5
        sketch = tensor_power_sketch(buckets, signs, D, D_IN, dtype, frequency=frequency)
        made[f"tensor sketch {degree} {D} {frequency}"] = sketch
    for kind, degrees in {"pairs": [3] * 40 + [2] * 30, "mixed": [3] * 40 + [2, 1, 0]}.items():
        products = draw_complex_products(
            np.array(degrees, np.int32), np.ones(len(degrees)), D_IN, 0, dtype
        )
        made[f"complex products {kind}"] = products.operator()
    for degree, D, frequency in [(2, 64, False), (3, 50, False), (5, 64, True), (4, 21, True)]:
        made[f"sketch tree {degree} {D} {frequency}"] = tree_of_sketches(
            draw_tree(degree, D_IN + 1, D, 0),
            np.ones(D_IN + 1),
            D,
            D_IN,
            dtype,
            frequency=frequency,
        )
    made["affine"] = affine(D_IN, 0.5, 2.0, dtype)
    made["affine constant"] = affine(D_IN, 0.5, 0.0, dtype)
    made["chain"] = chain(made["fastfood sincos"], made_srht(299, 70, dtype))
    made["chain of dense"] = chain(made["dense offset"], product(199, 30, dtype))
    made["concatenation"] = concatenate(
        [made["affine"], made["fastfood local"], made["chain"]], D_IN
    )
    return made


def made_srht(n_columns, n, dtype):
    return draw_hadamard_products(
        np.ones(n, np.int32), np.full(n, n**-0.5), n_columns, 0, dtype
    ).operator()


def matrix(n_rows, n_columns, dtype):
    return np.random.default_rng(6).normal(size=(n_rows, n_columns)).astype(dtype)


NAMES = list(operators(np.float64))


def some_rows(n, dtype, width=D_IN):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, width)).astype(dtype) / 3
    X[rng.random(X.shape) < 0.3] = 0
    return X


def features(operator, X):
    out = np.full((X.shape[0], operator.n_features), np.nan, X.dtype)
    assert operator.write(X, out)
    return out


def values(linear, X):
    out = np.full((X.shape[0], linear.n_targets), np.nan)
    assert linear.write(X, out)
    return out


def outputs_by_threads(script):
    """What a script prints in processes with 1, 2, 3 and 16 threads, each output once."""
    folders = Path(__file__).parent, Path(_core.__file__).parents[1]
    path = os.pathsep.join(str(folder) for folder in folders)
    return {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "OMP_NUM_THREADS": threads, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2", "3", "16")
    }
