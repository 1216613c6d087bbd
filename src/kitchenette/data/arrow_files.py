"""Files of Arrow's interprocess format, also called Feather."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kitchenette.data.file_reader import FilesReader, TableFormat, refuse_empty, table_of_batch
from kitchenette.data.formats import FileFormat, register_format
from kitchenette.data.listing import StoredFile
from kitchenette.data.schema import DataError
from kitchenette.data.tables import arrow


class ArrowFile(TableFormat):
    """Files in the file format or the stream format, of which only the first has a footer."""

    def _open(self, file: StoredFile) -> Any:
        pa = arrow()
        refuse_empty(file)
        try:
            return pa.ipc.open_file(file.system.open_input_file(file.path))
        except (pa.ArrowInvalid, OSError):
            pass
        try:
            return pa.ipc.open_stream(file.system.open_input_stream(file.path))
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(
                f"{file.path} is not a whole Arrow file; it may have been cut off: {error}"
            ) from error

    def schema(self, file: StoredFile) -> Any:
        return self._open(file).schema

    def n_rows(self, file: StoredFile) -> int | None:
        opened = self._open(file)
        if not hasattr(opened, "count_rows"):
            return None
        return int(opened.count_rows())

    def tables(
        self, file: StoredFile, names: Sequence[str], size: int, wanted: Any
    ) -> Iterator[tuple[int, int, Any]]:
        pa, opened, first, number = arrow(), self._open(file), 0, 0
        try:
            for batch in _batches_of(opened):
                stop = first + batch.num_rows
                yield first, stop, table_of_batch(batch, names) if wanted(first, stop) else None
                first, number = stop, number + 1
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{file.path}, batch {number}: cannot be read: {error}") from error


def _batches_of(opened: Any) -> Iterator[Any]:
    if hasattr(opened, "num_record_batches"):
        return (opened.get_batch(i) for i in range(opened.num_record_batches))
    return iter(opened)


register_format(
    FileFormat(
        "arrow",
        (".arrow", ".feather", ".ipc"),
        lambda files, options: FilesReader(files, ArrowFile(), options.kinds),
    )
)
