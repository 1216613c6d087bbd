"""What is wrong with a CSV file, and in which line.

A file that cannot be read is read again by Python's csv module, line by line, to find the place.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from typing import Any

from kitchenette.data.listing import StoredFile
from kitchenette.data.schema import DataError
from kitchenette.data.tables import arrow

DELIMITERS = ",;\t|"
WITH_COMMA = re.compile(r"^\s*[+-]?\d+,\d+\s*$")
NULLS = {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "#N/A", "n/a", "-NaN", "-nan", "<NA>"}
NULLS |= {"#NA", "#N/A N/A", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "None"}
BOOLEANS = {"true", "false", "0", "1"}
# A column of texts is taken for a broken column of numbers if less than a tenth of at least ten of
# its first values are none: codes such as "12A" are rarely that rare.
LOOKED_AT, LEAST_TEXTS, MOST_WRONG = 10_000, 10, 0.1
MOST_SHOWN = 40  # characters of a value in a message


def guessed_delimiter(file: StoredFile, decimal: str) -> str:
    """The most frequent delimiter in the first line, outside quotes."""
    with file.system.open_input_stream(file.path, compression="detect") as stream:
        head = stream.read(1 << 16).decode("utf-8-sig", errors="replace")
    first = re.sub(r'"[^"]*"', "", head.splitlines()[0] if head else "")
    counts = {sign: first.count(sign) for sign in DELIMITERS if sign != decimal}
    best = max(counts, key=lambda sign: counts[sign])
    return best if counts[best] else ("," if decimal != "," else ";")


def refuse_texts_like_numbers(file: StoredFile, reading: Any, name: str, batch: Any) -> None:
    """Refuse a column of texts of which nearly all are numbers, or numbers with decimal commas."""
    pa, values = arrow(), batch.column(name)
    if not pa.types.is_string(values.type):
        return
    texts = [text for text in values.slice(0, LOOKED_AT).to_pylist() if text is not None]
    wrong = [_wrong(text, pa.float64(), reading.options.decimal) is not None for text in texts]
    if len(texts) >= LEAST_TEXTS and sum(wrong) < MOST_WRONG * len(texts):
        raise explained(file, reading, found_types={name: pa.float64()}, error=ValueError(name))
    if reading.options.decimal == "." and texts and all(WITH_COMMA.match(text) for text in texts):
        raise DataError(
            f"{file.path}: the column {name!r} has numbers with decimal commas, such as "
            f"{texts[0]!r}. Read it with decimal=','."
        )


def explained(
    file: StoredFile, reading: Any, *, found_types: Mapping[str, Any] | None, error: Exception
) -> DataError:
    """The error of a file that could not be read, with the line in which it is."""
    try:
        with file.system.open_input_stream(file.path, compression="detect") as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            problem = _first_wrong(text, reading.delimiter(file), reading, found_types or {})
    except UnicodeDecodeError as wrong:
        return DataError(f"{file.path} is not text in UTF-8: {wrong.reason}.")
    except csv.Error as wrong:
        return DataError(f"{file.path} is no CSV file: {wrong}.")
    if problem is not None:
        return DataError(f"{file.path}, {problem}")
    return DataError(f"{file.path} cannot be read: {error}")


def _first_wrong(text: Any, delimiter: str, reading: Any, types: Mapping[str, Any]) -> str | None:
    lines, decimal = csv.reader(text, delimiter=delimiter), reading.options.decimal
    line, names = 1, None
    for values in lines:
        if names is None:
            names = values if reading.options.header else [f"f{j}" for j in range(len(values))]
            missing = [name for name in types if name not in names]
            if missing:
                return f"line 1: there is no column {missing[0]!r}."
            if reading.options.header:
                line = lines.line_num + 1
                continue
        if values and len(values) != len(names):
            return (
                f"line {line}: there are {len(values)} values instead of {len(names)}. A value "
                "that contains the delimiter or a line break must stand in quotes; line breaks "
                "need newlines=True."
            )
        for name, value in zip(names, values, strict=False):
            wrong = None if name not in types else _wrong(value, types[name], decimal)
            if wrong is not None:
                problem = f"line {line}: the column {name!r} has {value[:MOST_SHOWN]!r}, which is"
                if name in reading.kinds:
                    return f"{problem} {wrong}."
                return (
                    f"{problem} {wrong}, unlike the others. If it should be read otherwise, say so "
                    f"by kinds={{{name!r}: 'category'}} or 'number'."
                )
        line = lines.line_num + 1
    return None


def _wrong(value: str, dtype: Any, decimal: str) -> str | None:
    """Why a value is not of an Arrow type, or None."""
    types = arrow().types
    if value in NULLS:
        return None
    if types.is_integer(dtype):
        return None if re.fullmatch(r"\s*[+-]?\d+\s*", value) else "not a whole number"
    if types.is_floating(dtype):
        try:
            float(value.replace(decimal, ".") if decimal != "." else value)
        except ValueError:
            return "not a number"
        return None
    if types.is_boolean(dtype):
        return None if value.lower() in BOOLEANS else "neither true nor false"
    if types.is_temporal(dtype):
        return _wrong_date(value, dtype)
    return None


def _wrong_date(value: str, dtype: Any) -> str | None:
    pa = arrow()
    try:
        pa.array([value]).cast(dtype)
    except pa.ArrowInvalid:
        return "not a date or time"
    return None
