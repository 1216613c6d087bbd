"""The first message that a user sees after a common mistake with data."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kitchenette
from kitchenette import AutoMap, Fastfood, KernelClassifier, KernelPCA, KernelRegressor, kernels
from kitchenette.data import source

MAP = Fastfood(kernels.Gaussian(1.5), n_components=16, random_state=0)
X = np.random.default_rng(0).normal(size=(40, 3))
Y = X[:, 0]
FRAME = pd.DataFrame(X, columns=list("abc"))
TEXTS = FRAME.assign(s=["u", "v"] * 20)
LAZY = pl.from_pandas(FRAME).lazy()
TWICE = pd.DataFrame(X, columns=list("aba"))


def regressor():
    return KernelRegressor(MAP, alpha=1.0)


def classifier():
    return KernelClassifier(MAP, alpha=1.0)


def spoiled(values, value, rows=(7, 9)):
    """A copy of targets as objects, of which some rows have another value."""
    copied = np.array(values, dtype=object)
    copied[[*rows]] = value
    return copied


GAPS = spoiled(Y, np.nan).astype(float)
LABELS = ["no", "yes"] * 20
MISSING = r"y contains missing values .* in rows 7, 9 \(counted from zero\)\. Remove these rows"

TARGETS = {
    "the name of a column": (
        lambda: regressor().fit(FRAME, "c"),
        r"got 'c'.*fit\(frame\.drop\(columns='c'\), frame\['c'\]\), or.*source\(frame, target='c'",
    ),
    "the name of a column of polars": (
        lambda: regressor().fit(pl.from_pandas(FRAME), "c"),
        r"got 'c'.*fit\(frame\.drop\('c'\), frame\['c'\]\), or",
    ),
    "names of columns": (lambda: classifier().fit(FRAME, ["a", "c"]), r"got \['a', 'c'\], which"),
    "the name in partial_fit": (lambda: regressor().partial_fit(FRAME, "c"), "got 'c', which"),
    "the name in score": (lambda: regressor().fit(X, Y).score(FRAME, "c"), "got 'c', which"),
    "the name in choose": (lambda: kitchenette.choose(FRAME, "c"), "got 'c', which looks like"),
    "the name in AutoMap": (lambda: AutoMap(16).fit(FRAME, "c"), "got 'c', which looks like"),
    "None among strings": (lambda: classifier().fit(X, spoiled(LABELS, None)), MISSING),
    "None among numbers": (lambda: classifier().fit(X, spoiled([0, 1] * 20, None)), MISSING),
    "None in a series": (lambda: classifier().fit(X, pd.Series(spoiled(LABELS, None))), MISSING),
    "None in polars": (
        lambda: classifier().fit(X, pl.Series([*spoiled(LABELS, None)])),
        MISSING,
    ),
    "NA among integers": (
        lambda: classifier().fit(X, pd.Series(spoiled([0, 1] * 20, pd.NA), dtype="Int64")),
        MISSING,
    ),
    "NaN among labels": (lambda: classifier().fit(X, GAPS), MISSING),
    "NaN among numbers": (lambda: regressor().fit(X, GAPS), MISSING),
    "NA among numbers": (lambda: regressor().fit(X, pd.Series(GAPS, dtype="Float64")), MISSING),
    "NaN in one of two targets": (lambda: regressor().fit(X, np.c_[Y, GAPS]), MISSING),
    "NaN with strings beside": (lambda: regressor().fit(TEXTS, GAPS), MISSING),
    "NaN in choose": (lambda: kitchenette.choose(X, GAPS), MISSING),
    "NaN in choose of a table": (lambda: kitchenette.choose(TEXTS, GAPS), MISSING),
    "NaN in score": (lambda: regressor().fit(X, Y).score(X, GAPS), MISSING),
    "NaN as targets of a source": (
        lambda: source(X, target=GAPS),
        r"target contains missing values.*rows 7, 9",
    ),
    "NaN in many rows": (
        lambda: regressor().fit(X, np.full(40, np.nan)),
        r"in rows 0, 1, 2, 3, 4 and 35 more",
    ),
    "infinity": (
        lambda: regressor().fit(X, spoiled(Y, np.inf).astype(float)),
        r"y contains infinity in rows 7, 9",
    ),
    "strings": (
        lambda: regressor().fit(X, LABELS),
        "predicts numbers, and y has strings, such as 'no'. Use KernelClassifier",
    ),
    "categories": (
        lambda: regressor().fit(X, pd.Series(LABELS, dtype="category")),
        "y has strings, such as 'no'",
    ),
    "strings of a source": (
        lambda: regressor().fit(source(FRAME.assign(t=LABELS), target="t")),
        "y has strings, such as",
    ),
    "numbers as strings": (
        lambda: regressor().fit(X, Y.astype(str)),
        r"convert numbers first, as in y\.astype\(float\)",
    ),
    "strings among numbers": (
        lambda: classifier().fit(X, spoiled([0, 1] * 20, "many")),
        r"strings and others, such as 'many' and 0.*y\.astype\(str\)",
    ),
    "dates": (
        lambda: regressor().fit(X, np.full(40, "2020", dtype="M8[D]")),
        r"y has dates or times \(datetime64\[D\]\)",
    ),
    "complex numbers": (lambda: regressor().fit(X, Y + 1j), "Complex data not supported: y must"),
    "complex labels": (lambda: classifier().fit(X, Y + 1j), "Complex data not supported: y must"),
    "lists of different lengths": (
        lambda: regressor().fit(X, [[1.0], [1.0, 2.0]] * 20),
        "y must have one target, or equally many targets, for each row",
    ),
    "a lazy frame": (lambda: regressor().fit(X, LAZY), r"y is a LazyFrame.*y\.collect\(\)"),
}

DATE = r"'when'.* is not a number.*dates='days'"
NEITHER = "The column 'l' has values of the type {}.*neither a number nor a category nor a date"
SAME = "Columns must have different names; repeated: 'a'. Rename or drop the copies"
LAZILY = r"X is a LazyFrame.*X\.collect\(\), or kitchenette\.data\.source"
DATED = FRAME.assign(when=pd.Timestamp("2020-02-01"))

ROWS = {
    "dates": (lambda: regressor().fit(DATED, Y), DATE),
    "dates beside strings": (lambda: regressor().fit(DATED.assign(s="u"), Y), DATE),
    "dates of polars": (lambda: regressor().fit(pl.from_pandas(DATED), Y), DATE),
    "dates as objects": (
        lambda: regressor().fit(FRAME.assign(when=[date(2020, 2, 1)] * 40), Y),
        DATE,
    ),
    "dates of a map": (lambda: MAP.fit(DATED), DATE),
    "dates of components": (lambda: KernelPCA(2, MAP).fit(DATED), DATE),
    "dates of a source": (
        lambda: source(DATED),
        r"'when' has dates.*ignore=\['when'\], or.*dates='days'",
    ),
    "dates where numbers were": (
        lambda: regressor().fit(FRAME, Y).predict(DATED.assign(a=DATED["when"])),
        r"A column of dates or times \('a', datetime64.* is not a number",
    ),
    "lists": (
        lambda: regressor().fit(FRAME.assign(l=[[1, 2]] * 40), Y),
        NEITHER.format("list") + r".*Leave it out by frame\.drop\(columns='l'\)",
    ),
    "lists of polars": (
        lambda: regressor().fit(pl.from_pandas(FRAME).with_columns(l=pl.Series([[1]] * 40)), Y),
        NEITHER.format("large_list"),
    ),
    "lists of a source": (
        lambda: source(FRAME.assign(l=[[1, 2]] * 40)),
        NEITHER.format("list") + r".*Leave it out by ignore=\['l'\]",
    ),
    "structures": (
        lambda: regressor().fit(FRAME.assign(l=[{"u": 1}] * 40), Y),
        NEITHER.format("struct"),
    ),
    "lists where numbers were": (
        lambda: regressor().fit(FRAME, Y).predict(FRAME.assign(a=[[1, 2]] * 40)),
        "The column 'a' has values of the type list.*fitted on numbers",
    ),
    "lists where numbers were, beside strings": (
        lambda: regressor().fit(TEXTS, Y).predict(TEXTS.assign(a=[[1, 2]] * 40)),
        "The column 'a' has values of the type list.*not numbers",
    ),
    "strings where numbers were": (
        lambda: regressor().fit(FRAME, Y).predict(FRAME.assign(a="u")),
        "The column 'a' has values of the type .*string, and the model was fitted on numbers",
    ),
    "objects of any class": (
        lambda: regressor().fit(FRAME.assign(l=[object()] * 40), Y),
        "The column 'l' has values of several types, or of one that is neither",
    ),
    "equal names": (lambda: regressor().fit(TWICE, Y), SAME),
    "equal names beside strings": (lambda: regressor().fit(TWICE.assign(s="u"), Y), SAME),
    "equal names of a source": (lambda: source(TWICE), SAME),
    "equal names of a map": (lambda: MAP.fit(TWICE), SAME),
    "equal names in choose": (lambda: kitchenette.choose(TWICE, Y), SAME),
    "equal names in predict": (
        lambda: regressor().fit(FRAME, Y).predict(pd.concat([FRAME, FRAME["a"]], axis=1)),
        SAME,
    ),
    "equal names in predict, with strings": (
        lambda: regressor().fit(TEXTS, Y).predict(pd.concat([TEXTS, FRAME["a"]], axis=1)),
        SAME,
    ),
    "a lazy frame": (lambda: regressor().fit(LAZY, Y), LAZILY),
    "a lazy frame in predict": (lambda: regressor().fit(FRAME, Y).predict(LAZY), LAZILY),
    "a lazy frame for a predictor": (lambda: regressor().fit(FRAME, Y).predictor()(LAZY), LAZILY),
    "a lazy frame in score": (lambda: regressor().fit(FRAME, Y).score(LAZY, Y), LAZILY),
    "a lazy frame for a map": (lambda: MAP.fit(LAZY), LAZILY),
    "a lazy frame in choose": (lambda: kitchenette.choose(LAZY, Y), LAZILY),
    "a path": (lambda: regressor().fit("rows.csv", Y), r"There is no file rows\.csv"),
    "a path object": (lambda: regressor().fit(Path("rows.csv"), Y), "There is no file"),
    "a path for a predictor": (
        lambda: regressor().fit(FRAME, Y).predictor()("rows.csv"),
        r"path 'rows\.csv'.*source\(path, target",
    ),
    "lists of different lengths": (
        lambda: regressor().fit([[1, 2], [3]], [1, 2]),
        "lists of equally many numbers; these have different lengths",
    ),
    "dictionaries": (
        lambda: regressor().fit([{"a": 1}, {"a": 2}], [1, 2]),
        r"Rows are dictionaries: pass pandas\.DataFrame\(rows\)",
    ),
    "records": (
        lambda: regressor().fit(np.zeros(2, dtype=[("a", int), ("b", float)]), [1, 2]),
        r"records of a structured array: pass pandas\.DataFrame\(rows\)",
    ),
    "strings in an array": (
        lambda: regressor().fit(np.array([["u", 1.0], ["v", 2.0]], dtype=object), [1, 2]),
        r"could not convert string to float.*Pass a data frame, such as pandas\.DataFrame\(X\)",
    ),
    "complex numbers": (lambda: regressor().fit(X + 1j, Y), "the array has complex numbers"),
    "a complex column": (
        lambda: regressor().fit(FRAME.assign(a=Y + 1j), Y),
        "the column 'a' has complex numbers. Pass real and imaginary parts as columns",
    ),
    "a complex column beside strings": (
        lambda: regressor().fit(TEXTS.assign(a=Y + 1j), Y),
        "the column 'a' has complex numbers",
    ),
    "complex numbers in predict": (
        lambda: regressor().fit(X, Y).predict(X + 1j),
        "the array has complex numbers",
    ),
    "a dictionary for a predictor without names": (
        lambda: regressor().fit(X, Y).predictor()({"a": 1}),
        "fitted on 3 columns without names",
    ),
}


@pytest.mark.parametrize("mistake", TARGETS)
def test_mistakes_with_targets_get_a_sentence_that_helps(mistake):
    call, sentence = TARGETS[mistake]
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.parametrize("mistake", ROWS)
def test_mistakes_with_rows_get_a_sentence_that_helps(mistake):
    call, sentence = ROWS[mistake]
    with pytest.raises(ValueError, match=sentence):
        call()


def test_labels_that_are_names_of_columns_are_labels():
    few = FRAME[:3].assign(d=0.0)
    assert classifier().fit(few, ["a", "b", "a"]).classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: KernelRegressor(alhpa=1),
            "KernelRegressor has no parameter alhpa. Did you mean al",
        ),
        (lambda: AutoMap(n_componets=3), r"Did you mean n_components\?"),
        (lambda: kernels.Gaussian(lenght_scale=1), r"Did you mean length_scale\?"),
        (lambda: Fastfood(gamma=1), "Fastfood has no parameter gamma; use a kernel's length_scale"),
        (lambda: KernelClassifier(n_component=3), "use a feature map of that size"),
        (lambda: KernelRegressor(banana=3), "no parameter banana; it has alpha, effort"),
    ],
)
def test_misspelled_parameters_are_named(call, sentence):
    with pytest.raises(TypeError, match=sentence):
        call()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("alpa", "KernelRegressor has no parameter alpa. Did you mean alpha"),
        ("feature_map__n_component", "Fastfood has no parameter n_component. Did you mean n_comp"),
    ],
)
def test_misspelled_parameters_are_named_by_set_params(name, sentence):
    with pytest.raises(ValueError, match=sentence):
        regressor().set_params(**{name: 2})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_pipes_are_refused_before_anybody_waits(tmp_path):
    pipe = tmp_path / "rows.csv"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match=r"rows\.csv is a pipe or a device.*to a file first"):
        source(pipe)
    with pytest.raises(ValueError, match=r"rows\.csv: it is a pipe"):
        kitchenette.load(pipe)
