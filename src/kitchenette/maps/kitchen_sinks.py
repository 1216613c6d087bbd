"""Random Kitchen Sinks: random Fourier features with dense frequencies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import special

from kitchenette.files.fields import Options
from kitchenette.files.registry import storable
from kitchenette.kernels import Gaussian, Kernel, ShiftInvariantKernel, Spectrum
from kitchenette.kernels.spectra import chi
from kitchenette.maps.fourier import FourierMap, FourierSpecification
from kitchenette.maps.registry import check_supported, register_map
from kitchenette.parameters import check_choice
from kitchenette.sketching.dense import PANEL, dense_operator
from kitchenette.sketching.operators import Operator
from kitchenette.sketching.random import Stream
from kitchenette.sketching.sobol import MOST_DIMENSIONS, scrambled_sobol
from kitchenette.sketching.specification import Cost

KINDS = ("independent", "orthogonal", "quasi")
STACKED = 512  # frequencies of which small orthogonal blocks are drawn in one call


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class KitchenSinksSpecification(FourierSpecification):
    """The specification of `RandomKitchenSinks`; ``kind`` is its parameter ``frequencies``."""

    kind: Annotated[str, Options(*KINDS)] = "independent"

    def panels(self) -> NDArray[Any]:
        """The frequencies in the core's layout, shape (n_panels, n_columns, PANEL)."""
        assert isinstance(self.kernel, ShiftInvariantKernel)
        n = self.n_frequencies
        draw = {"independent": _independent, "orthogonal": _orthogonal, "quasi": _quasi}[self.kind]
        panels = np.empty((-(-n // PANEL), self.n_columns, PANEL), dtype=self.precision)
        blocks = draw(self.kernel.spectrum(), n, self.n_columns, self.seed, self.precision)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            for panel, block in zip(panels, blocks, strict=False):
                frequencies = (block * self.inverse_scale()).T
                self.check_frequencies(float(np.abs(frequencies).max()))
                panel[:] = frequencies
        return panels

    def frequencies(self) -> NDArray[Any]:
        rows = self.panels().transpose(0, 2, 1).reshape(-1, self.n_columns)
        return rows[: self.n_frequencies]

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        panels = self.panels().astype(dtype, copy=False)
        return dense_operator(
            self.nonlinearity(panels.shape[0] * PANEL, dtype), panels, self.n_components
        )

    def cost(self) -> Cost:
        # Memory: all panels, the matrix of the QR decomposition, and temporaries for one panel.
        assert isinstance(self.kernel, ShiftInvariantKernel)
        d, padded = self.n_columns, self.n_components + PANEL
        square = 6 * min(d, padded) if self.kind == "orthogonal" else 0
        uniforms = 1 + self.kernel.spectrum().n_uniforms
        n, per_number = self.n_frequencies + PANEL, 80 if self.kind == "quasi" else 35
        operations = per_number * n * d + 600.0 * n * uniforms
        if self.kind == "orthogonal":
            # A multiplication in QR is cheaper than one operation; each call has an overhead.
            operations += 0.15 * n * d * min(d, n) + 20_000 * (n // d + 1)
        return Cost(8 * ((padded + square + 8 * PANEL) * d + 4 * padded), operations)

    def check(self) -> None:
        super().check()
        check_supported("RandomKitchenSinks", self.kernel)
        check_choice("features", self.features, ("sincos", "offset"))


@storable
class RandomKitchenSinks(FourierMap):
    """Random Fourier features for any shift-invariant kernel.

    The most general map: each feature projects the data on a dense random frequency, so it
    costs one multiplication per column. Choose it for data with few columns, for kernels that
    are not radial (`Laplacian`, `Cauchy`), or for quasi-random frequencies; `Fastfood` is
    faster from about a hundred columns on, and needs far less memory.

    Parameters
    ----------
    kernel : Kernel, default=Gaussian()
        Gaussian, Laplacian, Cauchy, Matern, RationalQuadratic or BesselMatern.
    n_components : int, default=1024
        The number of features, any number.
    frequencies : {"independent", "orthogonal", "quasi"}, default="independent"
        "independent" draws them from the kernel's spectrum. "orthogonal" makes blocks of
        n_columns frequencies orthogonal, with independent lengths: less variance at the same
        cost per row, above all for close rows; drawing costs O(n_components n_columns^2) at
        most. "quasi" maps scrambled Sobol points through the inverse distribution function of
        the spectrum: least variance up to about eight columns.
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
        The number of frequencies: half of n_components, rounded up, for "sincos".
    n_features_in_ : int
        The number of columns seen in fit.

    See Also
    --------
    Fastfood : Structured frequencies, O(n_components log n_columns) per row, for radial kernels.

    Notes
    -----
    The inner product of two rows' features has the kernel as its expectation for every
    choice of ``frequencies`` and ``features``. With D features from independent
    frequencies its variance is, in terms of k = k(x - y) and k2 = k(2 (x - y)),

    * sincos: (1 + k2 - 2 k^2) / D,
    * offset: (1 + k2 / 2 - k^2) / D.

    (The unpaired last column of an odd "sincos" map has the variance of "offset".)

    Orthogonal frequencies, "sincos" and the Gaussian kernel, with v = |x - y| / length_scale and
    d columns:

        (1 - exp(-v^2))^2 / D + 2 p (M - exp(-v^2)) / D,   M = 1F1(d; d / 2; -v^2 / 2)

    with Kummer's function M (`scipy.special.hyp1f1`), where p is the average number of other
    frequencies in the block of a frequency: d - 1 if D / 2 is a multiple of d. The second term is
    negative for close rows: for small v and p = d - 1 the variance is 3 v^4 / ((d + 2) D), against
    v^4 / D with independent frequencies; for large v the two agree. (In the limit of many columns
    it is the formula of Yu et al.) We know of no formula for other kernels.

    For quasi-random frequencies no computable formula is known. For a fixed number of columns
    the variance falls faster than 1 / D (Owen 1997, for full scrambling) and cannot be many times
    that of independent frequencies; D / 2 is best a power of two. The gain shrinks as the number
    of columns grows: for rows within one length scale the variance was 0.10 to 0.14 times that of
    independent frequencies with 4 columns and D = 64 (0.01 times with D = 1024), 0.24 to 0.26 times
    with 8 columns and 0.34 to 0.36 times with 16 columns and D = 128, and 0.50 to 0.55 times with
    100 columns and D = 512. "orthogonal" had less from 16 columns on. (`python -m
    benchmarks.accuracy` prints these figures.)

    Cost: O(n_components n_columns) operations per row, and as many stored numbers.

    References
    ----------
    Rahimi and Recht, Random features for large-scale kernel machines, NIPS 2007.
    Yu et al., Orthogonal random features, NIPS 2016.
    Yang et al., Quasi-Monte Carlo feature maps for shift-invariant kernels, ICML 2014.
    Owen, Scrambled net variance for integrals of smooth functions, Annals of Statistics 1997.

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

    specification_class = KitchenSinksSpecification

    def check_parameters(self) -> None:
        super().check_parameters()
        check_supported("RandomKitchenSinks", self.kernel)
        check_choice("frequencies", self.frequencies, KINDS)

    def choose(
        self, sample: Any, seed: int, sample_weight: Any = None, observed: Any = None
    ) -> KitchenSinksSpecification:
        return self.specified(
            sample,
            seed,
            kernel=self.resolved_kernel(sample, sample_weight),
            features=self.features,
            kind=self.frequencies,
        )


# Each of these generators yields blocks of PANEL frequencies, at least n frequencies in total.


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
        # A uniform direction times an independent chi length is a standard normal vector.
        g = np.stack(list(islice(directions, PANEL)))
        g *= chi(lengths.uniforms(PANEL, 1, first=first), n_columns)
        yield spectrum.frequencies(g, uniforms.uniforms(PANEL, spectrum.n_uniforms, first=first))


def _orthogonal_directions(n: int, n_columns: int, seed: int) -> Iterator[NDArray[Any]]:
    """Unit vectors, each uniform on the sphere, orthogonal within blocks of n_columns."""
    normals = Stream(seed, "frequencies")
    size = max(1, STACKED // n_columns) * n_columns
    for first in range(0, n, size):
        # The first columns of Q depend on the first columns of the matrix alone, so the last
        # block is drawn no larger than needed.
        g = normals.normals(min(size, n - first), n_columns, first=first)
        whole = len(g) // n_columns * n_columns
        for blocks in (g[:whole].reshape(-1, n_columns, n_columns), g[None, whole:]):
            if blocks.size == 0:
                continue
            q, r = np.linalg.qr(blocks.transpose(0, 2, 1))
            # Q is Haar distributed only if the diagonal of R is made positive.
            signs = np.copysign(1, np.diagonal(r, axis1=1, axis2=2))
            yield from (q * signs[:, None, :]).transpose(0, 2, 1).reshape(-1, n_columns)


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


register_map(
    RandomKitchenSinks,
    supports=lambda kernel: (
        None
        if isinstance(kernel, ShiftInvariantKernel)
        else "is not a kernel of the difference x - y of two rows"
    ),
    rank=2,
)
