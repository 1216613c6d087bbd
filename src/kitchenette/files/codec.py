"""Conversion of models to a JSON document with separate arrays, and back.

The document is a list of objects, each with the name of its class and a state. Objects refer to
earlier ones by number, so that shared objects are stored once. The last object is the model.
Values that cannot be stored or read raise a ValueError.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.files.budget import Budget
from kitchenette.files.container import little_endian
from kitchenette.files.registry import storage_named, storage_of

MOST_DEPTH = 128  # the deepest nesting of lists and dictionaries, with references resolved
LABELS = (str, int, float, bool, np.integer, np.floating, np.bool_)  # keys of dictionaries
MOST_REPETITION = 3  # the largest ratio of the size with references resolved to the size without


def encode(model: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The document of a model and its arrays."""
    encoder = _Encoder()
    if encoder.value(model, type(model).__name__) != {"object": len(encoder.objects) - 1}:
        raise ValueError(f"save stores models of kitchenette, one at a time; got {model!r}.")
    _check_extent(encoder.objects)
    return {"objects": encoder.objects}, encoder.arrays


def decode(document: Any, arrays: dict[str, NDArray[Any]], budget: Budget) -> Any:
    """The model of an untrusted document; the arrays are not copied."""
    entries = document.get("objects") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries:
        raise ValueError("it contains no objects.")
    _check_extent(entries)
    decoder = _Decoder(arrays, budget)
    for entry in entries:
        decoder.add(entry)
    return decoder.objects[-1]


def described(value: Any) -> str:
    """The class of an object, for error messages."""
    return f"an object of {type(value).__module__}.{type(value).__qualname__}"


class _Encoder:
    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.arrays: dict[str, NDArray[Any]] = {}
        # Shared objects are found by id; the references keep ids from being reused.
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []

    def value(self, value: Any, where: str) -> Any:
        """The JSON value of a value; ``where`` names it in error messages."""
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
            return {"mapping": self._values(value, where)}
        if isinstance(value, dict) and all(isinstance(label, LABELS) for label in value):
            return {"pairs": [[self.value(one, where) for one in pair] for pair in value.items()]}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if id(value) not in self._numbers:
            self.objects.append(self._object(value, where))
            self._numbers[id(value)] = len(self.objects) - 1
            self._kept.append(value)
        return {"object": self._numbers[id(value)]}

    def _values(self, values: dict[str, Any], where: str) -> dict[str, Any]:
        return {name: self.value(value, f"{where}.{name}") for name, value in values.items()}

    def _array(self, array: NDArray[Any], where: str) -> dict[str, Any]:
        if array.dtype.kind in "UO":
            strings = array.ravel().tolist()
            if array.ndim != 1 or not all(isinstance(item, str) for item in strings):
                raise ValueError(f"{where} is an array of objects, which are not all strings.")
            return {"strings": strings, "objects": array.dtype.kind == "O"}
        # The memory order is stored, because the rounding of products with a matrix depends on it.
        transposed = array.flags.f_contiguous and not array.flags.c_contiguous
        stored = little_endian(array.T if transposed else array)
        if stored is None:
            raise ValueError(f"{where} is an array of {array.dtype}, which files do not have.")
        name, number = where, 2
        while name in self.arrays:
            name, number = f"{where} {number}", number + 1
        self.arrays[name] = stored
        return {"array": name, "transposed": True} if transposed else {"array": name}

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        storage = storage_of(value)
        if storage is None:
            raise ValueError(
                f"{where} is {described(value)}, which model files do not have. Use pickle or "
                "skops for this model, or kitchenette.files.storable for a class of your own."
            )
        state = storage.to_file(value)
        return {"class": type(value).__name__, "state": self._values(state, where)}


