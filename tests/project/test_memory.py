"""Transforming takes the memory of its answer and little else."""

from __future__ import annotations

import pytest
from peak_memory import SOURCE
from programs import printed_by

resource = pytest.importorskip("resource", reason="peak memory is read with resource, on Unix only")
pytestmark = pytest.mark.slow

MEASURE = (
    SOURCE
    + """
import numpy as np
from kitchenette import Fastfood, RandomKitchenSinks, RandomMaclaurin, TensorSketch
from kitchenette.kernels import Composition, Gaussian, Polynomial

X = np.random.default_rng(0).normal(size=(40_000, 32)).astype(np.float32)
feature_map = {maker}.fit(X[:100])
feature_map.transform(X[:100])
before = peak()
Z = feature_map.transform(X)
print(peak() - before - Z.nbytes)
"""
)


@pytest.mark.parametrize(
    "maker",
    [
        "Fastfood(n_components=1024)",
        "Fastfood(n_components=1024, projection='orthogonal')",
        "Fastfood(n_components=1024, projection='fourier')",
        "Fastfood(Polynomial(), n_components=1024)",
        "RandomKitchenSinks(n_components=1024)",
        "RandomMaclaurin(n_components=1024)",
        "RandomMaclaurin(n_components=1024, h01=True)",
        "RandomMaclaurin(n_components=1024, projection='rademacher')",
        "RandomMaclaurin(Composition(Polynomial(2), Gaussian()), n_components=1024)",
        "TensorSketch(n_components=1024)",
        "TensorSketch(n_components=1000, output='frequency')",
    ],
)
def test_no_temporary_of_the_size_of_the_answer(maker):
    assert int(printed_by(MEASURE.format(maker=maker))) < 24 * 2**20  # the answer has 164 MB


LENGTHS = (
    SOURCE
    + """
import numpy as np, scipy.sparse as sp
from kitchenette import Fastfood
from kitchenette.kernels import BesselMatern, Gaussian

Fastfood(BesselMatern(1, 1.0), 8).fit(np.ones((2, 5)))
Fastfood(Gaussian(1.0), 8, features="local").fit(sp.csr_array(np.ones((2, 5))))
X = sp.random(500, 20_000, density=1e-3, format="csr", dtype=np.float32, random_state=0)
before = peak()
{maker}.fit(X)
print(peak() - before)
"""
)


@pytest.mark.parametrize(
    "maker", ["Fastfood(BesselMatern(1, 1.0), 8)", "Fastfood(Gaussian(1.0), 8, features='local')"]
)
def test_fitting_wide_rows_needs_no_square_matrix(maker):
    # The identity has 1.6 GB, the sample as a matrix 40 MB.
    assert int(printed_by(LENGTHS.format(maker=maker))) < 24 * 2**20
