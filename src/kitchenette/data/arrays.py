"""Arrays, memory-mapped files of NumPy and sparse matrices as readers."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp

from kitchenette.data.formats import FileFormat, ReadOptions, register_format
from kitchenette.data.reader import Indices, Part, Reader, without_unwanted
from kitchenette.data.rows import slices
from kitchenette.data.schema import Column, DataError, Schema
from kitchenette.kernels.base import checked_sparse

SPARSE_KEYS = {"format", "shape", "data"}  # of scipy.sparse.save_npz


class ArrayReader(Reader):
    """The rows of a two-dimensional array or a CSR matrix of numbers."""

    is_table = False

    def __init__(self, X: Any):
        if X.ndim != 2:
            raise DataError(f"Rows must be an array with two axes; got one of shape {X.shape}.")
        if X.dtype.kind not in "biuf":
            raise DataError(
                f"Rows of an array must be numbers; got {X.dtype}. Use a data frame for columns "
                "of strings or dates."
            )
        self.X = checked_sparse(X) if sp.issparse(X) else X
        self.in_memory = not isinstance(X, np.memmap)
        kind = "boolean" if X.dtype.kind == "b" else "number"
        self.schema = Schema(tuple(Column(f"x{j}", kind, X.dtype.name) for j in range(X.shape[1])))
        self.n_rows = X.shape[0]
        self._places = {column.name: j for j, column in enumerate(self.schema)}

    def parts(
        self, names: Sequence[str], start: int, size: int, wanted: Indices | None = None
    ) -> Iterator[Part]:
        places = [self._places[name] for name in names]
        everything = places == [*range(self.X.shape[1])]
        assert self.n_rows is not None
        for part in slices(self.n_rows - start, size):
            rows = slice(part.start + start, part.stop + start)
            if not without_unwanted(rows.start, rows.stop, wanted):
                some = self.X[rows]
                yield rows.start, some if everything else some[:, places]

    def fingerprint(self) -> str:
        hasher = blake2b(repr((self.X.shape, self.X.dtype.str)).encode(), digest_size=16)
        sparse = sp.issparse(self.X)
        arrays = (self.X.indptr, self.X.indices, self.X.data) if sparse else (self.X,)
        for array in arrays:
            for part in slices(array.shape[0], 1 << 16):
                hasher.update(np.ascontiguousarray(array[part]).data)
        return hasher.hexdigest()


def array_of_file(path: str, name: str | None) -> tuple[Any, dict[str, Any]]:
    """The rows in a file of NumPy or SciPy, and its other arrays by name.

    Files .npy are mapped into memory. In a file .npz the rows are the array of this name, by
    default "X" or the only one with two axes.
    """
    if os.path.getsize(path) == 0:
        raise DataError(f"{path} is empty.")
    try:
        if path.endswith(".npy"):
            return np.load(path, mmap_mode="r", allow_pickle=False), {}
        with np.load(path, allow_pickle=False) as stored:
            if {*stored.files} >= SPARSE_KEYS:
                return checked_sparse(sp.load_npz(path)), {}
            arrays = {key: stored[key] for key in stored.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read as a file of NumPy: {error}") from error
    tables = [key for key, array in arrays.items() if array.ndim == 2]
    if name is None:
        name = "X" if "X" in tables else tables[0] if len(tables) == 1 else None
    if name not in arrays:
        raise DataError(
            f"{path} has the arrays {', '.join(arrays)}: say which one has the rows by array=..."
        )
    return arrays.pop(name), arrays


def _reader(files: Sequence[Any], options: ReadOptions) -> Reader:
    if len(files) > 1:
        raise DataError("Files of NumPy are read one at a time.")
    path = files[0].path
    X, others = array_of_file(path, options.array)
    reader = ArrayReader(X)
    reader.paths, reader.arrays = (path,), others
    return reader


register_format(FileFormat("numpy", (".npy", ".npz"), _reader))
