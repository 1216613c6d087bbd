"""Compact Random Feature Maps (Hamid et al. 2014): learning from a stream of deformed digits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.preprocessing import FunctionTransformer

from kitchenette import KernelClassifier
from reproduction import experiment
from reproduction.craftmaps import KERNEL, WHAT_MAPS_ARE, make_map
from reproduction.craftmaps_learning import UP_FACTOR, errors_on_test_rows, rows_of
from reproduction.craftmaps_tables import show_size
from reproduction.data import load, unit_rows
from reproduction.deformed_digits import one_round
from reproduction.experiment import Cell, Experiment, Mode, Numbers, Results, Table, grid
from reproduction.findings import Finding, claim
from reproduction.samples import Sample, clearly_less, show_percent

ROUNDS = (1, 2, 4, 8, 17)  # after which test errors are measured
WHY_NOT_CLEAR = {
    2**11: "So few features are determined by 60,000 rows, and the deformed digits, which are "
    "harder than those of the test, only share them.",
    2**13: "It falls, mostly within the first 240,000 rows, but by two standard errors of such a "
    "count where three were asked. The deformed digits are harder than those of the test, and "
    "share 2^13 features with them; the paper has 2^14, and eight times as many rows.",
}
CHANGES = ("mended", "broken")  # test rows, since the first round


class StreamedDigits(Experiment):
    name = "craftmaps-figure-7b"
    paper = experiment.CRAFTMAPS
    item = "Figure 7 (b)"
    explanation = (
        "With 2^11 features errors do not fall: 60,000 rows determine so few, and the deformed "
        "digits, which are harder than those of the test, only share them. With 2^13 they do."
    )
    claim = (
        "As rows are added to MNIST, from 60,000 to the 8.1 million of MNIST8M, the test error "
        "falls, and that of CRAFTMaps over RFM stays below that of the others."
    )
    preparation = (
        "MNIST8M is not among our data. Deformed digits of `reproduction/deformed_digits.py` stand "
        "in for it: the 60,000 training digits of MNIST, and then 16 rounds of the same digits, "
        "each with a new random affine and elastic deformation, 1.02 million rows. They are made "
        "while they are learned, in one pass, and never stored. The test rows are those of MNIST. "
        "Kernel (<x, y> + 1)^7, D = 8 E as printed, but E = 2^13 where the paper has 2^14, for RFM "
        "and CM RFM, and 2^11 for the others as well; one seed. That takes an hour of one core. "
        f"Penalty and codes as in `craftmaps-table-1b`. {WHAT_MAPS_ARE}"
    )

    def cells(self, mode: Mode) -> list[Cell]:
        if mode == "quick":
            maps = ["RFM", "CM RFM"]
            return grid(3, data=["mnist"], map=maps, E=[2**9], n_digits=[1000], rounds=[8])
        at: dict[str, list[Any]] = {
            "data": ["mnist"],
            "n_digits": [60000],
            "rounds": [ROUNDS[-1]],
        }
        few = grid(1, map=["RFM", "TS", "CM RFM", "CM TS", "CM RFM, ours"], E=[2**11], **at)
        return few + grid(1, map=["RFM", "CM RFM"], E=[2**13], **at)

    def curves(self, results: Results) -> dict[str, Results]:
        """The results of each map and number of features, by what they are called."""
        parts = {
            f"{row}, E = {show_size(E)}": results.where(map=row, E=E)
            for E in results.values("E")
            for row in results.values("map")
        }
        return {name: part for name, part in parts.items() if part}

    def run(self, cell: Cell) -> Numbers:
        arrays, n_digits, E = load("mnist"), cell["n_digits"], cell["E"]
        images, labels = arrays["X_train"][:n_digits], arrays["y_train"][:n_digits]
        rows = rows_of("mnist", n_digits)
        made = make_map(cell["map"], KERNEL, UP_FACTOR * E, E, 784, cell.seed).fit(rows.X)
        model = KernelClassifier(FunctionTransformer(), solver="onepass", random_state=0)
        numbers: Numbers = {}
        wrong_first = None
        for number in range(cell["rounds"]):
            for X, y in one_round(images, labels, number, cell.seed):
                model.partial_fit(made.transform(unit_rows(X)), y, classes=np.arange(10))
            if number + 1 in ROUNDS:
                found = errors_on_test_rows(model, made, rows)
                numbers[f"error {number + 1}"] = found["error"]
                numbers[f"error with codes {number + 1}"] = found["error with codes"]
                wrong = model.predict(made.transform(rows.X_test)) != rows.y_test
                if wrong_first is None:
                    wrong_first = wrong
                numbers[f"mended {number + 1}"] = int(np.sum(wrong_first & ~wrong))
                numbers[f"broken {number + 1}"] = int(np.sum(~wrong_first & wrong))
        return {**numbers, "n_test": len(rows.y_test)}

    def findings(self, results: Results) -> Iterable[Finding]:
        for row, here in self.curves(results).items():
            start, end = self.ends(results)
            first, last = (here.sample(f"error {rounds}") for rounds in (start, end))
            mended, broken = (sum(here.sample(f"{what} {end}").values) for what in CHANGES)
            yield claim(
                f"{row}: the test error falls as deformed digits are added, from "
                f"{first.scaled(100).show(2)} to {last.scaled(100).show(2)} %: {mended:.0f} test "
                f"rows become right and {broken:.0f} wrong",
                # Without an effect, each row that changes does so either way.
                mended - broken > 3 * math.sqrt(mended + broken),
                WHY_NOT_CLEAR.get(here.values("E")[0], ""),
                measured=bool(first and last),
            )
        for kind in ("RFM", "TS"):
            ratios = [
                results.ratios(f"error {rounds}", {"map": f"CM {kind}"}, {"map": kind})
                for rounds in ROUNDS
            ]
            together = Sample([value for ratio in ratios for value in ratio.values])
            yield claim(
                f"the test error of CRAFTMaps over {kind} stays below that of {kind}, "
                f"{together.show(2)} times as large",
                clearly_less(together, Sample([1.0])),
                "With H0/1, as here, RFM is level with CRAFTMaps on MNIST itself, see "
                "`craftmaps-table-1b`.",
                measured=bool(together),
            )

    def ends(self, results: Results) -> tuple[int, int]:
        """The first and the last round with test errors."""
        return ROUNDS[0], max(r for r in ROUNDS if r <= max(results.values("rounds"), default=1))

    def tables(self, results: Results) -> Iterable[Table]:
        head = ["", *(f"{rounds} x" for rounds in ROUNDS)]
        rows = []
        for row, here in self.curves(results).items():
            n_test = here.sample("n_test")
            for number, how in (("error", ""), ("error with codes", ", with codes")):
                samples = [here.sample(f"{number} {rounds}") for rounds in ROUNDS]
                rows.append([f"{row}{how}", *(show_percent(s, n_test) for s in samples)])
        yield Table("Test errors in percent, by rounds of all digits", head, rows)

    def draw(self, results: Results) -> Any:
        from reproduction import style

        figure, panels = style.panels(width=5, height=3.5)
        axes = panels[0][0]
        for number, (row, here) in enumerate(self.curves(results).items()):
            n_digits = here.values("n_digits")[0]
            samples = [here.sample(f"error {rounds}").scaled(100) for rounds in ROUNDS]
            style.curve(axes, [n_digits * rounds for rounds in ROUNDS], samples, row, number)
        axes.set(xscale="log", xlabel="training rows", ylabel="test error in %")
        axes.legend()
        return figure


EXPERIMENTS: list[Experiment] = [StreamedDigits()]
