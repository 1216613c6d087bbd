"""Slow, obvious versions of everything, straight from the definitions."""

from __future__ import annotations

from math import gamma

import numpy as np
from scipy import special
from scipy.linalg import hadamard

from kitchenette.sketching.count_sketch import real_spectrum
from kitchenette.sketching.products import PANEL

# ---------------------------------------------------------------- structured matrices


def fastfood_matrix(p) -> np.ndarray:
    """S H G Pi H B, block by block, cut to the rows and columns that exist."""
    d = p.block
    H = hadamard(d).astype(float)
    blocks = []
    for start in range(0, p.signs.size, d):
        part = slice(start, start + d)
        HB = H * p.signs[part].astype(float)
        G = p.gaussians[part].astype(float)[:, None]
        S = p.scales[part].astype(float)[:, None]
        blocks.append(S * (H @ (G * HB[p.permutation[part]])))
    return np.vstack(blocks)[: p.n_rows, : p.n_columns]


def rotation_matrix(cosines: np.ndarray, sines: np.ndarray) -> np.ndarray:
    """The butterfly of rotations, one stage after the other from the largest stride."""
    d = cosines.size
    R = np.eye(d)
    stride = d // 2
    while stride >= 1:
        i = np.flatnonzero(~np.arange(d) & stride)
        c, s = cosines[stride + i % stride][:, None], sines[stride + i % stride][:, None]
        R[i], R[i + stride] = c * R[i] + s * R[i + stride], c * R[i + stride] - s * R[i]
        stride //= 2
    return R


def orthogonal_matrix(p) -> np.ndarray:
    """S R H B, block by block."""
    d = p.block
    H = hadamard(d).astype(float)
    blocks = []
    for start in range(0, p.signs.size, d):
        part = slice(start, start + d)
        R = rotation_matrix(p.cosines[part].astype(float), p.sines[part].astype(float))
        blocks.append(p.scales[part, None] * (R @ (H * p.signs[part].astype(float))))
    return np.vstack(blocks)[: p.n_rows, : p.n_columns]


