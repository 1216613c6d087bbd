"""The layout of a model file: a JSON document and arrays, with a checksum.

It is the layout of safetensors: the length of a header, the header in JSON, and the data of all
arrays. The document is a string in the header. This module does not interpret the document or the
arrays. Invalid files raise a ValueError.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from importlib.metadata import version
from io import BufferedReader, BufferedWriter
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

FORMAT = "kitchenette model"
FORMAT_VERSION = 1  # raised when older versions of the package could misread a file
MOST_HEADER_BYTES = 2**24  # parsed JSON of this size takes at most a few hundred megabytes
MOST_EMPTY = 2**20  # the largest product of the nonzero lengths in the shape of an empty array
FOREIGN = "it is not a model file of kitchenette."

DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
_NAMES = {np.dtype(code): name for name, code in DTYPES.items()}
_NO_CHECKSUM = "0" * 64


def little_endian(array: NDArray[Any]) -> NDArray[Any] | None:
    """The array in the byte order of files, copied if necessary; None for unsupported types."""
    dtype = array.dtype.newbyteorder("<")
    return np.asarray(array, dtype=dtype, order="C") if dtype in _NAMES else None


# ---------------------------------------------------------------- writing


def write(file: BufferedWriter, document: Any, arrays: dict[str, NDArray[Any]]) -> None:
    """Write a document of JSON values, and arrays that `little_endian` returned."""
    # Arrays are sorted by descending item size, so that all of them are aligned.
    ordered = dict(sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize))
    header: dict[str, Any] = {
        "__metadata__": {
            "format": FORMAT,
            "format_version": str(FORMAT_VERSION),
            "kitchenette_version": version("kitchenette"),
            "checksum": _NO_CHECKSUM,
            "model": json.dumps(document, allow_nan=False, separators=(",", ":")),
        }
    }
    end = 0
    for name, array in ordered.items():
        begin, end = end, end + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MOST_HEADER_BYTES:
        raise ValueError("the names and values outside of arrays take too many bytes.")
    checksum = _checksum(text, ordered.values())
    # The first occurrence is the checksum, because the document comes after it.
    text = text.replace(_NO_CHECKSUM.encode(), checksum.encode(), 1)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for array in ordered.values():
        file.write(_bytes_of(array))


@contextlib.contextmanager
def replacement(path: str | os.PathLike[str]) -> Iterator[BufferedWriter]:
    """A temporary file that replaces ``path`` if the body succeeds and is deleted if not."""
    target = Path(os.path.realpath(path))  # a symbolic link is kept
    if not target.parent.is_dir():
        raise FileNotFoundError(f"Cannot save to {path}: there is no folder {target.parent}.")
    refuse_special_file(path)
    temporary = target.with_name(f"{_temporary_start(target)}{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            _lock(file)
            yield file
            file.flush()
            os.fsync(file.fileno())
            with contextlib.suppress(FileNotFoundError):
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            if os.name == "posix":  # while it is locked, so that nobody takes it for left behind
                temporary.replace(target)
        if os.name != "posix":
            temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # other systems cannot open a folder
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def refuse_special_file(path: str | os.PathLike[str]) -> None:
    """Refuse a pipe or a device as an output, which a file would replace: /dev/null for root."""
    target = Path(path)
    if target.exists() and not target.is_file() and not target.is_dir():
        raise OSError(f"Cannot write {path}: it is a pipe or a device. Write to a file.")


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Delete temporary files for ``path`` of processes that were killed while they wrote.

    A process holds a lock of its temporary file while it writes, which ends with the process.
    Other systems than POSIX do not delete a file that is open.
    """
    target = Path(os.path.realpath(path))
    name = re.compile(re.escape(_temporary_start(target)) + "[0-9a-f]{16}.tmp")
    for leftover in target.parent.iterdir():
        if name.fullmatch(leftover.name):
            # Somebody writes to it, or has renamed it meanwhile, or locks do not exist here.
            with contextlib.suppress(OSError), leftover.open("rb") as file:
                _lock(file)
                if os.path.samestat(os.fstat(file.fileno()), leftover.stat()):
                    leftover.unlink()


def _lock(file: BufferedReader | BufferedWriter) -> None:
    """Lock an open file for as long as it is open; an OSError if another process has done so."""
    if fcntl is not None:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def _temporary_start(target: Path) -> str:
    return f".{target.name[:64]}."


# ---------------------------------------------------------------- reading


