"""Model files: JSON and raw arrays, without pickle and without code.

A file has the layout of safetensors: the length of a header, the header, which is JSON, and
arrays. What the arrays mean is written in a JSON document of ours inside the header: a list of
objects, each of a class of this package, with parameters and fitted values. Feature maps
are not stored but drawn again from their seeds. ``docs/model-files.md`` has all details.

A class can be stored if it has ``state()`` and ``from_state()``, as `LeastSquares` has; or if it
is a scikit-learn estimator. Its parameters are stored then, and of its fitted attributes those
that its dictionary ``_stored`` names, with their types. Two more methods are optional:
``_restore(max_bytes)`` checks the fitted attributes and makes all others from them, and
``_fingerprint()`` returns numbers that show whether that gave the same again.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from io import BufferedReader, BufferedWriter
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from kitchenette import kernels, learning, maps
from kitchenette.learning.machine import KernelMachine
from kitchenette.maps.degrees import Series

FORMAT = "kitchenette model"
FORMAT_VERSION = 1
MOST_HEADER_BYTES = 2**24  # which become a few hundred megabytes at worst
MOST_DEPTH = 32  # of values in values and objects in objects
FINGERPRINT_TOLERANCE = 1e-5  # other machines round otherwise, in float32 too

_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items()}
_NO_CHECKSUM = "0" * 64
_GENERATORS = np.random.Generator, np.random.RandomState


def _storable(module: Any) -> Iterator[type]:
    for name in module.__all__:
        cls = getattr(module, name)
        concrete = inspect.isclass(cls) and not inspect.isabstract(cls)
        if concrete and (issubclass(cls, BaseEstimator) or hasattr(cls, "from_state")):
            yield cls


# All that a file can contain; no other class is ever looked up.
_CLASSES: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        *_storable(kernels),
        *_storable(maps),
        *_storable(learning),
        FrozenEstimator,
        Series,
    )
}


class ModelFileError(ValueError):
    """A file is not a model that can be loaded, or a model cannot be stored in a file.

    Examples
    --------
    >>> import kitchenette
    >>> from sklearn.preprocessing import StandardScaler
    >>> kitchenette.save(StandardScaler(), "model.safetensors")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    ...
    kitchenette.persistence.ModelFileError: StandardScaler is an object of
    sklearn.preprocessing._data.StandardScaler, not something of kitchenette, and model files hold
    nothing else. Use pickle or skops for this model.
    """


def save(model: Any, path: str | os.PathLike[str], *, statistics: bool = True) -> None:
    """Write a model to a file.

    The file is written beside its place and then moved there, so there is never half a file:
    if anything goes wrong, a file that was there before stays as it was.

    Parameters
    ----------
    model : object
        A feature map, a `KernelRegressor` or `KernelClassifier`, `LeastSquares` statistics, an
        `OutputCode`, a kernel, or a scikit-learn `FrozenEstimator` around one of these; fitted
        or not. A ``random_state`` that is a generator is stored as the ``seed_`` it gave.
    path : str or path-like
        The name of the file, by custom with the ending ``.safetensors``.
    statistics : bool, default=True
        Whether a `KernelRegressor` or `KernelClassifier` keeps its statistics,
        4 n_components^2 bytes. Without them the file is small and the model predicts, but it
        cannot go on learning, merge, or tell how sure it is.

    See Also
    --------
    load : The way back.

    Notes
    -----
    Feature maps are stored as seeds and parameters, a kilobyte or so whatever their size; only
    `TEFM` has a matrix from the data, and takes 16 bytes for each of its base map's features and
    its components (8 if the model has no statistics). An estimator adds 8 bytes for each of its
    weights, and its statistics. Models with parts of other packages, such as scikit-learn's
    transformers, can be kept with pickle or skops instead.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import kitchenette
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> fastfood = kitchenette.Fastfood(n_components=16384, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "fastfood.safetensors")
    ...     kitchenette.save(fastfood, path)
    ...     again = kitchenette.load(path)
    ...     os.path.getsize(path) < 2000
    True
    >>> np.array_equal(again.transform(X), fastfood.transform(X))
    True
    """
    if not statistics:
        frozen = isinstance(model, FrozenEstimator)
        machine = model.estimator if frozen else model
        if not isinstance(machine, KernelMachine):
            raise ModelFileError(
                "statistics=False is for a KernelRegressor or KernelClassifier; got "
                f"{_described(machine)}."
            )
        small = machine._without_statistics()
        model = FrozenEstimator(small) if frozen else small
    writer = _Writer()
    if writer.value(model, type(model).__name__) != {"object": len(writer.objects) - 1}:
        raise ModelFileError(f"save stores models of kitchenette, one at a time; got {model!r}.")
    with _replacement(path) as file:
        _write_file(file, {"objects": writer.objects}, writer.arrays)


def load(path: str | os.PathLike[str], *, max_bytes: int = 2**31) -> Any:
    """Read a model from a file that `save` wrote.

    Files from anywhere are safe to load: nothing in them is executed, and no size that they
    state is believed.

    Parameters
    ----------
    path : str or path-like
        The name of the file.
    max_bytes : int, default=2**31
        The most memory that drawing feature maps again may take, besides the arrays that the
        file contains. A few bytes can describe a map of any size.

    Returns
    -------
    model : object
        A model that is equal to the one that was saved; on the same machine, it predicts the
        same bits.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, was written by a newer version, needs
        more memory than allowed, or its maps come out different from the stored ones.
    OSError
        If the file cannot be read.

    See Also
    --------
    save : The way there.

    Examples
    --------
    >>> import os, tempfile
    >>> import kitchenette
    >>> kernel = kitchenette.kernels.Gaussian(length_scale=2.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "kernel.safetensors")
    ...     kitchenette.save(kernel, path)
    ...     kitchenette.load(path)
    Gaussian(length_scale=2.0)
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            document, arrays = _read_file(file)
        return _Reader(document, arrays, max_bytes).model()
    except ModelFileError as error:
        raise ModelFileError(f"Cannot load {path}: {error}") from error.__cause__


