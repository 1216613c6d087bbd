from __future__ import annotations

from collections.abc import Iterator

import pytest

from kitchenette import _core


@pytest.fixture(params=_core.simd_variants())
def simd(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every instruction set that this machine can run, one after the other."""
    before = _core.simd()
    assert _core.set_simd(request.param)
    yield request.param
    _core.set_simd(before)
