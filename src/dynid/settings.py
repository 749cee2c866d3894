"""`TomlSettings`: base of the dataclasses of settings, such as the recipe of an identification.

Settings come from a TOML file (`TomlSettings.read`), from words of the command line such as ``cutoff_hz=10``
(`TomlSettings.with_words`), or from a call in Python. Every field of the dataclass is one key. In all three cases
msgspec converts the value and checks it against the type of the field.

TOML has no null: the text ``"none"`` stands for None. A field whose value is a dataclass or None is a table in TOML;
``true`` stands for that dataclass with its defaults, ``false`` for None.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin

import msgspec
from msgspec import Meta

from dynid.checks import LARGEST
from dynid.errors import ArgumentError, did_you_mean
from dynid.plain_data import field_hints
from dynid.safe_files import write_atomically
from dynid.safe_files.records import SHOWN, split_failure
from dynid.safe_files.small_files import read_toml

# types of fields: numbers within bounds, with the words that an error describes them by
Number = Annotated[float, Meta(ge=-LARGEST, le=LARGEST, description="a finite number")]
Positive = Annotated[float, Meta(ge=1.0 / LARGEST, le=LARGEST, description="a number above zero")]
NotNegative = Annotated[float, Meta(ge=0.0, le=LARGEST, description="a number from zero up")]
Share = Annotated[float, Meta(ge=0.0, le=1.0, description="a share from 0 to 1")]
Count = Annotated[int, Meta(ge=1, le=2**31, description="a whole number from 1 up")]
Seed = Annotated[int, Meta(ge=0, le=2**53, description="a whole number from 0 up")]


class TomlSettings:
    """Base of frozen dataclasses whose fields are the keys of a TOML file."""

    __slots__ = ()

    file_keys: ClassVar[tuple[str, ...]] = ()
    """Fields that name files or folders. A path in a settings file may also be relative to the folder of that file."""

    def settle_kinds(self) -> None:
        """Convert every value to the type of its field, in place; ``__post_init__`` of the subclass calls this.

        Raises:
            ArgumentError: A value does not fit its field, such as the text "no" where True or False is meant.
        """
        for key, hint in field_hints(type(self)).items():
            value = getattr(self, key)
            try:
                object.__setattr__(self, key, msgspec.convert(_as_toml(value, hint), hint))
            except msgspec.ValidationError as error:
                shown = repr(value) if len(repr(value)) <= SHOWN else f"{repr(value)[:SHOWN]}..."
                remedy = f"Give {_describe(hint)}."
                raise ArgumentError(
                    f"{shown} does not fit", place=key + split_failure(error)[1], remedy=remedy
                ) from error

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read settings from a TOML file; keys that it leaves out keep their defaults.

        Raises:
            ArgumentError: The file cannot be read, or has an unknown key or a value of a wrong type.
        """
        content = read_toml(path, error=ArgumentError)
        if {"time", "position", "effort"} <= content.keys():  # tables of a channel map
            raise ArgumentError("this is a channel map, not a recipe", path=path, remedy="Give it with --map.")
        folder = Path(path).parent
        # a path that does not exist from here, but from the folder of the settings file, is meant from there
        for key in (key for key in cls.file_keys if isinstance(content.get(key), str)):
            if not os.path.exists(content[key]) and os.path.exists(folder / content[key]):
                content[key] = str(folder / content[key])
        return cls().with_values(content, path=path)

    def with_values(self, values: Mapping[str, Any], *, path: object = None) -> Self:
        """Make a copy with other values.

        Args:
            values: Key -> value as TOML holds it.
            path: The file that the values come from, for error messages.

        Raises:
            ArgumentError: A key is unknown, or a value does not fit.
        """
        try:
            _check_keys(values, field_hints(type(self)))
            return replace(self, **values)  # type: ignore[type-var]  # its __post_init__ converts the values
        except ArgumentError as error:
            raise ArgumentError(
                error.reason, path=path or error.path, place=error.place, remedy=error.remedy
            ) from error

    def with_words(self, words: Iterable[str], **values: Any) -> Self:
        """Make a copy with values from words such as ``cutoff_hz=10``, ``delay_s=auto`` or ``springs=a,b``.

        Args:
            words: One ``key=value`` each.
            **values: Further values; a text is read as in a word, and None changes nothing.

        Raises:
            ArgumentError: A word has no ``=``, a key is unknown, or a value does not fit.
        """
        hints = field_hints(type(self))
        given: dict[str, Any] = dict(map(split_word, words))
        given |= {key: value for key, value in values.items() if value is not None}
        for key, value in given.items():
            if isinstance(value, str):
                given[key] = _read_word(value, hints.get(key, str))
        return self.with_values(given)

    def to_dict(self) -> dict[str, Any]:
        """Return all settings as values that TOML and JSON can hold."""
        return {key: _as_toml(getattr(self, key), Any) for key in field_hints(type(self))}

    def to_toml(self) -> str:
        """Write all settings as the text of a TOML file, tables last."""
        values = self.to_dict()
        lines = [f"{key} = {_toml_text(value)}" for key, value in values.items() if not isinstance(value, dict)]
        for name, table in ((key, value) for key, value in values.items() if isinstance(value, dict)):
            lines += ["", f"[{name}]", *(f"{key} = {_toml_text(value)}" for key, value in table.items())]
        return "\n".join(lines) + "\n"

    def write(self, path: str | Path, *, force: bool = False) -> Path:
        """Write all settings as TOML.

        Raises:
            ExportError: The file exists and ``force`` is False, or it cannot be written.
        """
        return write_atomically(path, self.to_toml(), force=force)

    def input_files(self) -> list[Path]:
        """List the files and folders that the settings name, as absolute paths."""
        named = [getattr(self, key) for key in self.file_keys]
        return [Path(name).absolute() for name in named if name is not None and os.path.exists(name)]


