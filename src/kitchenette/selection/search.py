"""The search for a kernel, scales, a width and a size: greedy, by errors on rows held out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kitchenette.columns.categories import Substitute
from kitchenette.kernels import Matern, ShiftInvariantKernel
from kitchenette.kernels.spectra import ProductCauchy, ProductLaplace
from kitchenette.selection.candidates import (
    KERNELS,
    Candidate,
    FourierCandidate,
    PolynomialCandidate,
    weighted_candidate,
)
from kitchenette.selection.choice import Choice, made_choice, undecided
from kitchenette.selection.columns import LEARNED, SCALES, column_scales, find_placeholders
from kitchenette.selection.importance import normalized, unmixed
from kitchenette.selection.pilot import Pilot, Trial, first_best, is_better
from kitchenette.selection.screening import screened_columns
from kitchenette.selection.settings import SEARCH, Effort, Sizes

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Tried:
    """A candidate and how it fared."""

    candidate: Candidate
    trial: Trial
    entry: dict[str, Any]  # of the table

    @property
    def loss(self) -> float:
        """The mean loss on rows held out."""
        return self.trial.loss


class Search:
    """Tries candidates one after the other and keeps a record.

    Candidates are compared with ``n_screening`` features, finalists with ``n_components``.
    """

    def __init__(self, pilot: Pilot, seed: int, sizes: Sizes, effort: Effort):
        self.pilot, self.seed, self.effort = pilot, seed, effort
        self.n_screening, self.n_components = sizes.n_screening, sizes.n_final
        self.few = pilot.n_observations < SEARCH.very_few_rows
        self.table: list[dict[str, Any]] = []
        self.before: Substitute | None = None  # what is done to columns before they are scaled

    def attempt(self, candidate: Candidate, n_components: int | None = None) -> Tried:
        """Fit a candidate on the pilot and note the result."""
        n = self.n_screening if n_components is None else n_components
        return self.note(candidate, n, self.pilot.trial(candidate, n, self.seed))

    def note(self, candidate: Candidate, n_components: int, trial: Trial) -> Tried:
        """Enter a result into the table."""
        numbers = {"loss": trial.loss, "error": trial.error, "penalty": trial.penalty}
        self.table.append({**candidate.described(), "n_components": n_components, **numbers})
        return Tried(candidate, trial, self.table[-1])

    def best_of(self, candidates: Iterable[Candidate]) -> Tried:
        """The candidate with the smallest loss."""
        return best_of(self.attempt(candidate) for candidate in candidates)

    # ------------------------------------------------------------ the stages

    def fourier(self, kernel: ShiftInvariantKernel | None, scales: str) -> list[Tried]:
        """The finalists among Fourier features, from simple to elaborate."""
        smooth = kernel if kernel is not None and differentiable(kernel) else KERNELS["Matern 3/2"]
        self.before = self._placed(smooth, scales)
        plain = self._plain(smooth, scales)
        finalists = [plain[0]]
        if scales in ("auto", *LEARNED):
            learned = self._learned(plain[:2])
            screened = self._screened(plain[0])
            if screened is not None:
                screened = self._learned([screened])
                learned = screened if rescues(screened, learned) else learned
            if scales == "learned":
                finalists = [learned]
            elif self._wins(learned, plain[0]):
                finalists.append(learned)
            if scales == "full":
                finalists = [self._mixed(finalists[-1])]
            elif scales == "auto" and self._may_mix():
                full = self._mixed(finalists[-1])
                if self._wins(full, finalists[-1]):
                    finalists.append(full)
        if scales == "auto" and kernel is None:
            finalists = [self._linear(), *finalists]
        last = finalists[-1]
        if kernel is not None and kernel != smooth:
            return [self.best_of(self._with_kernel(last, kernel, SEARCH.given_widths))]
        if kernel is None and not self.few and self.effort.is_thorough:
            other = self._kernels(last)
            if self._wins(other, last):
                finalists.append(other)
        return finalists

    def final(self, finalists: list[Tried]) -> Tried:
        """The simplest finalist that no other beats by a standard error, at the final size."""
        best: Tried | None = None
        for finalist in finalists:
            candidate = finalist.candidate
            again = [self.attempt(candidate, self.n_components)]
            if isinstance(candidate, FourierCandidate) and not candidate.is_linear:
                # More features resolve smaller widths.
                again.append(self.attempt(candidate.wider(SEARCH.final_width), self.n_components))
            tried = best_of(again)
            if best is None or self._wins(tried, best):
                best = tried
        assert best is not None
        return best

    def _placed(self, kernel: ShiftInvariantKernel, scales: str) -> Substitute | None:
        """Where numbers that stand for something else are moved to, if that helps."""
        placeholders = None if self.few else find_placeholders(self.pilot.rows)
        if placeholders is None:
            return None
        names = [name for name in self._names(scales) if name in ("columns", "common")]
        best: tuple[Tried, Substitute | None] | None = None
        for before in (None, *placeholders.moved()):
            forms = [column_scales(name, self.pilot.rows, before) for name in names or [scales]]
            starts = [
                weighted_candidate(kernel, form, np.ones_like(form.spread), 1.0) for form in forms
            ]
            tried = self.best_of(starts)
            if best is None or self._wins(tried, best[0]):
                best = tried, before
        assert best is not None
        return best[1]

    def _plain(self, kernel: ShiftInvariantKernel, scales: str) -> list[Tried]:
        """The best width for each kind of scales, the best first."""
        found = []
        for name in self._names(scales):
            form = column_scales(name, self.pilot.rows, self.before)
            start = weighted_candidate(kernel, form, np.ones_like(form.spread), 1.0)
            found.append(self.best_of(start.wider(width) for width in SEARCH.widths))
        first = found[0]
        found = in_order(found)
        if self.pilot.n_observations < SEARCH.few_rows and not self._wins(found[0], first):
            found.sort(key=lambda t: t is not first)
        if not self.effort.is_thorough:
            return found
        return [self._finer(tried) for tried in found[:2]] + found[2:]

    def _linear(self) -> Tried:
        """The linear model, which is taken unless another one is better by more than chance."""
        form = column_scales("columns", self.pilot.rows, self.before)
        weights = np.ones_like(form.spread)
        return self.attempt(
            weighted_candidate(KERNELS["Gaussian"], form, weights, SEARCH.linear_width)
        )

    def _names(self, scales: str) -> tuple[str, ...]:
        if scales in SCALES:
            return (scales,)
        rows = self.pilot.rows
        if self.few or sp.issparse(rows) or rows.shape[1] > SEARCH.piecewise_columns:
            return "columns", "common"
        return "columns", "common", "compressed", "ranks"

    def _finer(self, tried: Tried) -> Tried:
        candidate = tried.candidate
        assert isinstance(candidate, FourierCandidate)
        finer = self.best_of(candidate.wider(factor) for factor in SEARCH.finer_widths)
        return best_of((tried, finer))

    def _learned(self, starts: list[Tried]) -> Tried:
        """Weights of columns from average squared derivatives, a few times over."""
        firsts = [self._step(start, 1.0, SEARCH.first_widths) for start in starts]
        best = best_of((*starts, *firsts))
        n_steps = SEARCH.few_steps if self.few else self.effort.learning_steps
        return _improved(
            best, lambda t, power: self._step(t, power, SEARCH.next_widths), n_steps - 1
        )

    def _screened(self, plain: Tried) -> Tried | None:
        """A start with the columns that screening finds, if it is far better than with all."""
        rows, targets, old = self.pilot.rows, self.pilot.targets, plain.candidate
        assert isinstance(old, FourierCandidate)
        if self.few or sp.issparse(rows):
            return None
        explained = screened_columns(
            rows, targets.independent(SEARCH.screening_targets, self.seed), self.pilot.kept_weights
        )
        relevant = explained > 0
        if not 0 < relevant.sum() <= SEARCH.screening_part * np.sum(rows.min(0) < rows.max(0)):
            return None
        sizes = np.maximum(np.sqrt(explained / explained.max()), SEARCH.screening_weight) * relevant
        starts = []
        # A model that sees nothing has chosen its scales by chance; ranks are those of screening.
        for name in dict.fromkeys((old.scales.name, self._names("auto")[-1])):
            form = column_scales(name, rows, self.before)
            weights = bounded_weights(divided_by(sizes, form.spread), form.spread)
            start = weighted_candidate(old.kernel, form, weights, 1.0)
            starts.append(self._best_width(start, SEARCH.screening_widths))
        best = best_of(starts)
        return best if rescues(best, plain) else None

    def _mixed(self, start: Tried) -> Tried:
        """A linear map of the columns from average outer products of gradients, as `_learned`."""
        return _improved(
            start, self._mixing_step, SEARCH.few_steps if self.few else self.effort.mixing_steps
        )

    def _may_mix(self) -> bool:
        """Whether a linear map of the columns is worth trying."""
        rows = self.pilot.rows
        return not self.few and not sp.issparse(rows) and 1 < rows.shape[1] <= SEARCH.mixed_columns

    def _mixing_step(self, tried: Tried, power: float) -> Tried:
        """The best width for a new linear map of the weighted columns."""
        old = tried.candidate
        assert isinstance(old, FourierCandidate)
        inner: Any = old.inner(self.n_screening, self.seed, self.pilot.precision)
        mixing = learned_mixing(old, tried.trial.gradient_outer_product(inner), power)
        if mixing is None:
            return tried
        made = weighted_candidate(
            old.kernel, old.scales, old.weights, old.width, old.steps + 1, mixing
        )
        return self._best_width(
            made, SEARCH.first_widths if old.mixing is None else SEARCH.next_widths
        )

    def _step(self, tried: Tried, power: float, widths: tuple[float, ...]) -> Tried:
        """The best width for new weights; half a step is the geometric mean with the old ones."""
        old = tried.candidate
        assert isinstance(old, FourierCandidate)
        inner = old.inner(self.n_screening, self.seed, self.pilot.precision)
        weights = learned_weights(old, tried.trial, inner)
        if not weights.any():
            return tried
        weights = old.weights ** (1 - power) * weights**power
        made = weighted_candidate(old.kernel, old.scales, weights, old.width, old.steps + 1)
        return self._best_width(made, widths)

    def _best_width(self, made: FourierCandidate, widths: tuple[float, ...]) -> Tried:
        """The best of these widths, or a smaller one if the smallest of them is the best."""
        best = self.best_of(made.wider(width) for width in widths)
        for _ in range(SEARCH.n_narrower):
            # Fewer columns that matter often ask for a smaller width.
            candidate = best.candidate
            assert isinstance(candidate, FourierCandidate)
            if candidate.width > 1.01 * widths[0] * made.width:
                break
            widths = (widths[0] * SEARCH.narrower, *widths)
            best = best_of((best, self.attempt(made.wider(widths[0]))))
        return best

    def _kernels(self, tried: Tried) -> Tried:
        """The other kernels: first smoother or rougher, then more of the better direction."""
        smoother = self.best_of(
            self._with_kernel(tried, KERNELS["Gaussian"], SEARCH.smoother_widths)
        )
        rougher = self.best_of(
            self._with_kernel(tried, KERNELS["Matern 1/2"], SEARCH.rougher_widths)
        )
        names = ["Matern 5/2", "rational quadratic"]
        if is_better(rougher.loss, smoother.loss):
            # The Laplacian kernel adds distances column by column, so mixed columns do not suit it.
            narrow = self.pilot.rows.shape[1] <= SEARCH.laplacian_columns
            names = ["Laplacian"] if narrow and not is_mixed(tried.candidate) else []
        others = [
            self.best_of(self._with_kernel(tried, KERNELS[name], SEARCH.smoother_widths))
            for name in names
        ]
        return best_of((smoother, rougher, *others))

    def _with_kernel(
        self, tried: Tried, kernel: ShiftInvariantKernel, widths: tuple[float, ...]
    ) -> list[FourierCandidate]:
        old = tried.candidate
        assert isinstance(old, FourierCandidate)
        made = weighted_candidate(kernel, old.scales, old.weights, old.width, old.steps, old.mixing)
        return [made.wider(width) for width in widths]

    def polynomials(self) -> Tried:
        """Linear and quadratic features of unit rows, for wide sparse rows."""
        d = self.pilot.rows.shape[1]
        linear = self.attempt(PolynomialCandidate(1, 0.0, d), self.n_components)
        quadratic = [PolynomialCandidate(2, coef0, d) for coef0 in SEARCH.constants]
        tried = [self.attempt(candidate, self.n_components) for candidate in quadratic]
        best = best_of(tried)
        return best if self._wins(best, linear) else linear

    def _wins(self, one: Tried, other: Tried) -> bool:
        """Whether one is better than a simpler one, by more than a part of the standard error."""
        if is_mixed(one.candidate) and not is_mixed(other.candidate):
            # A linear map has so many numbers that some of them fit the rows held out by chance.
            much = one.loss < (1 - SEARCH.much) * other.loss
            caution = 1.0 if much else SEARCH.mixing_caution
            return one.trial.beats(other.trial, caution, tolerance=0.0)
        caution = 1.0 if self.pilot.n_observations < SEARCH.few_rows else SEARCH.caution
        return one.trial.beats(other.trial, caution, tolerance=caution)


def best_of(tried: Iterable[Tried]) -> Tried:
    """The one with the smallest loss, or the first of those that are tied with it."""
    return first_best(tried, lambda one: one.loss)


def rescues(screened: Tried, other: Tried) -> bool:
    """Whether screened columns are better beyond doubt than a candidate that has all of them."""
    return screened.trial.beats(other.trial, SEARCH.screening_caution, tolerance=0.0)


def in_order(tried: list[Tried]) -> list[Tried]:
    """The best first, then the best of the others, and so on."""
    left, ordered = list(tried), []
    while left:
        best = best_of(left)
        ordered.append(best)
        left = [other for other in left if other is not best]
    return ordered


def is_wide_text(rows: Any) -> bool:
    """Whether rows are sparse and so wide that columns are not looked at one by one."""
    return bool(sp.issparse(rows) and rows.shape[1] > SEARCH.text_columns)


def differentiable(kernel: ShiftInvariantKernel) -> bool:
    """Whether the frequencies of a kernel have second moments, so that weights can be learned."""
    rough = isinstance(kernel, Matern) and kernel.nu <= 1
    return not rough and not isinstance(kernel.spectrum(), ProductCauchy | ProductLaplace)


def learned_weights(candidate: FourierCandidate, trial: Trial, inner: Any) -> Array:
    """Weights of columns in proportion to the root of their average squared derivative.

    With derivatives g_j in prepared columns, which are the scaled ones times a factor f_j, the
    derivative in the scaled column is f_j g_j. Columns of the same spread that matter more get a
    larger weight, that is a smaller length scale.
    """
    derivatives = np.sqrt(trial.squared_derivatives(inner)) * candidate.factors
    return bounded_weights(derivatives, candidate.scales.spread)


def learned_mixing(candidate: FourierCandidate, outer: Array, power: float) -> Array | None:
    """A linear map of weighted columns, by the average outer product of gradients; None if zero.

    With prepared columns p = x M, the gradient in the weighted columns x is M grad p, so that the
    average outer product there is M P M' with the one P of the prepared columns. The new map is
    its symmetric root. A power below one takes P to that power, which gives the geometric mean of
    the old and the new product. Columns that do not vary are left out.
    """
    varying = candidate.scales.spread * candidate.weights > 0
    outer = np.where(np.outer(varying, varying), outer, 0.0)
    old = np.eye(varying.size) if candidate.mixing is None else candidate.mixing
    largest = np.abs(outer).max(initial=0)
    if not 0 < largest < np.inf:
        return None
    product = old @ symmetric_power(outer / largest, power) @ old.T
    return symmetric_power(product, 0.5, SEARCH.least_weight)


def symmetric_power(matrix: Array, power: float, least: float = 0.0) -> Array:
    """A power of a positive semidefinite matrix, over its norm, with eigenvalues above a bound."""
    values, vectors = np.linalg.eigh(matrix)
    powers = np.maximum(values, 0) ** power
    powers = np.maximum(powers / powers.max(), least)
    return (vectors * powers) @ vectors.T


def is_mixed(candidate: Candidate) -> bool:
    """Whether the columns of a candidate are mixed by a linear map."""
    return isinstance(candidate, FourierCandidate) and candidate.mixing is not None


def bounded_weights(derivatives: Array, spread: Array) -> Array:
    """Weights whose product with the spread is at least a thousandth of the largest one."""
    size = derivatives * spread
    largest = size.max(initial=0)
    if not 0 < largest < np.inf:
        return np.zeros_like(size)
    size = np.where(spread > 0, np.maximum(size / largest, SEARCH.least_weight), 0.0)
    return divided_by(size, spread)


def divided_by(numbers: Array, spread: Array) -> Array:
    """Numbers over spreads, zero where a column does not vary."""
    return np.divide(numbers, spread, out=np.zeros_like(numbers), where=spread > 0)


def _improved(best: Tried, step: Callable[[Tried, float], Tried], n_steps: int) -> Tried:
    """The best of some steps; one that does not help is followed by half a step from the best."""
    power = 1.0
    for _ in range(n_steps):
        tried = step(best, power)
        if tried.loss > (1 - SEARCH.small_gain) * best.loss:
            power /= 2
        best = best_of((best, tried))
        if power < SEARCH.least_power:
            break
    return best


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
    trial : Trial or None
        How the candidate fared; None if there are too few rows to compare.
    """

    candidate: Candidate
    n_components: int
    choice: Choice
    spreads: Array | None
    importances: Array | None
    trial: Trial | None = None


