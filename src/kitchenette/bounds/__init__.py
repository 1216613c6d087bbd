"""How many features an error takes: the papers' theorems with their constants.

Each class is one theorem. Its parameters describe the kernel and the rows; ``error`` gives the
error that a number of features does not exceed, ``n_components`` the number of features for an
error, both with probability 1 - delta. `variance` is the exact variance of a fitted map.
"""

from kitchenette.bounds.base import Bound, PairBound
from kitchenette.bounds.compact import CRAFTMapError, KitchenSinksSpectralError, TEFMSpectralError
from kitchenette.bounds.fastfood import FastfoodError, FastfoodTailError
from kitchenette.bounds.products import (
    GaussianProductsError,
    MaclaurinError,
    MaclaurinUniformError,
)
from kitchenette.bounds.sketches import (
    SketchesMeanError,
    SketchRelativeError,
    SketchTreeRelativeError,
)
from kitchenette.bounds.variances import variance

__all__ = [
    "Bound",
    "CRAFTMapError",
    "FastfoodError",
    "FastfoodTailError",
    "GaussianProductsError",
    "KitchenSinksSpectralError",
    "MaclaurinError",
    "MaclaurinUniformError",
    "PairBound",
    "SketchRelativeError",
    "SketchTreeRelativeError",
    "SketchesMeanError",
    "TEFMSpectralError",
    "variance",
]
