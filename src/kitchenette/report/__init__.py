"""Comparisons of maps with other models on some data, as values and as a page.

The page needs jinja2: ``pip install 'kitchenette[report]'``.
"""

from kitchenette.report.comparing import compare
from kitchenette.report.comparison import (
    ColumnSummary,
    Comparison,
    Confusion,
    Measurement,
    Reliability,
    Residuals,
)
from kitchenette.report.page import page

__all__ = [
    "ColumnSummary",
    "Comparison",
    "Confusion",
    "Measurement",
    "Reliability",
    "Residuals",
    "compare",
    "page",
]
