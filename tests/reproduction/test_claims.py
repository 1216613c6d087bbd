"""The papers' claims in words hold for quick runs of all experiments.

An experiment leaves room for the spread that it measures itself; no figure of ours is stored here.
"""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib", reason="pictures of the experiments need matplotlib")

from reproduction import data, runner
from reproduction.catalogue import EXPERIMENTS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_the_claims_of_the_paper_hold(experiment, tmp_path, monkeypatch):
    needed = dict.fromkeys(
        cell["data"] for cell in experiment.cells("quick") if "data" in cell.setting
    )
    absent = [name for name in needed if not data.available(name)]
    if absent and len(absent) == len(needed):
        pytest.skip(f"the data sets {', '.join(absent)} are not here; see docs/reproduction.md")
    # A set that is not here is never fetched by a test.
    monkeypatch.setattr(data, "OPENML", {})
    results, _ = runner.run(experiment, "quick", tmp_path)
    findings = list(experiment.findings(results))
    assert any(finding.outcome != "not measured" for finding in findings)
    # A claim that does not hold must have been looked into: `why` says what was found.
    contradicted = [f for f in findings if f.qualitative and f.outcome == "not reproduced"]
    assert not [finding for finding in contradicted if not finding.why]
    assert experiment.draw(results) is not None or list(experiment.tables(results))
