"""Which files a path, a glob or a directory stands for, on this machine or elsewhere."""

from __future__ import annotations

import fnmatch
import os
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any
from urllib.parse import unquote

from kitchenette.data.formats import format_of
from kitchenette.data.schema import DataError
from kitchenette.data.tables import arrow

ENDS = 1 << 16  # bytes at both ends of a file that belong to its fingerprint
GLOB = "*?["


@dataclass(frozen=True)
class StoredFile:
    """A file, and the file system that it is on."""

    path: str
    system: Any  # of pyarrow.fs
    # Names and values of columns in the names of its directories, as in year=2024/a.parquet
    partition: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return int(self.system.get_file_info(self.path).size or 0)

    def fingerprint(self) -> list[Any]:
        """Name, size, time of change, and a digest of both ends."""
        info = self.system.get_file_info(self.path)
        if info.type != arrow().fs.FileType.File:
            raise DataError(f"{self.path} does not exist any more.")
        hasher = blake2b(digest_size=16)
        with self.system.open_input_file(self.path) as file:
            hasher.update(file.read(ENDS))
            if info.size > ENDS:
                file.seek(max(ENDS, info.size - ENDS))
                hasher.update(file.read(ENDS))
        return [self.path, info.size, info.mtime_ns, hasher.hexdigest()]


def files_at(paths: Any) -> list[StoredFile]:
    """The files that paths, globs, directories or addresses such as s3://... stand for.

    Files of a glob or a directory are sorted by name; hidden ones are left out.
    """
    pa = arrow()
    from pyarrow import fs

    listed = [paths] if isinstance(paths, str | os.PathLike) else [*paths]
    if not listed:
        raise DataError("The list of files is empty.")
    files: list[StoredFile] = []
    for one in [str(os.fspath(path)) for path in listed]:
        try:
            if "://" in one:
                system, path = fs.FileSystem.from_uri(one)
            else:
                system, path = fs.LocalFileSystem(), os.path.abspath(one)
            files += _expanded(system, path, one)
        except (OSError, pa.ArrowInvalid) as error:
            raise DataError(f"{one} cannot be opened: {error}") from error
    return files


def _expanded(system: Any, path: str, given: str) -> list[StoredFile]:
    from pyarrow import fs

    info = system.get_file_info(path)
    if info.type == fs.FileType.File:
        return [StoredFile(path, system)]
    if info.type == fs.FileType.Directory:
        chosen = _inside(system, path)
        chosen = [file for file in chosen if format_of(file) is not None]
        if not chosen:
            raise DataError(f"{given} is a directory without any file of a known format.")
        return [StoredFile(file, system, _partition(path, file)) for file in chosen]
    if info.type == fs.FileType.Unknown:
        raise DataError(
            f"{given} is a pipe or a device. Data are read several times, and in parts: write them "
            "to a file first."
        )
    if not any(sign in given for sign in GLOB):
        raise DataError(f"There is no file {given}.")
    root = path
    while any(sign in root for sign in GLOB):
        root = os.path.dirname(root)
    chosen = [file for file in _inside(system, root) if _matches(file, path)]
    if not chosen:
        raise DataError(f"No file matches {given}.")
    return [StoredFile(file, system, _partition(root, file)) for file in chosen]


def _inside(system: Any, directory: str) -> list[str]:
    from pyarrow import fs

    selector = fs.FileSelector(directory, recursive=True, allow_not_found=True)
    files = [info.path for info in system.get_file_info(selector) if info.type == fs.FileType.File]
    depth = len(directory.rstrip("/")) + 1
    hidden = [
        path for path in files if any(part[0] in "._" for part in path[depth:].split("/") if part)
    ]
    return sorted({*files} - {*hidden})


def _matches(path: str, pattern: str) -> bool:
    """Whether a path matches a glob, in which * stays within a name and ** does not."""
    names, patterns = path.split("/"), pattern.split("/")
    if "**" in patterns:
        place = patterns.index("**")
        if not _parts_match(names[:place], patterns[:place]):
            return False
        rest = "/".join(patterns[place + 1 :])
        return any(_matches("/".join(names[i:]), rest) for i in range(place, len(names)))
    return _parts_match(names, patterns)


def _parts_match(names: list[str], patterns: list[str]) -> bool:
    return len(names) == len(patterns) and all(map(fnmatch.fnmatchcase, names, patterns))


def _partition(root: str, path: str) -> tuple[tuple[str, str], ...]:
    inside = path[len(root) :].split("/")[:-1]
    pairs = [part.partition("=") for part in inside]
    return tuple((name, unquote(value)) for name, sign, value in pairs if sign and name)
