"""A broken file names the file and the line or the row group; unusual but good files are read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from kitchenette import Fastfood, KernelRegressor
from kitchenette.data import DataError, csv_files, source


def read(data, **options):
    """All targets of a file."""
    rows = source(data, target="y", **options)
    return np.concatenate([block.y for block in rows.blocks(1000)])


def numbers(n_rows):
    return "".join(f"{i}.5,{i},w{i % 3}\n" for i in range(n_rows))


GOOD = {
    "BOM": "\ufeffa,y,c\n1.5,2,u\n",
    "CRLF": "a,y,c\r\n1.5,2,u\r\n",
    "no last line break": "a,y,c\n1.5,2,u",
    "quotes": '"a","y","c"\n1.5,2,"u, v"\n',
    "quoted quotes": 'a,y,c\n1.5,2,"u ""v"""\n',
    "tabs": "a\ty\tc\n1.5\t2\tu\n",
    "semicolons": "a;y;c\n1.5;2;u\n",
    "gaps": "a,y,c\n,2,\n",
    "empty lines": "a,y,c\n\n1.5,2,u\n\n",
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_unusual_csv_files_are_read(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode())
    assert read(path).tolist() == [2]
    assert source(path).schema.names == ["a", "y", "c"]


def test_line_breaks_in_quotes(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('a,y,c\n1.5,2,"u\nv"\n2.5,3,w\n')
    assert read(path, newlines=True).tolist() == [2, 3]


def test_csv_files_without_a_header(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1.5,2\n2.5,3\n")
    rows = source(path, header=False, target="f1")
    assert next(rows.blocks()).y.tolist() == [2, 3]


HEAD = "a,y,c\n" + numbers(3000)  # more than the bytes that the parser takes at a time
BAD = {
    "short row": ("a,y,c\n1.5,2,u\n2.5,3\n", "line 3: there are 2 values instead of 3"),
    "long row": ("a,y,c\n1.5,2,u\n2.5,3,u,v\n", "line 3: there are 4 values instead of 3"),
    "bad number": (HEAD + "oops,1,w0\n", "line 3002: the column 'a' has 'oops', which is not a"),
    "whole numbers": (HEAD + "1.5,0.25,w\n", "line 3002: the column 'y' has '0.25', which is no"),
    "early bad number": (
        "a,y,c\n" + numbers(50) + "oops,1,w0\n",
        "line 52: the column 'a' has 'oops', which is not a number, unlike the others",
    ),
    "late short row": (HEAD + "1.5,2\n", "line 3002: there are 2 values instead of 3"),
    "decimal commas": ('a,y,c\n"1,5",2,u\n"2,5",3,u\n', "'a' has numbers with decimal commas"),
    "repeated names": ("a,y,a\n1,2,3\n", "line 1: names are repeated: .*'a'"),
    "empty": ("", "is empty"),
}


@pytest.mark.parametrize(("text", "sentence"), BAD.values(), ids=BAD)
def test_bad_csv_files_name_the_line(tmp_path, monkeypatch, text, sentence):
    for name in ("FIRST_BYTES", "CSV_BYTES"):
        monkeypatch.setattr(csv_files, name, 1 << 14)
    path = tmp_path / "bad.csv"
    path.write_bytes(text.encode())
    with pytest.raises(DataError, match=f"bad.csv.*{sentence}"):
        read(path)


def test_a_late_fraction_in_a_column_of_whole_numbers_is_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,y\n" + "1,2.0\n" * 200_000 + "0.25,2.0\n")
    blocks = [*source(path, target="y").blocks(300_000)]
    assert blocks[0].X["a"].to_numpy()[-1] == 0.25


def test_other_encodings_are_refused(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_bytes("a,y,c\n1,2,ü\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"bad.csv is not text in UTF-8"):
        read(path)


def test_a_header_without_rows(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n")
    rows = source(tmp_path / "a.csv", target="y")
    assert [*rows.blocks()] == []
    with pytest.raises(DataError, match="has no rows"):
        KernelRegressor(Fastfood()).fit(rows)
    (tmp_path / "b.csv").write_text("a,y\n1,2\n3,4\n")
    assert read(tmp_path / "b.csv").tolist() == [2, 4]


def test_changed_columns_between_csv_files(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n1,2\n")
    (tmp_path / "b.csv").write_text("y,a\n3,4\n")  # another order is fine
    assert read([tmp_path / "a.csv", tmp_path / "b.csv"]).tolist() == [2, 3]
    (tmp_path / "c.csv").write_text("y,b\n3,4\n")
    with pytest.raises(DataError, match=r"c.csv, line 1: there is no column 'a'"):
        read(str(tmp_path / "*.csv"))
    (tmp_path / "c.csv").write_text("a,y\n1,2\nword,4\n")
    with pytest.raises(DataError, match=r"c.csv, line 3: the column 'a' has 'word'"):
        read(str(tmp_path / "*.csv"))


# ---------------------------------------------------------------- Parquet and Arrow


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.normal(size=1000), "y": np.arange(1000.0), "c": ["u", "v"] * 500})


def test_truncated_parquet(tmp_path, frame):
    path = tmp_path / "a.parquet"
    frame.to_parquet(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"a.parquet is not a whole Parquet file"):
        source(path)


def test_a_damaged_row_group_is_named(tmp_path, frame):
    path = tmp_path / "a.parquet"
    frame.to_parquet(path, row_group_size=100, compression="gzip")
    content = bytearray(path.read_bytes())
    place = len(content) // 2
    content[place : place + 400] = b"\xff" * 400
    path.write_bytes(bytes(content))
    rows = source(path, target="y")
    with pytest.raises(DataError, match=r"a.parquet, row group [3-6]: cannot be read"):
        list(rows.blocks(50))


@pytest.mark.parametrize("end", ["parquet", "feather"])
def test_changed_columns_between_files(tmp_path, frame, end):
    def write(data, name):
        getattr(data, f"to_{end}")(tmp_path / f"{name}.{end}")

    write(frame, "a")
    write(frame.drop(columns="a"), "b")
    with pytest.raises(DataError, match=rf"b.{end} has no column 'a', which .*a.{end} has"):
        source(str(tmp_path / f"*.{end}"))
    write(frame.assign(a="word"), "b")
    with pytest.raises(DataError, match=rf"b.{end} has a column 'a' of another type"):
        source(str(tmp_path / f"*.{end}"))
    write(frame.assign(a=np.arange(1000), more=1)[["more", "y", "c", "a"]], "b")  # also numbers
    assert read(str(tmp_path / f"*.{end}")).size == 2000


@pytest.mark.parametrize("end", ["parquet", "feather", "csv", "npy", "npz", "svm"])
def test_empty_files(tmp_path, end):
    (tmp_path / f"a.{end}").write_bytes(b"")
    with pytest.raises(DataError, match=rf"a.{end} is empty"):
        source(tmp_path / f"a.{end}")


@pytest.mark.parametrize("end", ["parquet", "feather", "npy", "npz"])
def test_files_of_something_else(tmp_path, end):
    (tmp_path / f"a.{end}").write_bytes(b"This is a letter, not a table." * 100)
    with pytest.raises(DataError, match=rf"a.{end} (is not a whole|cannot be read)"):
        source(tmp_path / f"a.{end}")


def test_truncated_arrow(tmp_path, frame):
    path = tmp_path / "a.feather"
    frame.to_feather(path, compression="uncompressed")
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(DataError, match=r"a.feather"):
        list(source(path).blocks())


# ---------------------------------------------------------------- others


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("x 1:2", "line 3: the label 'x' is not a number"),
        ("1 2:y", "line 3: '2:y' is not a column, a colon and a number"),
        ("1 5:1 2:3", "line 3: the columns are not in ascending order at '2:3'"),
        ("1 nothing", "line 3: 'nothing' is not a column"),
    ],
)
def test_bad_svmlight_files_name_the_line(tmp_path, line, sentence):
    path = tmp_path / "a.svm"
    path.write_text(f"1 1:2 3:4\n# a comment\n{line}\n")
    with pytest.raises(DataError, match=f"a.svm, {sentence}"):
        source(path)


def test_formats_that_are_not_clear(tmp_path):
    (tmp_path / "a.txt").write_text("a,y\n1,2\n")
    with pytest.raises(DataError, match="is not clear from its name"):
        source(tmp_path / "a.txt")
    assert read(tmp_path / "a.txt", format="csv").tolist() == [2]
    with pytest.raises(DataError, match="directory without any file"):
        source(tmp_path)
    np.savez(tmp_path / "a.npz", one=np.ones((2, 2)), two=np.ones((2, 2)))
    with pytest.raises(DataError, match="say which one has the rows by array="):
        source(tmp_path / "a.npz")
    assert source(tmp_path / "a.npz", array="two").shape == (2, 2)
    with pytest.raises(ValueError, match="delimiter must be one character"):
        source(tmp_path / "a.txt", format="csv", delimiter="::")


def test_without_pyarrow_there_is_a_sentence(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'kitchenette\[files\]'"):
        source("a.parquet")
    assert source(np.ones((3, 2))).shape == (3, 2)
