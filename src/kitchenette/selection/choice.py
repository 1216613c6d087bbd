"""What was tried, what was chosen, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import nan
from typing import Any

from kitchenette.files.fields import checked_state, field_values
from kitchenette.files.registry import storable


@storable
@dataclass(frozen=True)
class Choice:
    """The result of a choice among feature maps.

    Attributes
    ----------
    table : tuple of dict
        One entry for each candidate that was fitted on the pilot sample, in this order:
        ``kernel``, ``scales``, ``width`` (the length scale in median distances of rows),
        ``n_components``, ``loss`` (the squared error on rows held out, relative to the variance of
        the targets), ``error`` (the share of wrong classes, or the loss) and ``penalty`` (relative
        to the trace of the Gram matrix).
    chosen : dict
        The entry that was chosen.
    sentence : str
        What was chosen and why.
    n_rows : int
        The number of rows of the pilot sample.
    feature_map : object or None
        The fitted map in a `sklearn.frozen.FrozenEstimator`, to give to an estimator; only in the
        result of `kitchenette.choose`.
    """

    table: tuple[dict[str, Any], ...]
    chosen: dict[str, Any]
    sentence: str
    n_rows: int
    feature_map: Any = None

    def __str__(self) -> str:
        head = f"{'kernel':<20}{'scales':<48}{'width':>8}{'size':>7}{'loss':>10}{'error':>10}"
        lines = [
            f"{row['kernel']:<20}{row['scales']:<48}{row['width']:>8.3g}{row['n_components']:>7}"
            f"{row['loss']:>10.4g}{row['error']:>10.4g}"
            for row in self.table
        ]
        return "\n".join([self.sentence, "", head, *lines])

    def plot(self, ax: Any = None) -> Any:
        """Draw the loss of every candidate over its width.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure. Matplotlib must be installed.

        Returns
        -------
        ax : matplotlib Axes
            With a line for each kernel and kind of scales.

        Examples
        --------
        >>> import numpy as np
        >>> from kitchenette import choose
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> choice = choose(X, X[:, 0], n_components=32, random_state=0)  # doctest: +SKIP
        >>> choice.plot().get_xlabel()  # doctest: +SKIP
        'length scale / median distance'
        """
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots()[1]
        groups: dict[str, list[tuple[float, float]]] = {}
        for row in self.table:
            name = f"{row['kernel']}, {row['scales']}"
            groups.setdefault(name, []).append((row["width"], row["loss"]))
        for name, points in groups.items():
            widths, losses = zip(*sorted(points), strict=True)
            ax.plot(widths, losses, "o-", markersize=3, linewidth=1, label=name)
        ax.plot(self.chosen["width"], self.chosen["loss"], "k*", markersize=12, label="chosen")
        ax.set(
            xscale="log",
            yscale="log",
            xlabel="length scale / median distance",
            ylabel="squared error on rows held out / variance",
        )
        ax.legend(fontsize=6)
        return ax

    def with_map(self, feature_map: Any) -> Choice:
        """The same choice with the fitted map."""
        return replace(self, feature_map=feature_map)

    def to_file(self) -> dict[str, Any]:
        """All values but the map, for a model file."""
        return {**field_values(self), "feature_map": None}

    def check(self) -> None:
        """Refuse entries of a model file that are not those of a table."""
        for row in (*self.table, self.chosen):
            checked_state(row, ROW)


ROW: dict[str, Any] = {
    "kernel": str,
    "scales": str,
    "width": float,
    "n_components": int,
    "loss": float,
    "error": float,
    "penalty": float,
}


def made_choice(
    table: list[dict[str, Any]], chosen: dict[str, Any], n_rows: int, n_components: int
) -> Choice:
    """The choice of an entry of a table, with its sentence."""
    trivial = " No candidate predicts them better than the mean of the targets does."
    sentence = (
        f"{_what(chosen)}, with {n_components} features. Its squared error on rows held out of a "
        f"sample of {n_rows} rows is {chosen['loss']:.3g} of the variance of the targets, and none "
        f"of the {len(table)} candidates that were compared is better by more than chance explains."
        f"{trivial if chosen['loss'] >= 1 else ''}"
    )
    return Choice(tuple(table), chosen, sentence, n_rows)


def undecided(described: dict[str, Any], n_rows: int) -> Choice:
    """The choice where there are too few rows to compare anything."""
    nothing = {"n_components": 0, "loss": nan, "error": nan, "penalty": nan}
    sentence = f"{_what(described)}, because {n_rows} rows are too few to compare candidates on."
    return Choice((), {**described, **nothing}, sentence, n_rows)


def _what(chosen: dict[str, Any]) -> str:
    if chosen["scales"] == "unit rows":
        return f"A {chosen['kernel']} kernel of rows divided by their norms"
    if chosen["kernel"] == "linear":
        return f"A linear function of the columns with {chosen['scales']} scales"
    width = f"a length scale of {chosen['width']:.2g} median distances"
    scales = chosen["scales"]
    scales, _, moved = scales.partition(", ")
    if scales.startswith("full"):
        scales = f"a {scales} scales"
    elif scales.startswith(("learned", "screened")):
        scales = f"scales {scales}"
    else:
        scales = f"{scales} scales"
    scales += f" ({moved})" if moved else ""
    return f"The {chosen['kernel']} kernel with {scales} and {width}"