def split_word(word: str) -> tuple[str, str]:
    """Split a word such as ``cutoff_hz=10`` into key and text.

    Raises:
        ArgumentError: The word has no ``=``.
    """
    key, equals, text = word.partition("=")
    if not equals:
        raise ArgumentError(f"'{word}' is not KEY=VALUE", remedy="Write for example cutoff_hz=10.")
    return key.strip(), text.strip()


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """List the members of a union type; of any other type the type alone."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _check_keys(values: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a key that is not known; the error suggests a similar one."""
    for key in set(values) - set(known):
        remedy = did_you_mean(key, known) or f"The keys are: {', '.join(known)}."
        raise ArgumentError("there is no such setting", place=key, remedy=remedy)


def _read_word(text: str, hint: Any) -> Any:
    """Convert the text behind ``key=`` to the type of its field; a list may be written without brackets.

    A text that does not fit stays text: `TomlSettings.settle_kinds` refuses it later with a better message.
    """
    word: str | list[str] = text.strip("\"'")
    kinds = _alternatives(hint)
    # a field that takes a tuple: split the text at commas
    if any(get_origin(kind) is tuple for kind in kinds) and not (text == "none" and NoneType in kinds):
        word = [part.strip(" \"'") for part in text.strip("[]").split(",") if part.strip() not in ("", "none")]
    try:
        return msgspec.convert(word, hint, strict=False)
    except msgspec.ValidationError:
        return {"false": False, "true": True}.get(text, word)  # for a table, see the module's docstring


def _as_toml(value: Any, hint: Any) -> Any:
    """Convert a value to plain Python types, in one of two directions.

    Args:
        value: A value of a field, as it is in Python or in TOML.
        hint: Type of the field where the value is read: "none" and ``false`` then become None, and ``true`` the table's
            dataclass, if the field takes these. Any where the value is written: then None becomes "none", and a
            dataclass a dict.
    """
    kinds = _alternatives(hint)
    # whether the value stands for None: "none", or false in a field that takes no booleans
    is_absent = value == "none" if isinstance(value, str) else value is False and bool not in kinds
    if NoneType in kinds and is_absent:
        return None
    if value is True and (tables := [kind for kind in kinds if is_dataclass(kind)]):
        return tables[0]()  # type: ignore[operator]  # a class
    if hasattr(value, "tolist"):  # a number or an array of NumPy
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, tuple | list):
        return [_as_toml(item, Any) for item in value]
    if hint is Any and is_dataclass(value):
        return {field.name: _as_toml(getattr(value, field.name), Any) for field in fields(value)}
    return "none" if hint is Any and value is None else value


def _describe(hint: Any) -> str:
    """Say which values a field takes, for a remedy."""
    names = {float: "a number", int: "a whole number", bool: "true or false", str: "a text", NoneType: "none"}
    words = []
    for kind in _alternatives(hint):
        if get_origin(kind) is Annotated:
            words.append(get_args(kind)[1].description)  # of the Meta of Number, Positive and so on
        elif get_origin(kind) is Literal:
            words += [f'"{value}"' for value in get_args(kind)]
        elif get_origin(kind) is tuple:
            words.append(f"a list, each item {_describe(get_args(kind)[0])}")
        elif is_dataclass(kind):
            words.append(f"true, false, or a table with {', '.join(field_hints(kind))}")
        else:
            words.append(names[kind])
    return " or ".join(words)


def _toml_text(value: Any) -> str:
    """Write a value in TOML: as JSON, whose texts, numbers and lists are the same, but with DEL in texts escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
