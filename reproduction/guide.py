"""All maps at matched sizes: which one wins where."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kitchenette import Fastfood, RandomMaclaurin, TensorSketch
from kitchenette.kernels import Exponential, Kernel, Polynomial
from kitchenette.metrics import kernel_error
from reproduction import experiment
from reproduction.data import sample_rows
from reproduction.experiment import Cell, Experiment, Mode, Numbers, Results, Table, grid
from reproduction.findings import Finding, claim
from reproduction.samples import Sample, not_clearly_more

Maker = Callable[[Kernel, int, int], Any]

KERNELS: dict[str, Kernel] = {
    "(7, 1)": Polynomial(7),
    "(2, 1)": Polynomial(2),
    "(2, 0)": Polynomial(2, coef0=0.0),
    "(4, 0)": Polynomial(4, coef0=0.0),
    "exp": Exponential(),
}


def maclaurin(**options: Any) -> Maker:
    return lambda kernel, D, seed: RandomMaclaurin(kernel, D, random_state=seed, **options)


MAPS: dict[str, Maker] = {
    f"RandomMaclaurin, {degrees}, {projection}{', H0/1' if h01 else ''}": maclaurin(
        degrees=degrees, projection=projection, h01=h01
    )
    for h01 in (False, True)
    for degrees in ("geometric", "optimal")
    for projection in ("rademacher", "hadamard")
}
MAPS["TensorSketch"] = lambda kernel, D, seed: TensorSketch(kernel, D, random_state=seed)
MAPS["Fastfood, hadamard"] = lambda kernel, D, seed: Fastfood(
    kernel, D, projection="hadamard", random_state=seed
)
MAPS["Fastfood, orthogonal"] = lambda kernel, D, seed: Fastfood(
    kernel, D, projection="orthogonal", random_state=seed
)


class DotProductKernels(Experiment):
    name = "guide-dot-product"
    paper = experiment.GUIDE
    item = "Errors for dot-product kernels"
    claim = "Degrees of least variance are never worse than the paper's random ones."
    preparation = (
        "NRMSE of the kernel matrix on 1000 unit-norm rows, 4096 features; the median over seeds, "
        'because random degrees have rare large errors. "(r, q)" is the kernel (<x, y> + q)^r, exp '
        "is exp(<x, y>). What is said about it is in [accuracy.md](accuracy.md)."
    )

    def cells(self, mode: Mode) -> list[Cell]:
        quick = mode == "quick"
        maps = [kind for kind in MAPS if "H0/1" not in kind and "Fastfood" not in kind]
        return [
            cell
            for cell in grid(
                seeds=5 if quick else 9,
                data=["a9a"] if quick else ["a9a", "mnist"],
                D=[1024] if quick else [4096],
                map=maps if quick else list(MAPS),
                kernel=["(7, 1)", "(2, 1)"] if quick else list(KERNELS),
            )
            if not (cell["kernel"].endswith("0)") and "H0/1" in cell["map"])
        ]

    def run(self, cell: Cell) -> Numbers:
        X = sample_rows(cell["data"], 1000)
        made = MAPS[cell["map"]](KERNELS[cell["kernel"]], cell["D"], cell.seed)
        return {"nrmse": kernel_error(made.fit(X), X)}

    def findings(self, results: Results) -> Iterable[Finding]:
        for name in results.values("data"):
            for kernel in results.values("kernel"):
                for projection in ("rademacher", "hadamard"):
                    ratios = results.where(data=name, kernel=kernel).ratios(
                        "nrmse",
                        {"map": f"RandomMaclaurin, optimal, {projection}"},
                        {"map": f"RandomMaclaurin, geometric, {projection}"},
                    )
                    yield claim(
                        f"{name}, {kernel}, {projection}: optimal degrees have {ratios.show(2)} "
                        "times the error of random ones",
                        not_clearly_more(ratios, Sample([1.0])),
                        measured=bool(ratios),
                    )

    def tables(self, results: Results) -> Iterable[Table]:
        kernels = results.values("kernel")
        for name in results.values("data"):
            rows = []
            for kind in results.values("map"):
                here = results.where(data=name, map=kind)
                samples = [here.sample("nrmse", kernel=kernel) for kernel in kernels]
                rows.append([kind, *(f"{s.median:.3f}" if s else "-" for s in samples)])
            yield Table(f"{name}, median NRMSE", ["", *kernels], rows)


EXPERIMENTS: list[Experiment] = [DotProductKernels()]
