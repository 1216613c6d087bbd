"""The page and the comparison that it shows."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp
from browser import CHROMIUM, opened
from programs import printed_by
from sklearn.datasets import load_diabetes, load_digits

from kitchenette.baselines import error_of, linear
from kitchenette.report import (
    ColumnSummary,
    Comparison,
    Confusion,
    Measurement,
    Reliability,
    Residuals,
    compare,
    comparing,
    page,
)
from kitchenette.report.advice import recommended
from kitchenette.report.comparing import extrapolation, reliability
from kitchenette.report.pictures import Axis

VOID = {"meta", "br", "line", "rect", "circle", "polygon", "polyline", "link", "img"}


def measurement(name: str, family: str, error: float | None, **others: object) -> Measurement:
    values: dict[str, object] = {
        "standard_error": 0.01,
        "fit_seconds": 1.0,
        "predict_seconds": 1e-6,
        "fit_bytes": 10**6,
        "model_bytes": 10**5,
    }
    return Measurement(name, family, 1000, error=error, **{**values, **others})  # type: ignore


MEASUREMENTS = (
    measurement("trivial model", "trivial", 0.9),
    measurement("linear model", "linear", 0.2),
    measurement("exact kernel machine, 500 rows", "exact kernel", 0.05),
    measurement("exact kernel machine, all rows", "exact kernel", None, extrapolated=True),
    measurement("Fastfood, 256 features", "Fastfood", 0.058, n_components=256, kernel_error=0.1),
    measurement("Fastfood, 1024 features", "Fastfood", 0.05, n_components=1024, fit_seconds=9.0),
)
HOSTILE = '<script>alert("x")</script> & more'
CLASSES = Comparison(
    title=f"Digits {HOSTILE}",
    task="classification",
    error_name="share of wrong predictions",
    n_rows=1000,
    n_test_rows=200,
    n_columns=2,
    measurements=MEASUREMENTS,
    recommended="Fastfood, 256 features",
    advice=("Take Fastfood.", f"It is good {HOSTILE}."),
    data=("There are rows.",),
    columns=(
        ColumnSummary(HOSTILE, "numbers", 0.0, 1.0, -2.0, 0.0, 2.0, 0.75),
        ColumnSummary("other", "two values", 0.5, 0.5, 0.0, 0.0, 1.0, 0.25),
    ),
    left_out=("Fastfood, 4096 features: it would take about 100 s.",),
    reliability=Reliability((0.5, 0.9), (0.4, 0.95), (50, 150)),
    confusion=Confusion(("a", HOSTILE), ((90, 10), (5, 95))),
)
NUMBERS = replace(
    CLASSES,
    task="regression",
    reliability=None,
    confusion=None,
    residuals=Residuals((-1.0, 0.0, 1.0), (90, 110), 0.94),
)


class Outline(HTMLParser):
    """The elements of a page; an error if they are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.opened.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def count(self, name: str) -> int:
        return sum(tag == name for tag, _ in self.elements)


def outline(html: str) -> Outline:
    found = Outline()
    found.feed(html)
    found.close()
    assert found.opened == []
    return found


@pytest.mark.parametrize("comparison", [CLASSES, NUMBERS], ids=["classes", "numbers"])
def test_every_picture_has_an_alternative_text_and_a_table(comparison):
    found = outline(page(comparison))
    pictures = [attributes for tag, attributes in found.elements if tag == "svg"]
    assert len(pictures) == (5 if comparison is CLASSES else 4)
    for attributes in pictures:
        assert attributes["role"] == "img"
        assert len(str(attributes["aria-label"])) > 30
    assert found.count("figure") == len(pictures)
    assert found.count("table") == len(pictures) + 2  # of the models and of the columns
    assert found.count("h1") == 1
    assert found.count("h3") == 0  # headings do not skip a level


