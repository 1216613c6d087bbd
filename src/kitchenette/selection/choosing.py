"""From a sample of rows and targets to the chosen map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.kernels import ShiftInvariantKernel
from kitchenette.selection.candidates import (
    KERNELS,
    Candidate,
    FourierCandidate,
    PolynomialCandidate,
    weighted_candidate,
)
from kitchenette.selection.choice import Choice, made_choice, undecided
from kitchenette.selection.columns import SCALES, column_scales
from kitchenette.selection.importance import normalized, unmixed
from kitchenette.selection.pilot import Pilot, Trial
from kitchenette.selection.search import Search, is_wide_text
from kitchenette.selection.sizes import Sizes

Array = NDArray[np.float64]
LEAST_ROWS = 10  # with fewer rows there is nothing to compare on
FLAT = 0.01  # a learning curve is flat where twice the features gain less, relative to the loss
FIRST_SIZE, LAST_SIZE = 256, 4096  # of the learning curve


@dataclass(frozen=True)
class Decision:
    """The candidate that was chosen, with what is known of it.

    Attributes
    ----------
    candidate : Candidate
        The candidate.
    n_components : int
        The number of features.
    choice : Choice
        What was tried, and why this was chosen.
    spreads : ndarray of shape (n_columns,) or None
        The spread of the prepared columns.
    importances : ndarray of shape (n_columns,) or None
        The root mean square derivative times the spread of each column, with a sum of one.
    """

    candidate: Candidate
    n_components: int
    choice: Choice
    spreads: Array | None
    importances: Array | None


def decide(
    pilot: Pilot,
    sizes: Sizes,
    kernel: ShiftInvariantKernel | None,
    scales: str,
    n_components: int | None,
    seed: int,
) -> Decision:
    """Choose a map on a pilot sample.

    Parameters
    ----------
    pilot : Pilot
        The sample.
    sizes : Sizes
        The numbers of features with which candidates are compared.
    kernel : ShiftInvariantKernel or None
        The kernel, with a length scale of one; None chooses one.
    scales : str
        One of `SCALES`, "learned" or "auto".
    n_components : int or None
        The number of features; None chooses it by a learning curve.
    seed : int
        The seed of the map.

    Returns
    -------
    decision : Decision
    """
    if pilot.n_observations < LEAST_ROWS:
        return _undecided(pilot, kernel, scales, n_components)
    search = Search(pilot, seed, sizes.n_screening, sizes.n_final)
    if is_wide_text(pilot.rows) and kernel is None:
        tried = search.polynomials()
    else:
        tried = search.final(search.fourier(kernel, scales))
    if n_components is None:
        n_components = _grown(search, tried.candidate, seed)
    spreads, importances = _importances(
        tried.candidate, tried.trial, tried.entry["n_components"], seed, pilot.precision
    )
    choice = made_choice(search.table, tried.entry, pilot.n_observations, n_components)
    return Decision(tried.candidate, n_components, choice, spreads, importances)


def _undecided(
    pilot: Pilot, kernel: ShiftInvariantKernel | None, scales: str, n_components: int | None
) -> Decision:
    """Scales of the columns and the median distance, for too few rows to compare on."""
    n_columns = pilot.rows.shape[1]
    candidate: Candidate
    if is_wide_text(pilot.rows) and kernel is None:
        candidate = PolynomialCandidate(1, 0.0, n_columns)
    else:
        form = column_scales(scales if scales in SCALES else "columns", pilot.rows)
        kernel = KERNELS["Matern 3/2"] if kernel is None else kernel
        candidate = weighted_candidate(kernel, form, np.ones(n_columns), 1.0)
    size = FIRST_SIZE if n_components is None else n_components
    return Decision(
        candidate, size, undecided(candidate.described(), pilot.n_observations), None, None
    )


def _grown(search: Search, candidate: Candidate, seed: int) -> int:
    """The number of features after which twice as many gain less than a hundredth."""
    pilot = search.pilot
    sizes = [FIRST_SIZE]
    while sizes[-1] < min(LAST_SIZE, pilot.n_observations // 2):
        sizes.append(2 * sizes[-1])
    trials = pilot.curve(candidate, sizes, seed)
    for size, trial in zip(sizes, trials, strict=True):
        search.note(candidate, size, trial)
    for size, fewer, more in zip(sizes, trials, trials[1:], strict=False):
        if fewer.loss <= (1 + FLAT) * more.loss:
            return size
    return sizes[-1]


def _importances(
    candidate: Candidate, trial: Trial, n_components: int, seed: int, precision: str
) -> tuple[Array | None, Array | None]:
    if not isinstance(candidate, FourierCandidate):
        return None, None
    spreads = candidate.scales.spread * candidate.factors
    inner: Any = candidate.inner(n_components, seed, precision)
    if candidate.mixing is None:
        squares = trial.squared_derivatives(inner)
    else:
        squares = unmixed(candidate.mixing, trial.gradient_outer_product(inner))
    return spreads, normalized(np.sqrt(squares) * spreads)
