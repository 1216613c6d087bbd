"""Automatic choices: kernels, scales, widths and sizes, by errors on rows held out."""

from kitchenette.selection.automap import AutoMap
from kitchenette.selection.choice import Choice
from kitchenette.selection.choose import choose

__all__ = ["AutoMap", "Choice", "choose"]
