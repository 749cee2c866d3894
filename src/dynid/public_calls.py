"""Wrong calls of public functions: an error of dynid names the argument that has the wrong kind, and what to give.

Public functions, methods and dataclasses are marked with `public`. The mark costs next to nothing while calls succeed:
only after a Python error are the arguments compared with the annotations of the function. An argument of the wrong
kind, an unknown or a missing one becomes an `ArgumentError`; any other error stays as it is, because it is a fault of
dynid.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

import numpy as np

from dynid.errors import ArgumentError

__all__ = ["public"]

Thing = TypeVar("Thing", bound=Callable[..., Any])
"""A function, a method or a class."""

WAYS = {
    "BaseParameters": "dynid.base_parameters(robot)",
    "DH": "dynid.DH(d=0.3, alpha=1.57)",
    "Estimate": "fit.estimate",
    "Excitation": "dynid.design_excitation(robot, limits)",
    "Experiment": "dynid.process(recording)",
    "Factors": "dynid.estimation.build_equations(robot, experiments)",
    "Identification": "dynid.identify(robot, recording)",
    "Load": "dynid.identify_payload(robot, ...)",
    "MotionLimits": "dynid.MotionLimits.from_robot(robot)",
    "Noise": "dynid.Noise(effort=0.1)",
    "Processing": "dynid.Processing(cutoff_hz=10.0)",
    "Recipe": "dynid.Recipe(band_hz=20.0)",
    "Recording": 'dynid.read_recording("run1.csv", channel_map="map.toml")',
    "Reference": "dynid.terms.Reference(robot.parameter_vector)",
    "Robot": 'dynid.read_urdf("arm.urdf") or dynid.robots.panda()',
    "Samples": "dynid.estimation.build_equations(robot, experiments)",
    "Term": "dynid.Viscous(0.5)",
    "Trajectory": "plan.trajectory",
    "Validation": "dynid.validate(fit, experiment)",
}
"""Class -> how a user gets an object of it."""
LONGEST_VALUE = 60
"""Characters of a wrong value that an error shows (convention: the sentence stays readable)."""
SIMILAR = 0.6
"""Similarity from which on a known argument is proposed for an unknown one, 0 to 1 (convention)."""


def public(thing: Thing) -> Thing:
    """Mark a public function, or a public dataclass: wrong kinds of arguments become errors of dynid."""
    if isinstance(thing, type):
        thing.__init__ = _explained(thing.__init__)  # type: ignore[misc]
        return thing
    return cast(Thing, _explained(thing))


def _explained(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with errors that name the argument of the wrong kind."""
    runs_later = str(getattr(function, "__annotations__", {}).get("return")).startswith("Iterator[")

    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        if runs_later:  # the errors of its body come while a caller iterates, out of reach
            _refuse_kinds(function, args, named, None)
        try:
            return function(*args, **named)
        except (TypeError, ValueError, AttributeError, LookupError) as error:
            _refuse_kinds(function, args, named, error)
            raise

    return called


def _refuse_kinds(
    function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any], error: Exception | None
) -> None:
    """Raise an `ArgumentError` if an argument is unknown, missing or of the wrong kind."""
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **named)
    except TypeError:
        raise _wrong_arguments(function, signature, args, named) from None
    for name, value in given.arguments.items():
        parameter = signature.parameters[name]
        kind = _parsed(parameter.annotation)
        several = parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        if not several and kind is not None and not _fits(value, kind, function.__globals__):
            wanted = _in_words(kind, function.__globals__)
            raise ArgumentError(f"{name} is {_shown(value)}", remedy=f"Give {wanted}.") from error


