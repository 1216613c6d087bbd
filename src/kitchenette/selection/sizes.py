"""How many rows and features a choice can afford, by counting operations."""

from __future__ import annotations

from typing import NamedTuple

PILOT_ROWS = 8000  # of the sample; more hardly change a choice
SIZES = (4096, 2048, 1024, 768, 512, 384, 256, 192, 128, 96, 64, 32)
LARGEST_SCREENING = 1024
SCREENED, FINALISTS = 36, 6  # about as many candidates are tried with few and with more features
OF_SCREENING = 2 / 3  # the part of the budget for screening
OPERATIONS_PER_SECOND = 6e10  # of a small machine with two cores
SECONDS = 5.0  # for choosing, where the final fit is shorter
SHORTEST = 0.3  # seconds for choosing, however short the final fit is
MANY_ROWS = 50_000  # from here on choosing takes no longer than the final fit
EFFICIENCY = 0.5  # of small matrices, relative to those of the final fit
ROWS_PER_FEATURE = 3  # at least, in screening
KEPT_ROWS = 10  # rows per feature that are kept, where there are so many
LARGEST = 2048  # the size of map for which n_components="auto" plans


class Sizes(NamedTuple):
    """The rows of the pilot sample, and the features for screening and for finalists."""

    n_rows: int
    n_screening: int
    n_final: int


def pilot_sizes(
    n_rows: int,
    n_columns: int,
    n_components: int,
    seconds: float | None = None,
    per_row: float = 1.0,
) -> Sizes:
    """The largest pilot that the budget allows.

    Parameters
    ----------
    n_rows, n_columns : int
        The shape of all data.
    n_components : int
        The number of features of the final map.
    seconds : float, optional
        The budget; by default as much as the final fit takes, or a few seconds for data of less
        than 50,000 rows.
    per_row : float, default=1.0
        The number of observations that a distinct row stands for.

    Returns
    -------
    sizes : Sizes
    """
    operations = budget_of(n_rows, n_components, seconds)
    rows, screening = _screening(n_rows, n_columns, n_components, operations, per_row)
    affordable = (1 - OF_SCREENING) * operations / FINALISTS
    # Features far beyond the number of rows of the pilot tell nothing more about a candidate.
    enough = min(n_components, max(screening, int(per_row * rows) // 2))
    for size in (enough, *SIZES):
        if size <= enough and trial_cost(rows, size, n_columns) <= affordable:
            return Sizes(rows, screening, max(size, screening))
    return Sizes(rows, screening, screening)


def budget_of(n_rows: int, n_components: int, seconds: float | None) -> float:
    """The number of operations that choosing may take."""
    most = OPERATIONS_PER_SECOND * (SECONDS if seconds is None else seconds)
    if n_rows < MANY_ROWS or seconds is not None:
        return most
    final_fit = EFFICIENCY * n_rows * float(n_components) ** 2
    return min(most, max(final_fit, SHORTEST * OPERATIONS_PER_SECOND))


def _screening(
    n_rows: int, n_columns: int, n_components: int, operations: float, per_row: float
) -> tuple[int, int]:
    """The number of rows and of features for screening."""
    affordable = OF_SCREENING * operations / SCREENED
    for size in SIZES:
        if size > min(n_components, LARGEST_SCREENING) and size > SIZES[-1]:
            continue
        rows = min(n_rows, PILOT_ROWS)
        while trial_cost(rows, size, n_columns) > affordable and rows > KEPT_ROWS * size:
            rows = int(0.9 * rows)
        kept = min(n_rows * per_row, int(0.9 * KEPT_ROWS * size))
        enough = rows * per_row >= max(ROWS_PER_FEATURE * size, kept)
        if (enough and trial_cost(rows, size, n_columns) <= affordable) or size == SIZES[-1]:
            break
    return rows, min(size, n_components)


def trial_cost(n_rows: int, n_features: int, n_columns: int) -> float:
    """The approximate number of operations of one trial.

    A product of the features with themselves, features of dense frequencies, and five solutions,
    whose operations take longer because they are in float64 and on small matrices.
    """
    features = n_rows * (n_features * min(n_columns, 64) + 20 * n_columns)
    return float(n_rows * n_features**2 + features + 5 * n_features**3)
