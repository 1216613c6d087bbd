"""What is to be learned, as a frozen value: loss, penalty, solver, target coding."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kitchenette.learning.iterative import Settings, silent
from kitchenette.learning.least_squares import checked_alpha, checked_penalties
from kitchenette.learning.leave_one_out import LeaveOneOut
from kitchenette.learning.linear_model import LinearModel, PrincipalComponents, Validation
from kitchenette.learning.losses import AUTO, loss_names
from kitchenette.learning.output_codes import DECODINGS, OutputCode
from kitchenette.learning.partial import Partial
from kitchenette.learning.penalty import CRITERIA, PenaltyPath
from kitchenette.learning.solution import Solution
from kitchenette.learning.target_coding import ClassCoding, CodeRule, NoTargets, NumberCoding
from kitchenette.parameters import check_choice, check_count
from kitchenette.training.prepared import Prepared

Array = NDArray[np.float64]
SOLVERS = ("auto", "onepass", "iterative")
CODES = ("onehot", "ecoc", "hadamard")
ONE_PASS_FEATURES = 8192  # up to which solver="auto" takes one pass


def is_text(value: Any, text: str) -> bool:
    """Whether a parameter, which may be an array, is this string."""
    return isinstance(value, str) and value == text


def is_criterion(alpha: Any) -> bool:
    """Whether a penalty is to be chosen by a criterion of the statistics."""
    return isinstance(alpha, str) and alpha in CRITERIA


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """A linear model of features with a penalty, for numbers or classes.

    The attributes are the parameters of `KernelRegressor` and `KernelClassifier`.

    Attributes
    ----------
    estimator : str
        The name of the class of the estimator, for messages.
    task : {"classification", "regression"}
        What is predicted.
    classes : ndarray or None
        Labels that are known before any rows.
    """

    estimator: str
    task: str
    classes: NDArray[Any] | None = None
    feature_map: Any = None
    random_state: Any = None
    alpha: Any = "auto"
    fit_intercept: Any = True
    validation_rows: Any = 2000
    loss: Any = "squared"
    solver: Any = "auto"
    max_iter: Any = 100
    tol: Any = 1e-3
    warm_start: Any = False
    verbose: Any = False
    quantile: Any = 0.5
    code: Any = "onehot"
    code_length: Any = None
    decoding: Any = "soft"
    class_weight: Any = None
    solution_class: ClassVar[type] = LinearModel

    # ------------------------------------------------------------ parameters

    def check(self) -> None:
        """Refuse parameters that make no sense, alone or together."""
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError(f"fit_intercept must be True or False; got {self.fit_intercept!r}.")
        if isinstance(self.alpha, str):
            check_choice("alpha", self.alpha, ("auto", *CRITERIA))
        else:
            checked_alpha(self.alpha)
        if not isinstance(self.warm_start, bool | np.bool_):
            raise ValueError(f"warm_start must be True or False; got {self.warm_start!r}.")
        check_count("validation_rows", self.validation_rows, 0)
        check_choice("loss", self.loss, loss_names(self.task))
        check_choice("solver", self.solver, SOLVERS)
        check_count("max_iter", self.max_iter)
        if not isinstance(self.tol, numbers.Real) or not 0 <= float(self.tol) < 1:
            raise ValueError(f"tol must be a number from 0 to below 1; got {self.tol!r}.")
        if self.solver == "onepass" and self.loss not in ("squared", AUTO):
            raise ValueError(
                f"solver='onepass' is for loss='squared'; loss={self.loss!r} needs many passes: "
                "use solver='auto'."
            )
        if self.loss not in ("squared", AUTO) and is_criterion(self.alpha):
            raise ValueError(
                f"alpha={self.alpha!r} needs the squared loss; others take a number, several of "
                "them, or 'auto'."
            )
        if self.solver == "iterative" and is_text(self.alpha, "gcv"):
            raise ValueError(
                "alpha='gcv' needs the statistics of solver='onepass'; an iterative solver takes a "
                "number, several of them, 'evidence' or 'auto'."
            )
        if self.task == "classification":
            self._check_classes()
        elif not isinstance(self.quantile, numbers.Real) or not 0 < float(self.quantile) < 1:
            raise ValueError(f"quantile must be between 0 and 1; got {self.quantile!r}.")

    def _check_classes(self) -> None:
        check_choice("decoding", self.decoding, DECODINGS)
        check_class_weight(self.class_weight)
        if isinstance(self.code, str):
            check_choice("code", self.code, CODES)
        else:
            OutputCode(self.code)  # refuses what is no matrix of bits
        if self.loss not in ("squared", AUTO) and not is_text(self.code, "onehot"):
            raise ValueError(
                f"Output codes are for loss='squared', which is linear in the targets; got "
                f"loss={self.loss!r} and code={self.code!r}."
            )
        if self.code_length is None:
            return
        check_count("code_length", self.code_length)
        if not isinstance(self.code, str) or self.code != "ecoc":
            raise ValueError(
                f"code_length={self.code_length} is for code='ecoc', whose length is free; "
                "omit it for other codes."
            )

    def without_one_pass(self, method: str) -> str | None:
        """Why a method that needs statistics does not exist, if these are not computed."""
        if self.loss in ("squared", AUTO) and not is_text(self.solver, "iterative"):
            return None
        return (
            f"{self.estimator} has no {method} with loss={self.loss!r} and "
            f"solver={self.solver!r}: it needs the statistics of one pass over the rows, which "
            "exist for loss='squared' or 'auto' and solver='onepass' or 'auto'."
        )

    def in_one_pass(self) -> Problem:
        """The same, solved from statistics whatever the number of features."""
        return replace(self, solver="onepass")

    @property
    def tries_losses(self) -> bool:
        """Whether validation rows decide between the losses; else "auto" is the squared one."""
        free = is_text(self.code, "onehot") and not is_criterion(self.alpha)
        return self.loss == AUTO and self.solver != "onepass" and free and self.validation_rows > 0

    def iterates(self, n_features: int) -> bool:
        """Whether `fit` takes many passes for this number of features."""
        return (
            self.loss not in ("squared", AUTO)
            or self.tries_losses
            or not self.sums_up_rows(n_features)
        )

    def sums_up_rows(self, n_features: int) -> bool:
        """Whether the squared loss is minimized from the statistics of one pass."""
        if self.solver != "auto":
            return bool(self.solver == "onepass")
        return n_features <= ONE_PASS_FEATURES or is_criterion(self.alpha)

    def first_coding(self, y: Any, seed: int) -> tuple[Any, NDArray[Any]]:
        """The coding of the targets of a first batch, and these targets encoded."""
        if self.task == "regression":
            return NumberCoding.of(y)
        return ClassCoding.of(y, self.classes, self.code_rule(seed))

    def restored_coding(self, coding: Any, seed: int) -> Any:
        """The coding of a model file, with the output code that the parameters tell."""
        if self.task == "classification" and isinstance(coding, ClassCoding):
            return replace(coding, rule=self.code_rule(seed))
        if self.task == "regression" and isinstance(coding, NumberCoding):
            return coding
        raise ValueError(f"its targets are not those of a {self.estimator}.")

    @property
    def losses(self) -> tuple[str, ...]:
        """The losses of this task."""
        return tuple(loss_names(self.task))

    def code_rule(self, seed: int) -> CodeRule:
        """The output code of any number of classes."""
        return CodeRule(self.code, self.code_length, seed)

    def settings(self, prepared: Prepared, counted: Array | None) -> Settings:
        """The settings of the iterative solvers."""
        alpha = self.alpha
        if isinstance(alpha, str):
            alpha = None if alpha == "auto" else alpha
        else:
            alpha = checked_penalties("alpha", alpha, "")[()]
        report: Callable[[str], None] = silent
        if self.verbose:
            report = lambda line: print(f"{self.estimator}, {line}", flush=True)  # noqa: E731
        return Settings(
            alpha,
            bool(self.fit_intercept),
            self.max_iter,
            float(self.tol),
            self.validation_rows,
            prepared.rule,
            counted,
            report,
            prepared.coding.measure(self.decoding),
        )

    # ------------------------------------------------------------ the solution of statistics

    def solved(self, prepared: Prepared, partial: Partial) -> LinearModel:
        """The weights for the statistics of some rows, with the penalty that is asked for."""
        return self.solved_with_rows(prepared, partial)[0]

    def solved_with_rows(
        self, prepared: Prepared, partial: Partial
    ) -> tuple[LinearModel, Solution, LeaveOneOut | None]:
        """The same, its factor, and the validation rows, if there are enough of them."""
        statistics = partial.statistics
        assert statistics is not None
        path = self.path(prepared, partial)
        held_out = self.held_out(prepared, partial, path)
        alpha = self.alpha
        if is_text(alpha, "auto"):
            alpha = self._automatic_penalty(path, held_out)
        solution = path.solve(checked_alpha(alpha))
        validation = Validation()
        if held_out is not None:
            validation = prepared.coding.validated(held_out, solution, self)
            if isinstance(self.alpha, str) and self.alpha != "auto":
                self.warn_of_contradiction(held_out, solution.alpha)
        model = LinearModel.of(solution, statistics.has_float32, validation)
        return model, solution, held_out

    def path(self, prepared: Prepared, partial: Partial) -> PenaltyPath:
        """The solutions for all penalties."""
        assert partial.statistics is not None
        n_observations = self.n_observations(prepared, partial)
        return PenaltyPath(partial.statistics.equations(self.fit_intercept, n_observations))

    def held_out(
        self, prepared: Prepared, partial: Partial, path: PenaltyPath
    ) -> LeaveOneOut | None:
        """Sampled rows with predictions of models without them; None if there are too few."""
        sample = partial.validation_sample
        if sample is None or partial.sample is None:
            return None
        measure = prepared.coding.measure(self.decoding)
        left_out = LeaveOneOut(path, sample, partial.sample.counts(prepared.rule), measure)
        return left_out if left_out.enough else None

    def n_observations(self, prepared: Prepared, partial: Partial) -> float:
        """The number of observations, or of rows if there is no sample to estimate it from."""
        if partial.sample is None:
            return float(partial.n_rows)
        return partial.sample.n_observations(partial.n_rows, prepared.rule)

    def _automatic_penalty(self, path: PenaltyPath, held_out: LeaveOneOut | None) -> Any:
        equations = path.equations
        if equations.n_observations <= 1 + self.fit_intercept:
            # One row, or two, say nothing of the function, so that it is nearly constant.
            return max(1.0, equations.trace)
        return "evidence" if held_out is None or not path.is_safe else held_out.chosen()

    def warn_of_contradiction(self, held_out: LeaveOneOut, alpha: float) -> None:
        better = held_out.contradiction(alpha) if held_out.path.is_safe else None
        if better is not None:
            warnings.warn(
                f"alpha={self.alpha!r} chose {alpha:.3g}, but the validation rows are predicted "
                f"better with {better:.3g}. Use alpha='auto', which looks at both.",
                UserWarning,
                stacklevel=6,
            )


def check_class_weight(class_weight: Any) -> None:
    """Refuse anything but None, "balanced" and finite weights of labels, none of them negative."""
    if class_weight is None or is_text(class_weight, "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            "class_weight must be None, 'balanced', or a dictionary of a weight for each label; "
            f"got {class_weight!r:.80}."
        )
    for label, weight in class_weight.items():
        is_number = isinstance(weight, numbers.Real) and not isinstance(weight, bool | np.bool_)
        if not is_number or not 0 <= float(weight) < np.inf:
            raise ValueError(
                "The weights of class_weight must be finite numbers, none of them negative; got "
                f"{weight!r:.80} for the label {label!r:.80}."
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class Components:
    """Principal components of features; the attributes are parameters of `KernelPCA`."""

    n_components: Any
    whiten: Any
    verbose: Any = False
    feature_map: Any = None
    random_state: Any = None
    estimator: str = "KernelPCA"
    task: None = None
    classes: ClassVar[None] = None
    loss: ClassVar[str] = "squared"
    validation_rows: ClassVar[int] = 0
    class_weight: ClassVar[None] = None
    tries_losses: ClassVar[bool] = False
    losses: ClassVar[tuple[str, ...]] = ("squared",)
    solution_class: ClassVar[type] = PrincipalComponents

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        check_count("n_components", self.n_components)
        if not isinstance(self.whiten, bool | np.bool_):
            raise ValueError(f"whiten must be True or False; got {self.whiten!r}.")

    def iterates(self, n_features: int) -> bool:
        """Whether `fit` takes many passes; refuses too few features."""
        if self.n_components > n_features:
            raise ValueError(
                f"n_components={self.n_components} is more than the {n_features} features of the "
                "map, which have no more directions. Use a map with more features."
            )
        return False

    def in_one_pass(self) -> Components:
        """The same: components are always computed from statistics."""
        return self

    def without_one_pass(self, method: str) -> str | None:
        """Why a method that needs statistics does not exist: they always do."""
        return None

    def first_coding(self, y: Any, seed: int) -> tuple[NoTargets, None]:
        """No coding, as there are no targets."""
        return NoTargets(), None

    def restored_coding(self, coding: Any, seed: int) -> NoTargets:
        """The coding of a model file."""
        if not isinstance(coding, NoTargets):
            raise ValueError(f"its targets are not those of a {self.estimator}.")
        return coding

    def solved(self, prepared: Prepared, partial: Partial) -> PrincipalComponents:
        """The components of the rows."""
        statistics = partial.statistics
        assert statistics is not None
        self.iterates(statistics.n_features)
        if statistics.n_rows <= self.n_components:
            raise ValueError(
                f"n_components={self.n_components} needs at least {self.n_components + 1} rows, as "
                f"n rows span n - 1 directions from their mean; got n_samples={statistics.n_rows}."
            )
        return PrincipalComponents.of(statistics, self.n_components, bool(self.whiten))
