"""Base classes of bounds: the error for a number of features, and the inverse."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from kitchenette.parameters import check_count

MOST_COMPONENTS = (
    2**200
)  # a bound that needs more features is of no use; floats represent it exactly


class Bound(ABC):
    """An error that a number of features exceeds with probability delta at most.

    The base class of the bounds on all rows at once. A theorem of your own needs `_error`, which
    must fall as the number of features grows.

    Examples
    --------
    >>> from kitchenette.bounds import Bound
    >>> class Halves(Bound):
    ...     def _error(self, n_components, delta):
    ...         return 1 / (delta * n_components)
    >>> Halves().error(100, delta=0.1)
    0.1
    >>> Halves().n_components(0.1, delta=0.1)
    100
    """

    @abstractmethod
    def _error(self, n_components: int, delta: float) -> float:
        """The error; checked arguments."""

    def error(self, n_components: int, *, delta: float = 0.05) -> float:
        """The error that this number of features does not exceed with probability 1 - delta.

        Parameters
        ----------
        n_components : int
            The number of features.
        delta : float, default=0.05
            The probability of a larger error is at most this.

        Returns
        -------
        error : float
            Infinite if the theorem does not hold for so few features.
        """
        check_count("n_components", n_components)
        return float(self._error(n_components, checked_probability(delta)))

    def n_components(self, error: float, *, delta: float = 0.05) -> int:
        """The smallest number of features whose error is at most this, by the theorem.

        Parameters
        ----------
        error : float
            The largest error that is accepted.
        delta : float, default=0.05
            The probability of a larger error is at most this.

        Returns
        -------
        n_components : int
        """
        error, delta = checked_number("error", error), checked_probability(delta)
        # Errors fall as features are added: double until there are enough, then bisect.
        enough = 1
        while not self._error(enough, delta) <= error:
            enough *= 2
            if enough > MOST_COMPONENTS:
                raise ValueError(
                    f"No number of features has an error of at most {error:g} by {self!r} with "
                    f"delta={delta:g}; the error for very many is "
                    f"{self._error(MOST_COMPONENTS, delta):.3g}."
                )
        too_few = enough // 2
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            if self._error(middle, delta) <= error:
                enough = middle
            else:
                too_few = middle
        return enough


class PairBound(Bound):
    """A bound on the error at one pair of rows, or at all pairs of several rows.

    The second follows from the first by the union bound: delta is divided by the number of
    pairs, n (n + 1) / 2 for n rows, because a row is also a pair with itself.

    Examples
    --------
    >>> from kitchenette.bounds import FastfoodError, PairBound
    >>> bound = FastfoodError(distance=1.0)
    >>> isinstance(bound, PairBound)
    True
    >>> bound.n_components(0.1, delta=0.05) < bound.n_components(0.1, delta=0.05, n_rows=10)
    True
    """

    def error(self, n_components: int, *, delta: float = 0.05, n_rows: int | None = None) -> float:
        """The error at one pair, or the largest error at all pairs of ``n_rows`` rows.

        Parameters
        ----------
        n_components, delta
            As in `Bound.error`.
        n_rows : int, optional
            The number of rows; by default there is one pair.

        Returns
        -------
        error : float
        """
        return super().error(n_components, delta=shared(delta, n_rows))

    def n_components(self, error: float, *, delta: float = 0.05, n_rows: int | None = None) -> int:
        """The smallest number of features with such an error at one pair, or at all pairs.

        Parameters
        ----------
        error, delta
            As in `Bound.n_components`.
        n_rows : int, optional
            The number of rows; by default there is one pair.

        Returns
        -------
        n_components : int
        """
        return super().n_components(error, delta=shared(delta, n_rows))


def shared(delta: float, n_rows: int | None) -> float:
    """The probability for one pair, if all pairs of ``n_rows`` rows share delta."""
    if n_rows is None:
        return delta
    n = check_count("n_rows", n_rows)
    return checked_probability(delta) / (n * (n + 1) / 2)


def checked_probability(delta: Any) -> float:
    """Refuse numbers that are not strictly between zero and one."""
    if checked_number("delta", delta) >= 1:
        raise ValueError(f"delta is a probability, less than one; got {delta!r}.")
    return float(delta)


def checked_number(
    name: str, value: Any, *, above: float = 0.0, most: float = np.finfo(float).max
) -> float:
    """Refuse what is not a number greater than ``above`` and at most ``most``."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not above < value <= most:
        limit = "finite" if most == np.finfo(float).max else f"at most {most:g}"
        raise ValueError(
            f"{name} must be a number greater than {above:g} and {limit}; got {value!r}."
        )
    return float(value)


# ---------------------------------------------------------------- inequalities


def chebyshev(variance: float, delta: float) -> float:
    """The deviation that a variable of this variance exceeds with probability delta at most."""
    return float(np.sqrt(variance / delta))


def hoeffding(width: float, n: int, delta: float) -> float:
    """The same for the mean of n independent variables in an interval of this width."""
    return float(width * np.sqrt(np.log(2 / delta) / (2.0 * n)))


def bernstein(variance: float, largest: float, n: int, delta: float) -> float:
    """The same for the mean of n independent variables that deviate by ``largest`` at most."""
    log = np.log(2 / delta) / float(n)
    linear = largest * log / 3
    return float(linear + np.sqrt(linear**2 + 2 * variance * log))
