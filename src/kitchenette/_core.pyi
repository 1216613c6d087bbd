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

class Tail:
    def __init__(
        self,
        kind: str,
        amplitude: float = 1.0,
        terms: NDArray[Any] | None = None,
        unpaired_offset: float = 0.0,
        row_weight: float = 0.0,
        degrees: NDArray[np.int32] | None = None,
        slopes: NDArray[Any] | None = None,
        drags: NDArray[Any] | None = None,
        row_power: int = -1,
    ) -> None: ...

def fwht(x: NDArray[Any]) -> None: ...
@overload
def structured_features(
    x: NDArray[np.float32] | Csr32,
    out: NDArray[np.float32],
    tail: Tail,
    *,
    block: int,
    signs: NDArray[np.int8],
    permutation: NDArray[np.int32] | None = None,
    gaussians: NDArray[np.float32] | None = None,
    cosines: NDArray[np.float32] | None = None,
    sines: NDArray[np.float32] | None = None,
    scales: NDArray[np.float32],
    column_scales: NDArray[np.float32] | None = None,
    constant: float = 0.0,
) -> bool: ...
@overload
def structured_features(
    x: NDArray[np.float64] | Csr64,
    out: NDArray[np.float64],
    tail: Tail,
    *,
    block: int,
    signs: NDArray[np.int8],
    permutation: NDArray[np.int32] | None = None,
    gaussians: NDArray[np.float64] | None = None,
    cosines: NDArray[np.float64] | None = None,
    sines: NDArray[np.float64] | None = None,
    scales: NDArray[np.float64],
    column_scales: NDArray[np.float64] | None = None,
    constant: float = 0.0,
) -> bool: ...
@overload
def dense_features(
    x: NDArray[np.float32] | Csr32,
    out: NDArray[np.float32],
    tail: Tail,
    *,
    panels: NDArray[np.float32],
) -> bool: ...
@overload
def dense_features(
    x: NDArray[np.float64] | Csr64,
    out: NDArray[np.float64],
    tail: Tail,
    *,
    panels: NDArray[np.float64],
) -> bool: ...
@overload
def hadamard_products(
    x: NDArray[np.float32] | Csr32,
    out: NDArray[np.float32],
    *,
    block: int,
    signs: NDArray[np.int8],
    indices: NDArray[np.int32],
    depths: NDArray[np.int32],
    weights: NDArray[np.float32],
    column_scales: NDArray[np.float32] | None = None,
) -> bool: ...
@overload
def hadamard_products(
    x: NDArray[np.float64] | Csr64,
    out: NDArray[np.float64],
    *,
    block: int,
    signs: NDArray[np.int8],
    indices: NDArray[np.int32],
    depths: NDArray[np.int32],
    weights: NDArray[np.float64],
    column_scales: NDArray[np.float64] | None = None,
) -> bool: ...
@overload
def sign_products(
    x: NDArray[np.float32] | Csr32,
    out: NDArray[np.float32],
    *,
    bits: NDArray[np.uint64],
    used: NDArray[np.uint64],
    starts: NDArray[np.int64],
    weights: NDArray[np.float32],
    column_scales: NDArray[np.float32] | None = None,
) -> bool: ...
@overload
def sign_products(
    x: NDArray[np.float64] | Csr64,
    out: NDArray[np.float64],
    *,
    bits: NDArray[np.uint64],
    used: NDArray[np.uint64],
    starts: NDArray[np.int64],
    weights: NDArray[np.float64],
    column_scales: NDArray[np.float64] | None = None,
) -> bool: ...
@overload
def tensor_sketch_features(
    x: NDArray[np.float32] | Csr32,
    out: NDArray[np.float32],
    *,
    buckets: NDArray[np.int32],
    weights: NDArray[np.float32],
    length: int,
    roots: NDArray[np.float32],
    chirp: NDArray[np.float32] | None = None,
    filter: NDArray[np.float32] | None = None,
    order: NDArray[np.int32] | None = None,
    factors: NDArray[np.float32] | None = None,
) -> bool: ...
@overload
def tensor_sketch_features(
    x: NDArray[np.float64] | Csr64,
    out: NDArray[np.float64],
    *,
    buckets: NDArray[np.int32],
    weights: NDArray[np.float64],
    length: int,
    roots: NDArray[np.float64],
    chirp: NDArray[np.float64] | None = None,
    filter: NDArray[np.float64] | None = None,
    order: NDArray[np.int32] | None = None,
    factors: NDArray[np.float64] | None = None,
) -> bool: ...
@overload
def finish_features(z: NDArray[np.float32], out: NDArray[np.float32], tail: Tail) -> bool: ...
@overload
def finish_features(z: NDArray[np.float64], out: NDArray[np.float64], tail: Tail) -> bool: ...
def add_column_sums(
    z: NDArray[Any], sums: NDArray[np.float64], weights: NDArray[np.float64] | None = None
) -> float: ...
def products_call_blas() -> bool: ...
def waiting_size(capacity: int, n_columns: int) -> int: ...
def centre_rows(
    z: NDArray[Any],
    mean: NDArray[np.float64],
    roots: NDArray[np.float64] | None,
    last: NDArray[np.float64] | None,
    memory: NDArray[Any],
    first: int,
    capacity: int,
) -> None: ...
def add_products(
    memory: NDArray[Any],
    capacity: int,
    targets: NDArray[Any],
    packed: NDArray[np.float64],
    cross: NDArray[np.float64],
    scale: float,
    gemm: object,
    syrk: object,
) -> None: ...
def philox_words(seed: int, stream: int, first_block: int, out: NDArray[np.uint64]) -> None: ...
def philox_uniforms(seed: int, stream: int, first_block: int, out: NDArray[np.float64]) -> None: ...
def philox_normals(seed: int, stream: int, first_block: int, out: NDArray[Any]) -> None: ...
def philox_signs(seed: int, stream: int, first_block: int, out: NDArray[np.int8]) -> None: ...
def philox_permutations(
    seed: int, stream: int, first_block: int, out: NDArray[np.int32]
) -> None: ...
