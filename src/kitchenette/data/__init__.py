"""Sources of rows: arrays, data frames and files, also larger than memory."""

from kitchenette.data.opening import source
from kitchenette.data.sampling import sampled_rows
from kitchenette.data.schema import Column, ColumnRules, DataError, Schema
from kitchenette.data.source import Block, Source

__all__ = [
    "Block",
    "Column",
    "ColumnRules",
    "DataError",
    "Schema",
    "Source",
    "sampled_rows",
    "source",
]
