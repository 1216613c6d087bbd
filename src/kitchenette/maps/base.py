"""The scikit-learn side of all maps: parameters, checks of rows, `fit` and `transform`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import Tags, check_array

from kitchenette.data.border import as_source, in_parts
from kitchenette.data.drawing import DrawnRows, FirstRows, sample_rows
from kitchenette.data.reduction import ConvertedRows, Reducible
from kitchenette.data.rows import (
    FLOATS,
    checked_rows,
    is_table,
    rows_of_positive_weight,
    slices,
    table,
    take,
    validated,
    without_missing,
)
from kitchenette.data.schema import KnownColumn
from kitchenette.data.source import Block, RowsInMemory, Source
from kitchenette.data.tables import plain_rows
from kitchenette.files.budget import Budget
from kitchenette.files.fields import Shape, checked_state, validate
from kitchenette.files.registry import constructed, stored_parameters
from kitchenette.kernels import Kernel
from kitchenette.parameters import ValueParameters, check_count, replaced_at_once, shallow_copy
from kitchenette.sketching.operators import Operator
from kitchenette.sketching.random import seed_from
from kitchenette.sketching.specification import Specification

OBSERVED_NUMBERS = 1 << 22  # the size of the blocks of rows that `observe` gets
FINGERPRINT_TOLERANCE = 1e-5  # float32 rounding may differ between machines


class RowMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ValueParameters, ABC):
    """A transformer whose output for a row depends on that row alone.

    Its features are determined by ``specification_``, which `choose` makes.
    """

    n_components: Any
    random_state: Any
    specification_: Specification
    n_features_in_: int
    observes = False  # whether `fit` has to look at all rows
    overflow_advice = "Scale the data down or pass float64."

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # ------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the map.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Only the number of columns and the precision matter, unless a parameter is chosen
            from data, such as a length scale "median", for which a sample is used.
        y : ignored

        Returns
        -------
        self : object
            The fitted map.
        """
        return self.fit_rows(X)

    def fit_rows(
        self,
        X: Any,
        sample_weight: NDArray[np.float64] | None = None,
        drawn: DrawnRows | FirstRows | None = None,
        everything: Reducible | None = None,
    ) -> Self:
        """`fit` with sample weights, for parameters that are chosen from data.

        Rows of weight zero are ignored. ``drawn`` are the rows to choose on, which do not depend on
        the order of all rows; by default they are drawn by their places, so that the others need
        not be read. If ``X`` is a sample, maps that look at all rows get them as ``everything``.
        """
        rows = as_source(X, None, sample_weight)
        if rows.whole() is None:
            return self.fit_source(rows)
        with replaced_at_once(self) as draft:
            draft.check_parameters()
            X, sample_weight = rows_of_positive_weight(table(X), sample_weight)
            draft._fit_table(X, sample_weight, seed_from(draft.random_state), drawn, everything)
        return self

    def _fit_table(
        self,
        X: Any,
        sample_weight: NDArray[np.float64] | None,
        seed: int,
        drawn: DrawnRows | FirstRows | None,
        everything: Reducible | None,
    ) -> None:
        """`fit_rows` for a table of rows of positive weight."""
        sample, weights = sample_rows(X, seed, sample_weight, drawn)
        sample = validated(self, sample, reset=True)
        observed = None
        if self.observes:
            all_rows = RowsInMemory(X) if everything is None else everything
            observed = all_rows.reduced(Observed(self))
        self.specification_ = self.choose(sample, seed, weights, observed)
        # The operator is drawn now, so that errors are raised by `fit`.
        self.specification_.operator(sample.dtype)

    def fit_source(self, source: Source) -> Self:
        """Fit on a sample of a source, whose columns are numbers.

        Maps that look at all rows do so in a pass.
        """
        sample = source.sample()
        everything: Reducible = source
        if source.is_table:
            everything = ConvertedRows(everything, plain_rows)
        return self.fit_sample(
            source,
            sample,
            lambda draft, rows: draft.fit_rows(rows, sample.weight, None, everything),
        )

    def fit_sample(self, source: Source, sample: Block, fit: Callable[[Self, Any], Self]) -> Self:
        """Fit on the rows of a sample of a source, whose columns are numbers."""
        named = is_table(sample.X)
        with replaced_at_once(self) as draft:
            fit(draft, plain_rows(sample.X) if named else sample.X)
            if named:
                draft.feature_names_in_ = np.array(source.features, dtype=object)
        return self

    @abstractmethod
    def choose(
        self, sample: Any, seed: int, sample_weight: Any = None, observed: Any = None
    ) -> Specification:
        """The specification of a map fitted on data of which this is a sample.

        ``sample`` are checked rows, in the precision of the sampled map; ``observed`` is the
        largest value that `observe` returned, for maps with ``observes``.
        """

    def specified(self, sample: Any, seed: int, **values: Any) -> Any:
        """The specification with these values, and with those that all maps have."""
        return self.specification_class(
            n_columns=sample.shape[1],
            n_components=int(self.n_components),
            seed=seed,
            precision=sample.dtype.name,
            **values,
        )

    def observe(self, rows: Any) -> Any:
        """A statistic of a block of checked rows; `choose` gets its maximum over all blocks."""
        return None

    def check_parameters(self) -> None:
        """Refuse invalid parameters."""
        check_count("n_components", self.n_components)

    # ------------------------------------------------------------ using it

    @property
    def seed_(self) -> int:
        """The seed that was used; ``random_state=seed_`` draws the same map."""
        return self.fitted().seed

    @property
    def n_features_out_(self) -> int:
        """The number of features."""
        return self.fitted().n_components

    @property
    def _n_features_out(self) -> int:  # used by scikit-learn's mixin
        return self.n_features_out_

    def fitted(self) -> Any:
        """The specification; an AttributeError before `fit`, as for any fitted attribute."""
        if "specification_" not in vars(self):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet; call fit first.")
        return self.specification_

    @in_parts
    def transform(self, X: Any) -> NDArray[Any]:
        """Features of rows.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), or Source
            float32 rows give float32 features, all others float64.

        Returns
        -------
        Z : ndarray of shape (n_rows, n_components)
            Features; ``Z @ Z.T`` approximates the kernel matrix.
        """
        source = as_source(X)
        if source.whole() is None:
            blocks = self.columns_of(source).without_targets().blocks()
            return np.concatenate([self.transform(block.X) for block in blocks])
        if "specification_" in vars(self):
            self.fitted()  # a map may compute a part of it now, and keeps it
        fitted = shallow_copy(self)  # another thread may fit the map again meanwhile
        rows = fitted.rows(X)
        out = np.empty((rows.shape[0], fitted.n_features_out_), dtype=rows.dtype)
        if not fitted.operator(rows).write(rows, out):
            raise ValueError(fitted.overflow(rows))
        return out

    def columns_of(self, source: Source) -> Source:
        """The rows of a source of named columns with those of the map alone, if it knows names."""
        names = vars(self).get("feature_names_in_")
        if names is None or not source.is_table:
            return source
        return source.read_as(self.known_columns()).with_columns([*map(str, names)])

    def known_columns(self) -> dict[str, KnownColumn]:
        """The columns of a fitted map as `kitchenette.data.Source.read_as` takes them."""
        names = vars(self).get("feature_names_in_", ())
        return {str(name): KnownColumn("number") for name in names}

    def rows(self, X: Any) -> Any:
        """Check and convert rows to finite float32 or float64, dense or CSR, for `operator`."""
        if is_table(X):
            numbers = plain_rows(X, vars(self).get("feature_names_in_"))
            rows = check_array(numbers, dtype=FLOATS, ensure_all_finite="allow-nan", estimator=self)
            rows = without_missing(self, rows)
        else:
            rows = checked_rows(self, X)
        self.check_rows(rows)
        return rows

    def has_row_checks(self) -> bool:
        """Whether `check_rows` looks at the rows."""
        return False

    def check_rows(self, rows: Any) -> None:
        """Refuse, or warn of, rows for which the features are not valid."""
        return

    def operator(self, rows: Any) -> Operator:
        """The operator that writes the features of rows with the precision of ``rows``."""
        return self.fitted().operator(rows.dtype)

    def overflow(self, rows: Any) -> str:
        """The error message for rows of which a feature is not finite."""
        return (
            f"{type(self).__name__} overflowed {rows.dtype} on these rows, whose largest entry is "
            f"{abs(rows).max():g}. {self.overflow_advice}"
        )

    def for_inference(self) -> Self:
        """A copy without what only further fitting needs, which later fits leave alone."""
        return copy(self)

    def identity(self) -> Specification:
        """The specification: equal, up to rounding, for maps that compute the same features."""
        return self.fitted()

    # ------------------------------------------------------------ files

    def to_file(self) -> dict[str, Any]:
        """Parameters, and the specification of a fitted map, for a model file."""
        state: dict[str, Any] = {"parameters": stored_parameters(self)}
        if "specification_" in vars(self):
            state["fitted"] = self.fitted_to_file()
            with np.errstate(all="ignore"):
                state["fingerprint"] = self.fitted().fingerprint()
        return state

    def fitted_to_file(self) -> dict[str, Any]:
        """The fitted attributes for a model file."""
        self.fitted()  # a map may compute a part of it now
        return {name: vars(self)[name] for name in self.fitted_types if name in vars(self)}

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """A map from the untrusted values of a model file."""
        types = {"parameters": dict, "fitted": dict | None, "fingerprint": list[float] | None}
        state = checked_state(state, types)
        made = constructed(cls, state["parameters"])
        made.check_parameters()
        seed_from(getattr(made, "random_state", None))
        if state["fitted"] is not None:
            made.restore(state["fitted"])
            check_fingerprint(made.specification_.fingerprint(), state["fingerprint"])
        return made

    def restore(self, fitted: dict[str, Any]) -> None:
        """Set fitted attributes from a model file."""
        for name, value in checked_state(fitted, self.fitted_types).items():
            if value is not None or name != "feature_names_in_":
                setattr(self, name, value)
        if type(self).specification_class is not type(self.specification_):
            raise ValueError("the specification is that of another map.")
        self.n_features_in_ = self.specification_.n_columns
        validate(self, self.fitted_types)

    specification_class: type[Specification]
    fitted_types: ClassVar[dict[str, Any]] = {
        "specification_": Specification,
        "feature_names_in_": Annotated[NDArray[Any] | None, Shape("n_features_in_")],
    }


