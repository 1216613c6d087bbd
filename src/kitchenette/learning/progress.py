"""Progress through rows, on request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

STEPS = 10  # the largest number of printed lines


def with_progress(blocks: Iterable[slice], n_rows: int, title: str) -> Iterator[slice]:
    """Iterate over blocks and show progress: a bar if rich is installed, printed lines if not."""
    try:
        from rich.progress import Progress
    except ImportError:
        yield from _printed(blocks, n_rows, title)
        return
    with Progress() as bar:
        task = bar.add_task(f"{title}, {n_rows} rows", total=n_rows)
        for rows in blocks:
            yield rows
            bar.update(task, completed=rows.stop)


def _printed(blocks: Iterable[slice], n_rows: int, title: str) -> Iterator[slice]:
    step = -(-n_rows // STEPS)
    for rows in blocks:
        yield rows
        if rows.stop == n_rows or rows.stop // step > rows.start // step:
            print(f"{title}: {rows.stop} of {n_rows} rows", flush=True)
