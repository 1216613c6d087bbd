"""Limits of what loading a model file may cost."""

from __future__ import annotations


class Budget:
    """Memory and work that loading a file may still cost.

    Parameters
    ----------
    max_bytes : float
        The most memory.
    max_operations : float
        The most arithmetic operations, of about two nanoseconds each.

    Attributes
    ----------
    spent_bytes, spent_operations : float
        The memory and the work granted so far.

    Examples
    --------
    >>> from kitchenette.files import Budget
    >>> budget = Budget(max_bytes=1000, max_operations=1e6)
    >>> budget.spend(600, 10, "A first map")
    >>> budget.spend(600, 10, "A second map")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    ...
    ValueError: A second map may take 600 bytes, and 400 are left. Load it with a larger max_bytes
    if you trust it.
    """

    def __init__(self, max_bytes: float, max_operations: float):
        self._max_bytes, self._max_operations = max_bytes, max_operations
        self.spent_bytes = self.spent_operations = 0.0

    def spend(self, n_bytes: float, n_operations: float, what: str) -> None:
        """Raise a ValueError if these upper bounds exceed the remaining budget.

        The purpose is the subject of its sentence.
        """
        for number, limit, spent, unit in (
            (n_bytes, self._max_bytes, self.spent_bytes, "bytes"),
            (n_operations, self._max_operations, self.spent_operations, "operations"),
        ):
            if not number <= limit - spent:  # this form also refuses NaN
                raise ValueError(
                    f"{what} may take {_rounded(number)} {unit}, and {_rounded(limit - spent)} "
                    f"are left. Load it with a larger max_{unit} if you trust it."
                )
        self.spent_bytes += n_bytes
        self.spent_operations += n_operations


def _rounded(number: float) -> str:
    return f"{min(number, 1e300):.3g}"  # integers may overflow a float
