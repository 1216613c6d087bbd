"""All experiments, in the order of the report."""

from __future__ import annotations

from reproduction import (
    craftmaps_figures,
    craftmaps_stream,
    craftmaps_tables,
    craftmaps_variants,
    fastfood,
    fastfood_regression,
    guide,
    random_maclaurin,
    tefm,
    tensor_sketch,
    tensor_sketch_tables,
)
from reproduction.experiment import Experiment, check_experiments

MODULES = (
    random_maclaurin,
    tensor_sketch,
    tensor_sketch_tables,
    craftmaps_figures,
    craftmaps_stream,
    craftmaps_tables,
    craftmaps_variants,
    fastfood,
    fastfood_regression,
    tefm,
    guide,
)
EXPERIMENTS: tuple[Experiment, ...] = tuple(
    experiment for module in MODULES for experiment in module.EXPERIMENTS
)
check_experiments(EXPERIMENTS)


def find(name: str) -> list[Experiment]:
    """The experiment of this name, or all whose names begin with it; "all" is everything."""
    if name == "all":
        return list(EXPERIMENTS)
    exact = [experiment for experiment in EXPERIMENTS if experiment.name == name]
    return exact or [e for e in EXPERIMENTS if e.name.startswith(name)]
