"""Fits, predictions and evaluations of files: the command, for Python."""

from kitchenette.jobs.checkpoint import Checkpoint, CheckpointError
from kitchenette.jobs.choosing import choose_rows, prepared_sample
from kitchenette.jobs.evaluation import Evaluation, evaluate_rows
from kitchenette.jobs.fitting import Fitted, fit_rows
from kitchenette.jobs.prediction import predict_rows
from kitchenette.jobs.settings import FitSettings
from kitchenette.jobs.shards import learn_shard, merge_shards

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Evaluation",
    "FitSettings",
    "Fitted",
    "choose_rows",
    "evaluate_rows",
    "fit_rows",
    "learn_shard",
    "merge_shards",
    "predict_rows",
    "prepared_sample",
]