def _wrong_arguments(
    function: Callable[..., Any], signature: inspect.Signature, args: tuple[Any, ...], named: Mapping[str, Any]
) -> ArgumentError:
    """The error for a call with unknown, missing or too many arguments."""
    name = function.__qualname__.removesuffix(".__init__")
    own = sum(key in ("self", "cls") for key in list(signature.parameters)[:1])
    known = list(signature.parameters)[own:]
    listed = f"The arguments are {name}({', '.join(known)})."
    for word in named:
        if word not in known:
            return ArgumentError(f"{name} has no argument '{word}'", remedy=_where(word, known) + listed)
    wanted = [
        key
        for place, (key, parameter) in enumerate(signature.parameters.items())
        if parameter.default is parameter.empty and key not in named and place >= len(args)
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]  # fmt: skip
    if wanted:
        return ArgumentError(f"{name} needs {', '.join(wanted)}", remedy=listed)
    return ArgumentError(
        f"{name} was given {len(args) - own} arguments without a name, which is too many, or one of them twice",
        remedy=f"{listed} Write the later ones with their names.",
    )


def _where(word: str, known: list[str]) -> str:
    """A sentence that says what an unknown argument may be: another argument, or a setting of a recipe."""
    recipe = _class_of("Recipe")
    if "recipe" in known and word in getattr(recipe, "__dataclass_fields__", {}):
        return f"It is a setting of the recipe: dynid.Recipe({word}=...). "
    from difflib import get_close_matches  # few calls are wrong

    near = get_close_matches(word, known, n=1, cutoff=SIMILAR)
    return f"Did you mean {near[0]}? " if near else ""


def _parsed(annotation: Any) -> ast.expr | None:
    """The annotation as an expression; None if there is none."""
    if not isinstance(annotation, str):
        return None
    return ast.parse(annotation, mode="eval").body


def _fits(value: Any, kind: ast.expr, names: Mapping[str, Any]) -> bool:
    """Whether a value has the kind that an annotation states; also where the annotation cannot be judged."""
    if isinstance(kind, ast.BinOp):  # A | B
        return _fits(value, kind.left, names) or _fits(value, kind.right, names)
    if isinstance(kind, ast.Constant):
        return value is None if kind.value is None else bool(value == kind.value)
    if isinstance(kind, ast.Subscript):
        return _fits_generic(value, kind, names)
    word = kind.attr if isinstance(kind, ast.Attribute) else kind.id if isinstance(kind, ast.Name) else ""
    if word in SIMPLE:
        return SIMPLE[word](value)
    if (alias := _alias(word, names)) is not None:
        return _fits(value, alias, names)
    wanted = _class_of(word)
    if wanted is not None and getattr(wanted, "_is_protocol", False):
        return all(hasattr(value, member) for member in _members(wanted))
    return wanted is None or isinstance(value, wanted)


def _fits_generic(value: Any, kind: ast.Subscript, names: Mapping[str, Any]) -> bool:
    """Whether a value has a kind with members, such as ``Sequence[Robot]``."""
    word = kind.value.attr if isinstance(kind.value, ast.Attribute) else getattr(kind.value, "id", "")
    inner = kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]
    if word == "Literal":
        return any(isinstance(entry, ast.Constant) and _same(value, entry.value) for entry in inner)
    if word in ("Union", "Optional"):
        return (word == "Optional" and value is None) or any(_fits(value, entry, names) for entry in inner)
    if word in ("Sequence", "Iterable", "list", "tuple"):
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            return False
        if isinstance(value, np.ndarray | list | tuple) and word != "tuple":
            return all(_fits(item, inner[0], names) for item in value)
        return True
    if word in ("Mapping", "dict"):
        return isinstance(value, Mapping)
    if word == "Callable":
        return callable(value)
    return _fits(value, kind.value, names)


def _alias(word: str, names: Mapping[str, Any]) -> ast.expr | None:
    """What a name for a longer annotation stands for; None if the name is no such name."""
    found = names.get(word)
    if found is None or isinstance(found, type) or not hasattr(found, "__args__"):
        return None
    return _parsed(str(found))


def _class_of(word: str) -> type | None:
    """The class of dynid with a name; None if no module that is loaded has one."""
    modules = [module for key, module in list(sys.modules.items()) if key.partition(".")[0] == "dynid"]
    found = (vars(module).get(word) for module in modules)
    return next((thing for thing in found if isinstance(thing, type)), None)


def _members(protocol: type) -> list[str]:
    """Names that an object must have to count as one of a protocol."""
    kinds = [kind for kind in protocol.__mro__ if getattr(kind, "_is_protocol", False) and kind.__name__ != "Protocol"]
    names = [name for kind in kinds for name in (*vars(kind), *vars(kind).get("__annotations__", {}))]
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


