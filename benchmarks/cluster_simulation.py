"""10^9 rows on 100 machines: a calculation, checked against a simulation of discrete events.

python -m benchmarks.clusters --out measured.json      # what a row, a merge and a byte cost
python -m benchmarks.cluster_simulation measured.json

Machines learn their rows, and their statistics are added up in one of two ways.

Tree: in each of log2(machines) rounds, half of the machines that are left send all statistics to
the other half, which add them. The last one has the sum.

Reduce-scatter: the Gram matrix is cut into as many tiles as there are machines. Each machine sends
every tile to the machine that adds up that tile, so that all networks and all processors work at
once; then one machine collects the sums.

The calculation adds up the longest chain. The simulation moves messages through a network card in
and out of each machine, one at a time, adds when a message has arrived and the processor is free,
and lets machines be of different speed.
"""

from __future__ import annotations

import argparse
import heapq
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SIZES = [2**k for k in range(12, 17)]
LATENCY = 1e-3  # seconds for each message: a task of the scheduler


@dataclass(frozen=True)
class Costs:
    """What things cost, for a number of features.

    Attributes
    ----------
    row : float
        Seconds of a machine for a row.
    merge : float
        Seconds to add up two statistics.
    n_bytes : float
        The size of statistics.
    solution : float
        Seconds for the weights.
    bandwidth : float
        Bytes per second of a network card, each way.
    """

    row: float
    merge: float
    n_bytes: float
    solution: float
    bandwidth: float


class Measured:
    """Costs for any number of features, fitted to those that were measured."""

    def __init__(self, measured: list[dict[str, Any]], threads: int, bandwidth: float):
        self._D = np.array([one["n_features"] for one in measured], dtype=float)
        self._measured, self._threads, self._bandwidth = measured, threads, bandwidth

    def _fitted(self, name: str, *powers: int) -> Callable[[float], float]:
        """A sum of powers of the number of features, by relative least squares."""
        values = np.array([one[name] for one in self._measured])
        powers = powers[: len(values)]
        A = np.stack([self._D**power / values for power in powers], axis=1)
        factors, *_ = np.linalg.lstsq(A, np.ones(len(values)), rcond=None)
        if factors.min() < 0:  # a single power then explains it better
            return self._fitted(name, powers[0])
        return lambda D: float(sum(f * D**p for f, p in zip(factors, powers, strict=True)))

    def costs(self, D: int) -> Costs:
        """Those of machines with some threads and a network."""
        slowest = min(one["copied_bytes_per_second"] for one in self._measured)
        return Costs(
            self._fitted("row_seconds", 2, 1)(D) / self._threads,
            self._fitted("merge_seconds", 2)(D),
            self._fitted("statistics_bytes", 2)(D),
            self._fitted("solution_seconds", 3, 2)(D) / self._threads,
            min(self._bandwidth, slowest),
        )


# ---------------------------------------------------------------- the calculation


def calculated(costs: Costs, n_rows: float, machines: int) -> dict[str, dict[str, float]]:
    """Seconds of each part, and bytes that the busiest machine sends or receives."""
    learning = n_rows / machines * costs.row
    moving = costs.n_bytes / costs.bandwidth
    rounds = int(np.ceil(np.log2(machines)))
    share = (machines - 1) / machines
    return {
        "tree": {
            "learning": learning,
            "network": rounds * (moving + LATENCY),
            "adding": rounds * costs.merge,
            "solution": costs.solution,
            "bytes": rounds * costs.n_bytes,
        },
        "reduce-scatter": {
            "learning": learning,
            "network": 2 * share * moving + 2 * (machines - 1) * LATENCY,
            "adding": share * costs.merge,
            "solution": costs.solution,
            "bytes": 2 * share * costs.n_bytes,
        },
    }


def seconds_of(parts: dict[str, float]) -> float:
    return sum(value for name, value in parts.items() if name != "bytes")


# ---------------------------------------------------------------- the simulation


class Simulation:
    """Machines with a processor and a network card in and out, each doing one thing at a time."""

    def __init__(self, machines: int):
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.sending, self.receiving, self.busy = (np.zeros(machines) for _ in range(3))

    def at(self, time: float, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (time, self._count, action))

    def run(self) -> float:
        while self._events:
            self.now, _, action = heapq.heappop(self._events)
            action()
        return self.now

    def send(self, a: int, b: int, seconds: float, arrived: Callable[[], None]) -> None:
        """A message, when the cards of both machines are free."""
        begin = max(self.now, self.sending[a], self.receiving[b])
        self.sending[a] = self.receiving[b] = begin + seconds
        self.at(begin + seconds, arrived)

    def work(self, machine: int, seconds: float, done: Callable[[], None]) -> None:
        """Work of a machine, when its processor is free."""
        self.busy[machine] = max(self.now, self.busy[machine]) + seconds
        self.at(self.busy[machine], done)