def read(file: BufferedReader) -> tuple[Any, dict[str, NDArray[Any]]]:
    """The document and the arrays of a file whose layout and checksum have been checked."""
    size = os.fstat(file.fileno()).st_size
    text, header, metadata = _read_header(file, size)
    _check_version(metadata)
    arrays = _read_arrays(file, header, size - 8 - len(text))
    checksum, document = metadata.get("checksum"), metadata.get("model")
    if (
        not isinstance(document, str)
        or not isinstance(checksum, str)
        or not _is_hexadecimal(checksum)
    ):
        raise ValueError("its metadata are incomplete.")
    blank = text.replace(checksum.encode(), _NO_CHECKSUM.encode(), 1)
    if _checksum(blank, arrays.values()) != checksum:
        raise ValueError("it is damaged: its checksum does not agree with its content.")
    return _parsed(document), arrays


def is_foreign(path: Path, kind: str) -> bool:
    """Whether there is something at a path other than a file of an object of the class ``kind``.

    A damaged file is taken for one.
    """
    if not path.is_file():
        return path.exists()
    with path.open("rb") as file:
        try:
            _, _, metadata = _read_header(file, os.fstat(file.fileno()).st_size)
            return bool(_parsed(metadata["model"])["objects"][-1]["class"] != kind)
        except ValueError as error:
            return str(error) == FOREIGN
        except (LookupError, TypeError):
            return False


def _read_header(file: BufferedReader, size: int) -> tuple[bytes, dict[str, Any], dict[str, Any]]:
    """The header of a file as bytes, its entries for the arrays, and its metadata."""
    length = int.from_bytes(file.read(8), "little")
    start = file.read(1)
    if size < 10 or start != b"{" or not 2 <= length <= MOST_HEADER_BYTES:
        raise ValueError(FOREIGN)
    if length > size - 8:
        raise ValueError("it is cut short.")
    text = start + file.read(length - 1)
    header = _parsed(text)
    metadata = header.pop("__metadata__", None) if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise ValueError(FOREIGN)
    return text, header, metadata


def _parsed(text: bytes | str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON.")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is damaged: a part that should be JSON is not.") from error


def _is_hexadecimal(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


def _check_version(metadata: dict[str, Any]) -> None:
    stated = metadata.get("format_version")
    number = int(stated[:9]) if isinstance(stated, str) and stated[:9].isdecimal() else 0
    if number > FORMAT_VERSION:
        raise ValueError(
            f"it has format version {number}, written by kitchenette "
            f"{metadata.get('kitchenette_version')!r:.24}; this is kitchenette "
            f"{version('kitchenette')}, which reads versions up to {FORMAT_VERSION}. Upgrade it."
        )
    if number < 1:
        raise ValueError(f"its format version is {stated!r:.20}.")


def _read_arrays(
    file: BufferedReader, header: dict[str, Any], size: int
) -> dict[str, NDArray[Any]]:
    """All arrays, in the order of the file, which they must fill without gaps."""
    described = sorted(
        (_described(name, entry, size) for name, entry in header.items()), key=lambda item: item[0]
    )
    position = 0
    for (begin, end), *_ in described:
        if begin != position:
            raise ValueError("its arrays overlap or leave a gap.")
        position = end
    if position != size:
        raise ValueError("it is cut short, or longer than its arrays.")
    arrays = {}
    for _, name, dtype, shape in described:
        # The file is read directly into the arrays of the model, without another copy.
        array = np.empty(shape, dtype)
        if array.nbytes and file.readinto(_bytes_of(array)) != array.nbytes:
            raise ValueError("it is cut short.")
        if dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
            raise ValueError(f"its array {name!r:.80} has booleans other than 0 and 1.")
        arrays[name] = array.astype(dtype.newbyteorder("="), copy=False)
    return arrays


def _described(
    name: str, entry: Any, size: int
) -> tuple[tuple[int, int], str, np.dtype[Any], tuple[int, ...]]:
    """Offsets, name, dtype and shape, checked against each other and the size of the file."""
    entry = entry if isinstance(entry, dict) else {}
    code = entry.get("dtype")
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    limit = max(size, MOST_EMPTY)
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or not all(
            type(number) is int and 0 <= number <= limit for number in numbers
        ):
            raise ValueError(f"it is cut short, or its array {name!r:.80} never was in it.")
    if not isinstance(code, str) or code not in DTYPES or len(offsets) != 2 or len(shape) > 8:
        raise ValueError(f"its array {name!r:.80} has no type or place that is known.")
    dtype = np.dtype(DTYPES[code])
    n_bytes = dtype.itemsize * prod(shape)
    if offsets[1] - offsets[0] != n_bytes or prod(filter(None, shape)) > limit:
        raise ValueError(f"its array {name!r:.80} has another size than its shape.")
    return (offsets[0], offsets[1]), name, dtype, tuple(shape)


def _checksum(header: bytes, arrays: Iterable[NDArray[Any]]) -> str:
    digest = blake2b(header, digest_size=32)
    for array in arrays:
        digest.update(_bytes_of(array.astype(array.dtype.newbyteorder("<"), copy=False)))
    return digest.hexdigest()


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data
