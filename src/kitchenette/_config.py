"""The instruction set and the threads of this build and this machine."""

from __future__ import annotations

import os
from importlib.metadata import version

from kitchenette import _core


def choose_instruction_set() -> None:
    """Select the instruction set in KITCHENETTE_SIMD; called when the package is imported."""
    wanted = os.environ.get("KITCHENETTE_SIMD", "").strip().lower()
    if wanted and not _core.set_simd(wanted):
        available = ", ".join(_core.simd_variants())
        raise ImportError(
            f"KITCHENETTE_SIMD={wanted} is not available; this machine can run {available}."
        )


def show_config() -> None:
    """Print the version, the instruction set and the number of threads.

    Examples
    --------
    >>> import kitchenette
    >>> kitchenette.show_config()  # doctest: +ELLIPSIS
    kitchenette ...
    """
    threads = f"{_core.max_threads()}{'' if _core.openmp else ' (built without OpenMP)'}"
    print(f"kitchenette      {version('kitchenette')}")
    print(f"instruction set  {_core.simd()} (available: {', '.join(_core.simd_variants())})")
    print(f"threads          {threads}")
