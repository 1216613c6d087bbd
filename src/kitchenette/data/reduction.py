"""What is computed of the rows of a source, block by block, wherever the blocks are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol


class Reduction(Protocol):
    """A computation on rows whose results for different rows can be combined.

    It is a small value that can be pickled, because `Source.reduced` of a cluster sends it to other
    machines. Neither method changes anything, so that a scheduler may run it twice.
    """

    def of(self, block: Any) -> Any:
        """The result for the rows of a `Block`."""

    def combined(self, a: Any, b: Any) -> Any:
        """The result for the rows of both; up to rounding, the order does not matter."""


@dataclass(frozen=True)
class ByStart:
    """The results for blocks without combining them, by the index of the first row of each."""

    compute: Callable[[Any], Any]  # a function of a block, which can be pickled
    numbered = True  # it needs row indices

    def of(self, block: Any) -> dict[int, Any]:
        return {block.start: self.compute(block)}

    def combined(self, a: dict[int, Any], b: dict[int, Any]) -> dict[int, Any]:
        return {**a, **b}


class Reducible(Protocol):
    """Rows of which reductions are computed, such as a `Source`."""

    def reduced(self, reduction: Reduction) -> Any:
        """The result for all rows."""


@dataclass(frozen=True)
class Converted:
    """A reduction of rows that are converted first, for example to the numbers of a map."""

    reduction: Any
    convert: Callable[[Any], Any]

    @property
    def numbered(self) -> bool:
        """Whether the reduction needs row indices."""
        return needs_numbers(self.reduction)

    def of(self, block: Any) -> Any:
        return self.reduction.of(replace(block, X=self.convert(block.X)))

    def combined(self, a: Any, b: Any) -> Any:
        return self.reduction.combined(a, b)


@dataclass(frozen=True)
class ConvertedRows:
    """Rows that are converted before anything is computed of them."""

    rows: Reducible
    convert: Callable[[Any], Any]

    def reduced(self, reduction: Reduction) -> Any:
        return self.rows.reduced(Converted(reduction, self.convert))


def in_order(results: dict[int, Any] | None) -> list[Any]:
    """The results of `ByStart` in the order of the rows."""
    return [] if results is None else [results[start] for start in sorted(results)]


def needs_numbers(reduction: Any) -> bool:
    """Whether a reduction looks at ``block.start``."""
    return bool(getattr(reduction, "numbered", False))


def fold(reduction: Reduction, blocks: Iterable[Any]) -> Any:
    """The combined result of blocks, one after the other; None if there are none."""
    result = None
    for block in blocks:
        result = joined(reduction, result, reduction.of(block))
    return result


def joined(reduction: Reduction, a: Any, b: Any) -> Any:
    """The combined result, where None stands for no rows."""
    if a is None or b is None:
        return b if a is None else a
    return reduction.combined(a, b)
