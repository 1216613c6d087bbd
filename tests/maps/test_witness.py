"""Maps compute what they did when the stored checksums were made."""

from __future__ import annotations

import json

import numpy as np
import pytest
import witness
from catalogue import MAPS

from kitchenette import _core

TOLD = json.loads(witness.STORED.read_text())
# Their basis comes from eigenvectors of sums that the linear algebra library rounds as it likes.
WITHOUT_CHECKSUM = "tefm"


@pytest.mark.native
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", witness.SHAPES)
@pytest.mark.parametrize("name", MAPS)
def test_features_are_those_of_the_stored_checksum(simd, name, shape, dtype):
    stored = TOLD["maps"].get(f"{name}, {shape}, {dtype}, {simd}")
    if stored is None:  # an instruction set of another processor
        stored = TOLD["maps"][f"{name}, {shape}, {dtype}, sse2"]
    elif witness.platform() == TOLD["platform"] and not name.startswith(WITHOUT_CHECKSUM):
        assert witness.testimony(name, shape, dtype) == stored
    found = witness.testimony(name, shape, dtype)["some"]
    # The sign of an eigenvector is not determined.
    same = np.abs if name.startswith(WITHOUT_CHECKSUM) else np.asarray
    scale = np.abs(stored["some"]).max()
    rounding = 1e-5 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(
        same(found), same(stored["some"]), rtol=rounding, atol=rounding * scale
    )


def test_every_map_of_the_catalogue_has_a_stored_checksum():
    names = {key.rsplit(", ", 3)[0] for key in TOLD["maps"]}
    assert names == set(MAPS)
    assert set(_core.simd_variants()) & {key.rsplit(", ", 1)[1] for key in TOLD["maps"]}
