"""Experiments are measured cell by cell, resumed, judged and reported."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kitchenette import Fastfood, KernelRegressor
from kitchenette.learning.conjugate_gradients import SquaredSolver

pytest.importorskip("matplotlib", reason="pictures of the experiments need matplotlib")

from reproduction import __main__ as command
from reproduction import data, report, runner, store
from reproduction.catalogue import EXPERIMENTS, find
from reproduction.experiment import (
    RANDOM_MACLAURIN,
    TENSOR_SKETCH,
    Experiment,
    Measured,
    Results,
    Table,
    check_experiments,
    grid,
)
from reproduction.findings import Finding, claim, compare, summary, verdict
from reproduction.samples import (
    Sample,
    at_most,
    binomial_error,
    clearly_less,
    not_clearly_more,
    show_percent,
)


class Squares(Experiment):
    """The squares of a few numbers, one of which comes from a data set that nobody has."""

    name = "maclaurin-squares"
    paper = RANDOM_MACLAURIN
    item = "Table 0"
    claim = "Squares grow, `x < x^2`."
    preparation = "None."

    def __init__(self):
        self.measured = []

    def cells(self, mode):
        return [*grid(2, x=[1, 2, 3]), *grid(2, data=["unheard-of"], x=[4])]

    def run(self, cell):
        if "data" in cell.setting:
            data.load(cell["data"])
        self.measured.append((cell["x"], cell.seed))
        return {"square": cell["x"] ** 2 + cell.seed}

    def findings(self, results):
        yield claim("squares grow", results.sample("square", x=3).mean > 4)
        yield compare("square of 2", 4.5, results.sample("square", x=2), lower_is_better=True)

    def tables(self, results):
        cells = [[str(x), results.sample("square", x=x).show(1)] for x in results.values("x")]
        yield Table("Squares & <more>", ["x", "x^2"], cells)

    def draw(self, results):
        from reproduction import style

        figure, panels = style.panels()
        x = results.values("x")
        style.curve(panels[0][0], x, [results.sample("square", x=at) for at in x], "squares", 0)
        style.level(panels[0][0], 4, "printed")
        return figure


@pytest.fixture
def squares():
    return Squares()


def test_cells_are_stored_one_by_one_and_not_measured_again(squares, tmp_path):
    def interrupt_at_third(cell):
        if cell is not None and (cell["x"], cell.seed) == (2, 0):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.run(squares, "quick", tmp_path, report=interrupt_at_third)
    assert squares.measured == [(1, 0), (1, 1)]
    results, _ = runner.run(squares, "quick", tmp_path)
    assert squares.measured == [(x, seed) for x in (1, 2, 3) for seed in (0, 1)]
    assert [one.numbers["square"] for one in results.measured] == [1, 2, 4, 5, 9, 10]
    assert [one.run for one in store.load(squares, "quick", tmp_path).measured] == [0, 0] + 4 * [1]
    assert not list(tmp_path.rglob("*.partial"))


def test_what_an_interrupted_fit_has_learned_is_not_stored(squares, tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 3))
    steps = []

    def interrupt_at_third(solver, *reported):
        steps.append(reported)
        if len(steps) == 3:
            raise KeyboardInterrupt

    def run(cell):
        model = KernelRegressor(Fastfood(n_components=32), alpha=1e-6, solver="iterative", tol=1e-9)
        return {"square": model.fit(X, X[:, 0] ** 2).score(X, X[:, 0] ** 2)}

    monkeypatch.setattr(SquaredSolver, "report", interrupt_at_third)
    monkeypatch.setattr(squares, "run", run)
    with pytest.raises(ConvergenceWarning, match="Interrupted after"):
        runner.run(squares, "quick", tmp_path)
    assert len(steps) == 3
    assert not store.load(squares, "quick", tmp_path)


def test_a_cell_that_was_forgotten_is_measured_alone_and_keeps_its_place(squares, tmp_path):
    runner.run(squares, "full", tmp_path)
    path = store.path_of(squares, "full", tmp_path)
    stored = json.loads(path.read_text())
    del stored["cells"][2]
    path.write_text(json.dumps(stored))
    squares.measured.clear()
    runner.run(squares, "full", tmp_path)
    assert squares.measured == [(2, 0)]
    values = [one.numbers["square"] for one in store.load(squares, "full", tmp_path).measured]
    assert values == [1, 2, 4, 5, 9, 10]


def test_a_new_revision_forgets_what_was_measured(squares, tmp_path, monkeypatch):
    runner.run(squares, "quick", tmp_path)
    monkeypatch.setattr(Squares, "revision", 2)
    assert not store.load(squares, "quick", tmp_path)


def test_missing_data_skips_its_cells_and_says_so(squares, tmp_path):
    results, missing = runner.run(squares, "quick", tmp_path)
    assert len(results) == 6
    assert "unheard-of.npz" in missing["unheard-of"]


def test_files_name_version_instruction_set_and_cores_but_no_host(squares, tmp_path):
    import platform

    runner.run(squares, "quick", tmp_path)
    text = store.path_of(squares, "quick", tmp_path).read_text()
    (run,) = json.loads(text)["runs"]
    assert {"kitchenette", "instruction_set", "cores", "started"} <= set(run)
    assert platform.node() not in text


def test_ratios_pair_cells_that_agree_in_everything_else():
    results = Results("quick")
    for cell in grid(2, map=["a", "b"], D=[1, 2]):
        value = (10 if cell["map"] == "a" else 2) * cell["D"] + cell.seed
        results.measured.append(Measured(cell, {"error": value}, 0.0))
    ratios = results.ratios("error", {"map": "a"}, {"map": "b"})
    assert np.allclose(ratios.values, [10 / 2, 11 / 3, 20 / 4, 21 / 5])


def test_samples_know_their_spread():
    sample = Sample([1.0, 2.0, 3.0])
    assert (sample.mean, sample.spread) == (2.0, 1.0)
    assert sample.show(1) == "2.0 ± 1.0"
    assert Sample([]).show() == "-"
    assert binomial_error(0.5, 100) == 0.05
    assert show_percent(Sample([0.5, 0.5]), Sample([100.0])) == "50.00 ± 0.00 (5.00)"
    assert clearly_less(sample, Sample([5.0, 6.0, 7.0]))
    assert not clearly_less(sample, Sample([2.5, 3.5, 4.5]))
    assert not clearly_less(sample, Sample([2.5]))  # which is below 2 + 3 / sqrt(3)
    assert clearly_less(Sample([2.0]), Sample([2.5]))
    assert not_clearly_more(Sample([2.5, 3.5, 4.5]), sample)
    assert not not_clearly_more(Sample([5.0, 6.0, 7.0]), sample)
    assert clearly_less(sample, Sample([4.0]))  # a constant; the standard error of the mean is 0.58
    assert not clearly_less(sample, Sample([3.0]))
    assert not_clearly_more(sample, Sample([1.0]))
    assert clearly_less(Sample([1.0]), Sample([1.5]))
    assert not_clearly_more(Sample([5.0, 6.0, 7.0]), sample, tolerance=4.0)


def test_that_noise_excuses_a_quick_run_only() -> None:
    sample = Sample([1.0, 2.0, 3.0])
    assert at_most(sample, Sample([1.5]), "quick")
    assert not at_most(sample, Sample([1.5]), "full")
    assert at_most(sample, Sample([1.5]), "full", tolerance=0.6)
    assert at_most(sample, Sample([2.0]), "full")
    assert not at_most(Sample([5.0, 6.0, 7.0]), sample, "quick")


@pytest.mark.parametrize(
    ("printed", "outcome"), [(0.1, "not reproduced"), (1.05, "reproduced"), (2.0, "better")]
)
def test_printed_figures_are_compared_within_two_standard_deviations(printed, outcome):
    ours = Sample([0.9, 1.0, 1.1])
    assert compare("error", printed, ours, lower_is_better=True).outcome == outcome
    mirrored = compare("accuracy", -printed, ours.scaled(-1), lower_is_better=False)
    assert mirrored.outcome == outcome


def test_the_verdict_tells_how_many_findings_are_reproduced():
    def verdict_of(*outcomes):
        return verdict(Finding("", outcome) for outcome in outcomes)

    assert verdict_of() == "not measured"
    assert verdict_of("not measured", "reproduced") == "reproduced"
    assert verdict_of("better", "better", "reproduced") == "better"
    assert verdict_of("better", "not reproduced") == "not reproduced"
    assert verdict_of("better", *["reproduced"] * 2, "not reproduced") == "mostly reproduced"
    assert summary([Finding("", "better")]) == "better (1 better)"


def test_names_begin_with_their_paper_and_differ(squares):
    with pytest.raises(ValueError, match="must differ"):
        check_experiments([squares, squares])
    squares.paper = TENSOR_SKETCH
    with pytest.raises(ValueError, match="tensor-sketch-"):
        check_experiments([squares])


def test_the_report_shows_claims_figures_pictures_and_verdicts(squares, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    monkeypatch.setattr(report, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(report, "PICTURES", tmp_path / "docs" / "images")
    results, _ = runner.run(squares, "full", tmp_path)
    monkeypatch.setattr(report.store, "load", lambda experiment, mode: results)
    monkeypatch.setattr(report, "EXPERIMENTS", (squares,))
    markdown, page = (path.read_text() for path in report.write())
    for text in (markdown, page):
        for expected in ("Squares grow", "4.5 ± 0.7", "squares grow", "Verdict: reproduced"):
            assert expected in text
    assert "(images/maclaurin-squares.svg)" in markdown
    assert "<svg" in page
    assert "Squares &amp; &lt;more&gt;" in page
    for outside in ("<img", "<link", "<script", "src="):
        assert outside not in page


def test_pictures_are_the_same_whenever_they_are_drawn(squares, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    results, _ = runner.run(squares, "quick", tmp_path)
    first = report.draw(squares, results).read_text()
    assert report.draw(squares, results).read_text() == first


def test_the_command_lists_runs_and_refuses(squares, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "find", lambda name: [squares] if name == "squares" else [])
    monkeypatch.setattr(runner, "run", lambda *a, real=runner.run, **k: real(*a, tmp_path, **k))
    monkeypatch.setattr(report, "draw", lambda *a: None)
    assert command.main(["squares", "--quick"]) == 0
    assert "verdict" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["circles"])
    assert "no experiment begins with 'circles'" in capsys.readouterr().err
    assert command.main([]) == 0
    assert EXPERIMENTS[0].name in capsys.readouterr().out


def test_names_are_found_by_their_beginnings():
    assert find("all") == list(EXPERIMENTS)
    assert find(EXPERIMENTS[0].name) == [EXPERIMENTS[0]]
    assert len(find("maclaurin")) >= 1
    assert find("nothing") == []


@pytest.mark.parametrize("mode", ["quick", "full"])
@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_every_experiment_has_cells_and_copes_with_none_measured(experiment, mode):
    cells = experiment.cells(mode)
    assert cells
    assert len({cell.key for cell in cells}) == len(cells)
    nothing = Results(mode)
    assert {finding.outcome for finding in experiment.findings(nothing)} <= {"not measured"}
    list(experiment.tables(nothing))


def test_openml_tables_take_the_form_of_our_files():
    X = np.arange(12).reshape(6, 2)
    arrays = data.in_our_form(X, np.array(["b", "a", "b", "a", "b", "a"], dtype=object), 4)
    assert arrays["X_train"].dtype == np.float32
    assert arrays["y_train"].tolist() == [1, 0, 1, 0]
    assert arrays["X_test"].tolist() == [[8, 9], [10, 11]]
    assert data.in_our_form(X, np.array(list("123456")), None)["y"].tolist() == [1, 2, 3, 4, 5, 6]


def test_without_network_openml_is_missing_data(monkeypatch):
    def no_network(**options):
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", no_network)
    with pytest.raises(data.MissingData, match=r"mnist\.npz.*no route to host"):
        data.fetched("mnist")
