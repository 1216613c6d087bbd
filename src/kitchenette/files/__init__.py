"""Model files: the layout of a file, values as JSON and arrays, and which classes take part.

This room knows no class of the others: each class registers itself with `storable`.
"""

from kitchenette.files.models import ModelFileError, load, save
from kitchenette.files.registry import Budget, register, storable

__all__ = ["Budget", "ModelFileError", "load", "register", "save", "storable"]
