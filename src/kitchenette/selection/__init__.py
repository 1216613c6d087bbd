"""Automatic choices: kernels, scales, widths and sizes, by errors on rows held out."""

from kitchenette.selection.automap import AutoMap, choose
from kitchenette.selection.choice import Choice

__all__ = ["AutoMap", "Choice", "choose"]
