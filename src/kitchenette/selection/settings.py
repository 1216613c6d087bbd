"""Thresholds and sizes of the search for a map, and what a sample of rows costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple


@dataclass(frozen=True)
class SearchSettings:
    """Every threshold and size of the search, with its reason.

    ``benchmarks.outofthebox`` has the errors of what is chosen, ``benchmarks.choosing`` the seconds
    that choosing takes. A value without a benchmark of its own follows from the argument beside it.
    """

    # ------------------------------------------------------------ the sample
    # With more rows the losses of candidates differ by less than the standard errors asked below.
    pilot_rows: int = 8000
    # With fewer there is nothing to compare on: a fold would be judged by three rows.
    least_rows: int = 10
    # With fewer rows fewer candidates are compared, since each further one may win by chance.
    very_few_rows: int = 100
    # With fewer rows standard errors are rough themselves, so that a whole one is asked.
    few_rows: int = 500
    # From here on one split leaves 600 rows to judge by, and further folds cost as much again.
    many_rows: int = 2000
    n_folds: int = 3
    # Held out of many rows; the mean of 2500 losses is known to 2 % of their spread.
    held_out: float = 0.3
    most_held_out: int = 2500
    # Sparse rows of up to so many columns are centered: a dense sample has 16 MB in float64 then.
    dense_columns: int = 256
    # Sparse rows of more columns are texts: their columns are not scaled one by one.
    text_columns: int = 4096
    # Rounding to float32 is not seen in the losses if it is below the tie of losses below.
    rounding_error: float = 1e-4
    # Rows that agree in targets and so many columns are ordered by hash values, for speed only.
    ordering_columns: int = 8

    # ------------------------------------------------------------ what is compared
    # Losses that differ by a smaller part are equal: rounding must not decide.
    tie: float = 1e-4
    # In median distances of rows; the next line refines the best of them.
    widths: tuple[float, ...] = (0.4, 1.0, 2.5)
    finer_widths: tuple[float, ...] = (0.63, 1.58)  # the roots of 0.4 and 2.5, between the above
    # Of other kernels than that of learning, relative to its width: smoother ones of about the same
    # curvature are not much wider, and Matern 1/2 falls faster than all others near zero.
    smoother_widths: tuple[float, ...] = (0.7, 1.4)
    rougher_widths: tuple[float, ...] = (1.0, 2.0)
    given_widths: tuple[float, ...] = (0.5, 1.0, 2.0)  # for a kernel of either kind
    final_width: float = 0.8  # more features resolve smaller widths
    constants: tuple[float, ...] = (0.3, 1.0, 3.0)  # beside the products of two words of unit rows
    # Gaussian kernels that wide are linear up to 1/200 of the squared distance.
    linear_width: float = 10.0
    # 22,500 distances; their median is known to a few percent, and widths differ by 60.
    paired_rows: int = 300
    # Up to here products with dense frequencies are as fast as transforms (``benchmarks.fourier``).
    dense_frequencies: int = 64
    # The Laplacian kernel has dense frequencies only; with more columns it takes all of the budget.
    laplacian_columns: int = 100
    # Piecewise linear functions of more columns take longer than the features of them.
    piecewise_columns: int = 600

    # ------------------------------------------------------------ placeholders
    # Rarer numbers hardly change any distance, and few rows cannot say where they belong.
    placeholder_share: float = 0.01
    placeholder_rows: int = 5
    # Distinct numbers of a column, to tell how far one of them is from the others.
    placeholder_others: int = 5
    # In ranges of the others: n uniform numbers have such a gap with a chance of (2/3)^n.
    placeholder_gap: float = 0.5
    placeholder_margin: float = 0.05  # so that it is next to the others, but none of them

    # ------------------------------------------------------------ encodings
    # Columns of more whole numbers are quantities, of which indicators would have few rows each.
    most_codes: int = 16
    # Rarer numbers get no indicator of their own, as rare categories of tables.
    code_rows: int = 3
    # In standard errors, of losses and of wrong classes.
    encoding_caution: float = 1.0
    # Kernels, scales and widths: the Gaussian kernel of indicators is a product over the columns.
    encoding_starts: tuple[tuple[str, str, tuple[float, ...]], ...] = (
        ("Gaussian", "common", (1.0, 2.5)),
        ("Matern 3/2", "columns", (1.0,)),
    )

    # ------------------------------------------------------------ screening of columns
    # Tables of two columns with 64 cells see two periods of a wave in each of them.
    screening_bins: int = 8
    # Fewer rows in a cell, or residuals of it, are far from normal.
    screening_cell: int = 10
    # The bins of all columns: the products of their indicators take as long as a few trials.
    screening_cells: int = 1024
    # Products of three of 100 columns are as many operations.
    screening_triples: int = 100
    # Sums over classes: further ones are added up with random signs.
    screening_targets: int = 4
    # A false effect in one search of a hundred; its columns still have to win on rows held out.
    screening_level: float = 0.01
    # Effects far below the largest one are no reason for a start of their own.
    screening_least: float = 0.01
    # Without the other half of the columns distances change by a root of two, which widths resolve.
    screening_part: float = 0.5
    # Columns of weak effects are not far behind: the shares of bins are rough.
    screening_weight: float = 0.3
    # In standard errors, by which they must win at the start and after learning, with no more wrong
    # classes: a rescue from a model that sees nothing wins by far more, and columns that were
    # dropped are lost. As an ordinary start they raised the error on nursery from 2.6 to 4.6 %.
    screening_caution: float = 2.0
    screening_widths: tuple[float, ...] = (0.4, 1.0)

    # ------------------------------------------------------------ learned scales
    # New weights change the median distance, most in the first step.
    first_widths: tuple[float, ...] = (0.6, 1.0, 1.6)
    next_widths: tuple[float, ...] = (0.75, 1.2)
    # Where columns are dropped, the width falls with the root of their number: 0.6^3 is 1/5.
    narrower: float = 0.6
    n_narrower: int = 3
    few_steps: int = 2  # with very few rows more of them fit chance
    # Steps that gain less overshoot, and are halved; twice at most, that is down to 0.4.
    small_gain: float = 0.005
    least_power: float = 0.4
    # A weight of zero could never be learned again, because its column has no derivative.
    least_weight: float = 1e-3
    # A map of more columns costs more than structured features of them.
    mixed_columns: int = 64

    # ------------------------------------------------------------ what wins
    # In standard errors: half of one, since the simpler candidate is no better founded than that.
    caution: float = 0.5
    # The same for a linear map, which has a number for each pair of columns, some of which fit the
    # rows held out by chance.
    mixing_caution: float = 3.0
    much: float = 0.1  # a gain of such a part of the loss is not of that kind
    # A learning curve is flat where twice the features gain less than a hundredth.
    flat: float = 0.01
    # Numbers of features that "auto" takes, so far apart that the next one is a visible difference.
    automatic_sizes: tuple[int, ...] = (256, 512, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
    # The largest one in a learning curve on the sample: beyond, two rows per feature judge.
    curve_size: int = 2048

    # ------------------------------------------------------------ what it may cost
    # What "balanced" promises seconds for; more rows take proportionally longer.
    planned_rows: int = 20_000
    # A factorization for each of about a dozen penalties, of a third of D^3 operations each.
    solutions: int = 4
    sizes: tuple[int, ...] = (4096, 2048, 1024, 768, 512, 384, 256, 192, 128, 96, 64, 32)
    # The order of candidates with 1024 features is that with many more.
    largest_screening: int = 1024
    # About as many candidates are tried with few and with more features, and so the budget is cut.
    n_screened: int = 36
    n_finalists: int = 6
    of_screening: float = 2 / 3
    # Of a small machine with two cores, for products of matrices in float32.
    operations_per_second: float = 6e10
    shortest: float = 0.3  # below, interpreting the search itself takes longer than its products
    # From here on choosing takes no longer than the final fit.
    large_fit: int = 50_000
    efficiency: float = 0.5  # of small matrices, relative to those of the final fit
    # Below three rows per feature losses tell of the penalty, not of the candidate; where there are
    # more rows ten are better and hardly slower, as solutions then take less than the products.
    rows_per_feature: int = 3
    kept_rows: int = 10


SEARCH = SearchSettings()


@dataclass(frozen=True)
class Effort:
    """How much time the search and the fit that follows may take.

    Seconds are those of ``SEARCH.operations_per_second``. ``benchmarks.outofthebox --methods
    fast,default,best`` has the errors and the seconds of each.
    """

    seconds: float  # for the search
    fit_seconds: float  # for the final fit of up to 20,000 rows, which limits the features
    fewest: int  # features with "auto", from where more of them are taken if they pay
    most: int
    learning_steps: int  # limits only: steps end when they no longer gain
    mixing_steps: int
    # Whether encodings, kernels, and widths between the first ones are tried that rarely gain much
    is_thorough: bool = True
    is_fixed: bool = False  # whether the search takes that long for any number of rows


EFFORTS = {
    # One fold of iris in a tenth of a second.
    "fast": Effort(0.25, 0.25, 256, 1024, 2, 1, is_thorough=False),
    # 20,000 rows of 20 columns in less than eight seconds: 5 s for letter.
    "balanced": Effort(5.0, 3.5, 1024, 4096, 5, 3),
    # Up to a minute for 20,000 rows: 17 s for letter.
    "best": Effort(20.0, 30.0, 2048, 8192, 8, 5),
}


def effort_of(effort: str | float) -> Effort:
    """The effort of this name, or the balanced one with so many seconds for the search."""
    if isinstance(effort, str):
        return EFFORTS[effort]
    return replace(EFFORTS["balanced"], seconds=float(effort), is_fixed=True)


def most_components(n_rows: float, effort: Effort) -> int:
    """The most features that a fit of so many rows may have with "auto".

    The time for a row stays the same from 20,000 rows on.
    """
    seconds = effort.fit_seconds * max(1.0, n_rows / SEARCH.planned_rows)
    affordable = [
        size
        for size in SEARCH.automatic_sizes
        if effort.fewest <= size <= effort.most
        and (n_rows + SEARCH.solutions * size) * size**2 <= seconds * SEARCH.operations_per_second
    ]
    return max(affordable, default=effort.fewest)


class Sizes(NamedTuple):
    """The rows of the pilot sample, and the features for screening and for finalists."""

    n_rows: int
    n_screening: int
    n_final: int


def pilot_sizes(
    n_rows: int,
    n_columns: int,
    n_components: int,
    effort: Effort,
    per_row: float = 1.0,
) -> Sizes:
    """The largest pilot that the effort allows.

    That is at most as much as the final fit takes, or a few seconds for data of less than 50,000
    rows. A distinct row stands for ``per_row`` observations.
    """
    operations = operations_of(n_rows, n_components, effort)
    affordable = SEARCH.of_screening * operations / SEARCH.n_screened
    for size in SEARCH.sizes:
        smallest = size == SEARCH.sizes[-1]
        if size > min(n_components, SEARCH.largest_screening) and not smallest:
            continue
        rows = min(n_rows, SEARCH.pilot_rows)
        while trial_cost(rows, size, n_columns) > affordable and rows > SEARCH.kept_rows * size:
            rows = int(0.9 * rows)
        kept = min(n_rows * per_row, int(0.9 * SEARCH.kept_rows * size))
        enough_rows = rows * per_row >= max(SEARCH.rows_per_feature * size, kept)
        if smallest or (enough_rows and trial_cost(rows, size, n_columns) <= affordable):
            break
    screening = min(size, n_components)
    affordable = (1 - SEARCH.of_screening) * operations / SEARCH.n_finalists
    # Features far beyond the number of rows of the pilot tell nothing more about a candidate.
    enough = min(n_components, max(screening, int(per_row * rows) // 2))
    for size in (enough, *SEARCH.sizes):
        if size <= enough and trial_cost(rows, size, n_columns) <= affordable:
            return Sizes(rows, screening, max(size, screening))
    return Sizes(rows, screening, screening)


def operations_of(n_rows: int, n_components: int, effort: Effort) -> float:
    """The number of operations that choosing may take."""
    rate = SEARCH.operations_per_second
    most = rate * effort.seconds
    if n_rows < SEARCH.large_fit or effort.is_fixed:
        return most
    final_fit = SEARCH.efficiency * n_rows * float(n_components) ** 2
    return min(most, max(final_fit, SEARCH.shortest * rate))


def trial_cost(n_rows: int, n_features: int, n_columns: int) -> float:
    """The approximate number of operations of one trial.

    A product of the features with themselves, features of dense frequencies, and five solutions,
    whose operations take longer because they are in float64 and on small matrices.
    """
    features = n_rows * (n_features * min(n_columns, 64) + 20 * n_columns)
    return float(n_rows * n_features**2 + features + 5 * n_features**3)
