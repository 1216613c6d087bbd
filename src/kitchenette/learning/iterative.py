"""Learning by passes over the rows in which the features are computed again.

It needs memory for a few vectors of weights instead of the matrix of all pairs of features, so it
goes where one pass ends: very many features, and losses other than the squared error.

1. Some rows are held out: a sample of the distinct rows that does not depend on their order.
2. The others are learned for several penalties, each step of the solver taking one pass. A step
   after which the held-out rows are not predicted better ends this, or a small residual.
3. The model is learned from all rows with the best penalty, starting from the weights of the second
   part, as far as that went.
"""

from __future__ import annotations

from typing import Any

from kitchenette.learning.coarse_model import coarse_bytes
from kitchenette.learning.iterative_solver import Settings, SolverResult
from kitchenette.learning.memory import check_memory
from kitchenette.learning.passes import FeatureRows
from kitchenette.learning.preconditioner import FEATURE_BYTES, preconditioner_bytes
from kitchenette.learning.smooth_solver import SmoothSolver
from kitchenette.learning.squared_solver import COLUMNS, PENALTIES, SquaredSolver


def learn(
    rows: FeatureRows, loss: str, settings: Settings, *, level: float = 0.5, start: Any = None
) -> SolverResult:
    """Learn a model in passes over rows.

    Parameters
    ----------
    rows : FeatureRows
        The rows, with their targets and weights.
    loss : str
        The name of a loss.
    settings : Settings
        How to learn.
    level : float, default=0.5
        The quantile, for the loss "quantile".
    start : pair of ndarrays, optional
        Weights and intercept of a model to begin with.

    Returns
    -------
    learned : SolverResult
    """
    rows.check_targets()
    solver = SquaredSolver if loss == "squared" else SmoothSolver
    return solver(rows, loss, settings, level, start).run()


def check_iterative_memory(n_rows: int, n_features: int, n_targets: int, loss: str) -> None:
    """Refuse what exceeds the memory before any of it is allocated."""
    together = max(1, min(PENALTIES, COLUMNS // n_targets))
    kinds = {"squared": (True,), "auto": (True, False)}.get(loss, (False,))
    needed = {
        "the weights and as many directions": 8 * (6 * together + 4) * n_features * n_targets,
        "the preconditioner": max(
            preconditioner_bytes(n_rows, n_features, together, kept=kept) for kept in kinds
        ),
        "the statistics of some features": coarse_bytes(n_features, n_rows),
        "blocks of features": 2 * FEATURE_BYTES,
    }
    advice = "Use fewer features."
    check_memory(f"Learning from {n_features} features in many passes", needed, advice)