def _is_number(value: Any) -> bool:
    """Whether a value can stand for a number: text and truth values cannot."""
    return (isinstance(value, int | float | np.number) and not isinstance(value, bool)) or _is_scalar_array(value)


def _is_scalar_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.shape == () and value.dtype.kind in "iuf"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_array(value: Any) -> bool:
    """Whether NumPy makes an array of numbers of a value."""
    try:
        return value is not None and not isinstance(value, str) and np.asarray(value, dtype=float) is not None
    except (TypeError, ValueError):
        return False


def _same(value: Any, wanted: Any) -> bool:
    return isinstance(value, type(wanted)) and bool(value == wanted)


SIMPLE: dict[str, Callable[[Any], bool]] = {
    "float": _is_number,
    "int": _is_whole,
    "bool": lambda value: isinstance(value, bool | np.bool_),
    "str": lambda value: isinstance(value, str),
    "Any": lambda value: True,
    "object": lambda value: True,
    "Path": lambda value: isinstance(value, str | os.PathLike),
    "PathLike": lambda value: isinstance(value, os.PathLike),
    "ArrayLike": _is_array,
    "Floats": _is_array,
}
"""Kind that is no class of dynid -> whether a value has it."""
WORDS = {
    "float": "a number",
    "int": "a whole number",
    "bool": "True or False",
    "str": "a text",
    "Path": "a path",
    "PathLike": "a path",
    "ArrayLike": "an array of numbers",
    "Floats": "an array of numbers",
    "None": "None",
    "Callable": "a function",
    "Mapping": "a dictionary",
    "dict": "a dictionary",
    "Any": "any value",
    "Fitted": "an Identification (such as dynid.identify(robot, recording))",
}
"""Kind -> what a person calls it."""


def _in_words(kind: ast.expr, names: Mapping[str, Any]) -> str:
    """What to give, as a phrase."""
    if isinstance(kind, ast.BinOp):
        return _join([_in_words(kind.left, names), _in_words(kind.right, names)])
    if isinstance(kind, ast.Constant):
        return repr(kind.value)
    if isinstance(kind, ast.Subscript):
        return _generic_words(kind, names)
    word = kind.attr if isinstance(kind, ast.Attribute) else getattr(kind, "id", ast.unparse(kind))
    if word in WORDS:
        return WORDS[word]
    if (alias := _alias(word, names)) is not None:
        return _in_words(alias, names)
    article = "" if word.endswith("s") else "an " if word[:1] in "AEIO" else "a "
    return f"{article}{word}" + (f" (such as {WAYS[word]})" if word in WAYS else "")


def _generic_words(kind: ast.Subscript, names: Mapping[str, Any]) -> str:
    """What to give for a kind with members, such as ``Sequence[Robot]``."""
    word = kind.value.attr if isinstance(kind.value, ast.Attribute) else getattr(kind.value, "id", "")
    inner = kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]
    if word == "Literal":
        return " or ".join(ast.unparse(entry) for entry in inner)
    if word in ("Sequence", "Iterable", "list", "tuple"):
        return f"a list, each item {_in_words(inner[0], names)}"
    if word in ("Union", "Optional"):
        return _join([_in_words(entry, names) for entry in inner])
    return WORDS.get(word, f"a {word}")


def _join(phrases: list[str]) -> str:
    """Phrases with "or" between them; nothing is said twice."""
    kept = list(dict.fromkeys(phrases))
    if any("a path" in phrase for phrase in kept):
        kept = [phrase for phrase in kept if phrase != "a text"]
    for phrase in list(kept):
        kept = ["a list of them" if other == f"a list, each item {phrase}" else other for other in kept]
    return " or ".join(kept)


def _shown(value: Any) -> str:
    """A value for an error: its text if that is short, its class otherwise."""
    text = repr(value) if isinstance(value, str | int | float | bool | None | list | tuple) else ""
    if text and len(text) <= LONGEST_VALUE:
        return text
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    name = type(value).__name__
    return f"{'an' if name[:1] in 'AEIOaeio' else 'a'} {name}"
