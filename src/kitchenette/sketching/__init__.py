"""Random building blocks, which know nothing of kernels."""

from kitchenette.sketching.hadamard import fwht

__all__ = ["fwht"]
