"""What the maps for shift-invariant kernels share: cosines and sines of projections."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kitchenette import _core
from kitchenette.kernels import Matern
from kitchenette.maps._base import FeatureMap, check_choice
from kitchenette.sketching.random import Stream


class FourierFeatureMap(FeatureMap):
    """Features cos and sin of random projections, or cos of shifted ones.

    "sincos" needs half as many frequencies as there are columns. With an odd number of
    columns the last one is a shifted cosine, so that the map is unbiased all the same.
    """

    features: str
    _feature_kinds: tuple[str, ...] = ("sincos", "offset")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("features", self.features, self._feature_kinds)

    @property
    def frequencies_(self) -> NDArray[Any]:
        """The frequencies as an explicit matrix of shape (n_frequencies_, n_columns).

        Built when asked for; the map itself may be far smaller.
        """
        return self._frequency_matrix()

    @abstractmethod
    def _frequency_matrix(self) -> NDArray[Any]:
        """The frequencies, for `frequencies_`."""

    def _draw(self, n_columns: int, dtype: DTypeLike) -> None:
        self._feature_kind = self.features
        paired = self.features == "sincos"
        self.n_frequencies_ = -(-self._n_features_out // 2) if paired else self._n_features_out

    def _check_frequencies(self, largest: float, dtype: DTypeLike) -> None:
        """Refuse frequencies that the precision of the data cannot hold."""
        if largest <= np.finfo(dtype).max:
            return
        nu = f", a nu greater than {self.kernel_.nu:g}" if isinstance(self.kernel_, Matern) else ""
        wider = " or rows in float64" if dtype == np.float32 else ""
        raise ValueError(
            f"{self.kernel_!r} has frequencies that overflow {np.dtype(dtype)}. Use a larger "
            f"length_scale{nu}{wider}."
        )

    def _draw_offsets(self, count: int, dtype: DTypeLike) -> None:
        """Random phases, padded with zeros to ``count``.

        One per frequency for "offset"; one for the last column of an odd "sincos" map.
        """
        offsets = np.zeros(count, dtype=dtype)
        uniforms = Stream(self.seed_, "offsets").uniforms(1, self.n_frequencies_)[0]
        offsets[: self.n_frequencies_] = 2 * np.pi * uniforms
        if self._feature_kind == "sincos":
            unpaired = self._n_features_out % 2
            offsets = offsets[self.n_frequencies_ - unpaired : self.n_frequencies_]
        self.offsets_ = offsets

    def _fourier_tail(self, dtype: DTypeLike) -> _core.Tail:
        """TEFM's eq. 2 (sincos) or eq. 3 (offset)."""
        amplitude = float(np.sqrt(2 / self._n_features_out))
        if self._feature_kind == "offset":
            return _core.Tail("offset", amplitude, terms=self.offsets_.astype(dtype, copy=False))
        unpaired = float(self.offsets_[0]) if self.offsets_.size else 0.0
        return _core.Tail("sincos", amplitude, unpaired_offset=unpaired)
