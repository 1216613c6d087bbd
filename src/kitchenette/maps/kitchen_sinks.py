"""Random Kitchen Sinks: random Fourier features with dense frequencies."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import special

from kitchenette import _core
from kitchenette.kernels import Gaussian, Kernel
from kitchenette.maps._base import check_choice
from kitchenette.maps.fourier import FourierFeatureMap
from kitchenette.maps.spectra import Spectrum, chi, spectrum_of
from kitchenette.sketching.random import Stream
from kitchenette.sketching.rows import native_rows
from kitchenette.sketching.sobol import MOST_DIMENSIONS, scrambled_sobol

PANEL = 64  # frequencies that the core reads together


class RandomKitchenSinks(FourierFeatureMap):
    """Random Fourier features for any shift-invariant kernel.

    The plain and general map: each feature projects the data on a dense random frequency,
    so it costs as many multiplications as there are columns. Choose it for narrow data,
    for the kernels that are not radial (`Laplacian`, `Cauchy`), or for quasi-random
    frequencies; `Fastfood` is faster from about a hundred columns on, and far smaller.

    Parameters
    ----------
    kernel : Kernel, default=Gaussian()
        Gaussian, Laplacian, Cauchy, Matern, RationalQuadratic or BesselMatern.
    n_components : int, default=1024
        The number of features, any number.
    frequencies : {"independent", "orthogonal", "quasi"}, default="independent"
        "independent" draws them from the kernel's spectrum. "orthogonal" makes blocks of as
        many frequencies as there are columns orthogonal, with independent lengths: less
        variance for the same cost, most of all when rows are close; drawing costs
        O(n_components n_columns^2) at most. "quasi" takes scrambled Sobol points through the
        inverse distribution function of the spectrum: less variance in few columns.
    features : {"sincos", "offset"}, default="sincos"
        Cosine and sine of each projection, or the cosine of a randomly shifted one.
        "sincos" has less variance where the kernel is large, and needs half the frequencies.
    random_state : int, NumPy generator or None, default=None
        The seed. None draws one; see ``seed_``.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with all its parameters chosen.
    seed_ : int
        The seed that was used; ``random_state=seed_`` draws the same map.
    frequencies_ : ndarray of shape (n_frequencies_, n_features_in_)
        The frequencies.
    n_frequencies_ : int
        Their number: half of n_components, rounded up, for "sincos".
    n_features_in_ : int
        The number of columns seen in fit.

    See Also
    --------
    Fastfood : The same in O(n_components log n_columns), for radial kernels.

    Notes
    -----
    The inner product of two rows' features has the kernel as its expectation for every
    choice of ``frequencies`` and ``features``. With D features from independent
    frequencies its variance is, in terms of k = k(x - y) and k2 = k(2 (x - y)),

    * sincos: (1 + k2 - 2 k^2) / D,
    * offset: (1 + k2 / 2 - k^2) / D.

    (The unpaired last column of an odd "sincos" map has the variance of "offset".)

    Cost: O(n_components n_columns) per row, stored numbers likewise.

    References
    ----------
    Rahimi and Recht, Random features for large-scale kernel machines, NIPS 2007.
    Yu et al., Orthogonal random features, NIPS 2016.
    Yang et al., Quasi-Monte Carlo feature maps for shift-invariant kernels, ICML 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import RandomKitchenSinks
    >>> from kitchenette.kernels import Laplacian
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> sinks = RandomKitchenSinks(Laplacian(2.0), n_components=4096, random_state=0)
    >>> Z = sinks.fit_transform(X)
    >>> bool(abs(Z @ Z.T - Laplacian(2.0)(X)).max() < 0.1)
    True
    """

    def __init__(
        self,
        kernel: Kernel = Gaussian(),
        n_components: int = 1024,
        *,
        frequencies: str = "independent",
        features: str = "sincos",
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.frequencies = frequencies
        self.features = features
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("frequencies", self.frequencies, ("independent", "orthogonal", "quasi"))

    def _draw(self, n_columns: int, dtype: DTypeLike) -> None:
        super()._draw(n_columns, dtype)
        spectrum = spectrum_of(self.kernel_)
        draw = {
            "independent": _independent,
            "orthogonal": _orthogonal,
            "quasi": _quasi,
        }[self.frequencies]
        inverse_scale = 1 / np.asarray(self.kernel_.length_scale, dtype=np.float64)
        n_panels = -(-self.n_frequencies_ // PANEL)
        panels = np.empty((n_panels, n_columns, PANEL), dtype=dtype)
        blocks = draw(spectrum, self.n_frequencies_, n_columns, self.seed_, dtype)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            for panel, block in zip(panels, blocks, strict=False):
                frequencies = (block * inverse_scale).T
                self._check_frequencies(float(np.abs(frequencies).max()), dtype)
                panel[:] = frequencies
        self._panels = panels
        self._draw_offsets(self.n_frequencies_, dtype)

    def _drawn_bytes(self, n_columns: int) -> int:
        # Panels of frequencies, the matrices that are made orthogonal, and a panel in the making.
        # The uniforms are never all there, but take time.
        padded = self.n_components + PANEL
        square = 6 * min(n_columns, padded) if self.frequencies == "orthogonal" else 0
        uniforms = spectrum_of(self.kernel_).n_uniforms
        return 8 * ((padded + square + 8 * PANEL) * n_columns + 4 * padded * (1 + uniforms))

    def _frequency_matrix(self) -> NDArray[Any]:
        rows = self._panels.transpose(0, 2, 1).reshape(-1, self.n_features_in_)
        return rows[: self.n_frequencies_]

    def _write(self, X: Any, out: NDArray[Any]) -> bool:
        panels = self._panels.astype(X.dtype, copy=False)
        tail = self._fourier_tail(X.dtype)
        operator = _core.dense(tail, panels=panels, n_features=self._n_features_out)
        return bool(operator.write(native_rows(X), out))


# Each of these yields PANEL frequencies after PANEL frequencies, at least n in all.


def _independent(
    spectrum: Spectrum, n: int, n_columns: int, seed: int, dtype: DTypeLike
) -> Iterator[NDArray[Any]]:
    normals, uniforms = Stream(seed, "frequencies"), Stream(seed, "spectrum")
    for first in range(0, n, PANEL):
        g = normals.normals(PANEL, n_columns, first=first, dtype=dtype)
        yield spectrum.frequencies(g, uniforms.uniforms(PANEL, spectrum.n_uniforms, first=first))


def _orthogonal(
    spectrum: Spectrum, n: int, n_columns: int, seed: int, dtype: DTypeLike
) -> Iterator[NDArray[Any]]:
    directions = _orthogonal_directions(-(-n // PANEL) * PANEL, n_columns, seed)
    lengths, uniforms = Stream(seed, "lengths"), Stream(seed, "spectrum")
    for first in range(0, n, PANEL):
        # Uniform directions with the lengths of normal vectors are normal vectors.
        g = np.stack(list(islice(directions, PANEL)))
        g *= chi(lengths.uniforms(PANEL, 1, first=first), n_columns)
        yield spectrum.frequencies(g, uniforms.uniforms(PANEL, spectrum.n_uniforms, first=first))


def _orthogonal_directions(n: int, n_columns: int, seed: int) -> Iterator[NDArray[Any]]:
    """Unit vectors, each uniform on the sphere, orthogonal in blocks of n_columns."""
    normals = Stream(seed, "frequencies")
    for first in range(0, n, n_columns):
        # The first columns of Q come from the first columns of the matrix alone, so a block
        # need not be larger than what is wanted of it.
        g = normals.normals(min(n_columns, n - first), n_columns, first=first)
        q, r = np.linalg.qr(g.T)
        # Uniform over all orthogonal matrices only with this choice of signs.
        yield from (q * np.copysign(1, np.diag(r))).T


def _quasi(
    spectrum: Spectrum, n: int, n_columns: int, seed: int, dtype: DTypeLike
) -> Iterator[NDArray[Any]]:
    dimensions = n_columns + spectrum.n_uniforms
    if dimensions > MOST_DIMENSIONS:
        raise ValueError(
            f"frequencies='quasi' needs {dimensions} dimensions of Sobol points here and there are "
            f"{MOST_DIMENSIONS}; use 'independent' or 'orthogonal' for data of {n_columns} columns."
        )
    for points in scrambled_sobol(dimensions, seed, PANEL):
        yield spectrum.frequencies(special.ndtri(points[:, :n_columns]), points[:, n_columns:])