# ---------------------------------------------------------------- objects to JSON


class _Writer:
    """Objects as JSON, those that others refer to first, and their arrays."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.arrays: dict[str, NDArray[Any]] = {}
        # By identity: what is shared is stored once. Kept, so that no other takes its place.
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []

    def value(self, value: Any, where: str) -> Any:
        """JSON for a value; ``where`` says what it is."""
        if value is None or isinstance(value, bool | np.bool_):
            return value if value is None else bool(value)
        if isinstance(value, str):
            return str(value)
        if isinstance(value, int | np.integer):
            return int(value)
        if isinstance(value, float | np.floating):
            number = float(value)
            return number if isfinite(number) else {"number": repr(number)}
        if isinstance(value, list):
            return [self.value(item, where) for item in value]
        if isinstance(value, tuple):
            return {"tuple": [self.value(item, where) for item in value]}
        if isinstance(value, dict) and all(isinstance(name, str) for name in value):
            items = value.items()
            return {"mapping": {name: self.value(item, f"{where}.{name}") for name, item in items}}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if id(value) not in self._numbers:
            self.objects.append(self._object(value, where))
            self._numbers[id(value)] = len(self.objects) - 1
            self._kept.append(value)
        return {"object": self._numbers[id(value)]}

    def _array(self, array: NDArray[Any], where: str) -> dict[str, Any]:
        if array.dtype.kind in "UO":
            strings = array.ravel().tolist()
            if array.ndim != 1 or not all(isinstance(item, str) for item in strings):
                raise ModelFileError(f"{where} is an array of objects, which are not all strings.")
            return {"strings": strings, "objects": array.dtype.kind == "O"}
        dtype = array.dtype.newbyteorder("<")
        if dtype not in _NAMES:
            raise ModelFileError(f"{where} is an array of {array.dtype}, which files do not have.")
        name, number = where, 2
        while name in self.arrays:
            name, number = f"{where} {number}", number + 1
        self.arrays[name] = np.asarray(array, dtype=dtype, order="C")
        return {"array": name}

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        cls = type(value)
        entry: dict[str, Any] = {"class": cls.__name__}
        if _CLASSES.get(cls.__name__) is not cls:
            raise ModelFileError(
                f"{where} is {_described(value)}, not something of kitchenette, and model files "
                "hold nothing else. Use pickle or skops for this model."
            )
        if hasattr(cls, "from_state"):
            entry["state"] = self._values(value.state(), where)
            return entry
        parameters = _with_seeds(value.get_params(deep=False), value)
        if isinstance(parameters.get("random_state"), _GENERATORS):
            raise ModelFileError(
                f"the random_state of {where} is a generator, whose state is not stored; "
                "use a whole number, or fit the model first."
            )
        entry["parameters"] = self._values(parameters, where)
        state = value.__getstate__()  # what pickles have
        fitted = {name: state[name] for name in _stored(cls) if name in state}
        if not fitted and any(name.endswith("_") for name in vars(value)):
            raise ModelFileError(f"the fitted attributes of {_described(value)} are not stored.")
        if "_drawn_with" in fitted:
            fitted["_drawn_with"] = _with_seeds(fitted["_drawn_with"], value)
        if fitted:
            entry["fitted"] = self._values(fitted, where)
            if hasattr(cls, "_fingerprint"):
                with np.errstate(all="ignore"):
                    entry["fingerprint"] = self.value(value._fingerprint(), where)
        return entry

    def _values(self, values: Mapping[str, Any], where: str) -> dict[str, Any]:
        return {name: self.value(value, f"{where}.{name}") for name, value in values.items()}


def _with_seeds(parameters: Mapping[str, Any], fitted: Any) -> dict[str, Any]:
    """Parameters, with the seed that a generator gave in place of the generator.

    A model's map, or a map's base, is not fitted itself: its fitted copy knows the seed.
    """
    seeded = dict(parameters)
    for name, value in parameters.items():
        if name == "random_state" and isinstance(value, _GENERATORS):
            seeded[name] = getattr(fitted, "seed_", value)
        elif isinstance(value, BaseEstimator) and not hasattr(value, "seed_"):
            before = value.get_params(deep=False)
            after = _with_seeds(before, getattr(fitted, f"{name}_", None))
            if any(after[key] is not before[key] for key in before):
                seeded[name] = type(value)(**after)
    return seeded


@cache
def _parameter_names(cls: Any) -> frozenset[str]:
    return frozenset(inspect.signature(cls).parameters)


def _stored(cls: Any) -> dict[str, Any]:
    """The fitted attributes that files have, and their types."""
    return getattr(cls, "_stored", {})


def _described(value: Any) -> str:
    return f"an object of {type(value).__module__}.{type(value).__qualname__}"


# ---------------------------------------------------------------- JSON to objects


class _Reader:
    """Objects from a document that may have come from anywhere."""

    def __init__(self, document: Any, arrays: dict[str, NDArray[Any]], max_bytes: int):
        entries = document.get("objects") if isinstance(document, dict) else None
        if not isinstance(entries, list) or not entries:
            raise ModelFileError("it contains no objects.")
        self._entries = entries
        self._arrays = arrays
        self._bytes_left = max_bytes
        self._objects: list[Any] = []
        self._depths: list[int] = []

    def model(self) -> Any:
        for entry in self._entries:
            self._depth = 0
            self._objects.append(self._object(entry))
            self._depths.append(self._depth + 1)
        return self._objects[-1]

    def _object(self, entry: Any) -> Any:
        name = entry.get("class") if isinstance(entry, dict) else None
        cls = _CLASSES.get(name) if isinstance(name, str) else None
        if cls is None:
            raise ModelFileError(f"it contains an object of the unknown class {name!r:.80}.")
        try:
            # Content that makes no sense may break any step, and in any way. There is
            # no harm in that: these are constructors and checks of this package.
            with np.errstate(all="ignore"):
                return self._made(cls, entry)
        except ModelFileError:
            raise
        except Exception as error:
            raise ModelFileError(f"its {name} is not valid: {error!s:.300}") from error

    def _made(self, cls: Any, entry: dict[str, Any]) -> Any:
        if hasattr(cls, "from_state"):
            return cls.from_state(self._values(entry.get("state")))
        parameters = self._values(entry.get("parameters"))
        known = _parameter_names(cls)
        for name in parameters:
            if name not in known:
                raise ValueError(f"there is no parameter {name!r:.80}; is it of a newer version?")
        made = cls(**parameters)
        if "fitted" in entry:
            self._set_fitted(made, self._values(entry["fitted"]))
            if hasattr(cls, "_restore"):
                self._bytes_left -= made._restore(self._bytes_left)
            if hasattr(cls, "_fingerprint"):
                _check_fingerprint(made._fingerprint(), self._value(entry.get("fingerprint")))
        return made

    def _set_fitted(self, made: Any, fitted: dict[str, Any]) -> None:
        types = _stored(type(made))
        for name, value in fitted.items():
            if name not in types:
                raise ValueError(f"there is no attribute {name!r:.80}; is it of a newer version?")
            if not isinstance(value, types[name]) or (types[name] is int and type(value) is bool):
                raise ValueError(f"{name} cannot be {value!r:.80}.")
            setattr(made, name, value)
        names = fitted.get("feature_names_in_")
        if names is not None and names.shape != (made.n_features_in_,):
            raise ValueError("feature_names_in_ must be as many as the columns.")

    def _values(self, values: Any) -> dict[str, Any]:
        if not isinstance(values, dict):
            raise ValueError("names and values are missing.")
        return {name: self._value(value) for name, value in values.items()}

    def _value(self, value: Any, level: int = 0) -> Any:
        if level > MOST_DEPTH:
            raise ValueError("it has too many levels.")
        if isinstance(value, list):
            return [self._value(item, level + 1) for item in value]
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("strings"), list):
            return self._strings(value["strings"], bool(value.get("objects")))
        if len(value) != 1:
            raise ValueError(f"a value has the unknown form {sorted(value)!r:.80}.")
        [(form, content)] = value.items()
        if form == "number" and content in ("nan", "inf", "-inf"):
            return float(content)
        if form == "tuple":
            return tuple(self._value(item, level + 1) for item in content)
        if form == "mapping":
            return {name: self._value(item, level + 1) for name, item in content.items()}
        if form == "array" and content in self._arrays:
            # Once only: many copies of one array would be larger than the file.
            return self._arrays.pop(content)
        if form == "object" and type(content) is int and 0 <= content < len(self._objects):
            self._depth = max(self._depth, self._depths[content])
            if self._depth > MOST_DEPTH:
                raise ValueError("it has too many levels.")
            return self._objects[content]
        raise ValueError(f"a value has the unknown form {form!r:.80}: {content!r:.80}.")

    def _strings(self, strings: list[Any], objects: bool) -> NDArray[Any]:
        if not all(isinstance(string, str) for string in strings):
            raise ValueError("an array of strings has other values.")
        if objects:
            return np.array(strings, dtype=object)
        # All are as wide as the widest.
        self._bytes_left -= 4 * len(strings) * max(map(len, strings), default=0)
        if self._bytes_left < 0:
            raise ValueError("an array of strings is too wide.")
        return np.array(strings, dtype=str)


def _check_fingerprint(found: list[float], stored: Any) -> None:
    if not isinstance(stored, list) or not all(isinstance(number, float) for number in stored):
        raise ValueError("its fingerprint is missing.")
    if len(found) != len(stored) or not np.allclose(
        found, stored, rtol=0, atol=FINGERPRINT_TOLERANCE, equal_nan=True
    ):
        raise ValueError(
            "drawn again from its seed, it gives other features than the one that was saved. The "
            "file was altered, or the map draws its numbers differently in this version."
        )


# ---------------------------------------------------------------- the file


def _write_file(file: BufferedWriter, document: Any, arrays: dict[str, NDArray[Any]]) -> None:
    """In the layout of safetensors."""
    # Wide numbers first, so that all of them are aligned.
    ordered = dict(sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize))
    header: dict[str, Any] = {
        "__metadata__": {
            "format": FORMAT,
            "format_version": str(FORMAT_VERSION),
            "kitchenette_version": version("kitchenette"),
            "checksum": _NO_CHECKSUM,
            "model": json.dumps(document, allow_nan=False, separators=(",", ":")),
        }
    }
    end = 0
    for name, array in ordered.items():
        begin, end = end, end + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MOST_HEADER_BYTES:
        raise ModelFileError("the names and values outside of arrays take too many bytes.")
    checksum = _checksum(text, ordered.values())
    # The first place: the other strings of the metadata come later or cannot contain it.
    text = text.replace(_NO_CHECKSUM.encode(), checksum.encode(), 1)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for array in ordered.values():
        file.write(_bytes_of(array))


def _read_file(file: BufferedReader) -> tuple[Any, dict[str, NDArray[Any]]]:
    """The document and the arrays of a file, after all checks that need no knowledge of them."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    start = file.read(1)
    if size < 10 or start != b"{" or not 2 <= length <= MOST_HEADER_BYTES:
        raise ModelFileError("it is not a model file of kitchenette.")
    if length > size - 8:
        raise ModelFileError("it is cut short.")
    text = start + file.read(length - 1)
    header = _parsed(text)
    metadata = header.pop("__metadata__", None) if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise ModelFileError("it is not a model file of kitchenette.")
    _check_version(metadata)
    arrays = _read_arrays(file, header, size - 8 - length)
    checksum, model = metadata.get("checksum"), metadata.get("model")
    if not isinstance(checksum, str) or not isinstance(model, str) or not _is_checksum(checksum):
        raise ModelFileError("its metadata are incomplete.")
    blank = text.replace(checksum.encode(), _NO_CHECKSUM.encode(), 1)
    if _checksum(blank, arrays.values()) != checksum:
        raise ModelFileError("it is damaged: its checksum does not agree with its content.")
    return _parsed(model), arrays


