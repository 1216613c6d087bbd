"""The report: docs/reproduction.md, and the same as one HTML page, which is not committed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from reproduction import store
from reproduction.catalogue import EXPERIMENTS
from reproduction.experiment import PAPERS, Experiment, Mode, Results, Table
from reproduction.findings import Finding, summary, verdict

DOCS = store.ROOT.parent / "docs"
PICTURES = DOCS / "images" / "reproduction"

INTRODUCTION = """\
Every table and figure of the five papers that two cores and public data allow, each made by one
command, the printed figures beside ours. `python -m reproduction` lists the experiments,
`python -m reproduction NAME --full` runs one and resumes where it was interrupted, and
`python -m reproduction report` writes this page from the results in `reproduction/results`. The
data sets are files `name.npz` of NumPy arrays (`X_train`, `y_train`, `X_test`, `y_test`, or `X`
and `y`) in the directory `KITCHENETTE_DATA`, or in `../shared/data` beside the project; some are
fetched from OpenML if they are not there. What has no data is left out and said so. How to add an
experiment is in [reproduction/README.md](../reproduction/README.md).

Figures are the mean and the standard deviation over seeds (at least five unless a table says
otherwise); for shares of test rows the binomial error follows in brackets. "As printed" is the
paper's figure; "paper's choices" is our code with the options of the paper (random degrees, dense
signs, Hadamard Fastfood, hinge loss), "our defaults" is what the package does unless told. A
printed figure counts as *reproduced* if ours is within two standard deviations of it, taking it as
a single draw and with the binomial error of both where test rows are counted, otherwise as
*better* or *not reproduced*; an experiment is *mostly reproduced* if that is true of all findings
but a quarter or less. Claims in words are decided with margins of ours. Where these were set after
runs that had looked at test rows, the experiment says so: such a verdict describes, and is no test
of something that was fixed in advance. Seconds depend on the machine, and only their ratios are
compared; CPU seconds are those of all threads together."""


def draw(experiment: Experiment, results: Results) -> Path | None:
    """Draw the experiment into the documentation, or beside the results of a quick run."""
    if not results or (figure := experiment.draw(results)) is None:
        return None
    from reproduction import style

    folder = PICTURES if results.mode == "full" else store.RESULTS / "quick"
    path = folder / f"{experiment.name}.svg"
    style.save(figure, path)
    return path


def write(mode: Mode = "full") -> list[Path]:
    """Write both pages from what is stored."""
    everything = [(experiment, store.load(experiment, mode)) for experiment in EXPERIMENTS]
    pictures = {e.name: path for e, results in everything if (path := draw(e, results))}
    if mode == "full":
        markdown, page = DOCS / "reproduction.md", DOCS / "reproduction.html"
    else:
        markdown = store.RESULTS / "quick" / "reproduction.md"
        page = markdown.with_suffix(".html")
        markdown.parent.mkdir(parents=True, exist_ok=True)
    folder = markdown.parent
    links = {name: path.relative_to(folder).as_posix() for name, path in pictures.items()}
    markdown.write_text("".join(as_markdown(everything, links)), encoding="utf-8")
    page.write_text(as_html(everything, pictures), encoding="utf-8")
    return [markdown, page]


Everything = list[tuple[Experiment, Results]]


def sections(everything: Everything) -> Iterator[tuple[str, str, Everything]]:
    """Title, citation and experiments of each paper that has any."""
    for paper in PAPERS:
        those = [(e, results) for e, results in everything if e.paper == paper]
        if those:
            yield paper.title, paper.citation, those


def measured_on(results: Results) -> str:
    """When and on what the figures were measured."""
    described = dict.fromkeys(
        f"kitchenette {run['kitchenette']}, {run['instruction_set']}, {run['cores']} cores, "
        f"{run['started'][:10]}{', ' + run['note'] if 'note' in run else ''}"
        for run in results.runs
    )
    n_seeds = {one.cell.seed for one in results.measured}
    return (
        f"{len(results)} cells, {len(n_seeds)} seeds, {results.seconds:.0f} s; "
        f"{'; '.join(described)}"
    )


def findings_of(experiment: Experiment, results: Results) -> list[Finding]:
    return list(experiment.findings(results)) if results else []


def sentence(finding: Finding) -> str:
    return finding.statement + (f". {finding.why}" if finding.why else "")


def as_markdown(everything: Everything, pictures: dict[str, str]) -> Iterator[str]:
    yield "# The papers' tables and figures\n\n"
    yield "<!-- Written by `python -m reproduction report`; do not edit. -->\n\n"
    yield INTRODUCTION + "\n\n| experiment | item | verdict |\n|---|---|---|\n"
    for experiment, results in everything:
        findings = findings_of(experiment, results)
        yield f"| [{experiment.name}](#{experiment.name}) | {experiment.paper.title}, "
        yield f"{experiment.item} | {summary(findings)} |\n"
    for title, citation, those in sections(everything):
        yield f"\n## {title}\n\n{citation}\n"
        for experiment, results in those:
            yield from experiment_as_markdown(experiment, results, pictures.get(experiment.name))


def experiment_as_markdown(
    experiment: Experiment, results: Results, picture: str | None
) -> Iterator[str]:
    yield f"\n### {experiment.name}\n\n**{experiment.item}.** {experiment.claim}\n\n"
    yield f"{experiment.preparation}\n"
    if not results:
        yield "\nNot measured yet.\n"
        return
    for table in experiment.tables(results):
        yield f"\n{table.title}\n\n{table_as_markdown(table)}"
    if picture:
        yield f"\n![{experiment.item}]({picture})\n"
    findings = list(experiment.findings(results))
    yield f"\n**Verdict: {summary(findings)}.**\n\n"
    for finding in findings:
        yield f"* {finding.outcome}: {sentence(finding)}\n"
    if experiment.explanation:
        yield f"\n{experiment.explanation}\n"
    yield f"\n{measured_on(results)}\n"


def table_as_markdown(table: Table) -> str:
    lines = ["| " + " | ".join(table.header) + " |"]
    lines.append("|---" + "|---:" * (len(table.header) - 1) + "|")
    lines += ["| " + " | ".join(row) + " |" for row in table.rows]
    return "\n".join(lines).replace("| |", "|  |") + "\n"


def as_html(everything: Everything, pictures: dict[str, Path]) -> str:
    """The page with its pictures inside, by the template beside this module."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["prose"] = prose
    return environment.get_template("report.html.jinja").render(
        introduction=INTRODUCTION,
        everything=everything,
        pictures=pictures,
        sections=sections,
        findings_of=findings_of,
        summary=summary,
        verdict=verdict,
        sentence=sentence,
        measured_on=measured_on,
        svg=inline_svg,
    )


def inline_svg(picture: Path) -> Markup:
    """A picture without its XML declaration, which has no place inside a page."""
    drawing = picture.read_text(encoding="utf-8")
    return Markup(drawing[drawing.index("<svg") :])


def prose(text: str) -> Markup:
    """Text with `code`, *emphasis* and [links](address), the Markdown that experiments may use."""
    text = str(escape(text))
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r'<a href="\2">\1</a>', text)
    return Markup(re.sub(r"\*([^*\n]+)\*", r"<em>\1</em>", text))
