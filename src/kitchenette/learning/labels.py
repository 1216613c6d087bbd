"""Labels of classes: sorted and united."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def with_one_type(labels: Any) -> Any:
    """Labels, of which Python objects are numbers or strings, but not both.

    Objects that are numbers or booleans become an array of their own type, as those of a list do.
    """
    if getattr(labels, "dtype", np.dtype(int)).kind != "O":
        return labels
    texts = [isinstance(label, str) for label in labels.flat]
    if all(texts):
        return labels
    if any(texts):
        one, other = (labels.flat[texts.index(is_text)] for is_text in (True, False))
        raise ValueError(
            "Labels must have one type, so that they can be sorted; y has strings and others, "
            f"such as {one!r} and {other!r}. Convert them first, as in y.astype(str)."
        )
    try:
        converted = np.asarray(labels.tolist())
    except ValueError:  # lists of different lengths
        return labels
    return converted if converted.shape == labels.shape else labels


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
