"""How many rows and features a choice can afford, by counting operations."""

from __future__ import annotations

from typing import NamedTuple

PILOT_ROWS = 8000  # more rows hardly change a choice
SIZES = (1024, 768, 512, 384, 256, 192, 128, 96, 64, 32)
TRIALS = 40  # about as many candidates are tried
OPERATIONS_PER_SECOND = 6e10  # of a small machine with two cores
SECONDS = 6.0  # for choosing, where the final fit is shorter
SHORTEST = 0.3  # seconds for choosing, however short the final fit is
MANY_ROWS = 50_000  # from here on choosing takes no longer than the final fit
ROWS_PER_FEATURE = 3  # at least, in the pilot
LARGEST = 2048  # the size of map for which n_components="auto" plans


class Sizes(NamedTuple):
    """The size of the pilot sample and the number of features to compare candidates with."""

    n_rows: int
    n_features: int


def pilot_sizes(
    n_rows: int, n_columns: int, n_components: int, seconds: float | None = None
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

    Returns
    -------
    sizes : Sizes
    """
    operations = OPERATIONS_PER_SECOND * (SECONDS if seconds is None else seconds)
    if n_rows >= MANY_ROWS and seconds is None:
        least = SHORTEST * OPERATIONS_PER_SECOND
        operations = min(operations, max(float(n_rows) * n_components**2, least))
    of_trial = operations / TRIALS
    for p in SIZES:
        if p > n_components and p > SIZES[-1]:
            continue
        n = min(n_rows, PILOT_ROWS)
        while trial_cost(n, p, n_columns) > of_trial and n > 2 * ROWS_PER_FEATURE * p:
            n = int(0.9 * n)
        enough = n >= ROWS_PER_FEATURE * p
        if (enough and trial_cost(n, p, n_columns) <= of_trial) or p == SIZES[-1]:
            return Sizes(n, min(p, n_components))
    raise AssertionError("the smallest size is always returned")


def trial_cost(n_rows: int, n_features: int, n_columns: int) -> float:
    """The approximate number of operations of one trial.

    A product of the features with themselves, features of dense frequencies, and four solutions,
    whose operations take longer because they are in float64 and on small matrices.
    """
    features = n_rows * n_features * min(n_columns, 64) + n_rows * n_columns
    return float(n_rows * n_features**2 + features + 5 * n_features**3)
