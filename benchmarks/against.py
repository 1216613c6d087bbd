"""Another version of the package against this one, in processes that take turns.

python -m benchmarks.against OLD fourier               # or polynomial, compact, learning, latency
python -m benchmarks.against OLD learning --rounds 8

OLD is a Python interpreter of an environment in which the other version is installed, or a source
tree with a native module in src/kitchenette. The benchmarks are those of this tree in both cases.
Ratios above one say that this version is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def command(version: Path) -> tuple[list[str], dict[str, str]]:
    """How to run Python with a version: the interpreter, and the environment it needs."""
    environment = dict(os.environ)
    if version.is_dir():
        environment["PYTHONPATH"] = str((version / "src").resolve())
        return [sys.executable], environment
    environment.pop("PYTHONPATH", None)
    return [str(version.absolute())], environment


def run(python: list[str], environment: dict[str, str], benchmark: str) -> dict[str, float]:
    done = subprocess.run(
        [*python, "-m", f"benchmarks.{benchmark}", "--json"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("old", type=Path, help="an interpreter or a source tree")
    parser.add_argument("benchmark", help="a module of benchmarks that has --json")
    parser.add_argument("--rounds", type=int, default=4, help="processes for each version")
    options = parser.parse_args()
    versions = {"old": command(options.old), "new": ([sys.executable], dict(os.environ))}
    best: dict[str, dict[str, float]] = {name: {} for name in versions}
    for _ in range(options.rounds):
        for name, (python, environment) in versions.items():
            for case, seconds in run(python, environment, options.benchmark).items():
                best[name][case] = min(seconds, best[name].get(case, seconds))
    print(f"| {options.benchmark} | old, µs | new, µs | old / new |\n|---|---:|---:|---:|")
    for case in [case for case in best["old"] if case in best["new"]]:
        old, new = best["old"][case], best["new"][case]
        print(f"| {case} | {1e6 * old:.1f} | {1e6 * new:.1f} | {old / new:.2f} |")


if __name__ == "__main__":
    main()
