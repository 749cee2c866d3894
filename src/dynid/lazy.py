"""Public names of a package, loaded at first use: importing a package stays quick, whatever its modules import."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

__all__ = ["lazy_names"]


def lazy_names(
    package: str, names: Mapping[str, Sequence[str]]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Make the ``__all__``, ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: The package's ``__name__``.
        names: Module of the package -> its public names.
    """
    module_of = {name: f"{package}.{module}" for module, offered in names.items() for name in offered}

    def load(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(module_of[name]), name)

    return sorted(module_of), load, lambda: sorted(module_of)