@pytest.mark.parametrize("comparison", [CLASSES, NUMBERS], ids=["classes", "numbers"])
def test_a_page_refers_to_nothing_outside_and_runs_nothing(comparison):
    html = page(comparison)
    found = outline(html)
    assert found.count("script") == found.count("link") == found.count("img") == 0
    for _, attributes in found.elements:
        assert not {"src", "href"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
    assert "url(" not in html
    assert "@import" not in html
    assert "default-src 'none'" in html


def test_texts_from_data_are_escaped():
    html = page(CLASSES)
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_extrapolated_figures_are_marked():
    html = page(CLASSES)
    row = html.split("exact kernel machine, all rows")[1].split("</tr>")[0]
    assert "extrapolated" in row
    assert "about 1 s" in row


def test_a_comparison_is_json():
    for comparison in (CLASSES, NUMBERS):
        document = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
        assert Comparison.from_json(document) == comparison


def test_the_smallest_map_within_one_standard_error_is_recommended():
    chosen = recommended(MEASUREMENTS, ["Fastfood"])
    assert chosen.name == "Fastfood, 256 features"
    worse = [replace(row, error=0.07) if row is chosen else row for row in MEASUREMENTS]
    assert recommended(worse, ["Fastfood"]).name == "Fastfood, 1024 features"


def test_times_and_sizes_are_extrapolated_by_their_growth():
    found = [
        Measurement("SVC", "exact", n, fit_seconds=1e-9 * n**2.5, model_bytes=100 * n)
        for n in (500, 1000, 4000)
    ]
    far = extrapolation(found, 10**6, "SVC")
    assert far.extrapolated
    assert far.error is None
    assert far.fit_seconds == pytest.approx(1e-9 * 10**15)
    assert far.model_bytes == pytest.approx(10**8)


def test_errors_of_classes_and_numbers():
    labels = np.array(["a", "b", "a", "b"])
    error, standard = error_of(np.array(["a", "b", "b", "b"]), labels, "classification")
    assert error == 0.25
    assert standard == pytest.approx(np.sqrt(0.25 * 0.75 / 4))
    y = np.random.default_rng(0).normal(size=(4000, 2))
    error, standard = error_of(y + 0.5 * y[::-1], y, "regression")
    assert error == pytest.approx(0.5, abs=0.02)
    assert standard is not None
    assert 0 < standard < 0.02
    assert error_of(np.zeros(3), np.ones(3), "regression") == (1.0, 0.0)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_the_linear_model_does_not_suffer_from_targets_far_from_zero(n_targets):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 300)).astype(np.float32)
    y = 5e6 + X[:, : n_targets + 1] @ rng.normal(size=(n_targets + 1, n_targets)) * 50
    y = y.astype(np.float64)[:, 0] if n_targets == 1 else y.astype(np.float64)
    model = linear("regression").fit(X[:1500], y[:1500])
    assert error_of(model.predict(X[1500:]), y[1500:], "regression")[0] < 0.02


def test_reliability_counts_every_row_once():
    probabilities = np.array([[0.5, 0.5], [0.9, 0.1], [0.05, 0.95], [0.0, 1.0]])
    found = reliability(probabilities, np.array([3, 7]), np.array([7, 3, 7, 3]))
    assert sum(found.counts) == 4
    assert found.predicted[0] == 0.5
    assert found.observed[0] == 0.0
    assert found.observed[-1] == 0.5


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("values", [[3.0], [0.001, 2000.0], [5.0, 5.5], [0.0, 0.0], [2e-7, 3e-7]])
def test_axes_have_a_few_ticks_for_any_values(values, logarithmic):
    if logarithmic and min(values) == 0:
        values = [1.0]
    axis = Axis.around(values, 0.0, 100.0, logarithmic=logarithmic)
    ticks = axis.ticks()
    assert 1 <= len(ticks) <= 12
    assert all(0 <= axis(tick) <= 100 for tick in ticks)
    assert all(0 <= axis(value) <= 100 for value in values)


def test_memory_of_a_fit_is_measured_where_the_system_tells():
    # In a process of its own: here, what other tests have left may be freed at the same time.
    printed = printed_by(
        "import numpy as np\n"
        "from kitchenette.report.measuring import cost_of\n"
        "print(cost_of(lambda: np.ones(10_000_000).sum()).n_bytes)\n"
    )
    assert printed == "None" or 70_000_000 < int(printed) < 200_000_000