@dataclass(frozen=True)
class Plan:
    """What a search may cost, and for what fit it is made."""

    sizes: Sizes
    effort: Effort
    n_components: int  # the number of features, or the most of them if it is automatic
    is_automatic: bool
    n_observations: float  # of the final fit


def decide(
    pilot: Pilot, plan: Plan, kernel: ShiftInvariantKernel | None, scales: str, seed: int
) -> Decision:
    """Choose a map on a pilot sample. A kernel has a length scale of one; None chooses one."""
    if pilot.n_observations < SEARCH.least_rows:
        return _undecided(pilot, kernel, scales, plan)
    search = Search(pilot, seed, plan.sizes, plan.effort)
    if is_wide_text(pilot.rows) and kernel is None:
        tried = search.polynomials()
    else:
        tried = search.final(search.fourier(kernel, scales))
    n_components = plan.n_components
    if plan.is_automatic:
        n_components = _enough(search, tried.candidate, plan, seed)
    spreads, importances = _importances(
        tried.candidate, tried.trial, tried.entry["n_components"], seed, pilot.precision
    )
    choice = made_choice(search.table, tried.entry, pilot.n_observations, n_components)
    return Decision(tried.candidate, n_components, choice, spreads, importances, tried.trial)


def _undecided(
    pilot: Pilot, kernel: ShiftInvariantKernel | None, scales: str, plan: Plan
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
    size = plan.effort.fewest if plan.is_automatic else plan.n_components
    return Decision(
        candidate, size, undecided(candidate.described(), pilot.n_observations), None, None
    )


def _enough(search: Search, candidate: Candidate, plan: Plan, seed: int) -> int:
    """The number of features from which on twice as many gain less than a hundredth.

    The sample tells it for its own number of rows. Noise of predictions falls with the rows, and
    the features that are as good as that noise grow with their root (Rudi and Rosasco,
    Generalization properties of learning with random features, NeurIPS 2017).
    """
    pilot, fewest, most = search.pilot, plan.effort.fewest, plan.n_components
    sizes = [min(fewest, SEARCH.curve_size // 2)]
    while 2 * sizes[-1] <= min(SEARCH.curve_size, pilot.n_observations):
        sizes.append(2 * sizes[-1])
    is_linear = isinstance(candidate, FourierCandidate) and candidate.is_linear
    if len(sizes) == 1 or is_linear or fewest == most:
        return fewest
    trials = pilot.curve(candidate, sizes, seed)
    for n, trial in zip(sizes, trials, strict=True):
        search.note(candidate, n, trial)
    for n, fewer, more in zip(sizes, trials, trials[1:], strict=False):
        if fewer.loss <= (1 + SEARCH.flat) * more.loss:
            most = min(most, int(n * np.sqrt(plan.n_observations / pilot.n_observations)))
            break
    return max(n for n in SEARCH.automatic_sizes if n <= max(fewest, most))


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
