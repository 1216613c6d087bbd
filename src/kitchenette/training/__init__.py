"""Training: the only way in which rows become a model."""

from kitchenette.learning.partial import Partial
from kitchenette.training.model import Model
from kitchenette.training.train import combine, finish, partial, partial_of, prepare

__all__ = ["Model", "Partial", "combine", "finish", "partial", "partial_of", "prepare"]