def simulated_tree(costs: Costs, learning: Any) -> float:
    machines = len(learning)
    simulation = Simulation(machines)
    waiting: dict[tuple[int, int], int] = {}  # the node of the tree, and the machine that has it

    def has(level: int, place: int, machine: int) -> None:
        width = -(-machines // 2**level)
        if width == 1:
            return
        if place == width - 1 and width % 2:  # it has no neighbor
            has(level + 1, place // 2, machine)
            return
        other = waiting.pop((level, place ^ 1), None)
        if other is None:
            waiting[level, place] = machine
            return
        first, second = sorted((machine, other))

        def arrived() -> None:
            simulation.work(first, costs.merge, lambda: has(level + 1, place // 2, first))

        simulation.send(second, first, costs.n_bytes / costs.bandwidth + LATENCY, arrived)

    for machine in range(machines):
        simulation.at(learning[machine], lambda machine=machine: has(0, machine, machine))  # type: ignore[misc]
    return simulation.run()


def simulated_scatter(costs: Costs, learning: Any) -> float:
    machines = len(learning)
    simulation = Simulation(machines)
    tile = costs.n_bytes / costs.bandwidth / machines + LATENCY
    missing = np.full(machines, machines - 1)

    def added(owner: int) -> None:
        missing[owner] -= 1
        if missing[owner] == 0 and owner != 0:
            simulation.send(owner, 0, tile, lambda: None)

    def send_tile(machine: int, step: int) -> None:
        """Send tiles one after the other, beginning with the neighbor's."""
        if step == machines:
            return
        owner = (machine + step) % machines

        def arrived() -> None:
            simulation.work(owner, costs.merge / machines, lambda: added(owner))
            send_tile(machine, step + 1)

        simulation.send(machine, owner, tile, arrived)

    for machine in range(machines):
        simulation.at(learning[machine], lambda machine=machine: send_tile(machine, 1))  # type: ignore[misc]
    return simulation.run()


SIMULATED = {"tree": simulated_tree, "reduce-scatter": simulated_scatter}


def simulated(
    costs: Costs, n_rows: float, machines: int, how: str, spread: float = 0.0, seed: int = 0
) -> float:
    """Seconds, with speeds of machines that differ by a relative spread."""
    speeds = np.exp(spread * np.random.default_rng(seed).standard_normal(machines))
    learning = n_rows / machines * costs.row * speeds
    return SIMULATED[how](costs, learning) + costs.solution


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("measured", type=Path, help="what benchmarks.clusters wrote")
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--machines", type=int, default=100)
    parser.add_argument("--threads", type=int, default=16, help="of each machine")
    parser.add_argument("--bandwidth", type=float, default=1.25e9, help="bytes per second")
    parser.add_argument("--spread", type=float, default=0.05, help="of the speeds of machines")
    options = parser.parse_args()
    measured = Measured(
        json.loads(options.measured.read_text()), options.threads, options.bandwidth
    )
    print(
        "| features | way | learning | network | adding | solution | calculated | simulated | "
        f"with a spread of {options.spread:.0%} | GB through the busiest card | bottleneck |"
    )
    print("|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---|")
    for D in SIZES:
        costs = measured.costs(D)
        for how, parts in calculated(costs, options.rows, options.machines).items():
            whole = seconds_of(parts)
            exact = simulated(costs, options.rows, options.machines, how)
            noisy = simulated(costs, options.rows, options.machines, how, options.spread)
            shares = {name: value for name, value in parts.items() if name != "bytes"}
            print(
                f"| {D:,} | {how} | "
                + " | ".join(f"{value:,.1f} s" for value in shares.values())
                + f" | {whole:,.1f} s | {exact:,.1f} s ({exact / whole - 1:+.1%}) | {noisy:,.1f} s "
                f"| {parts['bytes'] / 1e9:,.1f} | {max(shares, key=lambda name: shares[name])} |"
            )
    print("\n| features | adds up faster | seconds saved | a twentieth of all below |")
    print("|---:|---|---:|---:|")
    for D in SIZES:
        costs = measured.costs(D)
        ways = calculated(costs, options.rows, options.machines)
        saved = seconds_of(ways["tree"]) - seconds_of(ways["reduce-scatter"])
        others = seconds_of(ways["tree"]) - ways["tree"]["learning"]
        rows = max(0.0, (20 * saved - others) / costs.row)
        better = "reduce-scatter" if saved > 0 else "tree"
        print(f"| {D:,} | {better} | {saved:,.2f} s | {rows:,.0f} rows for each machine |")


if __name__ == "__main__":
    main()
