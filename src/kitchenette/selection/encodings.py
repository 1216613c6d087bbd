"""Whether numbers are also categories, and categories also numbers, decided on rows held out.

A column of few whole numbers may be a quantity or a code, such as the rank of a chess piece, and
categories may have an order, such as months. Neither can be told from the numbers alone. Columns of
zeros and ones side by side, of which exactly one is one in every row, are taken for the categories
of one column in their order, whoever has encoded them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kitchenette.columns.categories import OneHot
from kitchenette.columns.preparation import Columns, LinearColumns, Preparation, Sequence
from kitchenette.files.fields import checked
from kitchenette.kernels import ShiftInvariantKernel
from kitchenette.maps.prepared import PreparedSpecification
from kitchenette.selection.candidates import KERNELS, FourierCandidate, weighted_candidate
from kitchenette.selection.columns import column_scales
from kitchenette.selection.importance import importances
from kitchenette.selection.pilot import Pilot, Trial, first_best
from kitchenette.selection.search import Decision, Plan, Search, decide
from kitchenette.selection.settings import SEARCH

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Encoding:
    """How columns of few whole numbers, and indicators of categories, enter the map."""

    n_columns: int
    # The numbers of each column of few whole numbers that are categories of their own
    keys: dict[int, Array]
    blocks: tuple[NDArray[np.int64], ...]  # the columns of the indicators of each set of categories
    numbers: str = "numbers"  # "numbers" or "both"
    categories: str = "indicators"  # "indicators", "ordered" or "both"

    @property
    def is_plain(self) -> bool:
        """Whether all columns stay as they are."""
        return self.numbers == "numbers" and self.categories == "indicators"

    def alternatives(self) -> list[Encoding]:
        """The encodings that differ in the numbers or in the categories, and both forms of all."""
        found = []
        if self.keys:
            found += [replace(self, numbers=name) for name in ("numbers", "both")]
        if self.blocks:
            names = "indicators", "ordered", "both"
            found += [replace(self, categories=name) for name in names]
        if self.keys and self.blocks:
            found.append(replace(self, numbers="both", categories="both"))
        return [one for one in found if one != self]

    def preparation(self) -> Preparation:
        """The columns as they are, the indicators of numbers, and the numbers of categories."""
        kept = np.arange(self.n_columns, dtype=np.int64)
        if self.categories == "ordered":
            kept = np.setdiff1d(kept, np.concatenate(self.blocks))
        parts: list[Preparation] = [Sequence(n_columns=kept.size)] if kept.size else []
        columns = [kept]
        if self.numbers == "both":
            parts.append(_indicators(list(self.keys.values())))
            columns.append(np.array([*self.keys], dtype=np.int64))
        if self.categories != "indicators":
            parts.append(_places([block.size for block in self.blocks]))
            columns += self.blocks
        made = Columns(
            n_columns=self.n_columns, parts=tuple(parts), columns=np.concatenate(columns)
        )
        return checked(made)

    def applied(self, pilot: Pilot) -> Pilot:
        """A sample with its columns encoded."""
        return pilot.with_rows(
            pilot.rows if self.is_plain else self.preparation().prepared(pilot.rows)
        )

    def before(self, specification: PreparedSpecification) -> PreparedSpecification:
        """The map of the columns, given that of the encoded columns."""
        preparation = Sequence.of(self.preparation(), specification.preparation)
        return PreparedSpecification.of(
            preparation, specification.inner, ranges=specification.ranges
        )

    def sentence(self) -> str:
        """What becomes of the columns, in words."""
        found = ""
        if self.numbers == "both":
            what = "a column" if len(self.keys) == 1 else f"{len(self.keys)} columns"
            found += f" The whole numbers of {what} are also categories."
        if self.categories != "indicators":
            n = len(self.blocks)
            what = "a column are" if n == 1 else f"{n} columns are"
            also = "also " if self.categories == "both" else ""
            found += f" The categories of {what} {also}numbers, in their order."
        return found


def encoding_of(rows: NDArray[Any]) -> Encoding:
    """The columns of a sample that could be encoded in another way, encoded as they are."""
    n_columns, keys = rows.shape[1], {}
    blocks = indicator_blocks(rows)
    for j in range(n_columns):
        numbers = frequent_codes(rows[:, j])
        if numbers is not None:
            keys[j] = numbers
    if n_columns + sum(one.size for one in keys.values()) > SEARCH.dense_columns:
        keys = {}
    return Encoding(n_columns, keys, blocks)


def frequent_codes(column: NDArray[Any]) -> Array | None:
    """The numbers of a column that could be codes of categories; None if it has others."""
    some = np.unique(column[: SEARCH.most_codes * SEARCH.code_rows])
    if some.size > SEARCH.most_codes or (some != np.rint(some)).any():
        return None
    numbers, counts = np.unique(column, return_counts=True)
    if not 2 < numbers.size <= SEARCH.most_codes or (numbers != np.rint(numbers)).any():
        return None
    frequent = numbers[counts >= SEARCH.code_rows].astype(np.float64)
    return frequent if frequent.size > 1 else None


def indicator_blocks(rows: NDArray[Any]) -> tuple[NDArray[np.int64], ...]:
    """Columns side by side of which one is one in every row, and all others are zero.

    Of two categories, one column says all; they have no order.
    """
    ones = rows == 1
    binary = (ones | (rows == 0)).all(axis=0)
    found, start = [], 0
    while start < binary.size:
        taken, stop = np.zeros(rows.shape[0], dtype=bool), start
        while stop < binary.size and binary[stop] and not (taken & ones[:, stop]).any():
            taken |= ones[:, stop]
            stop += 1
            if taken.all():
                break
        complete = stop > start and bool(taken.all())
        if complete and stop - start > 2:
            found.append(np.arange(start, stop, dtype=np.int64))
        start = stop if complete else start + 1
    return tuple(found)


def decide_with_encoding(
    pilot: Pilot, plan: Plan, kernel: ShiftInvariantKernel | None, scales: str, seed: int
) -> tuple[Decision, Encoding | None]:
    """Choose a map as `decide` does, and an encoding of the columns; None leaves them as they are.

    A learned metric finds the order of categories by itself. So an encoding with which simple
    candidates are better gets a search of its own, if they are about as good as what was chosen
    without it, and must also be better after that.
    """
    plain = decide(pilot, plan, kernel, scales, seed)
    if kernel is not None or scales != "auto" or not plan.effort.is_thorough:
        return plain, None
    promising = promising_encoding(pilot, plan, seed)
    if promising is None:
        return plain, None
    encoding, simple = promising
    assert plain.trial is not None
    if plain.trial.beats(simple, SEARCH.encoding_caution, tolerance=np.inf):
        return plain, None
    encoded = decide(encoding.applied(pilot), plan, kernel, scales, seed)
    assert encoded.trial is not None
    if is_clearly_better(encoded.trial, plain.trial):
        return encoded, encoding
    return plain, None


def promising_encoding(pilot: Pilot, plan: Plan, seed: int) -> tuple[Encoding, Trial] | None:
    """An encoding with which simple candidates are better, by more than chance, and the best one.

    Numbers and categories are changed one after the other, as long as that helps.
    """
    if sp.issparse(pilot.rows) or pilot.n_observations < SEARCH.few_rows:
        return None

    sizes = plan.sizes._replace(n_screening=plan.sizes.n_final)

    def simple(one: Encoding) -> tuple[Encoding, Trial]:
        search = Search(one.applied(pilot), seed, sizes, plan.effort)
        return one, search.best_of(_simple_candidates(search.pilot.rows)).trial

    plain = encoding_of(pilot.rows)
    if not plain.alternatives():
        return None
    best, seen = simple(plain), [plain]
    while others := [one for one in best[0].alternatives() if one not in seen]:
        seen += others
        other = first_best(map(simple, others), lambda pair: pair[1].loss)
        if not is_clearly_better(other[1], best[1]):
            break
        best = other
    return None if best[0].is_plain else best


def encoded_importances(
    encoding: Encoding, decision: Decision, seed: int, precision: str
) -> Array | None:
    """The importances of the columns that were encoded, by a model of the sample."""
    if decision.spreads is None or decision.trial is None:
        return None
    statistics, coef = decision.trial.models[0]
    tried = decision.candidate.specification(statistics.n_features, seed, precision)
    return importances(encoding.before(tried), statistics, coef, decision.spreads)


def is_clearly_better(one: Trial, other: Trial) -> bool:
    """Whether an encoding is better than another one by more than chance."""
    return one.beats(other, SEARCH.encoding_caution, tolerance=SEARCH.encoding_caution)


def _simple_candidates(rows: Any) -> Iterator[FourierCandidate]:
    """A few kernels of columns that all count alike."""
    for kernel, name, widths in SEARCH.encoding_starts:
        form = column_scales(name, rows)
        start = weighted_candidate(KERNELS[kernel], form, np.ones_like(form.spread), 1.0)
        yield from map(start.wider, widths)


def _indicators(keys: list[Array]) -> OneHot:
    """A column for each of these numbers of each column; others are zeros in all of them."""
    sizes = [one.size for one in keys]
    none = np.full(len(keys), -1, dtype=np.int64)
    return OneHot(
        n_columns=len(keys),
        keys=np.concatenate(keys),
        targets=np.concatenate([np.arange(size, dtype=np.int64) for size in sizes]),
        starts=np.cumsum([0, *sizes], dtype=np.int64),
        widths=np.array(sizes, dtype=np.int64),
        unknown=none,
        missing=none,
    )


def _places(sizes: list[int]) -> LinearColumns:
    """The place of the one in each block; zero is in the middle, and stands for none."""
    starts = np.cumsum([0, *sizes])
    matrix = np.zeros((starts[-1], len(sizes)))
    for block, (start, stop) in enumerate(pairwise(starts.tolist())):
        matrix[start:stop, block] = np.arange(stop - start) - (stop - start - 1) / 2
    return LinearColumns.of(matrix)
