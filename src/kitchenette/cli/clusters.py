"""Options for fits on more than one machine, and what they print."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kitchenette.cli.outcome import as_usage
from kitchenette.cli.terminal import Terminal, checked_output
from kitchenette.data import Source

if TYPE_CHECKING:
    from kitchenette.jobs import FitSettings

option = partial(typer.Option, rich_help_panel="More than one machine")


@dataclass(frozen=True)
class ClusterOptions:
    """Where rows are learned; the fields are options of ``fit``."""

    scheduler: Annotated[
        str | None,
        option(
            metavar="ADDRESS",
            help="Fit on a cluster: tcp://... of Dask, spark://... of Spark, or local-processes=4 "
            "on this machine. All workers must be able to read the files.",
        ),
    ] = None
    shard: Annotated[
        str | None,
        option(metavar="K/N", help="Fit shard K of N of the rows, for a batch queue."),
    ] = None
    statistics_only: Annotated[
        bool,
        option("--statistics-only", help="Write the statistics of a shard, for kitchenette merge."),
    ] = False
    prepared: Annotated[
        Path | None,
        option(metavar="FILE", help="Statistics of another shard, whose map is used."),
    ] = None

    def check(self, like: Path | None, resume: bool) -> None:
        """Refuse options that do not fit together."""
        self.part()
        if (self.shard is not None or self.prepared is not None) and not self.statistics_only:
            raise ValueError(
                "--shard and --prepared are for --statistics-only: a shard has no model of its own."
            )
        if self.statistics_only and self.scheduler is not None:
            raise ValueError("--statistics-only is for a batch queue; leave out --scheduler.")
        if self.statistics_only and (like is not None or resume):
            raise ValueError(
                "--statistics-only begins anew and chooses its map on a sample of all rows, or "
                "takes that of another shard by --prepared; leave out --like and --resume."
            )
        if self.scheduler is not None and resume:
            raise ValueError("A fit on a cluster writes no checkpoints; leave out --resume.")

    def part(self) -> tuple[int, int]:
        """Which shard, and of how many."""
        if self.shard is None:
            return 1, 1
        number, sign, of = self.shard.partition("/")
        if not (sign and number.isdigit() and of.isdigit()):
            raise ValueError(
                f"--shard is a part and the number of parts, as 3/16; got {self.shard}."
            )
        return int(number), int(of)

    @contextmanager
    def placed(self, rows: Source) -> Iterator[Source]:
        """The rows where they are learned."""
        if self.scheduler is None:
            yield rows
            return
        from kitchenette.backends import scheduled

        with as_usage():
            context = scheduled(rows, self.scheduler)
        with context as there:
            yield there


def write_shard(
    rows: Source,
    out: Path,
    settings: FitSettings,
    options: ClusterOptions,
    terminal: Terminal,
) -> None:
    """Learn a shard and print what it is."""
    from kitchenette.jobs import learn_shard

    checked_output(out)
    with terminal.fit_progress() as progress:
        found = learn_shard(
            rows,
            out,
            settings,
            shard=options.part(),
            prepared=options.prepared,
            progress=progress,
        )
    assert found.summary is not None
    number, of = found.facts["shard"], found.facts["n_shards"]
    n_rows = found.summary.n_rows
    terminal.document({"out": str(out), "shard": number, "of": of, "rows": n_rows})
    terminal.line(f"{out}: shard {number} of {of}, statistics of {n_rows:,} rows.")
