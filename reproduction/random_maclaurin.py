"""Random Maclaurin (Kar and Karnick 2012): the experiments of the poster."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette import RandomMaclaurin
from kitchenette.kernels import DotProductKernel, Exponential, Polynomial
from kitchenette.metrics import kernel_error
from reproduction import experiment
from reproduction.experiment import Cell, Experiment, Mode, Numbers, Results, Table, grid
from reproduction.findings import Finding, claim
from reproduction.samples import Sample, clearly_less

# The poster's Algorithm 3: random degrees with P[N = n] = 2^-(n + 1), independent signs.
AS_PRINTED: dict[str, Any] = {"degrees": "geometric", "projection": "rademacher"}
KERNELS: dict[str, DotProductKernel] = {
    "polynomial": Polynomial(10),
    "exponential": Exponential(),
}


def make_map(kind: str, kernel: DotProductKernel, D: int, n_columns: int, seed: int) -> Any:
    """RF and H0/1 as printed, where H0/1 adds n_columns + 1 columns to D random ones, or ours."""
    if kind == "RF":
        return RandomMaclaurin(kernel, D, random_state=seed, **AS_PRINTED)
    if kind == "H0/1":
        return RandomMaclaurin(kernel, D + n_columns + 1, h01=True, random_state=seed, **AS_PRINTED)
    return RandomMaclaurin(kernel, D, random_state=seed)


MAPS = {
    "RF": "RF, paper's choices",
    "H0/1": "H0/1, paper's choices",
    "ours": "RF, our defaults",
}


@lru_cache(maxsize=8)
def ball(n: int, n_columns: int, seed: int) -> NDArray[np.float64]:
    """Points uniform in the unit ball."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns))
    radii = rng.uniform(size=(n, 1)) ** (1 / n_columns)
    return np.asarray(radii * X / np.linalg.norm(X, axis=1, keepdims=True))


class Toy(Experiment):
    name = "maclaurin-toy"
    paper = experiment.RANDOM_MACLAURIN
    item = "Toy experiments"
    claim = (
        "Kernel matrices of 100 points are reconstructed from random features; the average error "
        "falls as features are added, and H0/1 offers a sharper drop."
    )
    preparation = (
        "100 points uniform in the unit ball of R^d, d = 10, 50 and 200; kernels (1 + <x, y>)^10 "
        "and exp(<x, y>); mean absolute error of the kernel matrix. D counts the random features; "
        "H0/1 has d + 1 columns more, as in the poster. The poster's figure has no numbers in the "
        "text, and it does not say how the points are drawn."
    )
    explanation = (
        "Our defaults (degrees of least variance, Hadamard projections) have most of what H0/1 "
        "gains, without its extra columns."
    )

    def cells(self, mode: Mode) -> list[Cell]:
        quick = mode == "quick"
        return grid(
            seeds=10 if quick else 20,
            kernel=list(KERNELS),
            d=[10, 50] if quick else [10, 50, 200],
            map=list(MAPS),
            D=[100, 1000] if quick else [50, 100, 200, 500, 1000, 2000, 5000],
        )

    def run(self, cell: Cell) -> Numbers:
        X = ball(100, cell["d"], cell.seed)
        made = make_map(cell["map"], KERNELS[cell["kernel"]], cell["D"], cell["d"], cell.seed)
        return {"error": kernel_error(made.fit(X), X, metric="mean_absolute")}

    def findings(self, results: Results) -> Iterable[Finding]:
        sizes = results.values("D")
        few, many = min(sizes, default=0), max(sizes, default=0)
        for kernel in results.values("kernel"):
            for d in results.values("d"):
                here = results.where(kernel=kernel, d=d)
                at = f"{kernel}, d = {d}"
                for kind in ("RF", "H0/1"):
                    with_many = here.sample("error", map=kind, D=many)
                    with_few = here.sample("error", map=kind, D=few)
                    yield claim(
                        f"{at}: the error of {kind} falls from D = {few} to {many}",
                        clearly_less(with_many, with_few),
                        measured=bool(with_many and with_few),
                    )
                ratios = here.ratios("error", {"map": "H0/1"}, {"map": "RF"})
                yield claim(
                    f"{at}: H0/1 has a smaller error than RF, over all D "
                    f"{ratios.show(2)} times as large",
                    clearly_less(ratios, Sample([1.0])),
                    measured=bool(ratios),
                )

    def tables(self, results: Results) -> Iterable[Table]:
        sizes = results.values("D")
        for kernel in results.values("kernel"):
            rows = [
                [
                    f"{MAPS[kind]}, d = {d}",
                    *(
                        results.sample("error", kernel=kernel, d=d, map=kind, D=D).show(3)
                        for D in sizes
                    ),
                ]
                for d in results.values("d")
                for kind in MAPS
            ]
            title = f"Mean absolute error, {kernel} kernel"
            yield Table(title, ["map", *(f"D = {D}" for D in sizes)], rows)

    def draw(self, results: Results) -> Any:
        from reproduction import style

        kernels, columns = results.values("kernel"), results.values("d")
        figure, panels = style.panels(len(kernels), len(columns))
        sizes = results.values("D")
        for row, kernel in zip(panels, kernels, strict=True):
            for axes, d in zip(row, columns, strict=True):
                for number, (kind, label) in enumerate(MAPS.items()):
                    here = results.where(kernel=kernel, d=d, map=kind)
                    samples = [here.sample("error", D=D) for D in sizes]
                    style.curve(axes, sizes, samples, label, number)
                axes.set(xscale="log", yscale="log", title=f"{kernel}, d = {d}", xlabel="D")
            row[0].set_ylabel("mean absolute error")
        panels[0][0].legend()
        return figure


EXPERIMENTS: list[Experiment] = [Toy()]
