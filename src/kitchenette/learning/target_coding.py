"""Target codings: targets as columns of numbers, and predicted columns as targets.

`NumberCoding` is for regression, `ClassCoding` for classification, and `NoTargets` for methods
without targets. Each is a frozen value that a model has; a batch whose labels or precision are
new gives another coding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.utils import check_array, column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from kitchenette.data.keys import number_of
from kitchenette.data.rows import refuse_what_is_not_numbers
from kitchenette.data.targets import array_of_targets, first_text
from kitchenette.files.fields import Interval, Options, field_values
from kitchenette.files.registry import storable
from kitchenette.learning.calibration import (
    BIAS_SPREAD,
    BIAS_SPREAD_WITHOUT,
    Calibration,
    calibrated_losses,
)
from kitchenette.learning.leave_one_out import LeaveOneOut, Measure
from kitchenette.learning.linear_model import Validation
from kitchenette.learning.losses import LOSSES, weighted_quantile
from kitchenette.learning.output_codes import OutputCode
from kitchenette.learning.solution import Solution

Array = NDArray[np.float64]
COVERAGE = 0.95  # of the intervals by which standard deviations are scaled, as users expect
LEAST_FOR_SPREAD = 50  # rows, of which a quantile of this level leaves out two or three


class TargetCoding:
    """What training needs to know of targets; by default they are columns of numbers already.

    Subclasses are frozen. They encode targets (``encoded``, the coding of all targets so far and
    these ones encoded), and judge the outputs of validation rows (``validated``).
    """

    def columns(self, targets: NDArray[Any]) -> Array:
        """Encoded targets as columns of numbers."""
        return targets

    def target_numbers(self, targets: NDArray[Any]) -> Array:
        """Numbers, one row per target, that are equal for equal targets of any batch."""
        return targets

    def decoded(self, targets: Any) -> Any:
        """Encoded targets as a user gives them."""
        return targets

    def weighted(self, targets: Any, weights: Array | None, class_weight: Any) -> Array | None:
        """The weights of rows with these encoded targets."""
        return weights

    def among(self, classes: Any) -> Self:
        """The coding of these classes."""
        return self

    def in_precision(self, dtype: str) -> Self:
        """The coding of targets of this precision."""
        return self

    def expanded(self, outputs: Array) -> Array:
        """The columns of the targets from those that the solver works with."""
        return outputs

    def reduced(self, outputs: Array, loss: str) -> Array:
        """The inverse of `expanded`, for the solver of a loss."""
        return outputs

    def measure(self, decoding: str) -> Measure | None:
        """By what the penalty is chosen, if not by squared errors."""
        return None


@storable
@dataclass(frozen=True)
class NoTargets(TargetCoding):
    """One column of zeros in place of targets, for statistics of features alone."""

    classes: ClassVar[None] = None
    codewords: ClassVar[None] = None
    dtype: ClassVar[str] = "float32"

    @staticmethod
    def of(n_rows: int) -> Array:
        """Targets for n_rows rows: a view of one zero, which takes no memory."""
        return np.broadcast_to(np.zeros(1), (n_rows, 1))

    def encoded(self, y: Any, *, extend: bool = False) -> tuple[Self, None]:
        """The coding itself; targets are ignored."""
        return self, None

    def decoded(self, targets: Any) -> None:
        """No targets."""
        return

    def check_targets(self, n_targets: int | None) -> None:
        """Refuse statistics of a model file that have targets."""
        if n_targets not in (1, None):
            raise ValueError("the statistics must have one target.")


@storable
@dataclass(frozen=True)
class NumberCoding(TargetCoding):
    """Targets that are numbers."""

    # the number of axes of the targets: 1, or 2 for several targets
    ndim: Annotated[int, Interval(1, 2)]
    dtype: Annotated[str, Options("float32", "float64")] = "float32"  # the precision of the targets
    classes: ClassVar[None] = None
    codewords: ClassVar[None] = None

    @classmethod
    def of(cls, y: Any) -> tuple[Self, Array]:
        """The coding of a first batch, and its encoded targets."""
        return cls(0).encoded(y)

    def encoded(self, y: Any, *, extend: bool = False) -> tuple[Self, Array]:
        """The coding of all targets so far, and these ones encoded."""
        given = getattr(y, "dtype", None)
        y = array_of_targets(y)
        refuse_what_is_not_numbers(y)
        if (text := first_text(y)) is not None:
            raise ValueError(
                f"KernelRegressor predicts numbers, and y has strings, such as {str(text)!r}. Use "
                "KernelClassifier for classes; convert numbers first, as in y.astype(float)."
            )
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        ndim = self.ndim or y.ndim
        if y.ndim not in (1, 2) or y.ndim != ndim:
            axes = ("one axis", "two axes")
            expected = f"{axes[ndim - 1]}, as before" if self.ndim else " or ".join(axes)
            raise ValueError(f"y must have {expected}; got an array of shape {y.shape}.")
        dtype = self.dtype if given == np.float32 else "float64"
        coding = self if (ndim, dtype) == (self.ndim, self.dtype) else type(self)(ndim, dtype)
        return coding, np.require(y.reshape(y.shape[0], -1), requirements="A")

    def decoded(self, targets: NDArray[Any]) -> NDArray[Any]:
        return targets[:, 0] if self.ndim == 1 else targets

    def in_precision(self, dtype: str) -> Self:
        return self if dtype == self.dtype else replace(self, dtype=dtype)

    def shaped(self, values: Any) -> Any:
        """A value of the solved model in the shape that users see."""
        if not isinstance(values, np.ndarray):
            return values
        per_target = np.ascontiguousarray(values.T)
        return per_target[0] if self.ndim == 1 else per_target

    def validated(self, held_out: LeaveOneOut, solution: Solution, problem: Any) -> Validation:
        """What validation rows say about a solution."""
        targets = held_out.rows.targets
        errors = np.square(targets - held_out.outputs(solution.alpha))
        rows, weights, outputs = held_out.without_folds(solution)
        validation = self.validated_by("squared", outputs, targets[rows], weights, None, problem)
        return replace(validation, spread=_spread(held_out, solution, errors))

    def validated_by(
        self,
        loss: str,
        outputs: Array,
        targets: NDArray[Any],
        weights: Array,
        counts: Array | None,
        problem: Any,
    ) -> Validation:
        """What validation rows with these outputs and encoded targets say; there may be none."""
        if weights.size == 0:
            return Validation()
        shares = weights / weights.sum()
        errors = shares @ np.square(targets - outputs)
        spreads = shares @ np.square(targets - shares @ targets)
        varying = spreads > 0
        if not varying.any():
            return Validation()
        return Validation(score=float(np.mean(1 - errors[varying] / spreads[varying])))

    def check_targets(self, n_targets: int | None) -> None:
        """Refuse values of a model file that do not match the number of targets."""
        if self.ndim == 1 and n_targets not in (1, None):
            raise ValueError(f"{n_targets} targets have two axes.")


def _spread(held_out: LeaveOneOut, solution: Solution, errors: Array) -> Array | None:
    """Factors that let intervals of 1.96 standard deviations contain 95 % of the rows."""
    variances = solution.variance_of(held_out.squared_lengths(solution))
    n_observations = float(held_out.counts.sum())
    if n_observations < LEAST_FOR_SPREAD or not np.all(variances > 0):
        return None
    ratios = np.sqrt(errors / variances)
    # The share that exceeds the quantile of a sample is a little larger among new rows.
    level = min(1.0, COVERAGE * (1 + 1 / n_observations))
    return np.array(
        [weighted_quantile(column, held_out.rows.weights, level) for column in ratios.T]
    ) / ndtri((1 + COVERAGE) / 2)


# ---------------------------------------------------------------- classes


@dataclass(frozen=True)
class CodeRule:
    """Which output code classes have, whatever their number."""

    code: Any = "onehot"  # the kind of code, or its codewords; shape (n_classes, n_bits)
    length: int | None = None  # the number of bits of an error-correcting code
    seed: int = 0  # the seed of a random code

    def codewords(self, n_classes: int) -> NDArray[np.int8] | None:
        """The codewords of ``n_classes`` classes; None for "onehot"."""
        if not isinstance(self.code, str):
            given = OutputCode(self.code)
            if given.n_classes != n_classes:
                raise ValueError(
                    f"code has {given.n_classes} rows, but there are {n_classes} classes."
                )
            return given.codewords
        if self.code == "ecoc":
            return OutputCode.random(n_classes, self.length, seed=self.seed).codewords
        return OutputCode.hadamard(n_classes).codewords if self.code == "hadamard" else None


@storable
@dataclass(frozen=True, eq=False)
class ClassCoding(TargetCoding):
    """Targets that are labels of classes, encoded as the positions of the labels."""

    classes: NDArray[Any]  # the labels, sorted; shape (n_classes,)
    rule: Any  # the output code
    # the codewords; None for "onehot"; shape (n_classes, n_bits)
    codewords: NDArray[np.int8] | None
    dtype: ClassVar[str] = "float32"
    ndim: ClassVar[int] = 1

    @classmethod
    def of(cls, y: Any, classes: Any, rule: CodeRule) -> tuple[Self, NDArray[np.intp]]:
        """The coding of a first batch, and its encoded targets; labels may be known before."""
        labels, places = np.unique(checked_labels(y), return_inverse=True)
        classes = labels if classes is None else classes
        if classes.size < 2:
            raise ValueError(
                "KernelClassifier needs rows of at least two classes; the data has one "
                f"class: {classes.tolist()}."
            )
        coding = cls(classes, rule, rule.codewords(classes.size))
        return coding, coding._numbers(labels)[places]

    def encoded(self, y: Any, *, extend: bool = False) -> tuple[Self, NDArray[np.intp]]:
        """The coding, and targets encoded; labels must be known, unless it is to be extended."""
        labels, places = np.unique(checked_labels(y), return_inverse=True)
        coding = self.among(union_of_classes(self.classes, labels)) if extend else self
        return coding, coding._numbers(labels)[places]

    def _numbers(self, labels: NDArray[Any]) -> NDArray[np.intp]:
        """The numbers of the classes that these labels are."""
        unknown = np.setdiff1d(labels, self.classes)
        if unknown.size:
            raise ValueError(
                f"y has labels that are not among the classes: {unknown[:5].tolist()}; the "
                f"classes are {self.classes.tolist()}."
            )
        return np.searchsorted(self.classes, labels)

    def columns(self, targets: NDArray[Any]) -> Array:
        return (targets[:, None] == np.arange(self.classes.size)).astype(np.float64)

    def decoded(self, targets: NDArray[Any]) -> NDArray[Any]:
        return self.classes[targets]

    def target_numbers(self, targets: NDArray[Any]) -> Array:
        return np.array([number_of(label) for label in self.classes])[targets, None]

    def weighted(
        self, targets: NDArray[Any], weights: Array | None, class_weight: Any
    ) -> Array | None:
        """The weights of rows times the weights of their classes, if these are given."""
        if not isinstance(class_weight, Mapping):
            return weights
        unknown = [label for label in class_weight if label not in self.classes]
        if unknown:
            raise ValueError(f"class_weight has labels that are not among the classes: {unknown}.")
        labels = self.classes[targets]
        present = np.unique(labels)
        # A batch may lack some of the labels.
        given = {label: w for label, w in class_weight.items() if label in present} or None
        class_weights = compute_class_weight(given, classes=present, y=labels)
        factors = class_weights[np.searchsorted(present, labels)]
        return factors if weights is None else factors * weights

    def among(self, classes: NDArray[Any] | None) -> Self:
        if classes is None or classes is self.classes or np.array_equal(classes, self.classes):
            return self
        return type(self)(classes, self.rule, self.rule.codewords(classes.size))

    def expanded(self, outputs: Array) -> Array:
        # One output, the difference of both classes, is as good as two of opposite sign.
        if self.classes.size > 2 or outputs.shape[1] != 1:
            return outputs
        return np.hstack([-outputs, outputs]) / 2

    def reduced(self, outputs: Array, loss: str) -> Array:
        if outputs.shape[1] > 2 or not LOSSES[loss].of_labels:
            return outputs
        return np.ascontiguousarray(outputs[:, 1:] - outputs[:, :1])

    def shaped(self, values: Any) -> Any:
        """A value of the solved model in the shape that users see."""
        return np.ascontiguousarray(values.T) if isinstance(values, np.ndarray) else values

    def measure(self, decoding: str) -> Measure:
        return LogLosses(self.scores("squared", decoding))

    def scores(self, loss: str, decoding: str) -> Scores:
        """What makes scores of the outputs of a model of this loss."""
        return Scores(self.classes, self.codewords, decoding, LOSSES[loss].of_labels)

    def validated(self, held_out: LeaveOneOut, solution: Solution, problem: Any) -> Validation:
        """What validation rows say about a solution."""
        labels = held_out.rows.targets.argmax(axis=1)
        outputs = held_out.outputs(solution.alpha)
        weights, counts = held_out.rows.weights, held_out.counts
        validation = self.validated_by("squared", outputs, labels, weights, counts, problem)
        rows, weights, outputs = held_out.without_folds(solution)
        scores = self.scores("squared", problem.decoding).of_all_classes(outputs)
        return replace(validation, score=_accuracy(scores, labels[rows], weights))

    def validated_by(
        self,
        loss: str,
        outputs: Array,
        targets: NDArray[Any],
        weights: Array,
        counts: Array | None,
        problem: Any,
    ) -> Validation:
        """What validation rows with these outputs and encoded targets say; there may be none.

        Each stands for a number of observations, whose weights are added.
        """
        natural = Calibration(1.0, np.zeros(self.classes.size), [], 0.0)
        calibration = natural if LOSSES[loss].link == "softmax" else None
        if weights.size == 0:
            return Validation(calibration=calibration)
        scores = self.scores(loss, problem.decoding).of_all_classes(outputs)
        if calibration is None:
            spread = BIAS_SPREAD if problem.fit_intercept else BIAS_SPREAD_WITHOUT
            calibration = Calibration.fit(scores, targets, weights, counts, bias_spread=spread)
        return Validation(_accuracy(scores, targets, weights), calibration)

    def check_targets(self, n_targets: int | None) -> None:
        """Refuse values of a model file that do not match the number of targets."""
        n_targets = self.classes.size if n_targets is None else n_targets
        if self.classes.shape != (n_targets,) or not are_sorted(self.classes):
            raise ValueError(f"classes must be {n_targets} different labels, sorted.")
        if self.codewords is not None and OutputCode(self.codewords).n_classes != n_targets:
            raise ValueError("codewords must have a row for each class.")

    def to_file(self) -> dict[str, Any]:
        """Labels and codewords, for a model file; the rule is that of the estimator."""
        return {**field_values(self), "rule": None}


def _accuracy(scores: Array, targets: NDArray[Any], weights: Array) -> float:
    return float(weights @ (scores.argmax(axis=1) == targets) / weights.sum())


@dataclass(frozen=True, eq=False)
class Scores:
    """Converts predicted indicators of the classes to scores, and to labels."""

    classes: NDArray[Any]  # the labels; shape (n_classes,)
    code: NDArray[np.int8] | None  # the codewords; shape (n_classes, n_bits)
    decoding: str  # their decoding
    plain: bool = False  # whether the outputs are the scores already

    def __call__(self, outputs: Array) -> NDArray[Any]:
        """Scores; for two classes one score, which is positive for the second class."""
        if self.code is not None:
            code, words = self._output_code
            outputs = code.scores(outputs @ words, self.decoding)
        if self.classes.size == 2:
            return outputs[:, 1] - outputs[:, 0]
        if self.plain or self.code is not None:
            return outputs
        # The scores of targets that are +1 for the class of a row and -1 for the others. The
        # sum of the outputs is one with an intercept, but not without.
        return 2 * outputs - outputs.sum(axis=1, keepdims=True)

    def of_all_classes(self, outputs: Array) -> Array:
        """The scores of all classes, also of two."""
        scores = self(outputs)
        return np.stack([-scores, scores], axis=1) / 2 if scores.ndim == 1 else scores

    def labels(self, outputs: Array) -> NDArray[Any]:
        """The labels of the largest scores."""
        if self.code is None:
            return self.classes[outputs.argmax(axis=1)]
        return self.classes[self.of_all_classes(outputs).argmax(axis=1)]

    @cached_property
    def _output_code(self) -> tuple[OutputCode, Array]:
        assert self.code is not None
        code = OutputCode(self.code)
        return code, code.codewords.astype(np.float64)


@dataclass(frozen=True, eq=False)
class LogLosses(Measure):
    """Log losses of calibrated scores.

    Squared errors of indicators ask for more than labels need: that all rows of a class have the
    same outputs. Neither are the indicators Gaussian, as their evidence assumes.
    """

    scores: Scores
    convincing: ClassVar[float] = 1.0  # a half of that of squared errors, as of the above
    tie: ClassVar[float] = 0.01  # the loss of 2000 rows is known to a few percent

    def __call__(self, outputs: Array, targets: Array, weights: Array) -> Array:
        scores = self.scores.of_all_classes(outputs)
        return calibrated_losses(scores, targets.argmax(axis=1), weights)


# ---------------------------------------------------------------- labels


def checked_labels(y: Any) -> NDArray[Any]:
    """Labels as an array with one axis, without missing values."""
    y = column_or_1d(with_one_type(array_of_targets(y)), warn=True)
    y = check_array(y, dtype=None, ensure_2d=False, input_name="y")
    check_classification_targets(y)
    return y


def with_one_type(labels: Any) -> Any:
    """Labels, where Python objects are numbers or strings, but not both.

    Objects that are numbers or booleans become an array of their own type, as those of a list do.
    """
    if getattr(labels, "dtype", np.dtype(int)).kind != "O":
        return labels
    texts = [isinstance(label, str) for label in labels.flat]
    if all(texts):
        return labels
    if any(texts):
        one, other = (labels.flat[texts.index(is_text)] for is_text in (True, False))
        raise ValueError(
            "Labels must have one type, so that they can be sorted; y has strings and others, "
            f"such as {one!r} and {other!r}. Convert them first, as in y.astype(str)."
        )
    try:
        converted = np.asarray(labels.tolist())
    except ValueError:  # lists of different lengths
        return labels
    return converted if converted.shape == labels.shape else labels


def labels_among(classes: ArrayLike) -> NDArray[Any]:
    """The distinct labels of a list, sorted."""
    given = np.asarray(classes)
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise ValueError("classes must not contain NaN.")
    try:
        return np.unique(given)
    except TypeError as error:
        raise ValueError(f"classes cannot be sorted: {error}.") from error


def union_of_classes(mine: NDArray[Any], theirs: NDArray[Any]) -> NDArray[Any]:
    """The labels of both, sorted; the first array itself if it has all of them."""
    if (mine.dtype.kind in "biuf") != (theirs.dtype.kind in "biuf"):
        raise ValueError(
            "Cannot merge models of which one has numbers for labels and the other has "
            f"strings or objects: {mine[:3].tolist()} and {theirs[:3].tolist()}."
        )
    classes = np.union1d(mine, theirs)
    return mine if classes.size == mine.size else classes


def are_sorted(labels: NDArray[Any]) -> bool:
    """Whether labels are different and sorted."""
    return bool(np.all(labels[1:] > labels[:-1]))
