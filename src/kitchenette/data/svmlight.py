"""Files of sparse rows in the format of SVMlight and LIBSVM, read in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

from kitchenette.comparison import digest
from kitchenette.data.formats import FileFormat, register_format
from kitchenette.data.listing import StoredFile
from kitchenette.data.reader import Indices, Part, Reader, without_unwanted
from kitchenette.data.schema import Column, DataError, Schema

PIECE_BYTES = 1 << 23  # of a file that are parsed at a time
MOST_COLUMNS = 2**31 - 1  # indices of sparse rows are 32 bits wide
LABEL = "label"  # the name of the column of labels


class SvmlightReader(Reader):
    """Sparse rows of files on this machine.

    A first pass finds the numbers of rows and columns.
    """

    is_table = False
    label = LABEL

    def __init__(self, files: Sequence[StoredFile], dtype: Any = np.float64):
        self.files, self._dtype = [*files], np.dtype(dtype)
        self.paths = tuple(file.path for file in self.files)
        self._lengths: list[int] = []
        least, largest = 1, 0
        for file in self.files:
            if file.size == 0:
                raise DataError(f"{file.path} is empty.")
            length = 0
            for rows, _ in self._pieces(file, MOST_COLUMNS):
                length += rows.shape[0]
                if rows.nnz:
                    least = min(least, int(rows.indices.min()))
                    largest = max(largest, int(rows.indices.max()))
            self._lengths.append(length)
        self._first_index = least  # 0 if some row has a column 0, else 1
        self._set_width(max(1, largest + 1 - least))
        self.n_rows = sum(self._lengths)

    def _set_width(self, n_columns: int) -> None:
        self._n_columns = n_columns
        columns = [Column(f"x{j}", "number", self._dtype.name) for j in range(n_columns)]
        self.schema = Schema((*columns, Column(LABEL, "number", "float64")))

    def widened(self, n_columns: int) -> SvmlightReader:
        """The same rows with more columns, which are zero as all that a file does not name."""
        reader = copy(self)
        reader._set_width(max(n_columns, self._n_columns))
        return reader

    def _pieces(self, file: StoredFile, n_columns: int) -> Iterator[tuple[Any, Any]]:
        """Rows with columns as they are numbered in the file, and labels."""
        from sklearn.datasets import load_svmlight_file  # takes long to import

        for offset in range(0, file.size, PIECE_BYTES):
            try:
                X, y = load_svmlight_file(
                    file.path,
                    n_features=n_columns,
                    dtype=self._dtype,
                    zero_based=True,
                    offset=offset,
                    length=PIECE_BYTES,
                )
            except (ValueError, OSError) as error:
                raise DataError(_explained(file, offset, error)) from error
            if X.shape[0]:
                yield X, y

    def parts(
        self, names: Sequence[str], start: int, size: int, wanted: Indices | None = None
    ) -> Iterator[Part]:
        numbers = {name: j for j, name in enumerate(self.schema.names)}
        places = [numbers[name] for name in names]
        everything = places in ([*range(self._n_columns)], [*range(self._n_columns + 1)])
        first = 0
        for file, length in zip(self.files, self._lengths, strict=True):
            if first + length <= start or without_unwanted(first, first + length, wanted):
                first += length
                continue
            for X, y in self._pieces(file, self._n_columns + self._first_index):
                stop, skipped = first + X.shape[0], max(0, start - first)
                if skipped < X.shape[0] and not without_unwanted(first, stop, wanted):
                    rows = sp.hstack(
                        [X[skipped:, self._first_index :], y[skipped:, None]], format="csr"
                    )
                    if not everything:
                        rows = rows[:, places]
                    elif len(places) == self._n_columns:
                        rows = rows[:, : self._n_columns]
                    yield first + skipped, rows
                first = stop

    def fingerprint(self) -> str:
        return digest([file.fingerprint() for file in self.files])


def _explained(file: StoredFile, offset: int, error: Exception) -> str:
    """The first line after an offset that is not in the format."""
    with open(file.path, "rb") as text:
        line = 0
        for line, content in enumerate(text, start=1):
            if text.tell() <= offset:
                continue
            wrong = _wrong(content.partition(b"#")[0].split())
            if wrong is not None:
                return f"{file.path}, line {line}: {wrong}"
    return f"{file.path} cannot be read: {error}"


def _wrong(parts: list[bytes]) -> str | None:
    if not parts:
        return None
    last = -1
    for place, part in enumerate(parts):
        shown = part[:40].decode(errors="replace")
        if place == 0:
            if not _is_number(part):
                return f"the label {shown!r} is not a number."
            continue
        column, sign, value = part.partition(b":")
        if column == b"qid":
            continue
        if not sign or not column.isdigit() or not _is_number(value):
            return f"{shown!r} is not a column, a colon and a number."
        if int(column) <= last:
            return f"the columns are not in ascending order at {shown!r}."
        last = int(column)
    return None


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


register_format(
    FileFormat(
        "svmlight",
        (".svm", ".svmlight", ".libsvm"),
        lambda files, options: SvmlightReader(files, options.precision or np.float64),
    )
)
