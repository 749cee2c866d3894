"""Settings in a file: a frozen dataclass that TOML files hold and words such as ``cutoff_hz=10`` change.

Every field is one key. A field that holds a dataclass is a table. TOML has no null: the string ``"none"`` stands for
None, and ``false`` for a table that is left out. Unknown keys and values of a wrong type are refused by name.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

import numpy as np

from dynid.errors import ArgumentError
from dynid.files import write_atomically
from dynid.files.small_files import read_toml

SHOWN = 60
"""Letters of a wrong value that an error shows (convention)."""


class TomlSettings:
    """Base of frozen dataclasses whose fields are the keys of a TOML file."""

    __slots__ = ()

    file_keys: ClassVar[tuple[str, ...]] = ()
    """Fields that name files or folders. In a settings file a path may also be relative to that file's folder."""
    own_keys: ClassVar[tuple[str, ...]] = ("scheduler",)
    """Fields that no file may set: what a cluster returns is run here, so that only the user may name one."""

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read settings from a TOML file; keys that it leaves out keep their defaults.

        Raises:
            ArgumentError: The file cannot be read, or has an unknown key or a value of a wrong type.
        """
        content = read_toml(path, error=ArgumentError)
        if {"time", "position", "effort"} <= content.keys():
            raise ArgumentError("this is a channel map, not a recipe", path=path, remedy="Give it with --map.")
        for key in (key for key in cls.own_keys if content.get(key, "none") != "none"):
            remedy = f"Remove the line. If you trust the cluster, name it yourself: --set {key}=ADDRESS."
            reason = "no file may name a cluster, whose answers are run here"
            raise ArgumentError(reason, path=path, place=key, remedy=remedy)
        beside = Path(path).parent
        for key in (key for key in cls.file_keys if isinstance(content.get(key), str)):
            if not os.path.exists(content[key]) and os.path.exists(beside / content[key]):
                content[key] = str(beside / content[key])
        return cls().with_values(content, path=path)

    def write(self, path: str | Path, *, force: bool = False) -> Path:
        """Write all settings as TOML.

        Raises:
            ExportError: The file exists and ``force`` is False, or it cannot be written.
        """
        return write_atomically(path, self.to_toml(), force=force)

    def to_toml(self) -> str:
        """All settings but `own_keys` as the text of a TOML file."""
        values = {key: value for key, value in self.to_dict().items() if key not in self.own_keys}
        plain = [f"{key} = {_toml_text(value)}" for key, value in values.items() if not isinstance(value, dict)]
        for name, table in ((key, value) for key, value in values.items() if isinstance(value, dict)):
            plain += ["", f"[{name}]", *(f"{key} = {_toml_text(value)}" for key, value in table.items())]
        return "\n".join(plain) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """All settings as values that TOML and JSON can hold."""
        return {field.name: _plain(getattr(self, field.name), field.name) for field in fields(self)}  # type: ignore[arg-type]

    def with_values(self, values: Mapping[str, Any], *, path: object = None) -> Self:
        """The same settings with other values.

        Args:
            values: Key -> value as TOML holds it.
            path: The file that the values come from, for error messages.

        Raises:
            ArgumentError: A key is unknown, or a value is of a wrong type or out of range.
        """
        hints = _hints(type(self))
        changed = {}
        for key, value in values.items():
            if key not in hints:
                from difflib import get_close_matches  # few calls are wrong

                near = get_close_matches(key, hints, n=1)
                remedy = f"Did you mean {near[0]}?" if near else f"The keys are: {', '.join(hints)}."
                raise ArgumentError("there is no such setting", path=path, place=key, remedy=remedy)
            try:
                changed[key] = _convert(value, hints[key])
            except (TypeError, ValueError, OverflowError) as error:
                remedy = f"Give {_describe(hints[key])}."
                raise ArgumentError(
                    f"{repr(value)[:SHOWN]} does not fit", path=path, place=key, remedy=remedy
                ) from error
        try:
            return replace(self, **changed)  # type: ignore[type-var]
        except ArgumentError as error:
            raise ArgumentError(
                error.reason, path=path or error.path, place=error.place, remedy=error.remedy
            ) from error

    def with_words(self, words: Iterable[str], **values: Any) -> Self:
        """The same settings with values from words such as ``cutoff_hz=10``, ``delay_s=auto`` or ``springs=joint2``.

        Args:
            words: One ``key=value`` each.
            **values: Further values; a text is read as in a word, and None changes nothing.

        Raises:
            ArgumentError: A word has no ``=``, a key is unknown, or a value is of a wrong type or out of range.
        """
        hints = _hints(type(self))
        changed: dict[str, Any] = {}
        for word in words:
            key, equals, text = word.partition("=")
            if not equals:
                raise ArgumentError(f"'{word}' is not KEY=VALUE", remedy="Write for example cutoff_hz=10.")
            name, _, member = key.strip().partition(".")
            if member and name in hints:  # selection.gain=0.02 changes one key of a table
                table = _table_of(changed.get(name, getattr(self, name)))
                changed[name] = {**table, member: _value_of(text.strip(), Any)}
            else:
                changed[key.strip()] = _value_of(text.strip(), hints.get(key.strip(), str))
        for key, value in values.items():
            if value is not None:
                changed[key] = _value_of(value, hints[key]) if isinstance(value, str) else value
        return self.with_values(changed)

    def settle_kinds(self) -> None:
        """Convert every value to the kind of its field, as one from a file is: False leaves a table out.

        For ``__post_init__``: at its end where the checks of fields take values of any kind and say more.

        Raises:
            ArgumentError: A value is of a wrong kind, such as the text "no" where True or False is meant.
        """
        for key, hint in _hints(type(self)).items():
            value = getattr(self, key)
            plain = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
            if key in self.file_keys and isinstance(plain, os.PathLike):
                plain = os.fspath(plain)
            try:
                object.__setattr__(self, key, _convert(plain, hint))
            except (TypeError, ValueError, OverflowError) as error:
                wanted = _describe(hint).replace('"none"', "None").replace("true", "True").replace("false", "False")
                raise ArgumentError(f"{key} is {repr(value)[:SHOWN]}", remedy=f"Give {wanted}.") from error

    def input_files(self) -> list[Path]:
        """The files and folders that the settings name."""
        named = [getattr(self, key) for key in self.file_keys]
        return [Path(name).absolute() for name in named if name is not None and os.path.exists(name)]


def _hints(kind: type) -> dict[str, Any]:
    """Type of every field."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _value_of(text: str, hint: Any) -> Any:
    """The value of a word: read as TOML where possible, otherwise text; a list may be written without brackets."""
    if any(get_origin(kind) is tuple for kind in _alternatives(hint)) and not text.startswith("["):
        items = next(kind for kind in _alternatives(hint) if get_origin(kind) is tuple)
        return [_value_of(part.strip(), get_args(items)[0]) for part in text.split(",") if part.strip()]
    if str in _alternatives(hint):
        return text.strip("\"'")
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def _convert(value: Any, hint: Any) -> Any:
    """Convert a TOML value to the field's type; TypeError or ValueError where it fits none of the field's types."""
    if NoneType in _alternatives(hint) and (value == "none" or value is False):
        return None
    for kind in _alternatives(hint):
        if get_origin(kind) is Literal:
            if value in get_args(kind) and not isinstance(value, bool):
                return value
        elif get_origin(kind) is tuple:
            if isinstance(value, list | tuple):
                return tuple(_convert(item, get_args(kind)[0]) for item in value)
        elif is_dataclass(kind) and isinstance(kind, type):
            if isinstance(value, kind):
                return value
            if value is True:
                return kind()
            if isinstance(value, dict):
                return _convert_table(value, kind)
        elif kind is float:
            if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
                return float(value)
        elif isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
            return value
    raise TypeError(value)


