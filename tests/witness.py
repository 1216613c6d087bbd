"""Checksums of features, by which a rebuilt map shows that it computes what it did before.

``python tests/witness.py`` adds those of new maps; the others stay as they are. The last bits
depend on SciPy's special functions, on the instruction set, and on those for which NumPy has
logarithms and cosines of its own, so checksums count where all are the stored ones; elsewhere some
of the features are compared. Where there are more instruction sets, ``NPY_DISABLE_CPU_FEATURES``
and ``OPENBLAS_CORETYPE`` give the stored ones.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from catalogue import MAPS, make, plain_rows

from kitchenette import _core
from kitchenette.kernels import Gaussian

STORED = Path(__file__).with_name("witness.json")
SHAPES = {"wide": (9, 100, 257), "narrow": (5, 7, 64)}  # rows, columns, features


def platform() -> dict[str, Any]:
    """What the last bits of features depend on, besides the instruction set of the core."""
    umath = np._core._multiarray_umath
    used = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name]]
    return {"scipy": scipy.__version__, "numpy_instructions": used}


def testimony(name: str, shape: str, dtype: str) -> dict[str, Any]:
    """A checksum of a map's features, and some of them."""
    n_rows, n_columns, n_components = SHAPES[shape]
    X = plain_rows(n_rows, n_columns, unit=name.endswith("on the sphere")).astype(dtype)
    Z = make(name, n_components, kernel=Gaussian(0.9)).fit(X).transform(X)
    return {
        "checksum": sha256(np.ascontiguousarray(Z)).hexdigest()[:16],
        "some": Z[:2, :3].astype(float).ravel().tolist(),
    }


def main() -> None:
    told: dict[str, Any] = json.loads(STORED.read_text())
    assert told["platform"] == platform(), "checksums of another platform cannot be added to"
    for simd in _core.simd_variants():
        _core.set_simd(simd)
        for name in MAPS:
            for shape in SHAPES:
                for dtype in ("float32", "float64"):
                    key = f"{name}, {shape}, {dtype}, {simd}"
                    if key not in told["maps"]:
                        told["maps"][key] = testimony(name, shape, dtype)
    STORED.write_text(json.dumps(told, indent=0) + "\n")


if __name__ == "__main__":
    main()
