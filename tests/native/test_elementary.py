"""Cosine, sine and exponential of the core against the C library in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from kitchenette import _core

pytestmark = pytest.mark.native


def angles(dtype) -> np.ndarray:
    rng = np.random.default_rng(0)
    multiples = np.pi / 2 * np.arange(-6400, 6400)  # where reductions go wrong
    parts = [
        rng.uniform(-1e4, 1e4, 400_000),
        rng.normal(size=100_000),
        multiples,
        np.nextafter(multiples.astype(dtype), dtype(np.inf)),
        [0.0, -0.0, 1e-30, 1e4, -1e4, np.finfo(dtype).tiny],
    ]
    return np.concatenate(parts).astype(dtype)[None]


def cosine_and_sine(z: np.ndarray, amplitude: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    out = np.empty((z.shape[0], 2 * z.shape[1]), z.dtype)
    assert _core.finish_features(z, out, _core.Nonlinearity("sincos", amplitude))
    return out[:, ::2], out[:, 1::2]


@pytest.mark.parametrize(("dtype", "accuracy"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_cosine_and_sine_are_accurate_up_to_ten_thousand(simd, dtype, accuracy):
    z = angles(dtype)
    cosine, sine = cosine_and_sine(z)
    exact = z.astype(np.longdouble)
    assert np.abs(cosine - np.cos(exact)).max() < accuracy
    assert np.abs(sine - np.sin(exact)).max() < accuracy
    shifted = np.empty_like(z)
    terms = np.zeros(z.size, dtype)
    assert _core.finish_features(z, shifted, _core.Nonlinearity("offset", 1.0, terms))
    assert np.abs(shifted - np.cos(exact)).max() < accuracy


@pytest.mark.parametrize(("dtype", "accuracy"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_any_finite_angle_is_served(simd, dtype, accuracy):
    sizes = np.geomspace(1e3, float(np.finfo(dtype).max) * 0.9, 2001)
    z = np.concatenate([sizes, -sizes]).astype(dtype)[None]
    cosine, sine = cosine_and_sine(z)
    assert np.abs(cosine - np.cos(z.astype(np.float64))).max() < accuracy
    assert np.abs(sine - np.sin(z.astype(np.float64))).max() < accuracy


def test_a_large_angle_does_not_change_its_neighbors(simd):
    z = np.random.default_rng(0).normal(size=(1, 64)).astype(np.float32)
    alone, _ = cosine_and_sine(z)
    crowded = z.copy()
    crowded[0, 7] = 1e20
    among, _ = cosine_and_sine(crowded)
    others = np.arange(64) != 7
    assert np.array_equal(alone[0, others], among[0, others])


@pytest.mark.parametrize(("dtype", "accuracy"), [(np.float32, 2e-7), (np.float64, 1e-15)])
def test_exponential_is_accurate(simd, dtype, accuracy):
    limit = np.log(float(np.finfo(dtype).max)) - 1
    x = np.random.default_rng(0).uniform(-0.98 * limit, limit, (1, 300_000)).astype(dtype)
    out = np.empty_like(x)
    assert _core.finish_features(x, out, _core.Nonlinearity("local", 1.0, np.zeros(x.size, dtype)))
    exact = np.exp(x.astype(np.longdouble))
    assert np.abs(out / exact - 1).max() < accuracy


def test_exponential_vanishes_and_overflows_honestly(simd):
    x = np.array([[-1e30, -800.0, 0.0]])
    out = np.empty_like(x)
    nonlinearity = _core.Nonlinearity("local", 1.0, np.zeros(3))
    assert _core.finish_features(x, out, nonlinearity)
    assert np.array_equal(out, [[0.0, 0.0, 1.0]])
    assert not _core.finish_features(np.array([[1.0, 2.0, 710.0]]), out, nonlinearity)


@pytest.mark.parametrize("kind", ["identity", "sincos", "offset"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_projections_that_are_not_finite_are_reported(simd, kind, bad):
    z = np.zeros((3, 20))
    z[1, 13] = bad
    out = np.empty((3, 40 if kind == "sincos" else 20))
    assert not _core.finish_features(z, out, _core.Nonlinearity(kind, 1.0, np.zeros(20)))


def test_instruction_sets_agree_to_rounding():
    before = _core.simd()
    z = angles(np.float32)
    results = []
    for variant in _core.simd_variants():
        _core.set_simd(variant)
        results.append(np.concatenate(cosine_and_sine(z)))
    _core.set_simd(before)
    for other in results[1:]:
        assert np.abs(results[0] - other).max() < 5e-7
