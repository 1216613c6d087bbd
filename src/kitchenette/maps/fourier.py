"""Base classes of the maps for shift-invariant kernels: cosines and sines of projections."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kitchenette import _core
from kitchenette.files.fields import Options
from kitchenette.kernels import Kernel, Matern
from kitchenette.maps.base import KernelMap, check_resolved
from kitchenette.parameters import check_choice
from kitchenette.sketching.random import Stream
from kitchenette.sketching.specification import Specification
from kitchenette.sketching.structured import zero_padded


@dataclass(frozen=True, kw_only=True, eq=False)
class FourierSpecification(Specification):
    """Cosines and sines of random projections, or cosines with random offsets.

    "sincos" needs half as many frequencies as features. If the number of features is odd, the
    last one is a cosine with a random offset, which keeps the map unbiased.
    """

    kernel: Kernel
    features: Annotated[str, Options("sincos", "offset", "local")] = "sincos"

    @property
    def n_frequencies(self) -> int:
        """The number of projections."""
        return -(-self.n_components // 2) if self.features == "sincos" else self.n_components

    @abstractmethod
    def frequencies(self) -> NDArray[Any]:
        """The frequencies as an explicit matrix of shape (n_frequencies, n_columns)."""

    def offsets(self) -> NDArray[Any]:
        """Random phases: one per frequency for "offset", one for an odd last column of "sincos"."""
        uniforms = Stream(self.seed, "offsets").uniforms(1, self.n_frequencies)[0]
        offsets = (2 * np.pi * uniforms).astype(self.precision)
        unpaired = self.n_components % 2
        return offsets if self.features == "offset" else offsets[offsets.size - unpaired :]

    def nonlinearity(self, n_padded: int, dtype: DTypeLike) -> _core.Nonlinearity:
        """The native function of the projections: TEFM's eq. 2 (sincos) or eq. 3 (offset)."""
        amplitude = float(np.sqrt(2 / self.n_components))
        offsets = self.offsets()
        if self.features == "sincos":
            unpaired = float(offsets[0]) if offsets.size else 0.0
            return _core.Nonlinearity("sincos", amplitude, unpaired_offset=unpaired)
        return _core.Nonlinearity("offset", amplitude, terms=zero_padded(offsets, n_padded, dtype))

    def inverse_scale(self) -> NDArray[np.float64]:
        """One over the length scale, a scalar or one per column."""
        return 1 / np.asarray(self.kernel.length_scale, dtype=np.float64)

    def check_frequencies(self, largest: float) -> None:
        """Refuse frequencies that overflow the precision of the data."""
        if largest <= np.finfo(self.precision).max:
            return
        nu = f", a nu greater than {self.kernel.nu:g}" if isinstance(self.kernel, Matern) else ""
        wider = " or rows in float64" if self.precision == "float32" else ""
        raise ValueError(
            f"{self.kernel!r} has frequencies that overflow {self.precision}. Use a larger "
            f"length_scale{nu}{wider}."
        )

    def probe_scale(self) -> Any:
        return getattr(self.kernel, "length_scale", 1.0)

    def check(self) -> None:
        super().check()
        check_resolved(self.kernel, self.n_columns)


class FourierMap(KernelMap):
    """Base class of the estimators with random Fourier features."""

    features: str
    feature_kinds: tuple[str, ...] = ("sincos", "offset")

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice("features", self.features, self.feature_kinds)

    @property
    def n_frequencies_(self) -> int:
        """The number of frequencies: half of n_components, rounded up, for "sincos"."""
        return self.fitted().n_frequencies

    @property
    def frequencies_(self) -> NDArray[Any]:
        """The frequencies as an explicit matrix of shape (n_frequencies_, n_columns).

        They are computed on access; the map itself may need far less memory.
        """
        return self.fitted().frequencies()

    @property
    def offsets_(self) -> NDArray[Any]:
        """The random phases."""
        return self.fitted().offsets()
