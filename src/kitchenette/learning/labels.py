"""Labels of classes: sorted and united."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def labels_among(classes: Any) -> NDArray[Any]:
    """The distinct labels of a list, sorted."""
    given = np.asarray(classes)
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise ValueError("classes must not contain NaN.")
    try:
        return np.unique(given)
    except TypeError as error:
        raise ValueError(f"classes cannot be sorted: {error}.") from error


def union_of_classes(mine: NDArray[Any], theirs: NDArray[Any]) -> NDArray[Any]:
    """The labels of both, sorted; the first array itself if it has all of them."""
    if (mine.dtype.kind in "biuf") != (theirs.dtype.kind in "biuf"):
        raise ValueError(
            "Cannot merge models of which one has numbers for labels and the other has "
            f"strings or objects: {mine[:3].tolist()} and {theirs[:3].tolist()}."
        )
    classes = np.union1d(mine, theirs)
    return mine if classes.size == mine.size else classes


def are_sorted(labels: NDArray[Any]) -> bool:
    """Whether labels are different and sorted."""
    return bool(np.all(labels[1:] > labels[:-1]))
