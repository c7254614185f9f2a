"""Older names that keep working, with a warning that gives the new one."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

import lazy_loader  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def attach_names(
    package: str, file: str, renamed: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make `__getattr__`, `__dir__` and `__all__` for a package whose names are declared in its stub file.

    Args:
        renamed: the new place of each older name, relative to the package.
    """
    find, listed, names = lazy_loader.attach_stub(package, file)

    def find_name(name: str) -> Any:
        if name not in renamed:
            return find(name)
        current = f"{package}.{renamed[name]}"
        warnings.warn(f"{package}.{name} is now {current}", DeprecationWarning, stacklevel=2)
        module, _, attribute = current.rpartition(".")
        return getattr(import_module(module), attribute)

    return find_name, listed, names
