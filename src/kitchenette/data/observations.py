"""How many observations rows are: what repeated rows and sample weights count for.

This is the one place that says so; the choice of a map, the penalty, the validation score and the
calibration follow it. The sum of squares that is minimized is not concerned: there a row of
weight w always counts w times.

Samples have the distinct pairs of a row and its target, each with the sum of its weights and the
number of its copies. A pair stands for one or more *observations*, and a model is checked by
leaving out single observations:

* "weights": a pair is as many observations as its weight has units. The unit is the greatest
  common divisor of the weights of all pairs. So rows of weight 2 are the same as rows that come
  twice, and weights that are multiplied by a constant change nothing. Rows without weights, which
  have weight one, are one observation each.
* "rows": a pair is as many observations as it has copies. This is the rule for weights that have
  no common divisor, such as survey weights or importances: they say how much rows matter relative
  to each other, and not how many there are.
* "pairs": a pair is one observation, however often it comes. This is the rule where repetitions
  are copies of one measurement: a bootstrap sample, or rows that were joined or logged twice.
  A model that is checked on a copy of a row that it has learned seems better than it is.

Where less than a twentieth of the observations repeat others, "pairs" is the rule as well: hardly
any observation is lost by it, and no copy can tell the target of the row that is held out.

Otherwise the rule is decided on a sample of the rows, by whether they repeat by nature. Categories
and small integers do: two people of the same sex and age are two observations. Two arguments tell
such rows from copies:

* Copies have the same target. If equal rows have different targets, the rows repeat by nature;
  and so do pairs, unless the targets are continuous.
* Otherwise, rows repeat by nature if they would do so with independent columns. Two rows agree in
  column j with the probability q_j = sum_v C(n_v, 2) / C(n, 2), where n_v rows have the value v, so
  C(n, 2) prod_j q_j pairs of n rows are expected to be equal. Copies of continuous rows are far
  more than that. (Of a single column it cannot be told, and its values are taken for categories.)

Weights that are given to classes are part of those of the rows, but do not count: with them, each
row is an observation ("rows"). Balanced class weights do not change how often rows count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrik

from kitchenette.data.keys import row_keys, target_numbers
from kitchenette.sketching.random import Stream

Array = NDArray[np.float64]
RULES = ("weights", "rows", "pairs")
VARYING = 0.05  # part of the pairs of equal rows; fewer different targets are mistakes in the data
CONTINUOUS = 0.5  # distinct targets for each distinct pair, above which targets are continuous
EXPECTED = 0.1  # of the equal rows, with independent columns; columns that depend agree more often
FEW_REPEATED = 0.05  # of the observations, below which copies are not looked at
FEWEST_PAIRS = 20  # the weights of fewer pairs may have a common divisor by chance
MOST_UNITS = 1e6  # of the largest weight; beyond, a common divisor consists of rounding errors
TOLERANCE = 1e-9  # relative rounding error of weights
DENSE_NUMBERS = 1 << 25  # sparse samples of more numbers are compared by their zeros alone


def observation_counts(weights: Array, copies: NDArray[np.int64], rule: str) -> Array:
    """The number of observations that each distinct pair of a sample stands for.

    The weights are the sums of those of equal pairs, and the copies their number. If all
    weights are zero, each pair is one observation.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette.data.observations import observation_counts
    >>> weights, copies = np.array([100.0, 200.0, 300.0] * 9), np.ones(27, dtype=int)
    >>> observation_counts(weights, copies, "weights")[:3]
    array([1., 2., 3.])
    >>> observation_counts(np.sqrt(weights), copies, "weights")[:3]
    array([1., 1., 1.])
    """
    if rule == "pairs" or not weights.any():
        return np.ones(weights.size)
    unit = _unit(weights) if rule == "weights" else None
    return copies.astype(np.float64) if unit is None else np.rint(weights / unit)


def _unit(weights: Array) -> float | None:
    """The greatest common divisor of weights, None if they have none."""
    distinct = np.unique(weights[weights > 0])
    if weights.size < FEWEST_PAIRS and np.array_equal(distinct, np.rint(distinct)):
        return 1.0
    least = float(distinct[-1]) / MOST_UNITS
    unit = float(distinct[0])
    if unit < least:
        return None
    for weight in distinct[1:].tolist():
        # Euclid's algorithm for numbers with rounding errors.
        while weight > TOLERANCE * float(distinct[-1]):
            unit, weight = weight, abs(unit - weight * round(unit / weight))
        if unit < least:
            return None
    return unit


def observation_rule(
    rows: Any,
    y: Any,
    weights: Array,
    copies: NDArray[np.int64],
    share: float = 1.0,
    *,
    of_features: bool = False,
) -> str:
    """Which of the rules holds for a sample of distinct pairs.

    The rows are numbers, see `kitchenette.data.keys`; weights and copies are the sums of the
    weights and the numbers of equal pairs, and the share is the part of all distinct pairs that
    are in the sample. Of features of the rows only the first argument is asked: each of them
    depends on several columns.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette.data.observations import observation_rule
    >>> rng = np.random.default_rng(0)
    >>> copies = np.full(100, 3)
    >>> observation_rule(rng.normal(size=(100, 2)), rng.normal(size=100), 1.0 * copies, copies)
    'pairs'
    """
    if rows.shape[0] == 0:
        return RULES[0]
    numbers = target_numbers(y, rows.shape[0])
    for rule in ("weights", "rows"):
        counts = observation_counts(weights, copies, rule)
        if float(counts.sum()) * (1 - FEW_REPEATED) <= counts.size:
            break  # nearly all pairs are one observation already
        if _repeats_by_nature(rows, numbers, counts, share, of_features):
            return rule
    return "pairs"


def _repeats_by_nature(
    rows: Any, numbers: Array, counts: Array, share: float, of_features: bool
) -> bool:
    """Whether independent observations are likely to be equal as often as these are."""
    keys = row_keys(rows, np.zeros((rows.shape[0], 1)))
    of_rows = np.unique(keys, return_inverse=True)[1]
    totals = np.bincount(of_rows, counts)
    # Two pairs of the same row are both in the sample with the square of the chance of one.
    equal = _pairs(counts) / share
    different = max(0.0, _pairs(totals) - _pairs(counts)) / share**2
    if different > VARYING * (equal + different):
        return np.unique(numbers, axis=0).shape[0] <= CONTINUOUS * rows.shape[0]
    if of_features:
        return False
    n = float(counts.sum()) / share
    with np.errstate(divide="ignore"):  # columns of different values
        agreeing = np.log(_chances_to_agree(rows, counts)).sum()
    # Where no rows are equal, it is asked whether one pair of them could have been.
    seen = max(1.0, equal + different)
    return bool(np.log(max(1.0, n * (n - 1) / 2)) + agreeing >= np.log(EXPECTED * seen))


def _pairs(counts: NDArray[Any]) -> float:
    return float(counts @ (counts - 1)) / 2


def _chances_to_agree(rows: Any, counts: Array) -> Array:
    """For each column, the probability that two observations have the same value."""
    n = float(counts.sum())
    all_pairs = max(1.0, n * (n - 1) / 2)
    if sp.issparse(rows):
        if rows.shape[0] * rows.shape[1] > DENSE_NUMBERS:
            # Columns agree more often where only zeros are distinguished from other numbers.
            nonzero = sp.csr_matrix(rows != 0).T @ counts
            return (nonzero * (nonzero - 1) + (n - nonzero) * (n - nonzero - 1)) / 2 / all_pairs
        rows = rows.toarray()
    chances = np.empty(rows.shape[1])
    for j, column in enumerate(rows.T):
        values = np.unique(column, return_inverse=True)[1]
        chances[j] = _pairs(np.bincount(values, counts)) / all_pairs
    return chances


def divided(counts: Array, share: float, uniforms: Array) -> Array:
    """How many of the observations of each pair belong to a random part of them all.

    Each observation belongs to it with the same probability, the share, independently, so that
    a model of the others meets the noise of these for the first time. One observation belongs
    to the part if its uniform number is below the share.
    """
    part = (uniforms < share).astype(np.float64)
    several = counts > 1
    if share > 0 and several.any():
        # Quantiles of the binomial distribution.
        chance, n = 1 - uniforms[several], counts[several]
        above = np.ceil(bdtrik(chance, n, share))
        below = np.maximum(above - 1, 0)
        part[several] = np.where(bdtr(below, n.astype(np.intp), share) >= chance, below, above)
    return np.clip(part, 0, counts)


def folds(counts: Array, n_folds: int, order: NDArray[np.intp], seed: int) -> list[Array]:
    """How many observations of each pair are held out in each fold; all are held out once.

    Pairs of one observation are divided by a random order of the pairs, the observations of
    others by the seed.
    """
    parts, left, single = [], counts.copy(), counts == 1
    for number, part in enumerate(np.array_split(order, n_folds)):
        chance = Stream(seed, f"copies in fold {number}").uniforms(1, counts.size)[0]
        held_out = divided(left, 1 / (n_folds - number), chance)
        held_out[single] = 0
        held_out[part] = np.where(single[part], 1, held_out[part])
        parts.append(held_out)
        left = left - held_out
    return parts
