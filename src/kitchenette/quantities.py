"""Times, sizes and errors as text."""

from __future__ import annotations

LONG_TIMES = (("years", 31_557_600.0), ("days", 86_400.0), ("h", 3600.0), ("min", 60.0))
TIMES = (*LONG_TIMES, ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))
SMALL_ERROR = 0.001  # below it, four decimals would hide the error: it has two digits then
SIZES = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def of_seconds(seconds: float | None) -> str:
    """A time.

    Examples
    --------
    >>> from kitchenette.quantities import of_seconds
    >>> of_seconds(0.0012), of_seconds(90), of_seconds(None)
    ('1.2 ms', '90 s', 'unknown')
    """
    if seconds is None:
        return "unknown"
    fitting = (pair for pair in TIMES if seconds >= (2 * pair[1] if pair[1] > 1 else pair[1]))
    unit, size = next(fitting, TIMES[-1])
    return f"{_three(seconds / size)} {unit}"


def of_bytes(size: float | None) -> str:
    """A number of bytes.

    Examples
    --------
    >>> from kitchenette.quantities import of_bytes
    >>> of_bytes(123456), of_bytes(12)
    ('123 kB', '12 bytes')
    """
    if size is None:
        return "unknown"
    for unit, bytes_of_unit in SIZES:
        if size >= bytes_of_unit:
            return f"{_three(size / bytes_of_unit)} {unit}"
    return f"{size:.0f} bytes"


def of_share(error: float, task: str) -> str:
    """The value of an error: a percentage of wrong classes, or a number.

    Examples
    --------
    >>> from kitchenette.quantities import of_share
    >>> of_share(0.0123, "classification"), of_share(0.25, "regression")
    ('1.23%', '0.2500')
    """
    if task == "classification":
        return f"{error:.2%}"
    return f"{error:.4f}" if error >= SMALL_ERROR or error == 0 else f"{error:.2g}"


def _three(value: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
