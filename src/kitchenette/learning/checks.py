"""Checks of features, targets, weights and penalties that users give."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length

from kitchenette.learning.regularization import CRITERIA

Array = NDArray[np.float64]


def checked_alpha(alpha: Any) -> str | Array:
    """A criterion, a penalty as a zero-dimensional array, or several penalties."""
    if isinstance(alpha, str) and alpha in CRITERIA:
        return alpha
    criteria = " or ".join(map(repr, CRITERIA))
    return checked_penalties("alpha", alpha, f"a number, a list of numbers, {criteria}")


def checked_penalties(name: str, given: Any, expected: str) -> Array:
    """One penalty or several, as an array."""
    try:
        penalties = np.asarray(given)
    except ValueError:
        penalties = np.asarray(None)
    if penalties.dtype.kind not in "iuf" or penalties.ndim > 1 or penalties.size == 0:
        raise ValueError(f"{name} must be {expected}; got {given!r}.")
    penalties = penalties.astype(np.float64)
    if not np.all(np.isfinite(penalties)) or penalties.min() < 0:
        raise ValueError(f"{name} must be finite and not negative; got {given!r}.")
    return penalties


def checked_rows(
    Z: Any, Y: Any, sample_weight: Any, n_features: int, n_targets: int
) -> tuple[NDArray[Any], Array, Array | None]:
    """Features, targets and weights in the types and shapes of the native core.

    The native core checks that they are finite.
    """
    Z = check_array(Z, dtype=[np.float64, np.float32], ensure_all_finite=False, input_name="Z")
    Y = check_array(Y, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, input_name="Y")
    Y = Y[:, None] if Y.ndim == 1 else Y
    check_consistent_length(Z, Y)
    for name, array, width in (("Z", Z, n_features), ("Y", Y, n_targets)):
        if array.ndim != 2 or array.shape[1] != width:
            raise ValueError(
                f"{name} must have {width} columns; got an array of shape {array.shape}."
            )
    weights = None if sample_weight is None else checked_weights(sample_weight, Z.shape[0])
    return _with_contiguous_rows(Z), np.require(Y, requirements=["C", "A"]), weights


def _with_contiguous_rows(Z: NDArray[Any]) -> NDArray[Any]:
    contiguous = Z.strides[1] == Z.itemsize and Z.strides[0] % Z.itemsize == 0
    return Z if contiguous and Z.flags.aligned else np.require(Z, requirements=["C", "A"])


def checked_weights(sample_weight: Any, n_rows: int) -> Array:
    """Sample weights as a checked float64 array."""
    try:
        weights = np.require(sample_weight, np.float64, ["C", "A"])
    except (TypeError, ValueError):
        raise ValueError(
            f"sample_weight must be a number for each row; got {sample_weight!r:.80}."
        ) from None
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must be one number for each of the {n_rows} rows; got an array of "
            f"shape {weights.shape}."
        )
    if not np.all(np.isfinite(weights)) or weights.min() < 0:
        raise ValueError("sample_weight must be finite and not negative.")
    return weights