def _convert_table(values: dict[str, Any], kind: type) -> Any:
    hints = _hints(kind)
    if unknown := [key for key in values if key not in hints]:
        raise ValueError(f"unknown key {unknown[0]}")
    return kind(**{key: _convert(value, hints[key]) for key, value in values.items()})


def _describe(hint: Any) -> str:
    """Describe in words which values a field takes."""
    words = []
    for kind in _alternatives(hint):
        if kind is NoneType:
            words.append('"none"')
        elif get_origin(kind) is Literal:
            words += [f'"{value}"' for value in get_args(kind)]
        elif get_origin(kind) is tuple:
            words.append(f"a list, each item {_describe(get_args(kind)[0])}")
        elif is_dataclass(kind):
            words.append(f"true, false, or a table with {', '.join(_hints(kind))}")  # type: ignore[arg-type]
        else:
            named = {float: "a finite number", int: "a whole number", bool: "true or false", str: "a text"}
            words.append(named.get(kind, str(kind)))
    return " or ".join(words)


def _table_of(value: Any) -> dict[str, Any]:
    """The keys of a table that settings hold; none where the table is left out."""
    if isinstance(value, dict):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name), field.name) for field in fields(value)}
    return {}


def _plain(value: Any, name: str) -> Any:
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return [_plain(item, name) for item in value]
    if isinstance(value, bool | int | float | str):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name), name) for field in fields(value)}
    raise ArgumentError(
        f"{name} is a {type(value).__name__}, which a settings file cannot hold", remedy="Give it by its name."
    )


def _toml_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    if isinstance(value, list):
        return f"[{', '.join(_toml_text(item) for item in value)}]"
    return repr(value)
