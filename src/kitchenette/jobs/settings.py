"""Settings of a fit, and the estimator that they make."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from kitchenette import kernels
from kitchenette.estimators import KernelClassifier, KernelRegressor
from kitchenette.files.budget import Budget
from kitchenette.files.codec import decode, encode
from kitchenette.files.models import MAX_BYTES, MAX_OPERATIONS
from kitchenette.kernels import Kernel
from kitchenette.learning.losses import loss_names
from kitchenette.maps.degrees import MOST_TERMS
from kitchenette.maps.registry import check_supported, default_map, make_map
from kitchenette.parameters import check_choice, check_count
from kitchenette.quantities import of_bytes
from kitchenette.resources import check_memory
from kitchenette.selection import AutoMap
from kitchenette.selection.settings import SEARCH
from kitchenette.selection.targets import TASKS

COMPONENTS = 1024  # the default of maps that are not chosen
LEAST_COMPONENTS, MOST_COMPONENTS = 64, 8192  # chosen by a limit of time or memory
EFFICIENCY = 0.3  # of a fit from files, relative to products of matrices in memory
SOLUTION = 10  # operations for the solution, in cubes of the number of features
WITHOUT_FEATURES = 400_000_000  # bytes: the program and the blocks of rows
VALIDATION_ROWS = 2000  # as many as the estimators hold back by default
KERNELS = {
    name.lower(): getattr(kernels, name)
    for name in ("Gaussian", "Laplacian", "Cauchy", "Matern", "RationalQuadratic", "Polynomial")
}
ESTIMATORS: dict[str, Any] = {
    "classification": KernelClassifier,
    "regression": KernelRegressor,
}
MAPS = ("auto", "Fastfood", "RandomKitchenSinks", "RandomMaclaurin", "TensorSketch")


@dataclass(frozen=True)
class FitSettings:
    """The settings of a fit.

    Attributes
    ----------
    task : {"classification", "regression"} or None
        None decides by the targets of a sample: strings, booleans and at most 32 distinct
        integers are classes.
    map : str
        "auto", "Fastfood", "RandomKitchenSinks", "RandomMaclaurin" or "TensorSketch".
    kernel : str
        "auto", or the name of a kernel: "gaussian", "laplacian", "cauchy", "matern",
        "rationalquadratic" or "polynomial".
    components : int or None
        The number of features; None is what the limits of time and memory allow if there are any,
        "auto" for `AutoMap`, and 1024 for other maps.
    effort : str or float
        As in `AutoMap`.
    alpha : float or str
        The penalty, or how it is chosen.
    loss, solver : str
        As in the estimators.
    test : float
        The share of test rows, at most 20,000 of them.
    memory : float or None
        The memory limit in bytes.
    seconds : float or None
        The approximate time limit on two cores, used if components is None. It is translated into
        a number of features by counting operations, so that the result does not depend on the
        machine.
    seed : int
        The random seed.

    Examples
    --------
    >>> from kitchenette.jobs import FitSettings
    >>> FitSettings(seconds=60.0).n_components(1_000_000)
    1024
    >>> FitSettings(seconds=60.0).n_components(100_000_000)
    64
    """

    task: str | None = None
    map: str = "auto"
    kernel: str = "auto"
    components: int | None = None
    effort: str | float = "balanced"
    alpha: float | str = "auto"
    loss: str = "squared"
    solver: str = "auto"
    test: float = 0.0
    memory: float | None = None
    seconds: float | None = None
    seed: int = 0

    def check(self) -> None:
        """Refuse invalid values."""
        if self.task is not None:
            check_choice("task", self.task, TASKS)
        check_choice("map", self.map, MAPS)
        check_choice("kernel", self.kernel, ("auto", *KERNELS))
        if self.map != "auto" and self.kernel != "auto":
            check_supported(self.map, KERNELS[self.kernel]())
        self._check_estimators()
        if self._is_automatic():
            AutoMap(effort=self.effort).check_parameters()
        elif self.effort != "balanced":
            raise ValueError(
                f"effort={self.effort!r} is for the map auto, whose kernel is a function of "
                "distances."
            )
        if self.components is not None:
            check_count("components", self.components)
        if not 0 <= self.test < 1:
            raise ValueError(
                f"test must be a share of the rows from 0 to below 1; got {self.test}."
            )
        for name in ("memory", "seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive; got {value!r}.")

    def _check_estimators(self) -> None:
        """Refuse values that no estimator of the task accepts; the task may be unknown."""
        tasks = TASKS if self.task is None else (self.task,)
        losses = {loss: task for task in tasks for loss in loss_names(task)}
        check_choice("loss", self.loss, tuple(losses))
        self.estimator(losses[self.loss], None).problem().check()

    def check_task(self, task: str) -> None:
        """Refuse a loss that is not for the task."""
        losses = loss_names(task)
        if self.loss not in losses:
            raise ValueError(
                f"The loss {self.loss} is not for {task}, for which there are "
                f"{', '.join(losses)}: choose one of these, or another task."
            )

    def to_json(self) -> dict[str, Any]:
        """The same as a dictionary."""
        return asdict(self)

    def n_components(self, n_rows: int) -> int | str:
        """The number of features for this many rows, or "auto"; an error beyond the limits."""
        if self.components is not None:
            if self.memory is not None and memory_of(self.components) > self.memory:
                raise MemoryError(
                    f"{self.components} features take {of_bytes(memory_of(self.components))}, "
                    f"but {of_bytes(self.memory)} are allowed: use fewer of them."
                )
            return self.components
        if self.memory is None and self.seconds is None:
            return "auto" if self._is_automatic() else COMPONENTS
        size = MOST_COMPONENTS if self.seconds is not None else COMPONENTS
        while size > COMPONENTS and size >= 2 * n_rows:
            size //= 2  # more features than rows fit no better
        while size > LEAST_COMPONENTS and not self._allows(size, n_rows):
            size //= 2
        if self.memory is not None and memory_of(size) > self.memory:
            raise MemoryError(
                f"Even {size} features take about {of_bytes(memory_of(size))} with the program "
                f"itself; {of_bytes(self.memory)} are allowed."
            )
        return size

    def _allows(self, size: int, n_rows: int) -> bool:
        enough_memory = self.memory is None or memory_of(size) <= self.memory
        rate = EFFICIENCY * SEARCH.operations_per_second
        operations = (n_rows + SOLUTION * size) * float(size) ** 2
        enough_time = self.seconds is None or operations <= self.seconds * rate
        return enough_memory and enough_time

    def _is_automatic(self) -> bool:
        """Whether the map is an `AutoMap`."""
        of_distances = self.kernel == "auto" or issubclass(
            KERNELS[self.kernel], kernels.ShiftInvariantKernel
        )
        return self.map == "auto" and of_distances

    def feature_map(self, task: str, n_components: Any) -> Any:
        """The map, not fitted."""
        kernel = None if self.kernel == "auto" else KERNELS[self.kernel]()
        if self._is_automatic():
            return AutoMap(
                n_components,
                kernel="auto" if kernel is None else kernel,
                task=task,
                effort=self.effort,
                random_state=self.seed,
            )
        if self.map == "auto" and kernel is not None:
            return default_map(kernel, n_components, self.seed)
        return make_map(self.map, kernel or _usual_kernel(self.map), n_components, self.seed)

    def limits(self, n_columns: int) -> dict[str, float]:
        """The limits of `load` for a checkpoint whose map has so many prepared columns.

        They are upper bounds of what drawing the maps of `feature_map` may take, with a margin.
        A `TensorSketch` may have all degrees up to MOST_TERMS, and degree k has k hash functions.
        """
        n = self.components or MOST_COMPONENTS
        n_terms = MOST_TERMS if self.map == "TensorSketch" else 1
        hashes, entries = n_terms**2 * n_columns, (n + 64) * n_columns  # maps pad their features
        n_bytes = 2000.0 * n + 40.0 * hashes + 150.0 * entries
        n_operations = 4000.0 * n_terms * n + 50.0 * hashes + 300.0 * entries
        return {
            "max_bytes": MAX_BYTES + n_bytes,
            "max_operations": MAX_OPERATIONS + n_operations,
        }

    def estimator(self, task: str, feature_map: Any) -> KernelClassifier | KernelRegressor:
        """The estimator, not fitted."""
        estimator: KernelClassifier | KernelRegressor = ESTIMATORS[task](
            feature_map,
            alpha=self.alpha,
            loss=self.loss,
            solver=self.solver,
            validation_rows=VALIDATION_ROWS,
            random_state=self.seed,
        )
        return estimator


def memory_of(n_components: int) -> float:
    """About the bytes that a fit with so many features takes.

    Statistics of all rows and of a block, their combination, and the factor of the solution, in
    packed form; and the features of validation rows in float64, twice.
    """
    statistics = 4 * 4.0 * n_components**2
    return WITHOUT_FEATURES + statistics + 2 * 8.0 * VALIDATION_ROWS * n_components


def limits_of_map(feature_map: Any) -> dict[str, float]:
    """The limits of `load` for a checkpoint that has this fitted map, in a few places."""
    budget = Budget(math.inf, math.inf)
    decode(*encode(feature_map), budget)
    return {
        "max_bytes": MAX_BYTES + 4 * budget.spent_bytes,
        "max_operations": MAX_OPERATIONS + 4 * budget.spent_operations,
    }


def refuse_too_much(n_components: int) -> None:
    """Refuse a fit that takes more memory than the process may use."""
    check_memory(
        f"A fit with {n_components} features",
        {"statistics and blocks of rows": int(memory_of(n_components))},
        "Use fewer features.",
    )


def _usual_kernel(name: str) -> Kernel:
    if name in ("RandomMaclaurin", "TensorSketch"):
        return kernels.Polynomial()
    return kernels.Gaussian()
