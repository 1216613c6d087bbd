"""The parameters of regressor and classifier: what is allowed, and which solver they ask for."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from kitchenette.learning.checks import checked_alpha
from kitchenette.learning.regularisation import CRITERIA
from kitchenette.parameters import check_choice, check_count

SOLVERS = ("auto", "onepass", "iterative")


def is_criterion(alpha: Any) -> bool:
    """Whether a penalty is to be chosen by a criterion of the statistics."""
    return isinstance(alpha, str) and alpha in CRITERIA


def is_word(value: Any, word: str) -> bool:
    """Whether a parameter, which may be an array, is this word."""
    return isinstance(value, str) and value == word


def without_one_pass(model: Any, method: str) -> str | None:
    """Why a method that needs statistics does not exist, if the parameters ask for many passes."""
    if is_word(model.loss, "squared") and not is_word(model.solver, "iterative"):
        return None
    return (
        f"{type(model).__name__} has no {method} with loss={model.loss!r} and "
        f"solver={model.solver!r}: it needs the statistics of one pass over the rows, which exist "
        "for loss='squared' and solver='onepass' or 'auto'."
    )


def check_machine_parameters(model: Any) -> None:
    """Refuse parameters that make no sense, alone or together."""
    if not isinstance(model.fit_intercept, bool | np.bool_):
        raise ValueError(f"fit_intercept must be True or False; got {model.fit_intercept!r}.")
    if isinstance(model.alpha, str):
        check_choice("alpha", model.alpha, ("auto", *CRITERIA))
    else:
        checked_alpha(model.alpha)
    if not isinstance(model.warm_start, bool | np.bool_):
        raise ValueError(f"warm_start must be True or False; got {model.warm_start!r}.")
    check_count("validation_rows", model.validation_rows, 0)
    check_choice("loss", model.loss, model.losses)
    check_choice("solver", model.solver, SOLVERS)
    check_count("max_iter", model.max_iter)
    if not isinstance(model.tol, numbers.Real) or not 0 <= float(model.tol) < 1:
        raise ValueError(f"tol must be a number from 0 to below 1; got {model.tol!r}.")
    if model.solver == "onepass" and model.loss != "squared":
        raise ValueError(
            f"solver='onepass' is for loss='squared'; loss={model.loss!r} needs many passes: "
            "use solver='auto'."
        )
    if model.loss != "squared" and is_criterion(model.alpha):
        raise ValueError(
            f"alpha={model.alpha!r} needs the squared loss; others take a number, several of "
            "them, or 'auto'."
        )
    if model.solver == "iterative" and is_word(model.alpha, "gcv"):
        raise ValueError(
            "alpha='gcv' needs the statistics of solver='onepass'; an iterative solver takes a "
            "number, several of them, 'evidence' or 'auto'."
        )
