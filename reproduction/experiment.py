"""What an experiment is: cells to measure, and what follows from the figures."""

from __future__ import annotations

import itertools
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from reproduction.findings import Finding
from reproduction.samples import Sample

Mode = Literal["quick", "full"]
Numbers = dict[str, float]


@dataclass(frozen=True)
class Paper:
    """One of the five papers, or the comparison of all of them."""

    key: str  # begins the names of its experiments
    title: str
    citation: str


RANDOM_MACLAURIN = Paper(
    "maclaurin",
    "Random Maclaurin",
    "Kar, Karnick: Random feature maps for dot product kernels. AISTATS 2012, and its poster.",
)
TENSOR_SKETCH = Paper(
    "tensor-sketch",
    "Tensor Sketch",
    "Pham, Pagh: Fast and scalable polynomial kernels via explicit feature maps. KDD 2013.",
)
CRAFTMAPS = Paper(
    "craftmaps",
    "CRAFTMaps",
    "Hamid, Xiao, Gittens, DeCoste: Compact random feature maps. ICML 2014.",
)
FASTFOOD = Paper(
    "fastfood",
    "Fastfood",
    "Le, Sarlos, Smola: Fastfood, approximating kernel expansions in loglinear time. ICML 2013, "
    "and its long version.",
)
TEFM = Paper(
    "tefm",
    "TEFM",
    "Training-efficient feature map for shift-invariant kernels. IJCAI 2015.",
)
GUIDE = Paper("guide", "All five together", "Not from a paper: every map at matched sizes.")
PAPERS = (RANDOM_MACLAURIN, TENSOR_SKETCH, CRAFTMAPS, FASTFOOD, TEFM, GUIDE)


@dataclass(frozen=True)
class Cell:
    """One setting and one seed: the unit that is measured, stored and resumed."""

    setting: Mapping[str, Any]
    seed: int

    def __getitem__(self, axis: str) -> Any:
        return self.setting[axis]

    @property
    def key(self) -> str:
        return json.dumps([dict(self.setting), self.seed], sort_keys=True)

    def __str__(self) -> str:
        parts = (f"{axis} {value}" for axis, value in self.setting.items())
        return ", ".join([*parts, f"seed {self.seed}"])


def grid(seeds: int, **axes: Sequence[Any]) -> list[Cell]:
    """All combinations of the values of the axes, each with the seeds 0, 1, ..."""
    return [
        Cell(dict(zip(axes, values, strict=True)), seed)
        for values in itertools.product(*axes.values())
        for seed in range(seeds)
    ]


@dataclass(frozen=True)
class Measured:
    """What came out of a cell."""

    cell: Cell
    numbers: Numbers
    seconds: float
    run: int = 0  # which of the runs in `Results.runs` measured it


def counterpart_key(cell: Cell, kind: Mapping[str, Any]) -> str:
    """What a cell has in common with its counterparts of another kind."""
    return Cell({axis: v for axis, v in cell.setting.items() if axis not in kind}, cell.seed).key


@dataclass
class Results:
    """Measured cells, and where and when they were measured."""

    mode: Mode
    measured: list[Measured] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)

    def where(self, **setting: Any) -> Results:
        """The cells that have these values on these axes."""
        chosen = [
            one
            for one in self.measured
            if all(one.cell.setting.get(axis) == value for axis, value in setting.items())
        ]
        return Results(self.mode, chosen, self.runs)

    def values(self, axis: str) -> list[Any]:
        """The different values on an axis, in the order of the cells."""
        settings = (one.cell.setting for one in self.measured)
        return list(dict.fromkeys(setting[axis] for setting in settings if axis in setting))

    def sample(self, number: str, **setting: Any) -> Sample:
        """A measured number in one setting, over the seeds; empty if it was not measured."""
        chosen = self.where(**setting).measured
        return Sample([one.numbers[number] for one in chosen if number in one.numbers])

    def ratios(self, number: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> Sample:
        """The number in cells of one kind over that in their counterparts of the other kind.

        The two kinds are values on some axes; a counterpart agrees on the others and in the seed.
        """
        others = {
            counterpart_key(measured.cell, other): measured.numbers[number]
            for measured in self.where(**other).measured
            if number in measured.numbers
        }
        return Sample(
            [
                measured.numbers[number] / others[key]
                for measured in self.where(**one).measured
                if number in measured.numbers
                and (key := counterpart_key(measured.cell, one)) in others
            ]
        )

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.measured)

    def __len__(self) -> int:
        return len(self.measured)


@dataclass(frozen=True)
class Table:
    """A table of the report: strings, ready to be shown."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    @classmethod
    def by_size(
        cls,
        title: str,
        rows: Mapping[str, Results],
        number: str,
        digits: int,
        axis: str,
        sizes: Iterable[int],
        corner: str = "",
    ) -> Table:
        """A number for each size on an axis, in a row for each label."""
        sizes = list(sizes)
        lines = [
            [label, *(here.sample(number, **{axis: size}).show(digits) for size in sizes)]
            for label, here in rows.items()
        ]
        return cls(title, [corner, *(f"{axis} = {size}" for size in sizes)], lines)


class Experiment(ABC):
    """An experiment of a paper.

    A subclass says in words what the paper did and claims, lists the cells of each mode, measures
    one of them, and draws conclusions from all. It keeps nothing between calls.
    """

    name: ClassVar[str]  # begins with the key of its paper
    paper: ClassVar[Paper]
    item: ClassVar[str]  # what it is called in the paper: "Figure 1"
    claim: ClassVar[str]  # what the paper says about it
    preparation: ClassVar[str]  # data, splits and parameters; where the paper is silent
    explanation: ClassVar[str] = ""  # what we make of the outcome
    revision: ClassVar[int] = 1  # increase it when stored cells are no longer comparable

    @abstractmethod
    def cells(self, mode: Mode) -> list[Cell]:
        """What is measured. A cell that needs a data set names it on an axis called "data"."""

    @abstractmethod
    def run(self, cell: Cell) -> Numbers:
        """Measure one cell."""

    @abstractmethod
    def findings(self, results: Results) -> Iterable[Finding]:
        """What the figures say about the paper's claims, for any part of the cells."""

    @abstractmethod
    def tables(self, results: Results) -> Iterable[Table]:
        """The printed figures beside ours."""

    def draw(self, results: Results) -> Any:
        """A matplotlib figure made with `reproduction.style`, or None."""
        return None


def check_experiments(experiments: Sequence[Experiment]) -> None:
    """Refuse names that are used twice or do not begin with the key of the paper."""
    names = [experiment.name for experiment in experiments]
    if len(set(names)) < len(names):
        raise ValueError(f"Names of experiments must differ; got {sorted(names)}.")
    for experiment in experiments:
        if not re.fullmatch(rf"{experiment.paper.key}-[a-z0-9-]+", experiment.name):
            raise ValueError(
                f"The name of an experiment of this paper must begin with "
                f"{experiment.paper.key + '-'!r} and have no other signs than a-z, 0-9 and '-'; "
                f"got {experiment.name!r}."
            )
