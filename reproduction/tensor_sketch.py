"""Tensor Sketch (Pham and Pagh 2013): the figures and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable
from time import process_time
from typing import Any

import numpy as np

from kitchenette import TensorSketch
from kitchenette.kernels import Polynomial
from kitchenette.metrics import kernel_error
from reproduction import experiment, random_maclaurin
from reproduction.classification import measure_cell, split
from reproduction.data import sample_rows, unit_rows
from reproduction.experiment import Cell, Experiment, Mode, Numbers, Results, Table, grid
from reproduction.findings import Finding, claim, compare
from reproduction.random_maclaurin import LiteralMaclaurin
from reproduction.samples import (
    Sample,
    at_most,
    binomial_error,
    clearly_less,
    not_clearly_more,
    show_percent,
)

# RM is Random Maclaurin to the letter of its Algorithm 3, with which this paper compares: of D
# columns for <x, y>^p all but about D / 2^(p + 1) are zero.
MAPS = {
    "TS": "TS",
    "RM": "RM to the letter",
    "RM useful": "RM with useful degrees",
    "RM ours": "RM, our defaults",
}
COMPARED = ["TS", "RM", "RM ours"]  # where useful degrees make no difference, or little
WHAT_MAPS_ARE = (
    'TS is `TensorSketch`. "RM to the letter" is Algorithm 3 of Random Maclaurin as printed: it '
    'draws degrees that the kernel does not have, and their features are zero. "RM with useful '
    'degrees" is `RandomMaclaurin(degrees="geometric", projection="rademacher")`, which draws '
    'only degrees that the kernel has; "our defaults" are degrees of least variance and Hadamard '
    "projections."
)


def make_map(kind: str, kernel: Polynomial, D: int, n_columns: int, seed: int) -> Any:
    if kind == "TS":
        return TensorSketch(kernel, D, random_state=seed)
    if kind == "RM":
        return LiteralMaclaurin(kernel, D, random_state=seed)
    name = {"RM useful": "RF", "RM H0/1": "H0/1"}.get(kind, "ours")
    return random_maclaurin.make_map(name, kernel, D, n_columns, seed)


def kernel_of(cell: Cell) -> Polynomial:
    return Polynomial(cell["degree"], coef0=float(cell["constant"]))


def show_kernel(degree: int, constant: int) -> str:
    return f"(1 + <x, y>)^{degree}" if constant else f"<x, y>^{degree}"


class RelativeErrors(Experiment):
    name = "tensor-sketch-figure-1"
    paper = experiment.TENSOR_SKETCH
    item = "Figure 1"
    claim = (
        "On Adult, Tensor Sketch has a smaller relative error of the kernel than Random Maclaurin "
        "for p = 2, 3, 4; the difference is most dramatic for homogeneous kernels. With a "
        "constant, Tensor Sketch needs only D = 500 for an error below 1, and Random Maclaurin "
        "more than 3000."
    )
    preparation = (
        "Mean of |K - K'| / |K| over all pairs of 1000 random unit-norm rows of Adult in which K "
        "is not zero, homogeneous kernels <x, y>^p and (1 + <x, y>)^p. The figure has no numbers "
        "in the text, and the paper does not say over which pairs it averages. " + WHAT_MAPS_ARE
    )
    explanation = (
        "The paper explains the large errors of Random Maclaurin for homogeneous kernels by its "
        "random signs. They have another reason: the algorithm to the letter draws the degree n "
        "with probability 2^-(n + 1) also where the kernel has no such degree, so for <x, y>^p all "
        "but D / 2^(p + 1) features are zero: 16 of 500 are left for p = 4. With the degrees that "
        "the kernel has, random signs are about as good as Tensor Sketch at these degrees."
    )

    def cells(self, mode: Mode) -> list[Cell]:
        quick = mode == "quick"
        return grid(
            seeds=5,
            data=["a9a"],
            constant=[0, 1],
            degree=[2, 4] if quick else [2, 3, 4],
            map=list(MAPS),
            D=[500] if quick else [500, 1500, 3000],
        )

    def run(self, cell: Cell) -> Numbers:
        X = sample_rows("a9a", 1000)
        made = make_map(cell["map"], kernel_of(cell), cell["D"], X.shape[1], cell.seed).fit(X)
        return {"relative": kernel_error(made, X, kernel=kernel_of(cell), metric="relative")}

    def findings(self, results: Results) -> Iterable[Finding]:
        for degree in results.values("degree"):
            both = []
            for constant in results.values("constant"):
                here = results.where(degree=degree, constant=constant)
                ratios = here.ratios("relative", {"map": "TS"}, {"map": "RM"})
                both.append(ratios)
                yield claim(
                    f"{show_kernel(degree, constant)}: Tensor Sketch has {ratios.show(2)} times "
                    "the error of Random Maclaurin",
                    # Three seeds of a quick run cannot tell 0.8 from 1.
                    clearly_less(ratios, Sample([1.0]))
                    if results.mode == "full"
                    else not_clearly_more(ratios, Sample([1.0])),
                    WHY_NO_ADVANTAGE,
                    measured=bool(ratios),
                )
                if constant:
                    errors = here.sample("relative", map="TS", D=500)
                    yield claim(
                        f"{show_kernel(degree, constant)}: Tensor Sketch has an error below 1 "
                        f"with D = 500, {errors.show(2)}",
                        clearly_less(errors, Sample([1.0])),
                        measured=bool(errors),
                    )
                    if results.mode == "full":
                        errors = here.sample("relative", map="RM", D=3000)
                        yield claim(
                            f"{show_kernel(degree, constant)}: Random Maclaurin needs more than D "
                            f"= 3000 for that, where its error is {errors.show(2)}",
                            clearly_less(Sample([1.0]), errors),
                            "On rows of norm one (1 + <x, y>)^p is one at least for data without "
                            "negative entries, and errors of its low degrees, which have most of "
                            "the features, are small beside it.",
                            measured=bool(errors),
                        )

    def tables(self, results: Results) -> Iterable[Table]:
        sizes = results.values("D")
        for constant in results.values("constant"):
            rows = {
                f"{show_kernel(degree, constant)}, {label}": results.where(
                    constant=constant, degree=degree, map=kind
                )
                for degree in results.values("degree")
                for kind, label in MAPS.items()
            }
            yield Table.by_size("Relative error", rows, "relative", 3, "D", sizes)

    def draw(self, results: Results) -> Any:
        from reproduction import style

        degrees, sizes = results.values("degree"), results.values("D")
        figure, panels = style.panels(2, len(degrees), height=2.6)
        for row, constant in zip(panels, (0, 1), strict=True):
            for axes, degree in zip(row, degrees, strict=True):
                for number, (kind, label) in enumerate(MAPS.items()):
                    here = results.where(constant=constant, degree=degree, map=kind)
                    samples = [here.sample("relative", D=D) for D in sizes]
                    style.curve(axes, sizes, samples, label, number)
                axes.set(yscale="log", title=show_kernel(degree, constant), xlabel="D")
            row[0].set_ylabel("relative error")
        panels[0][0].legend()
        return figure


WHY_NO_ADVANTAGE = ""


class MappingTimes(Experiment):
    name = "tensor-sketch-figure-2"
    paper = experiment.TENSOR_SKETCH
    item = "Figure 2"
    claim = (
        "The time of Tensor Sketch hardly depends on the number of columns d, that of Random "
        "Maclaurin grows in proportion to it, so that it is quadratic in d if D = d."
    )
    preparation = (
        "CPU seconds to map 10,000 rows (measured on 1000, times 10), kernel (1 + <x, y>)^4; "
        "(a) Adult and MNIST with D up to 4000, (b) normal rows with D = d. The best of three "
        "transforms. " + WHAT_MAPS_ARE
    )

    def cells(self, mode: Mode) -> list[Cell]:
        quick = mode == "quick"
        sizes = [500, 2000] if quick else [500, 1000, 2000, 3000, 4000]
        seeds = 1 if quick else 5
        return [
            *grid(seeds, data=["a9a", "mnist"], map=COMPARED, D=sizes),
            *grid(seeds, rows=["normal"], map=COMPARED, D=sizes),
        ]

    def run(self, cell: Cell) -> Numbers:
        if "data" in cell.setting:
            X = sample_rows(cell["data"], 1000)
        else:
            X = unit_rows(np.random.default_rng(0).normal(size=(1000, cell["D"])))
        made = make_map(cell["map"], Polynomial(4), cell["D"], X.shape[1], cell.seed).fit(X[:500])
        times = []
        for _ in range(3):
            start = process_time()
            made.transform(X)
            times.append(process_time() - start)
        return {"seconds": 10 * min(times)}

    def findings(self, results: Results) -> Iterable[Finding]:
        for kind, grows in (("TS", False), ("RM", True)):
            few = results.where(map=kind).ratios("seconds", {"data": "mnist"}, {"data": "a9a"})
            yield claim(
                f"{MAPS[kind]}: MNIST, which has 6.4 times the columns, takes {few.show(1)} times "
                "the time of Adult",
                (few.mean > 3.0) == grows,
                measured=bool(few),
                timed=True,
            )
        sizes = results.where(rows="normal").values("D")
        for kind, power in (("TS", 1.0), ("RM", 2.0)):
            here = results.where(rows="normal", map=kind)
            if len(sizes) > 1:
                first, last = (
                    here.sample("seconds", D=sizes[0]),
                    here.sample("seconds", D=sizes[-1]),
                )
                grown = math.log(last.mean / first.mean) / math.log(sizes[-1] / sizes[0])
                yield claim(
                    f"{MAPS[kind]} with d = D: the time grows like D to the power {grown:.2f}",
                    abs(grown - power) < 0.5,
                    measured=bool(first and last),
                    timed=True,
                )

    def tables(self, results: Results) -> Iterable[Table]:
        sizes = results.values("D")
        rows = {
            f"{label}, {MAPS[kind]}": results.where(map=kind, **setting)
            for label, setting in PARTS_OF_FIGURE_2.items()
            for kind in COMPARED
        }
        yield Table.by_size("CPU seconds for 10,000 rows", rows, "seconds", 2, "D", sizes)

    def draw(self, results: Results) -> Any:
        from reproduction import style

        figure, panels = style.panels(1, 3)
        sizes = results.values("D")
        for axes, (label, setting) in zip(panels[0], PARTS_OF_FIGURE_2.items(), strict=True):
            for number, kind in enumerate(COMPARED):
                here = results.where(map=kind, **setting)
                samples = [here.sample("seconds", D=D) for D in sizes]
                style.curve(axes, sizes, samples, MAPS[kind], number)
            axes.set(yscale="log", title=label, xlabel="D")
        panels[0][0].set_ylabel("CPU seconds for 10,000 rows")
        panels[0][0].legend()
        return figure


PARTS_OF_FIGURE_2 = {
    "Adult, d = 123": {"data": "a9a"},
    "MNIST, d = 784": {"data": "mnist"},
    "d = D": {"rows": "normal"},
}

# Names in the paper, by data set and task.
SETS = {
    ("covtype", ""): "Covertype",
    ("mnist", ""): "MNIST",
    ("a9a", ""): "Adult",
    ("mnist", "4/9"): "MNIST 4 against 9 (for Gisette)",
}


def rows_of(cell: Cell) -> Any:
    name = f"{cell['data']} {cell['task']}".strip()
    n_train = cell["rows"]
    return split(name, n_train, min(n_train, MOST_TEST_ROWS.get(name, 10000)), cell.seed)


# Where the rows that the tables train on leave fewer than 10,000, or the customary test has more.
MOST_TEST_ROWS = {"a9a": 16281, "mnist 4/9": 5000}


def measure(cell: Cell) -> Numbers:
    """A map with a learner, or the exact machine."""
    return measure_cell(make_map, cell, kernel_of(cell), cell["learner"], rows_of(cell))


def on_sets(seeds: int, rows: int, sets: Iterable[tuple[str, str]], **axes: Any) -> list[Cell]:
    """Cells of several data sets."""
    cells: list[Cell] = []
    for name, task in sets:
        cells += grid(seeds, data=[name], task=[task], rows=[rows], **axes)
    return cells


def in_order_of_splits(cells: list[Cell]) -> list[Cell]:
    """Seed by seed, so that an interrupted run has figures of all sets; then split by split."""
    order = list(SETS)
    return sorted(cells, key=lambda c: (c.seed, order.index((c["data"], c["task"]))))


class AccuracyByFeatures(Experiment):
    name = "tensor-sketch-figures-3-4"
    paper = experiment.TENSOR_SKETCH
    item = "Figures 3 and 4"
    claim = (
        "With LIBLINEAR and degree 2, Tensor Sketch is more accurate than Random Maclaurin, most "
        "of all for homogeneous kernels, nears the exact machine faster as D grows, and trains "
        "faster where there are many columns."
    )
    preparation = (
        "Accuracy on test rows and CPU seconds of training with the mapping. The paper speaks of "
        "training accuracy and names no split; we take 5000 random rows for training and 5000 for "
        "the test (the paper had 7000 to 100,000 rows), the exact machine on two splits; rows of "
        "norm one, C = c / k(x, x) with c = 10, for Adult 1. Columns of Covertype standardised, "
        "class 2 against the others. Gisette is not among our data; MNIST 4 against 9, of which it "
        "was made, stands in. The figures have no numbers in the text. " + WHAT_MAPS_ARE
    )

    def cells(self, mode: Mode) -> list[Cell]:
        quick = mode == "quick"
        sets = [("a9a", "")] if quick else list(SETS)
        rows = 1500 if quick else 5000
        axes: dict[str, Any] = {"constant": [0, 1], "degree": [2], "learner": ["liblinear"]}
        sizes = [50, 200] if quick else [100, 300, 1000]
        cells = on_sets(5, rows, sets, **axes, map=COMPARED, D=sizes)
        cells += on_sets(1 if quick else 2, rows, sets, **axes, map=["exact"], D=[0])
        return in_order_of_splits(cells)

    def run(self, cell: Cell) -> Numbers:
        return measure(cell)

    def findings(self, results: Results) -> Iterable[Finding]:
        for (name, task), label in SETS.items():
            for constant in results.values("constant"):
                here = results.where(data=name, task=task, constant=constant)
                ratios = here.ratios("accuracy", {"map": "TS"}, {"map": "RM"})
                at = f"{label}, {show_kernel(2, constant)}"
                yield claim(
                    f"{at}: Tensor Sketch has {ratios.show(3)} times the accuracy of Random "
                    "Maclaurin, over all D",
                    clearly_less(Sample([1.0]), ratios)
                    if not constant
                    else at_most(Sample([1.0]), ratios, results.mode),
                    WHY_RM_AHEAD,
                    measured=bool(ratios),
                )
                if constant and "mnist" in name:
                    times = here.ratios("train_seconds", {"map": "TS"}, {"map": "RM"})
                    yield claim(
                        f"{at}: it trains in {times.show(2)} times the time",
                        times.mean < 1,
                        measured=bool(times),
                        timed=True,
                    )

    def tables(self, results: Results) -> Iterable[Table]:
        sizes = [D for D in results.values("D") if D]
        for number, digits in (("accuracy", 1), ("train_seconds", 2)):
            rows = []
            for (name, task), label in SETS.items():
                for constant in results.values("constant"):
                    here = results.where(data=name, task=task, constant=constant)
                    if not here:
                        continue
                    at = f"{label}, {show_kernel(2, constant)}"
                    exact = here.where(map="exact")
                    for kind in COMPARED:
                        cells = [
                            show_number(here.where(map=kind, D=D), number, digits) for D in sizes
                        ]
                        rows.append([f"{at}, {MAPS[kind]}", *cells])
                    rows.append([f"{at}, exact", show_number(exact, number, digits)])
                    rows[-1] += [""] * (len(sizes) - 1)
            titles = {"accuracy": "Accuracy in percent", "train_seconds": "CPU seconds of training"}
            yield Table(titles[number], ["", *(f"D = {D}" for D in sizes)], rows)

    def draw(self, results: Results) -> Any:
        from reproduction import style

        there = [s for s in SETS if results.where(data=s[0], task=s[1])]
        figure, panels = style.panels(3, max(len(there), 1), width=3, height=2.6)
        sizes = [D for D in results.values("D") if D]
        for column, (name, task) in enumerate(there):
            for row, (number, constant) in enumerate(
                [("accuracy", 0), ("accuracy", 1), ("train_seconds", 1)]
            ):
                axes = panels[row][column]
                here = results.where(data=name, task=task, constant=constant)
                for place, kind in enumerate(COMPARED):
                    samples = [here.sample(number, map=kind, D=D) for D in sizes]
                    style.curve(axes, sizes, samples, MAPS[kind], place)
                if exact := here.sample(number, map="exact"):
                    style.level(axes, exact.mean, "exact")
                axes.set(title=f"{SETS[name, task]}\n{show_kernel(2, constant)}", xlabel="D")
                axes.set(ylabel="accuracy" if number == "accuracy" else "training in CPU s")
        panels[0][0].legend()
        return figure


WHY_RM_AHEAD = ""


def show_number(here: Results, number: str, digits: int) -> str:
    if number == "accuracy":
        return show_percent(here.sample("accuracy"), here.sample("n_test"), digits)
    return here.sample(number).show(digits)


# Table 1: accuracy in percent and its spread for (degree, constant): exact, TS, RM.
PRINTED_TABLE_1: dict[tuple[str, str], dict[tuple[int, int], tuple[tuple[float, float], ...]]] = {
    ("covtype", ""): {
        (2, 0): ((79.73, 0.0), (78.87, 0.06), (72.58, 1.46)),
        (2, 1): ((79.73, 0.0), (78.90, 0.12), (75.96, 0.45)),
        (4, 0): ((84.01, 0.0), (79.39, 0.13), (58.55, 2.75)),
        (4, 1): ((84.20, 0.0), (79.36, 0.19), (76.76, 0.42)),
    },
    ("mnist", ""): {
        (2, 0): ((97.92, 0.0), (95.81, 0.08), (86.00, 1.12)),
        (2, 1): ((97.93, 0.0), (95.84, 0.10), (92.76, 0.08)),
        (4, 0): ((97.17, 0.0), (92.49, 0.22), (41.45, 4.81)),
        (4, 1): ((97.31, 0.0), (92.44, 0.04), (90.07, 0.65)),
    },
    ("a9a", ""): {
        (2, 0): ((84.33, 0.0), (84.33, 0.12), (77.85, 1.32)),
        (2, 1): ((84.34, 0.0), (84.51, 0.07), (84.42, 0.10)),
        (4, 0): ((79.34, 0.0), (81.09, 0.63), (58.04, 2.37)),
        (4, 1): ((79.31, 0.0), (81.89, 0.24), (84.04, 0.46)),
    },
    ("mnist", "4/9"): {  # printed for Gisette
        (2, 0): ((97.54, 0.0), (96.46, 0.17), (90.40, 0.79)),
        (2, 1): ((97.54, 0.0), (96.23, 0.14), (90.38, 0.56)),
        (4, 0): ((97.91, 0.0), (95.11, 0.15), (78.89, 0.68)),
        (4, 1): ((97.91, 0.0), (95.21, 0.33), (88.86, 0.57)),
    },
}
# Table 3: RM with H0/1 for (1 + <x, y>)^4.
PRINTED_TABLE_3 = {
    ("a9a", ""): (84.79, 0.09),
    ("covtype", ""): (78.88, 0.12),
    ("mnist", ""): (89.19, 0.74),
}
# Table 2: times as fast as RM in mapping and in training, and as the exact machine.
PRINTED_TABLE_2 = {
    ("a9a", ""): ("-", "8", "1600"),
    ("covtype", ""): ("-", "-", "50"),
    ("mnist", ""): ("2", "9", "2"),
    ("mnist", "4/9"): ("9 (Gisette)", "25 (Gisette)", "8 (Gisette)"),
}
N_COLUMNS = {("covtype", ""): 54, ("mnist", ""): 784, ("a9a", ""): 123, ("mnist", "4/9"): 784}
FEATURES = {("covtype", ""): 500, ("mnist", ""): 1000, ("a9a", ""): 200, ("mnist", "4/9"): 1000}
TRAINING_ROWS = {
    ("covtype", ""): 100000,
    ("mnist", ""): 60000,
    ("a9a", ""): 32561,
    ("mnist", "4/9"): 8000,
}
SEEDS = {("covtype", ""): 3, ("mnist", ""): 3}  # in full runs, where others have five
METHODS = {
    ("exact", "liblinear"): "exact + LIBSVM",
    ("TS", "liblinear"): "TS + LIBLINEAR",
    ("RM", "liblinear"): "RM to the letter + LIBLINEAR",
    ("RM H0/1", "liblinear"): "RM with H0/1 + LIBLINEAR",
    ("RM useful", "liblinear"): "RM with useful degrees + LIBLINEAR",
    ("RM ours", "liblinear"): "RM, our defaults + LIBLINEAR",
    ("TS", "one pass"): "TS + our one pass",
    ("RM ours", "one pass"): "RM, our defaults + our one pass",
}


def n_training(kind: str, one: tuple[str, str], degree: int) -> int:
    """Rows for training: fewer where LIBSVM takes ten minutes and they suffice to tell degrees."""
    fewer = kind == "exact" and one == ("covtype", "") and degree == 2
    return 20000 if fewer else TRAINING_ROWS[one]


def n_features(kind: str, one: tuple[str, str]) -> int:
    """Random features of a map; the printed D of H0/1 contains the columns and the constant."""
    if kind == "exact":
        return 0
    return FEATURES[one] - (N_COLUMNS[one] + 1 if kind == "RM H0/1" else 0)


class Tables(Experiment):
    name = "tensor-sketch-tables"
    paper = experiment.TENSOR_SKETCH
    item = "Tables 1, 2 and 3"
    claim = (
        "Random Maclaurin does poorly on homogeneous kernels, most of all of degree 4. Tensor "
        "Sketch is a little less accurate than the exact machine and much faster, and more "
        "accurate and faster than Random Maclaurin, also with H0/1, but for Adult."
    )
    preparation = (
        "As `tensor-sketch-figures-3-4`, with the paper's D, 500, 1000 and 200, and its rows as "
        "far as it tells them: 100,000 of Covertype for training and 10,000 for the test, 60,000 "
        "and 10,000 of MNIST. For Adult the paper counts all 48,842; ours are 32,561 for training "
        "and the others for the test. Splits are random. MNIST 4 against 9 with D = 1000, 8000 and "
        "5000 rows stands in for Gisette with D = 5000. Three splits of Covertype and MNIST, five "
        "of the others; the exact machine on the first, for degree 2 with 20,000 rows of "
        "Covertype. The columns of H0/1 are D in all, as the paper counts them: the constant, d "
        "columns, and random features for the rest. " + WHAT_MAPS_ARE
    )
    explanation = (
        "The printed collapse of Random Maclaurin for homogeneous kernels of degree 4 is there if "
        "it is done to the letter, where features of other degrees are zero, see "
        "`tensor-sketch-figure-1`: of 500 features 16 are left on Covertype, and have the printed "
        "accuracy; 31 of 1000 are left on MNIST, and have less. The 6 of 200 on Adult have 76 %, "
        "the share of the larger class, where 58 are printed. With useful degrees it does not "
        "happen. On Adult the exact machine of degree 4 does not fall behind that of degree 2, as "
        "it does in print; in a trial with 3000 rows it did with a hundred times our C."
    )

    def cells(self, mode: Mode) -> list[Cell]:
        quick = mode == "quick"
        sets = [("a9a", "")] if quick else list(SETS)
        cells: list[Cell] = []
        for one in sets:
            for degree in [4] if quick else [2, 4]:
                for constant in (0, 1):
                    for kind, learner in METHODS:
                        if kind == "RM H0/1" and (degree, constant) != (4, 1):
                            continue  # only Table 3 has it
                        cells += on_sets(
                            1 if kind == "exact" else 5 if quick else SEEDS.get(one, 5),
                            1500 if quick else n_training(kind, one, degree),
                            [one],
                            degree=[degree],
                            constant=[constant],
                            map=[kind],
                            learner=[learner],
                            D=[n_features(kind, one)],
                        )
        return in_order_of_splits(cells)

    def run(self, cell: Cell) -> Numbers:
        return measure(cell)

    def findings(self, results: Results) -> Iterable[Finding]:
        for (name, task), label in SETS.items():
            here = results.where(data=name, task=task)
            for degree in results.values("degree"):
                part = here.where(degree=degree, constant=0, learner="liblinear")
                sketch = part.sample("accuracy", map="TS")
                maclaurin = part.sample("accuracy", map="RM")
                yield claim(
                    f"{label}, {show_kernel(degree, 0)}: Tensor Sketch is more accurate than "
                    f"Random Maclaurin, {sketch.scaled(100).show(1)} and "
                    f"{maclaurin.scaled(100).show(1)} %",
                    clearly_less(maclaurin, sketch),
                    measured=bool(sketch and maclaurin),
                )
        yield from self.beside_h01(results)
        if results.mode == "full":
            yield from self.printed_accuracies(results)
            yield from self.times(results)

    def beside_h01(self, results: Results) -> Iterable[Finding]:
        """The claims of Table 3."""
        for name, task in PRINTED_TABLE_3:
            here = results.where(data=name, degree=4, constant=1, learner="liblinear", task=task)
            sketch, h01 = here.sample("accuracy", map="TS"), here.sample("accuracy", map="RM H0/1")
            less, more = (h01, sketch) if name != "a9a" else (sketch, h01)
            yield claim(
                f"{SETS[name, task]}, {show_kernel(4, 1)}: Tensor Sketch is "
                f"{'less' if name == 'a9a' else 'more'} accurate than RM with H0/1, "
                f"{sketch.scaled(100).show(1)} and {h01.scaled(100).show(1)} %",
                clearly_less(less, more)
                if results.mode == "full"
                else not_clearly_more(less, more),
                WHY_H01.get(name, ""),
                measured=bool(sketch and h01),
            )

    def times(self, results: Results) -> Iterable[Finding]:
        """The claims of Table 2 that it has figures for."""
        for (name, task), printed in PRINTED_TABLE_2.items():
            here = results.where(data=name, task=task, degree=4, constant=1, learner="liblinear")
            for figure, (what, number, other) in zip(printed, TABLE_2, strict=True):
                ratio = ratio_of_means(here, number, other)
                if figure != "-":
                    yield claim(
                        f"{SETS[name, task]}, {show_kernel(4, 1)}: {what} Tensor Sketch is "
                        f"{show_ratio(ratio)} times as fast; printed {figure}",
                        ratio > 1,
                        WHY_NOT_FASTER,
                        measured=not math.isnan(ratio),
                        timed=True,
                    )

    def printed_accuracies(self, results: Results) -> Iterable[Finding]:
        for (name, task), by_kernel in PRINTED_TABLE_1.items():
            if task:
                continue  # the figures for Gisette are not comparable
            for (degree, constant), entries in by_kernel.items():
                here = results.where(
                    data=name, task=task, degree=degree, constant=constant, learner="liblinear"
                )
                printed = dict(zip(("exact", "TS", "RM"), entries, strict=True))
                if (degree, constant) == (4, 1) and (name, task) in PRINTED_TABLE_3:
                    printed["RM H0/1"] = PRINTED_TABLE_3[name, task]
                for kind, (accuracy, spread) in printed.items():
                    sample = here.sample("accuracy", map=kind)
                    n_test = here.sample("n_test").mean if here else 1.0
                    yield compare(
                        f"{SETS[name, task]}, {show_kernel(degree, constant)}: accuracy of {kind}",
                        accuracy,
                        sample.scaled(100),
                        lower_is_better=False,
                        printed_spread=spread,
                        test_error=100 * binomial_error(accuracy / 100, n_test),
                        why=WHY_BELOW_TABLE_1.get((name, kind), ""),
                        digits=2,
                    )

    def tables(self, results: Results) -> Iterable[Table]:
        for (name, task), label in SETS.items():
            here = results.where(data=name, task=task)
            if here:
                yield self.table_1(here, (name, task), label)
        rows = []
        for (name, task), label in SETS.items():
            here = results.where(data=name, task=task, degree=4, constant=1, learner="liblinear")
            if here:
                ratios = [ratio_of_means(here, number, other) for _, number, other in TABLE_2]
                ours = [show_ratio(ratio) for ratio in ratios]
                rows.append(
                    [
                        label,
                        *(
                            x
                            for p in zip(PRINTED_TABLE_2[name, task], ours, strict=True)
                            for x in p
                        ),
                    ]
                )
        heads = [what.strip(",") for what, _, _ in TABLE_2]
        header = ["", *(f"{what}, {who}" for what in heads for who in ("printed", "ours"))]
        yield Table(f"Table 2: times as fast, {show_kernel(4, 1)}", header, rows)

    def table_1(self, here: Results, one: tuple[str, str], label: str) -> Table:
        kernels = list(dict.fromkeys((c.cell["degree"], c.cell["constant"]) for c in here.measured))
        rows = []
        for place, kind in enumerate(("exact", "TS", "RM")):
            cells = [
                f"{accuracy} ± {spread}" if spread else f"{accuracy}"
                for accuracy, spread in (PRINTED_TABLE_1[one][kernel][place] for kernel in kernels)
            ]
            rows.append([f"{kind}, as printed{' for Gisette' if one[1] else ''}", *cells])
        if one in PRINTED_TABLE_3:
            accuracy, spread = PRINTED_TABLE_3[one]
            cells = [f"{accuracy} ± {spread}" if k == (4, 1) else "" for k in kernels]
            rows.append(["RM with H0/1, as printed (Table 3)", *cells])
        for (kind, learner), described in METHODS.items():
            chosen = here.where(map=kind, learner=learner)
            parts = [chosen.where(degree=d, constant=c) for d, c in kernels]
            accuracies = [show_percent(p.sample("accuracy"), p.sample("n_test")) for p in parts]
            rows.append([described, *accuracies])
            rows.append(["CPU seconds", *(p.sample("train_seconds").show(2) for p in parts)])
        title = f"Tables 1 and 3, {label}, D = {FEATURES[one]}: accuracy in percent"
        return Table(title, ["", *(show_kernel(*kernel) for kernel in kernels)], rows)


# What is said, the time, and who is compared. Training is without the mapping beside RM, which
# has a column of its own, and with it beside the exact machine: Table 1's times tell so.
TABLE_2 = (
    ("in mapping, beside RM,", "map_seconds", "RM"),
    ("in training, beside RM,", "linear_seconds", "RM"),
    ("in both, beside the exact machine,", "train_seconds", "exact"),
)
WHY_H01 = {
    "covtype": (
        "They are level: of 500 columns H0/1 has 55 for the exact terms and 445 random features, "
        "hardly fewer than without it."
    )
}
WHY_NOT_FASTER = (
    "LIBLINEAR takes about as long on both: its time depends on C, which the paper does not tell."
)
WHY_SCALING = (
    "The scaling of columns, of which the paper says nothing: in [0, 1], as LIBSVM's page has "
    "them, three draws with 20,000 rows and <x, y>^2 had 72 to 74 %, and 67 to 70 standardised, as "
    "here."
)
WHY_LOSS = (
    "The loss, of which the paper says nothing: with the squared hinge loss, LIBLINEAR's own "
    "default, two draws with 20,000 rows and <x, y>^4 had 41 and 45 % (23 and 32 with hinge loss). "
    "Other figures of the table fit hinge loss as well or better."
)
WHY_BELOW_TABLE_1 = {
    ("covtype", "RM"): WHY_SCALING,
    ("mnist", "RM"): WHY_LOSS,
}


def ratio_of_means(here: Results, number: str, other: str) -> float:
    """How many times as long as Tensor Sketch another map or the exact machine takes."""
    here = here.where(rows=max(here.values("rows"), default=0))  # not beside fewer rows
    other_seconds, seconds = (seconds_of(here.where(map=kind), number) for kind in (other, "TS"))
    return other_seconds / seconds


def show_ratio(ratio: float) -> str:
    return "-" if math.isnan(ratio) else f"{ratio:.1f}"


def seconds_of(here: Results, number: str) -> float:
    """The mean of a time; "linear_seconds" are those of training without the mapping."""
    if number == "linear_seconds":
        return here.sample("train_seconds").mean - here.sample("map_seconds").mean
    return here.sample(number).mean


EXPERIMENTS: list[Experiment] = [RelativeErrors(), MappingTimes(), AccuracyByFeatures(), Tables()]
