"""Time and memory on noisy machines: everything in one run, best of several, as ratios."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import kitchenette
from kitchenette import Fastfood

Action = Callable[[], object]


def options_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options that all benchmarks have."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="leave out what takes long")
    parser.add_argument(
        "--json", action="store_true", help="only print seconds of a few cases, for against.py"
    )
    return parser


def in_a_new_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a call in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def print_figures(actions: Mapping[str, Action]) -> None:
    """The best time of each action, in seconds, as one line of JSON."""
    print(json.dumps(best_times(actions)))


def begun(
    parser: argparse.ArgumentParser, figures: Callable[[], Mapping[str, Action]]
) -> argparse.Namespace | None:
    """The options of a benchmark that has begun; None if it only had to print figures."""
    options = parser.parse_args()
    if options.json:
        print_figures(figures())
        return None
    kitchenette.show_config()
    print()
    return options


def draw_curves(
    curves: Mapping[str, Mapping[str, list[tuple[int, float]]]], label: str, unit: float, path: str
) -> None:
    """Draw a panel for each axis with a curve of seconds for each name, in units per second."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    for panel, (axis, by_name) in zip(panels, curves.items(), strict=True):
        for name, points in by_name.items():
            x, y = zip(*points, strict=True)
            panel.loglog(x, [unit * seconds for seconds in y], "o-", label=name, markersize=4)
        panel.set_xlabel(axis)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel(label)
    panels[0].legend()
    figure.savefig(path, dpi=130)
    print(f"wrote {path}")


def fastfood(kernel: Any, n_components: int, projection: str = "orthogonal") -> Fastfood:
    """A map of seed 0, also for versions that call the parameter ``transform``."""
    parameters = inspect.signature(Fastfood).parameters
    name = "projection" if "projection" in parameters else "transform"
    options: dict[str, Any] = {name: projection}
    return Fastfood(kernel, n_components, random_state=0, **options)


def best_times(actions: Mapping[str, Action], *, seconds: float = 1.0) -> dict[str, float]:
    """The best time of each action, in seconds.

    The actions take turns, so that a slow moment of the machine hits all of them. A turn is
    one call, or 100 milliseconds of calls if they are short: the first of them finds caches as
    the other actions left them, the later ones as it left them itself. There are at least three
    rounds, and more until each action has had ``seconds`` in all.
    """
    best = dict.fromkeys(actions, float("inf"))
    spent = dict.fromkeys(actions, 0.0)
    rounds = 0
    while rounds < 3 or (min(spent.values()) < seconds and max(spent.values()) < 8 * seconds):
        for name, action in actions.items():
            turn = 0.0
            while turn < 0.1:
                start = perf_counter()
                action()
                elapsed = perf_counter() - start
                best[name] = min(best[name], elapsed)
                turn += elapsed
            spent[name] += turn
        rounds += 1
    return best


def forget_peak() -> None:
    """Let `peak_memory` begin anew, where the system can do that: on Linux."""
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")


def peak_memory() -> float:
    """The peak memory of this process in megabytes; on Unix only."""
    status = Path("/proc/self/status")
    if status.exists():  # the other figure includes the process that started this one
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


class Ran(NamedTuple):
    """A command that has run: what it printed, and what the whole process took."""

    document: dict[str, Any]
    seconds: float
    processor_seconds: float


def command(*arguments: object) -> Ran:
    """Run the command `kitchenette` in a process of its own."""
    before, start = os.times(), perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "kitchenette", *map(str, arguments), "--json"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    seconds, after = perf_counter() - start, os.times()
    work = after.children_user + after.children_system
    work -= before.children_user + before.children_system
    return Ran(json.loads(done.stdout), seconds, work)