@dataclass(frozen=True)
class Observed:
    """The largest value of a map's `observe` for blocks of rows, as a reduction."""

    observer: RowMap

    def of(self, block: Block) -> Any:
        X, observer = block.of_positive_weight().X, self.observer
        size = max(1, OBSERVED_NUMBERS // observer.n_features_in_)
        parts = (take(X, rows) for rows in slices(X.shape[0], size))
        return max(
            (observer.observe(validated(observer, part, reset=False)) for part in parts),
            default=None,
        )

    def combined(self, a: Any, b: Any) -> Any:
        return max(a, b)


class KernelMap(RowMap):
    """A map to explicit features whose inner products approximate a kernel."""

    kernel: Any
    overflow_advice = "Scale the data down or use a larger length_scale."

    def check_parameters(self) -> None:
        if isinstance(self.kernel, type) and issubclass(self.kernel, Kernel):
            raise ValueError(
                f"kernel must be an object, not a class: write {self.kernel.__name__}() with "
                "parentheses."
            )
        if not isinstance(self.kernel, Kernel):
            raise ValueError(
                "kernel must be a kernel from kitchenette.kernels, such as Gaussian(); "
                f"got {self.kernel!r}."
            )
        super().check_parameters()

    @property
    def kernel_(self) -> Kernel:
        """The kernel with all its parameters chosen."""
        return clone(self.fitted().kernel)  # whoever changes it changes nothing here

    def resolved_kernel(self, sample: Any, sample_weight: Any) -> Kernel:
        """The kernel with parameters such as "median" chosen from a sample."""
        # A copy, because the user may change the kernel or an array in its parameters later.
        return clone(self.kernel).resolve(sample, sample_weight)


def check_resolved(kernel: Kernel, n_columns: int) -> None:
    """Refuse a kernel with invalid or unresolved parameters for this number of columns."""
    kernel.check_parameters(n_columns)
    if kernel.needs_sample():
        raise ValueError(f"the kernel must have all its parameters; got {kernel!r}.")


def check_fingerprint(found: list[float], stored: Any) -> None:
    """Refuse a map whose features differ from those of the stored map."""
    if stored is None:
        raise ValueError("its fingerprint is missing.")
    if len(found) != len(stored) or not np.allclose(
        found, stored, rtol=0, atol=FINGERPRINT_TOLERANCE, equal_nan=True
    ):
        raise ValueError(
            "drawn again from its seed, it gives other features than the one that was saved. The "
            "file was altered, or the map draws its numbers differently in this version."
        )
