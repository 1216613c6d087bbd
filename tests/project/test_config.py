"""Choosing the instruction set, and saying which one it is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from core_alone import CORE_ALONE

import kitchenette
from kitchenette import _core
from kitchenette._config import choose_instruction_set


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_show_config_names_version_instructions_and_threads(capsys):
    kitchenette.show_config()
    printed = capsys.readouterr().out
    assert kitchenette.__version__ in printed
    assert _core.simd() in printed
    assert f"threads          {_core.max_threads()}" in printed


@pytest.fixture
def restored():
    """The instruction set of this process, chosen again after the test."""
    before = _core.simd()
    yield
    _core.set_simd(before)


@pytest.mark.parametrize("variant", _core.simd_variants())
def test_the_environment_forces_an_instruction_set(variant, monkeypatch, restored):
    monkeypatch.setenv("KITCHENETTE_SIMD", variant.upper())
    choose_instruction_set()
    assert _core.simd() == variant


@pytest.mark.parametrize(
    "variant",
    [
        _core.simd_variants()[0],
        *(pytest.param(name, marks=pytest.mark.slow) for name in _core.simd_variants()[1:]),
    ],
)
def test_the_environment_is_read_at_import(variant):
    code = "import kitchenette; print(kitchenette._core.simd())"
    assert run(code, KITCHENETTE_SIMD=variant).stdout.strip() == variant


def test_the_best_instruction_set_is_the_default():
    code = CORE_ALONE + "print(_core.simd())"
    assert run(code, KITCHENETTE_SIMD="").stdout.strip() == _core.simd_variants()[-1]


def test_an_instruction_set_that_is_not_there_is_refused_with_a_sentence(monkeypatch):
    monkeypatch.setenv("KITCHENETTE_SIMD", "mmx")
    before = _core.simd()
    sentence = "KITCHENETTE_SIMD=mmx is not available; this machine can run"
    with pytest.raises(ImportError, match=sentence):
        choose_instruction_set()
    assert _core.simd() == before


@pytest.mark.slow
def test_an_import_with_an_instruction_set_that_is_not_there_fails():
    done = run("import kitchenette", KITCHENETTE_SIMD="mmx")
    assert done.returncode != 0
    assert "KITCHENETTE_SIMD=mmx is not available; this machine can run" in done.stderr


@pytest.mark.parametrize("number", [1, 3])
def test_the_number_of_threads_obeys_the_environment(number):
    code = CORE_ALONE + "print(_core.max_threads())"
    assert 1 <= int(run(code, OMP_NUM_THREADS=str(number)).stdout) <= number