def _parsed(text: bytes | str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON.")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ModelFileError("it is damaged: a part that should be JSON is not.") from error


def _is_checksum(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


def _check_version(metadata: dict[str, Any]) -> None:
    stated = metadata.get("format_version")
    number = int(stated[:9]) if isinstance(stated, str) and stated[:9].isdecimal() else 0
    if number > FORMAT_VERSION:
        raise ModelFileError(
            f"it has format version {number}, written by kitchenette "
            f"{metadata.get('kitchenette_version')!s:.20}; this is kitchenette "
            f"{version('kitchenette')}, which reads versions up to {FORMAT_VERSION}. Upgrade it."
        )
    if number < 1:
        raise ModelFileError(f"its format version is {stated!r:.20}.")


def _read_arrays(
    file: BufferedReader, header: dict[str, Any], size: int
) -> dict[str, NDArray[Any]]:
    """All arrays in the order in which they lie in the file, which they must fill."""
    described = sorted(
        (_described_array(name, entry, size) for name, entry in header.items()),
        key=lambda item: item[0],
    )
    position = 0
    for (begin, end), *_ in described:
        if begin != position:
            raise ModelFileError("its arrays overlap or leave a gap.")
        position = end
    if position != size:
        raise ModelFileError("it is cut short, or longer than its arrays.")
    arrays = {}
    for _, name, dtype, shape in described:
        array = np.empty(shape, dtype)
        if array.nbytes and file.readinto(_bytes_of(array)) != array.nbytes:
            raise ModelFileError("it is cut short.")
        if dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
            raise ModelFileError(f"its array {name!r:.80} has truth values besides 0 and 1.")
        arrays[name] = array.astype(dtype.newbyteorder("="), copy=False)
    return arrays


def _described_array(
    name: str, entry: Any, size: int
) -> tuple[tuple[int, int], str, np.dtype[Any], tuple[int, ...]]:
    """Offsets, name, dtype and shape, which agree with each other and with the file."""
    entry = entry if isinstance(entry, dict) else {}
    code = entry.get("dtype")
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or not all(
            type(number) is int and 0 <= number <= size for number in numbers
        ):
            raise ModelFileError(f"it is cut short, or its array {name!r:.80} never was in it.")
    if not isinstance(code, str) or code not in _DTYPES or len(offsets) != 2 or len(shape) > 8:
        raise ModelFileError(f"its array {name!r:.80} has no type or place that is known.")
    dtype = np.dtype(_DTYPES[code])
    # A product without its zeros cannot be larger than the file either.
    if offsets[1] - offsets[0] != dtype.itemsize * prod(shape) or prod(filter(None, shape)) > size:
        raise ModelFileError(f"its array {name!r:.80} has another size than its shape.")
    return (offsets[0], offsets[1]), name, dtype, tuple(shape)


def _checksum(header: bytes, arrays: Iterable[NDArray[Any]]) -> str:
    digest = blake2b(header, digest_size=32)
    for array in arrays:
        digest.update(_bytes_of(array.astype(array.dtype.newbyteorder("<"), copy=False)))
    return digest.hexdigest()


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


@contextlib.contextmanager
def _replacement(path: str | os.PathLike[str]) -> Iterator[BufferedWriter]:
    """A new file that takes the place of ``path`` if the body succeeds, and vanishes if not."""
    target = Path(os.path.realpath(path))  # a link stays one
    if not target.parent.is_dir():
        raise FileNotFoundError(f"Cannot save to {path}: there is no folder {target.parent}.")
    temporary = target.with_name(f".{target.name[:64]}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # elsewhere a folder cannot be opened
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