class _Decoder:
    def __init__(self, arrays: dict[str, NDArray[Any]], budget: Budget):
        self.objects: list[Any] = []
        self._arrays = arrays
        self._budget = budget
        self._operations: list[float] = []  # the estimated cost of each object
        self._referred: set[int] = set()

    def add(self, entry: Any) -> None:
        """Create the next object of the document."""
        name = entry.get("class") if isinstance(entry, dict) else None
        storage = storage_named(name)
        if storage is None:
            raise ValueError(f"it contains an object of the unknown class {name!r:.80}.")
        spent = self._budget.spent_operations
        try:
            # Invalid content may raise any exception, which is harmless: only constructors and
            # checks of registered classes run here.
            with np.errstate(all="ignore"):
                restored = storage.from_file(self._values(entry.get("state")), self._budget)
        except Exception as error:
            raise ValueError(f"its {name} is not valid: {error!s:.300}") from error
        self.objects.append(restored)
        self._operations.append(self._budget.spent_operations - spent)

    def _values(self, values: Any) -> dict[str, Any]:
        if not isinstance(values, dict):
            raise ValueError("names and values are missing.")
        return {name: self._value(value) for name, value in values.items()}

    def _value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("strings"), list):
            return self._strings(value["strings"], bool(value.get("objects")))
        if len(value) == 2 and value.get("transposed") is True:
            array = self._value({"array": value.get("array")})
            return array.T
        if len(value) != 1:
            raise ValueError(f"a value has the unknown form {sorted(value)!r:.80}.")
        [(form, content)] = value.items()
        if form == "number" and isinstance(content, str) and content in ("nan", "inf", "-inf"):
            return float(content)
        if form == "tuple" and isinstance(content, list):
            return tuple(self._value(item) for item in content)
        if form == "mapping":
            return self._values(content)
        if form == "pairs" and isinstance(content, list):
            return self._pairs(content)
        if form == "array" and isinstance(content, str) and content in self._arrays:
            # Each array may be used once, so that copies of it cannot outgrow the file.
            return self._arrays.pop(content)
        if form == "object" and _is_number_of(content, self.objects):
            return self._referred_to(content)
        raise ValueError(f"a value has the unknown form {form!r:.80}: {content!r:.80}.")

    def _pairs(self, pairs: list[Any]) -> dict[Any, Any]:
        dictionary = {}
        for pair in pairs:
            if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], LABELS)):
                raise ValueError(f"a label with a value is expected; got {pair!r:.80}.")
            dictionary[pair[0]] = self._value(pair[1])
        return dictionary

    def _referred_to(self, number: int) -> Any:
        if number in self._referred:
            # A second object that contains this one may draw it again, which costs as much again.
            what = f"using a {type(self.objects[number]).__name__} once more"
            self._budget.spend(0, self._operations[number], what)
        self._referred.add(number)
        return self.objects[number]

    def _strings(self, strings: list[Any], objects: bool) -> NDArray[Any]:
        if not all(isinstance(string, str) for string in strings):
            raise ValueError("an array of strings has other values.")
        if objects:
            return np.array(strings, dtype=object)
        # NumPy stores all strings with the width of the longest.
        width = max(map(len, strings), default=0)
        self._budget.spend(4 * len(strings) * width, 0, "an array of strings")
        return np.array(strings, dtype=str)


def _is_number_of(content: Any, objects: list[Any]) -> bool:
    return type(content) is int and 0 <= content < len(objects)


def _check_extent(entries: list[Any]) -> None:
    """Refuse documents that are too deep, or too large once references are resolved.

    A chain of 30 objects that each refer twice to the previous one resolves to 2^30 objects.
    """
    extents: list[tuple[int, int]] = []  # depth and number of values of each object
    n_values = 0  # without resolving references

    def extent(value: Any, depth: int) -> tuple[int, int]:
        nonlocal n_values
        n_values += 1
        deepest, size = depth, 1
        items = value.values() if isinstance(value, dict) else value
        if isinstance(value, dict) and _is_number_of(value.get("object"), extents):
            inner_depth, size = extents[value["object"]]
            deepest += inner_depth
        if deepest > MOST_DEPTH:
            raise ValueError("it has too many levels.")
        for item in items if isinstance(value, dict | list) else ():
            inner_depth, inner_size = extent(item, depth + 1)
            deepest, size = max(deepest, inner_depth), size + inner_size
        return deepest, size

    for entry in entries:
        deepest, size = extent(entry, 0)
        if size > 1000 + MOST_REPETITION * n_values:
            raise ValueError("its objects refer to each other too often.")
        extents.append((deepest, size))
