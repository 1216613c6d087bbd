from __future__ import annotations

import os
from collections.abc import Iterator

# Several processes test at once, and the linear algebra of the oracles is small, so BLAS uses one
# thread. (Set before NumPy is loaded.)
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest

from kitchenette import _core


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests in `tests/native` run under sanitizers."""
    for item in items:
        if item.path.parent.name == "native":
            item.add_marker(pytest.mark.native)


# Plain pytest runs the narrowest and the widest instruction set, the slow tests those between.
BETWEEN = _core.simd_variants()[1:-1]


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.slow) if name in BETWEEN else name
        for name in _core.simd_variants()
    ]
)
def simd(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every instruction set that this machine can run, one after the other."""
    before = _core.simd()
    assert _core.set_simd(request.param)
    yield request.param
    _core.set_simd(before)
