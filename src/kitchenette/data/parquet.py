"""Parquet files, read by row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kitchenette.data.file_reader import FilesReader, TableFormat, refuse_empty, table_of_batch
from kitchenette.data.formats import FileFormat, register_format
from kitchenette.data.listing import StoredFile
from kitchenette.data.schema import DataError
from kitchenette.data.tables import arrow


class Parquet(TableFormat):
    """Parquet files, read by row groups."""

    def _open(self, file: StoredFile) -> Any:
        pa = arrow()
        from pyarrow import parquet

        refuse_empty(file)
        try:
            return parquet.ParquetFile(
                file.system.open_input_file(file.path), pre_buffer=True, buffer_size=1 << 20
            )
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(
                f"{file.path} is not a whole Parquet file; it may have been cut off: {error}"
            ) from error

    def schema(self, file: StoredFile) -> Any:
        with self._open(file) as opened:
            return opened.schema_arrow

    def n_rows(self, file: StoredFile) -> int | None:
        with self._open(file) as opened:
            return int(opened.metadata.num_rows)

    def tables(
        self, file: StoredFile, names: Sequence[str], size: int, wanted: Any
    ) -> Iterator[tuple[int, int, Any]]:
        pa, first = arrow(), 0
        with self._open(file) as opened:
            for group in range(opened.metadata.num_row_groups):
                stop = first + opened.metadata.row_group(group).num_rows
                if not wanted(first, stop):
                    yield first, stop, None
                else:
                    try:
                        yield from self._of_group(opened, group, names, size, first)
                    except (pa.ArrowException, OSError) as error:
                        raise DataError(
                            f"{file.path}, row group {group}: cannot be read: {error}"
                        ) from error
                first = stop

    @staticmethod
    def _of_group(
        opened: Any, group: int, names: Sequence[str], size: int, first: int
    ) -> Iterator[tuple[int, int, Any]]:
        """The parts of a row group, whose memory is free before the next one is read."""
        for batch in opened.iter_batches(size, row_groups=[group], columns=[*names]):
            stop = first + batch.num_rows
            yield first, stop, table_of_batch(batch, names)
            first = stop


register_format(
    FileFormat(
        "parquet",
        (".parquet", ".pq"),
        lambda files, options: FilesReader(files, Parquet(), options.kinds),
    )
)
