"""`save` and `load` for model files."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from sklearn.frozen import FrozenEstimator

from kitchenette.files import container
from kitchenette.files.budget import Budget
from kitchenette.files.codec import decode, described, encode

# The default limits of what drawing the maps of a file may take; about two seconds of work.
MAX_BYTES, MAX_OPERATIONS = 2**31, 1e9


class ModelFileError(ValueError):
    """A file is not a model that can be loaded, or a model cannot be stored in a file.

    Examples
    --------
    >>> import kitchenette
    >>> from sklearn.preprocessing import StandardScaler
    >>> kitchenette.save(StandardScaler(), "model.safetensors")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    ...
    kitchenette.files.models.ModelFileError: StandardScaler is an object of
    sklearn.preprocessing._data.StandardScaler, which model files do not have. Use pickle or skops
    for this model, or kitchenette.files.storable for a class of your own.
    """


def save(model: Any, path: str | os.PathLike[str], *, statistics: bool = True) -> None:
    """Write a model to a file.

    The write is atomic: a temporary file in the same folder is renamed at the end. If an error
    occurs, an existing file is not changed.

    Parameters
    ----------
    model : object
        A feature map, a `KernelRegressor`, `KernelClassifier` or `KernelPCA`, `LeastSquares`
        statistics, an `OutputCode`, a kernel, an object of a class of your own that was registered
        with `kitchenette.files.storable`, or a scikit-learn `FrozenEstimator` around one of these;
        fitted or not. A ``random_state`` that is a generator is stored as the ``seed_`` it gave.
    path : str or path-like
        The name of the file, by custom with the ending ``.safetensors``.
    statistics : bool, default=True
        Whether to store the statistics of an estimator, 4 n_components^2 bytes, and the data with
        which a map such as TEFM can be fitted further. Without them the file is small, and the
        model can predict but not learn more, merge, or return standard deviations.

    See Also
    --------
    load : Reads a model file.

    Notes
    -----
    Feature maps are stored as seeds and parameters, a kilobyte or so whatever their size; only
    `TEFM` has a matrix from the data, and takes 16 bytes for each of its base map's features and
    its components (8 if the model has no statistics). An estimator adds 8 bytes for each of its
    weights, and its statistics. Pipelines of scikit-learn's scalers, imputers and encoders before
    a map are stored as their numbers; models with other parts of other packages can be kept with
    pickle or skops instead.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import kitchenette
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> fastfood = kitchenette.Fastfood(n_components=16384, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "fastfood.safetensors")
    ...     kitchenette.save(fastfood, path)
    ...     again = kitchenette.load(path)
    ...     os.path.getsize(path) < 2000
    True
    >>> np.array_equal(again.transform(X), fastfood.transform(X))
    True
    """
    if not statistics:
        model = _for_inference(model)
    # Statistics, which grow in place, are locked against other threads.
    lock = nullcontext if isinstance(model, type) else getattr(model, "unchanged", nullcontext)
    try:
        with lock():
            document, arrays = encode(model)
            with container.replacement(path) as file:
                container.write(file, document, arrays)
    except ValueError as error:
        raise ModelFileError(str(error)) from error.__cause__


def _for_inference(model: Any) -> Any:
    if isinstance(model, FrozenEstimator):
        return FrozenEstimator(_for_inference(model.estimator))
    if isinstance(model, type) or not hasattr(model, "for_inference"):
        raise ModelFileError(
            "statistics=False is for a KernelRegressor, KernelClassifier or KernelPCA, or a "
            f"feature map; got {described(model)}."
        )
    return model.for_inference()


def load(
    path: str | os.PathLike[str],
    *,
    max_bytes: float = MAX_BYTES,
    max_operations: float = MAX_OPERATIONS,
) -> Any:
    """Read a model from a file that `save` wrote.

    Untrusted files are safe to load: nothing in them is executed, and all sizes are checked.

    Parameters
    ----------
    path : str or path-like
        The name of the file.
    max_bytes : float, default=2**31
        The most memory that drawing feature maps again may take, besides the arrays that the
        file contains. A few bytes can describe a map of any size.
    max_operations : float, default=1e9
        The most work that drawing feature maps again may take, in operations of about two
        nanoseconds; the default is about two seconds. An upper bound of the work is computed before
        anything is drawn. Pass a larger number, or ``math.inf``, for a large map that you trust.

    Returns
    -------
    model : object
        A model that is equal to the one that was saved; on the same machine, it predicts the
        same bits.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, was written by a newer version, needs
        more memory or work than allowed, or its maps differ from the stored fingerprints.
    OSError
        If the file cannot be read.

    See Also
    --------
    save : Writes a model file.

    Examples
    --------
    >>> import os, tempfile
    >>> import kitchenette
    >>> kernel = kitchenette.kernels.Gaussian(length_scale=2.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "kernel.safetensors")
    ...     kitchenette.save(kernel, path)
    ...     kitchenette.load(path)
    Gaussian(length_scale=2.0)
    """
    path = Path(path)
    if path.is_fifo():
        raise ModelFileError(f"Cannot load {path}: it is a pipe. Write the model to a file first.")
    try:
        with path.open("rb") as file:
            document, arrays = container.read(file)
        return decode(document, arrays, Budget(max_bytes, max_operations))
    except ValueError as error:
        raise ModelFileError(f"Cannot load {path}: {error}") from error.__cause__
