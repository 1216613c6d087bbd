"""Model files: their layout, the encoding of values, and the registry of storable classes.

This package imports no model class: each class registers itself with `storable`.
"""

from kitchenette.files.budget import Budget
from kitchenette.files.models import ModelFileError, load, save
from kitchenette.files.registry import register, storable

__all__ = ["Budget", "ModelFileError", "load", "register", "save", "storable"]
