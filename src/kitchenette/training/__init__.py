"""Training: the only way in which rows become a model."""

from kitchenette.learning.partial import Partial
from kitchenette.training.model import Model
from kitchenette.training.problem import Problem
from kitchenette.training.train import (
    Hooks,
    combine,
    finish,
    partial,
    partial_of,
    prepare,
    train,
)

__all__ = [
    "Hooks",
    "Model",
    "Partial",
    "Problem",
    "combine",
    "finish",
    "partial",
    "partial_of",
    "prepare",
    "train",
]
