"""Things that are made at their first use: public names of a package, and properties that are kept.

So importing a package stays quick, whatever its modules import.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801
        """The one of Python 3.12: without a lock, which a forked process would wait for without end."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            """The value, computed at the first use."""
            if instance is None:
                return self
            if self.attrname not in instance.__dict__:
                instance.__dict__[self.attrname] = self.func(instance)
            return instance.__dict__[self.attrname]


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
