"""Random projections, sketches and operators, independent of kernels."""

from kitchenette.sketching.hadamard import fwht

__all__ = ["fwht"]
