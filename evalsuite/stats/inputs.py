"""Check the inputs of statistics (for example, that numbers are finite), and search by bisection."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Sized
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
Values: TypeAlias = "Sequence[float] | Array"
Labels: TypeAlias = "Sequence[Hashable] | Array"


def convert_to_floats(values: Values, name: str = "values") -> Array:
    """Convert the values to a one-dimensional array of floats."""
    import numpy as np

    array = np.asarray(values, dtype=float)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one flat list of numbers; got {array.ndim} dimensions")
    if not array.size:
        raise ValueError(f"{name} is empty: there is nothing to estimate from")
    if not np.isfinite(array).all():
        at = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name}[{at}] is {array[at]}: leave out what was not measured")
    return array


def convert_to_binary(values: Values, name: str = "values") -> Array:
    """Convert the values to an array of zeros and ones; refuse any other value."""
    array = convert_to_floats(values, name)
    wrong = array[(array != 0) & (array != 1)]
    if wrong.size:
        raise ValueError(f"{name} must hold only 0 and 1; found {wrong[0]:g}")
    return array


def are_binary(*arrays: Array) -> bool:
    """Tell whether all values of the arrays are 0 or 1."""
    return all(((array == 0) | (array == 1)).all() for array in arrays)


def check_range(array: Array, low: float, high: float, name: str) -> Array:
    """Check that all values lie in [low, high], and return the array."""
    if array.min() < low or array.max() > high:
        worst = array.min() if array.min() < low else array.max()
        raise ValueError(f"{name} must lie in [{low:g}, {high:g}]; found {worst:g}")
    return array


def check_same_length(first: Sized, second: Sized, names: str) -> None:
    """Check that two lists have the same length, because their items are paired by position."""
    if len(first) != len(second):
        raise ValueError(f"{names} are paired by position but have {len(first)} and {len(second)} entries")


def is_missing(label: object) -> bool:
    """Tell whether a label is missing: None or nan."""
    return label is None or label != label  # noqa: PLR0124 - only nan differs from itself


def convert_labels(labels: Labels, name: str) -> list[Hashable]:
    """Convert the labels to a list; refuse an empty list and missing labels."""
    if not len(labels):
        raise ValueError(f"{name} is empty: no agreement can be measured")
    listed: list[Hashable] = list(labels)
    for at, label in enumerate(listed):
        if is_missing(label):
            raise ValueError(f"{name}[{at}] is {label}: leave the item out, or use krippendorff_alpha")
    return listed


def check_probability(value: float, name: str) -> float:
    """Check that a probability lies strictly between 0 and 1, and return it."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {value}")
    return value


def find_by_bisection(holds: Callable[[float], bool], low: float, high: float, halvings: int = 60) -> float:
    """Find the largest number between two bounds for which a condition holds, by halving the range."""
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
