"""Namespaces whose older names keep working, with a warning that gives the new one."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import lazy_loader  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def attach_names(
    package: str, file: str, renamed: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make `__getattr__`, `__dir__` and `__all__` for a package whose names are declared in its stub file."""
    find, listed, names = lazy_loader.attach_stub(package, file)

    def find_name(name: str) -> Any:
        if name not in renamed:
            return find(name)
        current = f"{package}.{renamed[name]}"
        warnings.warn(f"{package}.{name} is now {current}", DeprecationWarning, stacklevel=2)
        return find(renamed[name])

    return find_name, listed, names
