"""What measured figures say about printed ones, and the verdict that follows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from reproduction.samples import Sample

Outcome = Literal["reproduced", "better", "not reproduced", "not measured"]
Verdict = Outcome | Literal["mostly reproduced"]


@dataclass(frozen=True)
class Finding:
    """One statement about the figures.

    A qualitative one is a claim of the paper in words ("the error falls as features are added").
    The tests assert it in quick mode, so it must leave room for the measured spread, and must not
    be about times. Where it is not reproduced, `why` must say why.
    """

    statement: str
    outcome: Outcome
    why: str = ""
    qualitative: bool = True


def claim(
    statement: str, holds: bool, why: str = "", *, measured: bool = True, timed: bool = False
) -> Finding:
    """A claim in words, which the figures bear out or do not; tests leave out those on times."""
    if not measured:
        return Finding(statement, "not measured", qualitative=not timed)
    if holds:
        return Finding(statement, "reproduced", qualitative=not timed)
    return Finding(statement, "not reproduced", why, qualitative=not timed)


def compare(
    what: str,
    printed: float,
    ours: Sample,
    *,
    lower_is_better: bool,
    printed_spread: float = 0.0,
    test_error: float = 0.0,
    why: str = "",
    digits: int = 3,
) -> Finding:
    """A printed figure beside ours: equal within two standard deviations, better or worse.

    The printed figure is taken as one draw with our spread, unless the paper gives its own;
    `test_error` is the binomial error of both, where shares of test rows are compared.
    """
    if not ours:
        return Finding(what, "not measured", qualitative=False)
    spread = 0.0 if math.isnan(ours.spread) else ours.spread
    draw = printed_spread or spread
    error = math.sqrt(draw**2 + spread**2 / len(ours.values) + 2 * test_error**2)
    excess = (ours.mean - printed) * (1 if lower_is_better else -1)
    statement = f"{what}: printed {printed:.{digits}f}, ours {ours.show(digits)}"
    if excess > 2 * error:
        return Finding(statement, "not reproduced", why, qualitative=False)
    outcome: Outcome = "better" if excess < -2 * error else "reproduced"
    return Finding(statement, outcome, qualitative=False)


def verdict(findings: Iterable[Finding]) -> Verdict:
    """A word or two for all findings.

    If some are not reproduced, it is "mostly reproduced" when they are a quarter at most, and "not
    reproduced" otherwise. If all are, it is "better" when most figures are better.
    """
    outcomes = [finding.outcome for finding in findings if finding.outcome != "not measured"]
    if not outcomes:
        return "not measured"
    if n_not := outcomes.count("not reproduced"):
        return "mostly reproduced" if 4 * n_not <= len(outcomes) else "not reproduced"
    return "better" if 2 * outcomes.count("better") > len(outcomes) else "reproduced"


def summary(findings: Iterable[Finding]) -> str:
    """The verdict with the numbers behind it."""
    findings = list(findings)
    counts = [
        f"{count} {outcome}"
        for outcome in ("reproduced", "better", "not reproduced", "not measured")
        if (count := sum(finding.outcome == outcome for finding in findings))
    ]
    return f"{verdict(findings)} ({', '.join(counts)})" if counts else "not measured"