def real_fourier_matrix(d: int) -> np.ndarray:
    """The orthogonal matrix of 1, cos 1, -sin 1, cos 2, ..., normalized."""
    t = np.arange(d)
    rows = [np.full(d, 1 / np.sqrt(d))]
    for k in range(1, (d - 1) // 2 + 1):
        rows.append(np.sqrt(2 / d) * np.cos(2 * np.pi * k * t / d))
        rows.append(-np.sqrt(2 / d) * np.sin(2 * np.pi * k * t / d))
    if d % 2 == 0:
        rows.append(np.cos(np.pi * t) / np.sqrt(d))
    return np.array(rows)


# ---------------------------------------------------------------- features


def sincos(z: np.ndarray, n_columns: int, unpaired_offset: float = 0.0) -> np.ndarray:
    """TEFM eq. 2, columns cos 0, sin 0, cos 1, ...; an odd last one as in eq. 3."""
    out = np.empty((z.shape[0], 2 * z.shape[1]))
    out[:, ::2], out[:, 1::2] = np.cos(z), np.sin(z)
    if n_columns % 2:
        out[:, -2] = np.cos(z[:, -1] + unpaired_offset)
    return np.sqrt(2 / n_columns) * out[:, :n_columns]


def offset(z: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """TEFM eq. 3."""
    return np.sqrt(2 / z.shape[1]) * np.cos(z + offsets)


def local(X: np.ndarray, W: np.ndarray, t: float) -> np.ndarray:
    """Fastfood eqs. 26 and 27 for length scale 1, with the factor that integrating out leaves."""
    a = 2 / t
    b = a * a - 2 * a
    Z = W / np.sqrt(b)
    m = X.shape[1]
    exponent = (
        -a
        / 2
        * (
            2 * a / (2 * a + b) * (X**2).sum(axis=1)[:, None]
            - 2 * X @ Z.T
            + (Z**2).sum(axis=1)[None, :]
        )
    )
    return ((2 * a + b) / b) ** (m / 4) * np.exp(exponent) / np.sqrt(W.shape[0])


def tensor_sketch(X: np.ndarray, buckets: np.ndarray, signs: np.ndarray, D: int) -> np.ndarray:
    """The count sketch of the explicit tensor power (Pham and Pagh, section 4.1)."""
    out = np.zeros((X.shape[0], D))
    for columns in np.ndindex(*(X.shape[1],) * len(buckets)):
        H = sum(h[i] for h, i in zip(buckets, columns, strict=True)) % D
        S = np.prod([s[i] for s, i in zip(signs, columns, strict=True)])
        out[:, H] += S * np.prod(X[:, columns], axis=1)
    return out


def sketch_tree(X: np.ndarray, tree, D: int) -> np.ndarray:
    """Count sketches of the two inputs of each node, convolved; the last one has D buckets.

    Between nodes a sketch of W numbers is transformed by an orthogonal matrix: the real Fourier
    transform in the order of the core.
    """
    W = 1
    while W < D:
        W *= 2
    if len(tree) == 1:
        return count_sketch(X, tree[0], D)
    positions, scales = real_spectrum(W, "float64")
    order = np.zeros((W, W))
    order[positions, np.arange(W)] = np.sign(scales)
    done: list[np.ndarray] = []
    for left, right in zip(tree[::2], tree[1::2], strict=True):
        size = D if len(done) == len(tree) // 2 - 1 else W
        a, b = (count_sketch(X if h.child < 0 else done[h.child], h, size) for h in (left, right))
        convolved = np.zeros_like(a)
        for i in range(size):
            convolved += a[:, [i]] * np.roll(b, i, axis=1)
        done.append(
            convolved
            if size == D and len(done) == len(tree) // 2 - 1
            else convolved @ real_fourier_matrix(W).T @ order.T
        )
    return done[-1]


def count_sketch(X: np.ndarray, hashes, D: int) -> np.ndarray:
    """The sums of signed columns of each bucket."""
    out = np.zeros((X.shape[0], D))
    np.add.at(out.T, hashes.buckets, (X * hashes.signs).T)
    return out


# ---------------------------------------------------------------- kernels, pair by pair


def gaussian(x, y, scale):
    return np.exp(-np.sum(((x - y) / scale) ** 2) / 2)


def laplacian(x, y, scale):
    return np.exp(-np.sum(np.abs((x - y) / scale)))


def cauchy(x, y, scale):
    return np.prod(1 / (1 + ((x - y) / scale) ** 2))


def rational_quadratic(x, y, scale, alpha):
    return (1 + np.sum(((x - y) / scale) ** 2) / (2 * alpha)) ** -alpha


def matern(x, y, scale, nu):
    z = np.sqrt(2 * nu * np.sum(((x - y) / scale) ** 2))
    return 1.0 if z == 0 else 2 ** (1 - nu) / gamma(nu) * z**nu * special.kv(nu, z)


def bessel_matern(x, y, scale, order):
    nu = x.size / 2
    r = np.sqrt(np.sum(((x - y) / scale) ** 2))
    return 1.0 if r == 0 else (gamma(nu + 1) * (2 / r) ** nu * special.jv(nu, r)) ** order


def gram(k, X, Y, *parameters):
    return np.array([[k(x, y, *parameters) for y in Y] for x in X])


# ---------------------------------------------------------------- products of projections


def factor_signs(products, j: int) -> np.ndarray:
    """The signs of factor j of every feature, shape (n_features, n_columns).

    They are zero for features that have no factor j.
    """
    signs = np.zeros((products.degrees.size, products.n_columns), dtype=np.int8)
    for feature in np.flatnonzero(products.degrees > j):
        if hasattr(products, "bits"):
            word = products.bits[products.starts[feature // PANEL] + j]
            bits = word >> np.uint64(feature % PANEL) & np.uint64(1)
            signs[feature] = 1 - 2 * bits.astype(np.int8)
        else:
            row = products.indices[j, feature]
            start = row // products.block * products.block
            columns = np.arange(products.n_columns)
            # Sylvester's matrix: the sign is the parity of the bits that row and column share.
            parity = np.bitwise_count((row - start) & columns) & 1
            signs[feature] = products.signs[j][start + columns] * (1 - 2 * parity.astype(np.int8))
    return signs


def complex_products(X: np.ndarray, products, weights: np.ndarray) -> np.ndarray:
    """Parts of products with roots of unity, pair by pair, and then products of signs."""
    columns = np.arange(products.n_columns)
    X = products.input_scale * X.astype(float)
    out = np.empty((X.shape[0], weights.size))
    for pair in range(products.n_pairs):
        z = np.ones(X.shape[0], dtype=complex)
        for j in range(products.degrees[2 * pair]):
            row = products.indices[j, pair]
            start = row // products.block * products.block
            parity = np.bitwise_count((row - start) & columns) & 1
            root = products.signs[2 * j] + 1j * products.signs[2 * j + 1]
            z *= X @ (root[start + columns] * (1 - 2.0 * parity))
        # The mean of z(x) times the conjugate of z(y) counts twice.
        z *= np.sqrt(2) * weights[2 * pair]
        out[:, 2 * pair], out[:, 2 * pair + 1] = z.real, z.imag
    for k, feature in enumerate(range(2 * products.n_pairs, weights.size)):
        z = np.full(X.shape[0], weights[feature])
        for j in range(products.degrees[feature]):
            z *= X @ factor_signs(products.real, j)[k].astype(float)
        out[:, feature] = z
    return out
