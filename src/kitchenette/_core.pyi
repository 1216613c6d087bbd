from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

openmp: bool

Csr32 = tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int64], int]
Csr64 = tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int64], int]

def simd_variants() -> list[str]: ...
def simd() -> str: ...
def set_simd(name: str) -> bool: ...
def lanes() -> int: ...
def max_threads() -> int: ...
def cpu_quota(membership: str, mount: str) -> float: ...

class Nonlinearity:
    def __init__(
        self,
        kind: str,
        amplitude: float = 1.0,
        terms: NDArray[Any] | None = None,
        unpaired_offset: float = 0.0,
        row_weight: float = 0.0,
        degrees: NDArray[np.int32] | None = None,
        leading: NDArray[Any] | None = None,
        trailing: NDArray[Any] | None = None,
        row_power: int = -1,
    ) -> None: ...

def row_keys(
    x: NDArray[np.float32] | NDArray[np.float64] | Csr32 | Csr64, out: NDArray[np.uint64]
) -> None: ...
def fwht(x: NDArray[Any]) -> None: ...

class Operator32:
    @property
    def n_columns(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    def write(self, x: NDArray[np.float32] | Csr32, out: NDArray[np.float32]) -> bool: ...

class Operator64:
    @property
    def n_columns(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    def write(self, x: NDArray[np.float64] | Csr64, out: NDArray[np.float64]) -> bool: ...

class Linear32:
    @property
    def n_columns(self) -> int: ...
    @property
    def n_targets(self) -> int: ...
    def write(self, x: NDArray[np.float32] | Csr32, out: NDArray[np.float64]) -> bool: ...

class Linear64:
    @property
    def n_columns(self) -> int: ...
    @property
    def n_targets(self) -> int: ...
    def write(self, x: NDArray[np.float64] | Csr64, out: NDArray[np.float64]) -> bool: ...

def structured(
    nonlinearity: Nonlinearity,
    *,
    n_columns: int,
    n_features: int,
    block: int,
    signs: NDArray[np.int8],
    scales: NDArray[Any],
    permutation: NDArray[np.int32] | None = None,
    gaussians: NDArray[Any] | None = None,
    cosines: NDArray[Any] | None = None,
    sines: NDArray[Any] | None = None,
    column_scales: NDArray[Any] | None = None,
    constant: float = 0.0,
) -> Operator32 | Operator64: ...
def dense(
    nonlinearity: Nonlinearity, *, panels: NDArray[Any], n_features: int
) -> Operator32 | Operator64: ...
def hadamard_products(
    *,
    n_columns: int,
    n_features: int,
    block: int,
    signs: NDArray[np.int8],
    indices: NDArray[np.int32],
    depths: NDArray[np.int32],
    weights: NDArray[Any],
    column_scales: NDArray[Any] | None = None,
) -> Operator32 | Operator64: ...
def complex_products(
    *,
    n_columns: int,
    n_products: int,
    block: int,
    signs: NDArray[np.int8],
    indices: NDArray[np.int32],
    depths: NDArray[np.int32],
    weights: NDArray[Any],
    column_scales: NDArray[Any] | None = None,
) -> Operator32 | Operator64: ...
def sign_products(
    *,
    n_columns: int,
    n_features: int,
    bits: NDArray[np.uint64],
    used: NDArray[np.uint64],
    starts: NDArray[np.int64],
    weights: NDArray[Any],
    column_scales: NDArray[Any] | None = None,
) -> Operator32 | Operator64: ...
def tensor_sketch(
    *,
    n_columns: int,
    n_buckets: int,
    buckets: NDArray[np.int32],
    weights: NDArray[Any],
    length: int,
    roots: NDArray[Any],
    part: int,
    circle: NDArray[Any],
    chirp: NDArray[Any] | None = None,
    filter: NDArray[Any] | None = None,  # noqa: A002
    positions: NDArray[np.int32] | None = None,
    output_scales: NDArray[Any] | None = None,
) -> Operator32 | Operator64: ...
def sketch_tree(
    *,
    n_columns: int,
    n_buckets: int,
    width: int,
    children: list[int],
    buckets: list[NDArray[np.int32]],
    weights: list[NDArray[Any]],
    length: int,
    roots: NDArray[Any],
    part: int,
    circle: NDArray[Any],
    chirp: NDArray[Any] | None = None,
    filter: NDArray[Any] | None = None,  # noqa: A002
    positions: NDArray[np.int32] | None = None,
    output_scales: NDArray[Any] | None = None,
) -> Operator32 | Operator64: ...
def affine32(*, n_columns: int, constant: float, slope: float) -> Operator32: ...
def affine64(*, n_columns: int, constant: float, slope: float) -> Operator64: ...
def scaled_columns32(
    *, offsets: NDArray[np.float64], factors: NDArray[np.float64], low: float, high: float
) -> Operator32: ...
def scaled_columns64(
    *, offsets: NDArray[np.float64], factors: NDArray[np.float64], low: float, high: float
) -> Operator64: ...
def mapped_columns32(
    *,
    n_columns: int,
    kinds: NDArray[np.int32],
    sources: NDArray[np.int32],
    starts: NDArray[np.int64],
    numbers: NDArray[np.float64],
) -> Operator32: ...
def mapped_columns64(
    *,
    n_columns: int,
    kinds: NDArray[np.int32],
    sources: NDArray[np.int32],
    starts: NDArray[np.int64],
    numbers: NDArray[np.float64],
) -> Operator64: ...
def unit_rows32(*, n_columns: int, norm: str) -> Operator32: ...
def unit_rows64(*, n_columns: int, norm: str) -> Operator64: ...
@overload
def chain(first: Operator32, second: Operator32) -> Operator32: ...
@overload
def chain(first: Operator64, second: Operator64) -> Operator64: ...
@overload
def concatenate(operators: list[Operator32]) -> Operator32: ...
@overload
def concatenate(operators: list[Operator64]) -> Operator64: ...
@overload
def linear(
    operator: Operator32,
    weights: NDArray[np.float32] | NDArray[np.float64],
    intercept: NDArray[np.float64],
) -> Linear32: ...
@overload
def linear(
    operator: Operator64, weights: NDArray[np.float64], intercept: NDArray[np.float64]
) -> Linear64: ...
@overload
def transposed(
    operator: Operator32,
    x: NDArray[np.float32] | Csr32,
    factors: NDArray[np.float32],
    out: NDArray[np.float64],
) -> bool: ...
@overload
def transposed(
    operator: Operator64,
    x: NDArray[np.float64] | Csr64,
    factors: NDArray[np.float64],
    out: NDArray[np.float64],
) -> bool: ...

class Loss:
    def __init__(
        self, name: str, *, threshold: float = 1.0, level: float = 0.5, width: float = 0.0
    ) -> None: ...
    @property
    def takes_labels(self) -> bool: ...
    def evaluate(
        self,
        outputs: NDArray[np.float64],
        targets: NDArray[np.float64] | NDArray[np.int32],
        sample_weight: NDArray[np.float64] | None,
        factors: NDArray[np.float64],
        sums: NDArray[np.float64],
    ) -> float: ...

@overload
def gradient(
    operator: Operator32,
    x: NDArray[np.float32] | Csr32,
    weights: NDArray[np.float32] | NDArray[np.float64],
    intercept: NDArray[np.float64],
    targets: NDArray[np.float64] | NDArray[np.int32],
    sample_weight: NDArray[np.float64] | None,
    loss: Loss,
    outputs: NDArray[np.float64],
    out: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> float: ...
@overload
def gradient(
    operator: Operator64,
    x: NDArray[np.float64] | Csr64,
    weights: NDArray[np.float64],
    intercept: NDArray[np.float64],
    targets: NDArray[np.float64] | NDArray[np.int32],
    sample_weight: NDArray[np.float64] | None,
    loss: Loss,
    outputs: NDArray[np.float64],
    out: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> float: ...
@overload
def finish_features(
    z: NDArray[np.float32], out: NDArray[np.float32], nonlinearity: Nonlinearity
) -> bool: ...
@overload
def finish_features(
    z: NDArray[np.float64], out: NDArray[np.float64], nonlinearity: Nonlinearity
) -> bool: ...
def products_call_blas() -> bool: ...

class Blas:
    def __init__(
        self,
        *,
        sgemm: object,
        ssyrk: object,
        strsm: object,
        spotrf: object,
        dgemm: object,
        dsyrk: object,
        dtrsm: object,
        dpotrf: object,
    ) -> None: ...

Packed = NDArray[np.float32] | NDArray[np.float64]

def packed_cholesky(packed: Packed, order: int, *, blas: Blas) -> int: ...
def packed_substitute(
    factor: Packed, order: int, b: Packed, *, transposed: bool, blas: Blas
) -> None: ...
def packed_inverse_trace(factor: Packed, order: int, *, blas: Blas) -> float: ...

class Statistics:
    def __init__(self, n_features: int, n_targets: int, *, float32_gram: bool = False) -> None: ...
    @staticmethod
    def adopt(
        *,
        gram: Packed,
        cross: NDArray[np.float64],
        target_gram: NDArray[np.float64],
        feature_mean: NDArray[np.float64],
        target_mean: NDArray[np.float64],
        count: float,
        n_rows: int,
        has_float32: bool,
    ) -> Statistics: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_targets(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def count(self) -> float: ...
    @property
    def has_float32(self) -> bool: ...
    @property
    def version(self) -> int: ...
    @property
    def gram(self) -> Packed: ...
    @property
    def cross(self) -> NDArray[np.float64]: ...
    @property
    def target_gram(self) -> NDArray[np.float64]: ...
    @property
    def feature_mean(self) -> NDArray[np.float64]: ...
    @property
    def target_mean(self) -> NDArray[np.float64]: ...
    def update(
        self,
        Z: NDArray[np.float32] | NDArray[np.float64],
        Y: NDArray[np.float64],
        weights: NDArray[np.float64] | None = None,
        *,
        remove: bool = False,
        blas: Blas,
    ) -> None: ...
    def merge(self, other: Statistics) -> None: ...
    def copy(self) -> Statistics: ...
    def with_targets(self, columns: NDArray[np.int64], n_targets: int) -> Statistics: ...

class Accumulator:
    def __init__(
        self,
        n_features: int,
        n_targets: int,
        expected_rows: int,
        *,
        in_float32: bool,
        float32_gram: bool = False,
    ) -> None: ...
    def add(
        self,
        Z: NDArray[np.float32] | NDArray[np.float64],
        Y: NDArray[np.float64],
        weights: NDArray[np.float64] | None = None,
        *,
        blas: Blas,
    ) -> None: ...
    def finish(self, *, blas: Blas) -> Statistics: ...

def philox_words(seed: int, stream: int, first_block: int, out: NDArray[np.uint64]) -> None: ...
def philox_uniforms(seed: int, stream: int, first_block: int, out: NDArray[np.float64]) -> None: ...
def philox_normals(seed: int, stream: int, first_block: int, out: NDArray[Any]) -> None: ...
def philox_signs(seed: int, stream: int, first_block: int, out: NDArray[np.int8]) -> None: ...
def philox_permutations(
    seed: int, stream: int, first_block: int, out: NDArray[np.int32]
) -> None: ...
