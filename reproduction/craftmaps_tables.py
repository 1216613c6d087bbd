"""Compact Random Feature Maps (Hamid et al. 2014): test errors of classifiers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.preprocessing import FunctionTransformer

from kitchenette.kernels import Kernel, Polynomial
from reproduction import experiment
from reproduction.craftmaps import PLAIN_RFM, WHAT_MAPS_ARE
from reproduction.craftmaps_learning import (
    errors_on_test_rows,
    learned_from_file,
    learned_in_one_pass,
    learned_in_passes,
    make_features,
    rows_of,
)
from reproduction.experiment import Cell, Experiment, Mode, Numbers, Results, Table, grid
from reproduction.findings import Finding, claim, compare
from reproduction.samples import Sample, binomial_error, clearly_less, show_percent

PRINTED_ROWS = ("FastFood", "RKS", "RFM", "TS", "CM RFM", "CM TS", "Exact")
MAPS = PRINTED_ROWS[:-1]
PLAIN_ROWS = ("FastFood", "RKS", "RFM", "TS")  # which cost little to compute again
OUR_ROWS = ("FastFood, ours", "RFM, ours", "CM RFM, ours")


WHY_NOT_LEAST = (
    "FastFood and RKS have a length scale here that was chosen on held-out rows, and smaller "
    "errors than printed; CRAFTMaps have none to choose. Beside the maps that they squeeze, see "
    "the first findings."
)


def show_size(E: int) -> str:
    return str(E) if E & (E - 1) else f"2^{E.bit_length() - 1}"


class ErrorTable(Experiment):
    """A part of Table 1: test errors of maps for some numbers of features."""

    paper = experiment.CRAFTMAPS
    claim = (
        "In one pass, with error-correcting output codes, CRAFTMaps have smaller test errors than "
        "the maps that they squeeze, and mostly than all others."
    )

    data: ClassVar[str]
    kernel: ClassVar[Kernel]
    width: ClassVar[float]  # the length scale of the Gaussian kernel of FastFood and RKS
    printed: ClassVar[dict[str, Sequence[float | None]]]  # for each of the sizes, in percent
    sizes: ClassVar[Sequence[int]]
    quick_sizes: ClassVar[Sequence[int]]
    rows: ClassVar[Sequence[str]] = (*PRINTED_ROWS, *OUR_ROWS)
    quick_rows: ClassVar[Sequence[str]] = ("RFM", "TS", "CM RFM", "CM TS")
    n_train: ClassVar[int]
    split_at_random: ClassVar[bool] = False  # another split for each seed
    quick_train: ClassVar[int] = 10**6  # that is, all
    one_pass_sizes: ClassVar[int] = 4096  # from more features on, in many passes
    computed_again_sizes: ClassVar[int] = 2**20  # from so many on, plain maps without a file
    printed_rows_only: ClassVar[int] = 2**20  # from so many features on, without rows of ours
    seeds: ClassVar[tuple[int, int]] = (5, 5)  # how many up to E = 2^12, and beyond
    why: ClassVar[dict[str, str]] = {}  # by rows that are worse than printed
    comparable: ClassVar[bool] = True  # whether the paper's task was ours

    def n_seeds(self, E: int) -> int:
        for_small, for_large = self.seeds
        return for_small if E <= 2**12 else for_large

    def cells(self, mode: Mode) -> list[Cell]:
        quick = mode == "quick"
        with_exact = {
            E
            for E, error in zip(self.sizes, self.printed["Exact"], strict=True)
            if error is not None
        }
        cells = []
        for E in self.quick_sizes if quick else self.sizes:
            rows = [
                row
                for row in (self.quick_rows if quick else self.rows)
                if (row != "Exact" or E in with_exact)
                and (row in PRINTED_ROWS or self.printed_rows_only > E)
            ]
            cells += grid(
                3 if quick else self.n_seeds(E),
                data=[self.data],
                E=[E],
                map=rows,
                n_train=[self.quick_train if quick else self.n_train],
            )
        return cells

    def run(self, cell: Cell) -> Numbers:
        split_seed = cell.seed if self.split_at_random else 0
        rows, E = rows_of(cell["data"], cell["n_train"], split_seed), cell["E"]
        d = rows.X.shape[1]
        made = make_features(cell["map"], self.kernel, self.width, E, d, cell.seed).fit(rows.X)
        if self.computed_again_sizes <= E and cell["map"] in PLAIN_ROWS:
            model, times = learned_in_passes(made, rows)
            return {**errors_on_test_rows(model, FunctionTransformer(), rows), **times}
        learned = learned_in_one_pass if self.one_pass_sizes >= E else learned_from_file
        model, times = learned(made, rows)
        return {**errors_on_test_rows(model, made, rows), **times}

    def findings(self, results: Results) -> Iterable[Finding]:
        for kind in ("RFM", "TS"):
            ratios = results.ratios("error", {"map": f"CM {kind}"}, {"map": kind})
            yield claim(
                f"CRAFTMaps over {kind} have a smaller test error than {kind}: "
                f"{ratios.show(2)} times as large on average over sizes and seeds",
                clearly_less(ratios, Sample([1.0])),
                self.why.get(f"CM {kind} against {kind}", ""),
                measured=bool(ratios),
            )
            by_size = [results.sample("error", map=f"CM {kind}", E=E) for E in results.values("E")]
            yield claim(
                f"CM {kind}: more features have a smaller test error",
                all(clearly_less(b, a) for a, b in itertools.pairwise(by_size)),
                self.why.get(f"CM {kind} by size", ""),
                measured=len(by_size) > 1 and all(by_size),
            )
        if results.mode == "full":
            yield self.least_error(results)
            if self.comparable:
                yield from self.comparisons(results)

    def least_error(self, results: Results) -> Finding:
        """Whether one of the CRAFTMaps has the least error of all maps, for how many sizes."""
        sizes, ahead = results.values("E"), []
        for E in sizes:
            means = {row: results.sample("error", map=row, E=E).mean for row in MAPS}
            if min(means, key=lambda row: means[row]).startswith("CM"):
                ahead.append(E)
        return claim(
            "CRAFTMaps have a smaller mean test error than all other maps, for "
            f"{len(ahead)} of {len(sizes)} sizes",
            2 * len(ahead) > len(sizes),
            self.why.get("CM against all", WHY_NOT_LEAST),
            measured=bool(sizes),
        )

    def comparisons(self, results: Results) -> Iterable[Finding]:
        for row, errors in self.printed.items():
            for E, error in zip(self.sizes, errors, strict=True):
                if error is None:
                    continue
                here = results.where(map=row, E=E)
                n_test = here.sample("n_test").mean if here else 1.0
                yield compare(
                    f"{row}, E = {show_size(E)}, test error in % with codes",
                    error,
                    here.sample("error with codes").scaled(100),
                    lower_is_better=True,
                    test_error=100 * binomial_error(error / 100, n_test),
                    why=self.why.get(row, ""),
                    digits=2,
                )

    def tables(self, results: Results) -> Iterable[Table]:
        sizes = results.values("E")
        head = ["", *(f"E = {show_size(E)}" for E in sizes)]
        rows = []
        for row in results.values("map"):
            if row in self.printed:
                printed = dict(zip(self.sizes, self.printed[row], strict=True))
                entries = [printed.get(E) for E in sizes]
                rows.append([f"{row}, as printed", *("" if e is None else f"{e}" for e in entries)])
            parts = [results.where(map=row, E=E) for E in sizes]
            for number, how in (("error", ""), ("error with codes", ", with codes")):
                shown = [show_percent(p.sample(number), p.sample("n_test")) for p in parts]
                rows.append([f"{row}{how}", *shown])
        yield Table("Test errors in percent", head, rows)

    def draw(self, results: Results) -> Any:
        from reproduction import style

        figure, panels = style.panels(width=6, height=4)
        sizes = results.values("E")
        for number, row in enumerate(results.values("map")):
            samples = [results.sample("error", map=row, E=E).scaled(100) for E in sizes]
            style.curve(panels[0][0], sizes, samples, row, number)
        panels[0][0].set(xscale="log", yscale="log", xlabel="E", ylabel="test error in %")
        panels[0][0].legend()
        return figure


LEARNING = (
    "Rows are scaled to norm one. D = 8 E. Least squares with an intercept; the penalty is chosen "
    "without looking at test rows (the paper does not say how). Errors are read from one-hot "
    "outputs, and with codes from the same solution through a random code of 200 bits with Hamming "
    "decoding. The length scale of the Gaussian kernel of FastFood and RKS was chosen on held-out "
    "training rows. Exact is the exact kernel with E random training rows, as features: the paper "
    "does not say so, but leaves its entries empty where E exceeds their number. " + WHAT_MAPS_ARE
)


class MnistSmall(ErrorTable):
    name = "craftmaps-table-1a"
    item = "Table 1-a"
    preparation = f"MNIST, 60,000 rows, kernel (<x, y> + 1)^7. {LEARNING}"
    explanation = (
        "CM RFM, RKS and TS are printed with smaller errors, RFM and CM TS agree, and so does the "
        "exact kernel. `craftmaps-table-1a-variants` tells what was tried: the print agrees with a "
        "kernel of degree 2 or 3 in the place of 7 for CM RFM. FastFood is printed with much "
        "larger errors than that of RKS, which its features do not have here."
    )
    why: ClassVar[dict[str, str]] = dict.fromkeys(
        ("RKS", "TS", "CM RFM"), "See `craftmaps-table-1a-variants`, where causes were looked for."
    )
    data, kernel, width, n_train = "mnist", Polynomial(7), 1.4, 60000
    sizes, quick_sizes, quick_train = (300, 400, 500, 600, 700), (300,), 6000
    printed: ClassVar[dict[str, Sequence[float | None]]] = {
        "FastFood": (32.8, 26.6, 15.3, 11.5, 8.4),
        "RKS": (8.9, 6.7, 5.9, 5.3, 5.0),
        "RFM": (14.0, 12.3, 11.4, 10.3, 9.5),
        "TS": (13.1, 11.2, 10.0, 8.6, 8.0),
        "CM RFM": (9.5, 7.7, 7.2, 6.6, 5.9),
        "CM TS": (12.6, 10.8, 8.9, 7.9, 7.3),
        "Exact": (6.0, 5.4, 5.0, 4.5, 4.1),
    }


class MnistLarge(ErrorTable):
    name = "craftmaps-table-1b"
    item = "Table 1-b and Figure 7 (c)"
    claim = (
        "Test errors of CRAFTMaps fall below those of all others as E grows. Their projection "
        "takes more time than that of plain features, but the Hessian dominates for large E, so "
        "that they have the smaller error for the same time (Figure 7 c)."
    )
    preparation = (
        "MNIST, 60,000 rows, kernel (<x, y> + 1)^7. The paper's two largest sizes are "
        "`craftmaps-table-1b-largest`. Five seeds for E = 2^12, one for 2^13 and 2^14, which is "
        "learned in many passes over stored features. Processor seconds of projection and of the "
        "statistics (the Hessian) for Figure 7 (c), whose text does not say to which sizes its "
        "five "
        f"pairs of seconds belong; we take the five of the table. {LEARNING}"
    )
    why: ClassVar[dict[str, str]] = {
        "CM RFM against RFM": "RFM has H0/1 here, the constant and linear terms without error, as "
        "in the paper. Without it, its error is 4.8 % for E = 2^12; CM RFM has 0.63 times that.",
    }
    data, kernel, width, n_train = "mnist", Polynomial(7), 0.7, 60000
    sizes, quick_sizes, quick_train = (2**12, 2**13, 2**14), (2**8, 2**9), 6000
    quick_rows = ("RFM", "CM RFM")
    rows = (*PRINTED_ROWS, *OUR_ROWS, PLAIN_RFM)
    one_pass_sizes, printed_rows_only, seeds = 2**13, 2**13, (5, 1)
    printed: ClassVar[dict[str, Sequence[float | None]]] = {
        "FastFood": (2.78, 2.20, 2.02),
        "RKS": (2.94, 2.51, 2.13),
        "RFM": (3.17, 2.30, 1.91),
        "TS": (3.25, 2.41, 2.01),
        "CM RFM": (3.09, 2.18, 1.79),
        "CM TS": (2.90, 2.20, 1.75),
        "Exact": (2.49, 2.21, 1.80),
    }
    printed_seconds: ClassVar[dict[int, tuple[float, float]]] = {
        2**12: (18.1, 9.5),
        2**13: (36.3, 26.2),
        2**14: (75.9, 81.1),
    }

    def tables(self, results: Results) -> Iterable[Table]:
        yield from super().tables(results)
        sizes = [E for E in results.values("E") if self.one_pass_sizes >= E]
        rows = []
        if results.mode == "full":
            printed = [
                f"{self.printed_seconds[E][0]} + {self.printed_seconds[E][1]}" for E in sizes
            ]
            rows.append(["CM RFM, as printed, seconds of 40 cores", *printed])
        for row in results.values("map"):
            parts = [results.where(map=row, E=E) for E in sizes]
            times = [
                f"{p.sample('map_seconds').show(1)} + {p.sample('statistics_seconds').show(1)}"
                for p in parts
            ]
            rows.append([row, *times])
        head = ["", *(f"E = {show_size(E)}" for E in sizes)]
        yield Table("Processor seconds of projection + statistics", head, rows)

    def findings(self, results: Results) -> Iterable[Finding]:
        yield from super().findings(results)
        ratios = [self.slowdown(results, E) for E in results.values("E")]
        there = [ratio for ratio in ratios if ratio]
        yield claim(
            "CRAFTMaps over RFM take "
            + ", ".join(ratio.show(2) for ratio in there)
            + " times as long as RFM; the ratio falls as E grows",
            len(there) > 1 and there[-1].mean < there[0].mean,
            measured=len(there) > 1,
            timed=True,
        )

        yield from self.for_the_same_time(results)

    def for_the_same_time(self, results: Results) -> Iterable[Finding]:
        """The error of CM RFM beside that of RFM with features for the same time."""
        sizes = [E for E in results.values("E") if self.one_pass_sizes >= E]
        if results.mode != "full" or len(sizes) < 2:
            return
        seconds, errors = (
            {row: [self.mean(results, row, E, what) for E in sizes] for row in ("RFM", "CM RFM")}
            for what in (("map_seconds", "statistics_seconds"), ("error",))
        )
        for E, time, error in zip(sizes[:-1], seconds["CM RFM"], errors["CM RFM"], strict=False):
            plain = np.interp(np.log(time), np.log(seconds["RFM"]), np.log(errors["RFM"]))
            ratio = error / float(np.exp(plain))
            yield claim(
                f"E = {show_size(E)}: CM RFM has {ratio:.2f} times the error of RFM with as many "
                "features as take the same time (between the sizes of the table)",
                ratio < 1,
                self.why.get("CM RFM against RFM", ""),
                measured=not np.isnan(ratio),
                timed=True,
            )

    def mean(self, results: Results, row: str, E: int, numbers: Iterable[str]) -> float:
        """The mean of the sum of these numbers."""
        return sum(results.sample(number, map=row, E=E).mean for number in numbers)

    def slowdown(self, results: Results, E: int) -> Sample:
        """The time of projection and statistics of CM RFM over that of RFM."""
        compact, plain = (
            [
                one.numbers["map_seconds"] + one.numbers["statistics_seconds"]
                for one in results.where(map=row, E=E).measured
                if "statistics_seconds" in one.numbers
            ]
            for row in ("CM RFM", "RFM")
        )
        if not compact or not plain:
            return Sample([])
        return Sample([seconds / float(np.mean(plain)) for seconds in compact])


class MnistLargest(ErrorTable):
    name = "craftmaps-table-1b-largest"
    item = "Table 1-b, the two largest sizes"
    preparation = (
        "As `craftmaps-table-1b`, with one seed; Exact has all 60,000 training rows for E = 2^16, "
        "where the paper has an entry although they are fewer. Features are computed once and "
        "written to a file of 8 or 16 GB in the temporary directory, over which conjugate "
        "gradients pass; those of FastFood, RKS, RFM and TS are computed again in every pass for "
        f"2^16. That takes two hours of two cores. {LEARNING}"
    )
    data, kernel, width, n_train = "mnist", Polynomial(7), 0.7, 60000
    sizes, quick_sizes, quick_train = (2**15, 2**16), (2**8,), 2000
    rows = ("CM RFM", "CM TS", "FastFood", "RFM", "TS", "RKS", "Exact")  # what matters most first
    quick_rows = ("RFM", "CM RFM")
    one_pass_sizes, computed_again_sizes = 0, 2**16
    printed: ClassVar[dict[str, Sequence[float | None]]] = {
        "FastFood": (1.87, 1.50),
        "RKS": (1.91, 1.52),
        "RFM": (1.62, 1.49),
        "TS": (1.65, 1.41),
        "CM RFM": (1.52, 1.27),
        "CM TS": (1.44, 1.12),
        "Exact": (1.49, 1.20),
    }
    seeds = (1, 1)


class Usps(ErrorTable):
    name = "craftmaps-table-1c"
    item = "Table 1-c"
    preparation = (
        "USPS, 7291 training and 2007 test rows, kernel (<x, y> + 1)^5. Gray levels are -1 to 1, "
        f"as published. {LEARNING}"
    )
    why: ClassVar[dict[str, str]] = dict.fromkeys(
        ("CM RFM against RFM", "CM TS against TS"),
        "The printed differences, 0.0 to 0.4 points, are smaller than the binomial error of 2007 "
        "test rows, 0.5 points, and so are ours, which are about the spread of single draws.",
    ) | dict.fromkeys(
        PRINTED_ROWS,
        "Gray levels of 0 to 1 have smaller errors than those of -1 to 1 on held-out training "
        "rows, for plain features more than for CRAFTMaps; the paper does not say which it has.",
    )
    why |= dict.fromkeys(
        ("CM RFM by size", "CM TS by size"),
        "Beyond 2^12 features, more than half of the training rows, errors fall by less than the "
        "spread of single draws.",
    )
    data, kernel, width, n_train = "usps", Polynomial(5), 1.0, 7291
    sizes, quick_sizes = (2**10, 2**11, 2**12, 2**13, 2**14), (2**8, 2**9)
    printed: ClassVar[dict[str, Sequence[float | None]]] = {
        "FastFood": (5.87, 5.18, 4.83, 4.78, 4.65),
        "RKS": (5.89, 5.78, 5.53, 4.98, 4.78),
        "RFM": (5.97, 5.33, 4.68, 4.48, 4.13),
        "TS": (5.92, 5.03, 4.63, 4.48, 4.33),
        "CM RFM": (5.68, 5.03, 4.48, 4.28, 4.03),
        "CM TS": (5.77, 5.03, 4.28, 4.23, 3.93),
        "Exact": (5.73, 5.08, 4.83, None, None),
    }


class Coil(ErrorTable):
    name = "craftmaps-table-1d"
    item = "Table 1-d"
    preparation = (
        "COIL-100, kernel (<x, y> + 1)^5. The paper does not say how it was split, nor how large "
        "the images were. That the exact kernel has an entry for E = 2^11 and none for 2^12 leaves "
        "2048 to 4095 training rows; ours are a random half, 3600, another one for each seed: "
        f"five up to E = 2^12, one beyond. Ours are color images of 32 x 32 pixels. {LEARNING}"
    )
    explanation = (
        "Our errors are several times smaller than printed, so the paper's split or images must "
        "be harder than ours; only the order of the maps can be compared."
    )
    why: ClassVar[dict[str, str]] = {
        "CM TS against TS": "From E = 2^13 on, 20 to 30 of 3600 rows are wrong with either map, "
        "too few to tell them apart; up to 2^12 CM TS is ahead.",
    }
    data, kernel, width, n_train = "coil100", Polynomial(5), 1.0, 3600
    sizes, quick_sizes = (2**11, 2**12, 2**13, 2**14, 2**15), (2**8,)
    one_pass_sizes, split_at_random, printed_rows_only = 2**10, True, 2**12
    comparable = False
    printed: ClassVar[dict[str, Sequence[float | None]]] = {
        "FastFood": (8.25, 7.83, 6.80, 6.32, 5.21),
        "RKS": (8.14, 7.36, 6.50, 5.97, 4.81),
        "RFM": (11.11, 7.55, 6.33, 5.05, 4.83),
        "TS": (10.08, 7.19, 5.69, 4.75, 4.27),
        "CM RFM": (8.94, 6.86, 5.47, 4.52, 4.08),
        "CM TS": (8.16, 5.97, 4.75, 4.02, 3.96),
        "Exact": (9.55, None, None, None, None),
    }
    seeds = (5, 1)


WHY_LEVEL = (
    "Over ten seeds the means are level. The printed differences of 2^6 and 2^7 features are "
    "mostly within the spread of single draws, which is 1.0 to 1.6 and 0.2 to 0.6; those of RFM "
    "with 2^8 features and more, 0.3 to 0.6, are not, and were not found. With 7494 rows least "
    "squares depends on what the features span more than on their inner products, whose errors "
    "CRAFTMaps do reduce (`craftmaps-figure-6`)."
)


class Pendigits(ErrorTable):
    name = "craftmaps-table-1e"
    item = "Table 1-e"
    preparation = (
        "Pendigits, 7494 training and 3498 test rows, kernel (<x, y> + 1)^9, ten seeds. " + LEARNING
    )
    why: ClassVar[dict[str, str]] = {
        "CM RFM against RFM": WHY_LEVEL,
        "CM TS against TS": WHY_LEVEL,
        "RKS": "Length scales of 0.5 to 2.8, rows of norm one and rows as they are were tried for "
        "64 features: 8.1 to 9.2 % on average over ten draws, the best single one 6.2 %. With 128 "
        "features and more the figures agree.",
    }
    data, kernel, width, n_train = "pendigits", Polynomial(9), 0.7, 7494
    sizes, quick_sizes = (2**6, 2**7, 2**8, 2**9, 2**10), (2**6, 2**8)
    printed: ClassVar[dict[str, Sequence[float | None]]] = {
        "FastFood": (8.74, 5.03, 3.08, 2.85, 2.71),
        "RKS": (5.83, 4.25, 2.63, 2.17, 2.08),
        "RFM": (7.94, 3.94, 2.85, 2.28, 1.91),
        "TS": (11.20, 4.57, 2.37, 1.80, 1.77),
        "CM RFM": (7.43, 3.57, 2.28, 1.97, 1.57),
        "CM TS": (8.03, 3.80, 2.37, 2.05, 1.74),
        "Exact": (9.29, 3.74, 2.74, 2.31, 2.87),
    }
    seeds = (10, 10)


EXPERIMENTS: list[Experiment] = [
    MnistSmall(),
    MnistLarge(),
    Usps(),
    Coil(),
    Pendigits(),
    MnistLargest(),
]
