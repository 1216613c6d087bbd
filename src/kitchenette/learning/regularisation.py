"""The choice of the penalty, from the statistics alone.

Two criteria, both to be made small; n is the count (the sum of the weights), N = n - 1 with
an intercept and n without, and edf the trace of G (G + alpha I)^-1:

* "gcv": generalised cross-validation, n rss / (N - edf)^2 with the rss of all targets
  together (Golub, Heath and Wahba 1979);
* "evidence": minus twice the log marginal likelihood, each target with a noise variance
  of its own, set to its best value: the sum over the targets of
  N log((rss + alpha |w|^2) / N) + log |I + G / alpha|.

Up to EXACT_FEATURES features an eigendecomposition gives both for every alpha. From there
on it would cost more than twenty Cholesky factors, so an alpha is tried by such a factor,
and a minimum is searched from one try to the next. rss and determinant are then exact as
well; edf, which only "gcv" needs, is estimated with PROBES random vectors of signs
(Hutchinson). Its standard error is at most sqrt(2 min(edf, n_features - edf) / PROBES):
less than 8 of 1000, which moves the criterion by less than 1 in 10^4 from 10^5 rows on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from kitchenette.learning.packed import Array
from kitchenette.learning.solution import (
    NormalEquations,
    ShiftedCholesky,
    ShiftedInverse,
    ShiftedSpectrum,
    Spectrum,
    residuals,
    shifted_inverse,
)
from kitchenette.sketching.random import Stream

CRITERIA = ("gcv", "evidence")
EXACT_FEATURES = 1024
PROBES = 32
LARGEST_PENALTY = 1e3  # relative to the trace of G: all weights are practically zero there
STEP = float(np.log(10)) / 2  # of the search: half a decade
TRIES = 12  # at most


@dataclass(frozen=True)
class Trial:
    """What the criteria need to know of one alpha."""

    rss: Array
    penalty: Array
    effective_dof: float
    log_determinant: float


def criterion_value(equations: NormalEquations, criterion: str, trial: Trial) -> float:
    """The criterion, infinite where it makes no sense."""
    N = equations.degrees
    # What rounding errors leave of a perfect fit is no evidence for anything.
    floor = equations.resolution * equations.target_squares
    if criterion == "gcv":
        left = N - trial.effective_dof
        rss = float(np.maximum(trial.rss, floor).sum())
        return equations.count * rss / left**2 if left > 0 else np.inf
    varying = equations.target_squares > 0
    loss = np.maximum(trial.rss + trial.penalty, floor)[varying]
    return float(np.sum(N * np.log(loss / N) + trial.log_determinant))


def choose(
    equations: NormalEquations, criterion: str, alphas: Array | None = None
) -> ShiftedInverse:
    """(G + alpha I)^-1 for the best alpha: of those given, or of all positive numbers."""
    if equations.degrees <= 0:
        raise ValueError(
            f"Choosing alpha by {criterion!r} needs a weighted count of more than "
            f"{int(equations.fit_intercept)}; it is {equations.count:g}. Give weights the scale at "
            "which 1 is a row, or pass alpha as a number."
        )
    small = equations.gram.order <= EXACT_FEATURES
    if alphas is not None:
        return _best_of(equations, criterion, alphas, small)
    if equations.trace == 0 or not np.any(equations.target_squares > 0):
        # Nothing to learn from or nothing to learn: every penalty gives zero weights.
        return shifted_inverse(equations, max(1.0, equations.trace))
    if small:
        spectrum = Spectrum(equations)
        alpha = _minimum(equations, criterion, _exact_criterion(equations, criterion, spectrum))
        return ShiftedSpectrum(spectrum, alpha)
    return _search(equations, criterion)


def bounds(equations: NormalEquations) -> tuple[float, float]:
    """Logarithms of the smallest and the largest alpha that is considered."""
    smallest = equations.resolution * equations.trace
    return float(np.log(smallest)), float(np.log(LARGEST_PENALTY * equations.trace))


def _best_of(
    equations: NormalEquations, criterion: str, alphas: Array, small: bool
) -> ShiftedInverse:
    if small:
        spectrum = Spectrum(equations)
        value = _exact_criterion(equations, criterion, spectrum)
        best = int(np.argmin([value(alpha) for alpha in alphas]))
        return ShiftedSpectrum(spectrum, float(alphas[best]))
    tries = _Tries(equations, criterion)
    for alpha in alphas:
        tries.value(float(alpha))
    return tries.best or shifted_inverse(equations, float(alphas.max()))


def _exact_criterion(
    equations: NormalEquations, criterion: str, spectrum: Spectrum
) -> Callable[[float], float]:
    values = spectrum.values
    squares = np.square(spectrum.vectors.T @ equations.cross)

    def value(alpha: float) -> float:
        inverse = ShiftedSpectrum(spectrum, alpha)
        explained = inverse.diagonal @ squares
        penalty = alpha * (np.square(inverse.diagonal) @ squares)
        trial = Trial(
            rss=equations.target_squares - explained - penalty,
            penalty=penalty,
            effective_dof=float(values @ inverse.diagonal),
            log_determinant=inverse.log_determinant_ratio(),
        )
        return criterion_value(equations, criterion, trial)

    return value


def _minimum(equations: NormalEquations, criterion: str, value: Callable[[float], float]) -> float:
    """The best alpha on a grid of eight to a decade, then between its neighbours."""
    low, high = bounds(equations)
    grid = np.linspace(low, high, 1 + int(8 * (high - low) / np.log(10)))
    heights = np.array([value(float(np.exp(x))) for x in grid])
    if not np.isfinite(heights).any():
        raise ValueError(_too_few_rows(equations, criterion))
    best = int(np.argmin(heights))
    around = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    refined = minimize_scalar(
        lambda x: value(float(np.exp(x))), bounds=around, method="bounded", options={"xatol": 1e-4}
    )
    return float(np.exp(refined.x if refined.fun < heights[best] else grid[best]))


class _Tries:
    """Values of the criterion by Cholesky factors; the best factor so far is kept."""

    def __init__(self, equations: NormalEquations, criterion: str):
        self.equations = equations
        self.criterion = criterion
        self.lowest = np.inf
        self.best: ShiftedCholesky | None = None
        order = equations.gram.order
        # The seed is fixed: equal statistics give equal choices, and the same vectors for
        # all alphas make errors that hardly move the minimum.
        self.probes = Stream(0, "trace").signs(PROBES, order).T.astype(np.float64)

    def value(self, alpha: float) -> float:
        equations = self.equations
        try:
            inverse = ShiftedCholesky(equations, alpha)
        except np.linalg.LinAlgError:
            return np.inf  # an alpha that rounding errors outweigh
        if self.criterion == "gcv":
            both = inverse.solve(np.concatenate([equations.cross, self.probes], axis=1))
            w, solved = np.split(both, [equations.cross.shape[1]], axis=1)
            inverse_trace = float(np.einsum("ij,ij->", self.probes, solved)) / PROBES
            effective_dof = equations.gram.order - alpha * inverse_trace
        else:
            w = inverse.solve(equations.cross)
            effective_dof = np.nan
        rss, penalty = residuals(equations, w, alpha)
        trial = Trial(rss, penalty, effective_dof, inverse.log_determinant_ratio())
        height = criterion_value(equations, self.criterion, trial)
        if height < self.lowest:
            self.lowest, self.best = height, inverse
        return height


def _search(equations: NormalEquations, criterion: str) -> ShiftedInverse:
    """Downhill from a guess until a minimum is enclosed, then to the vertex of a parabola."""
    tries = _Tries(equations, criterion)
    low, high = bounds(equations)
    heights: dict[float, float] = {}

    def height(x: float) -> float:
        if x not in heights:
            heights[x] = tries.value(float(np.exp(x)))
        return heights[x]

    x = float(np.clip(_guess(equations, criterion), low, high))
    # Smaller ones first: the guess comes from fewer features, which need a larger penalty.
    step = -STEP
    if height(max(x + step, low)) > height(x):
        step = -step
    while len(heights) < TRIES:
        following = float(np.clip(x + step, low, high))
        if following == x or height(following) >= height(x):
            break
        x, step = following, 1.5 * step
    if tries.best is None:
        raise ValueError(_too_few_rows(equations, criterion))
    while len(heights) < TRIES:
        vertex = _vertex(heights)
        if vertex is None:
            break
        height(vertex)
    return tries.best


def _vertex(heights: dict[float, float]) -> float | None:
    """Where the parabola through the lowest point and its neighbours is lowest.

    None if that is less than a twentieth of a decade from a point already tried, which
    changes nothing that matters, or if the lowest point is the end of the range.
    """
    points = np.array(sorted(heights))
    values = np.array([heights[x] for x in points])
    i = int(np.argmin(values))
    if i in (0, points.size - 1) or not np.isfinite(values[i - 1 : i + 2]).all():
        return None
    a, b, c = points[i - 1 : i + 2]
    fa, fb, fc = values[i - 1 : i + 2]
    p = (b - a) ** 2 * (fb - fc) - (b - c) ** 2 * (fb - fa)
    q = (b - a) * (fb - fc) - (b - c) * (fb - fa)
    vertex = float(b - p / (2 * q)) if q != 0 else float(b)
    return vertex if np.abs(points - vertex).min() > 0.1 * STEP else None


def _guess(equations: NormalEquations, criterion: str) -> float:
    """What the first features alone would choose, for as many as there are."""
    order = equations.gram.order
    m = EXACT_FEATURES // 2
    part = replace(
        equations,
        gram=equations.gram.leading(m),
        cross=equations.cross[:m],
        feature_mean=equations.feature_mean[:m],
    )
    if part.trace == 0:
        return float(np.log(1e-5 * equations.trace))
    spectrum = Spectrum(part)
    alpha = _minimum(part, criterion, _exact_criterion(part, criterion, spectrum))
    return float(np.log(alpha * order / m))


def _too_few_rows(equations: NormalEquations, criterion: str) -> str:
    return (
        f"{criterion!r} cannot choose alpha: the weighted count {equations.count:g} is not larger "
        "than the effective number of parameters. Give weights the scale at which 1 is a row, or "
        "pass alpha as a number."
    )