@pytest.mark.slow
def test_compare_on_classes():
    X, y = load_digits(return_X_y=True)
    found = compare(X, y, maps=("AutoMap", "TensorSketch"), sizes=(128,), budget=3, random_state=1)
    by_family = {row.family: row for row in found.measurements if not row.extrapolated}
    assert {"trivial", "linear", "trees", "exact kernel", "AutoMap", "TensorSketch"} == {*by_family}
    assert by_family["AutoMap"].error < by_family["linear"].error < by_family["trivial"].error
    assert 0 < by_family["AutoMap"].kernel_error < 0.5
    assert by_family["AutoMap"].model_bytes < 10**5
    assert found.n_rows + found.n_test_rows == len(X)
    assert sum(map(sum, found.confusion.counts)) == found.n_test_rows
    assert sum(found.reliability.counts) == found.n_test_rows
    assert found.recommended in found.advice[0]
    assert "10 classes" in " ".join(found.data)
    assert outline(page(found)).count("svg") >= 4


def test_compare_on_numbers_of_a_data_frame_with_given_test_rows():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    found = compare(
        X[:300], y[:300], test=(X[300:], y[300:]), maps=("Fastfood",), sizes=(32, 64), budget=3
    )
    assert (found.n_rows, found.n_test_rows) == (300, 142)
    assert [column.name for column in found.columns] == [*X.columns]
    assert sum(column.importance for column in found.columns) == pytest.approx(1)
    assert 0.85 < found.residuals.coverage <= 1
    assert sum(found.residuals.counts) == 142


def test_compare_on_sparse_rows(monkeypatch):
    monkeypatch.setattr(comparing, "installed", lambda *, sparse: ())
    X = sp.random(400, 30, density=0.2, format="csr", random_state=0)
    y = np.asarray((X[:, 0] + X[:, 1]).todense()).ravel()
    found = compare(X, y, maps=("AutoMap", "Fastfood", "TensorSketch"), sizes=(32,), budget=1)
    assert {row.family for row in found.measurements} == {
        *("trivial", "linear", "exact kernel"),
        *("AutoMap", "Fastfood", "TensorSketch"),
    }
    assert found.left_out[0].startswith("Gradient-boosted trees: scikit-learn's do not take sparse")
    assert found.advice[1].startswith("In Python it is `KernelRegressor(")


def test_what_the_budget_does_not_allow_is_left_out_and_said_so():
    X, y = load_diabetes(return_X_y=True)
    found = compare(X, y, maps=("Fastfood",), sizes=(16, 4096), budget=1e-6)
    sizes = [row.n_components for row in found.measurements if row.family == "Fastfood"]
    assert sizes == [16]
    assert "4096" in " ".join(found.left_out)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"maps": ("Fastfud",)}, "maps must be one of"),
        ({"maps": ()}, "must not be empty"),
        ({"test": 1.5}, "test must be a share"),
        ({"task": "clustering"}, "task must be one of"),
        ({"test": 0.001}, "too few"),
    ],
    ids=str,
)
def test_bad_options_are_explained(options, sentence):
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match=sentence):
        compare(X[:50], y[:50], budget=1, **options)


in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@in_a_browser
@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_opens_in_a_browser_without_errors_and_without_requests(tmp_path, dark):
    path = tmp_path / "page.html"
    path.write_text(page(CLASSES), encoding="utf-8")
    visit = opened(path, tmp_path / "page.png", dark=dark)
    assert visit.console == []
    assert visit.requests == []
    corner = visit.corner
    assert max(corner) < 64 if dark else min(corner) > 240
    assert visit.size > 10_000


@in_a_browser
@pytest.mark.slow
def test_the_browser_tells_what_a_page_asks_for_and_complains_about(tmp_path):
    path = tmp_path / "page.html"
    path.write_text('<img src="http://127.0.0.1:1/a.png"><script>console.error("no")</script>')
    visit = opened(path, tmp_path / "page.png")
    assert visit.requests == ["http://127.0.0.1:1/a.png"]
    assert len(visit.console) >= 1


def test_missing_values_are_refused_with_their_column():
    X = np.arange(40.0).reshape(20, 2)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN.*in column 1.*kitchenette compare"):
        compare(X, X[:, 0])
