"""Public functions with one argument of the wrong kind: errors of dynid, or Python's; ``make wrong-calls``.

Every example of a docstring is run once, and the first call of its function is kept. Then each argument in turn is
replaced by a text, None, a number, an object, a mixed list and a short vector. Prints how many of these calls end in an
error of dynid, in an error of Python (which the exit code tells), or in a result, because the value is allowed.
"""

from __future__ import annotations

import contextlib
import doctest
import functools
import inspect
import io
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import dynid
from support.example_names import shared_names

KINDS: dict[str, Any] = {
    "text": "odd.urdf", "none": None, "number": 3.5, "object": object(), "list": [1, "a"], "vector": np.zeros(2),
}  # fmt: skip
"""Values that stand for one argument each."""


def public_functions() -> Iterator[Any]:
    """Every public function once."""
    seen = set()
    for place in ("dynid", *(f"dynid.{package}" for package in dynid.PACKAGES)):
        module = import_module(place)
        for name in module.__all__:
            thing = getattr(module, name, None)
            if inspect.isfunction(thing) and thing not in seen:
                seen.add(thing)
                yield thing


def first_call(function: Any, names: dict[str, Any]) -> inspect.BoundArguments | None:
    """The arguments of the first call of a function in its own example."""
    text = inspect.getdoc(function) or ""
    if ">>>" not in text:
        return None
    calls: list[inspect.BoundArguments] = []

    @functools.wraps(function)
    def noted(*args: Any, **named: Any) -> Any:
        calls.append(inspect.signature(function).bind(*args, **named))
        return function(*args, **named)

    word = function.__name__
    modules = [m for key, m in list(sys.modules.items()) if key.startswith("dynid") and vars(m).get(word) is function]
    for module in modules:
        setattr(module, word, noted)
    try:
        test = doctest.DocTestParser().get_doctest(text, dict(names), word, None, 0)
        with contextlib.redirect_stdout(io.StringIO()):
            doctest.DocTestRunner(verbose=False).run(test, out=lambda _: None)
    finally:
        for module in modules:
            setattr(module, word, function)
    return calls[0] if calls else None


def outcome(function: Any, given: inspect.BoundArguments, name: str, value: Any) -> str:
    """How the call ends with another value: "dynid", "result", or the error of Python."""
    signature = inspect.signature(function)
    changed = signature.bind(*given.args, **given.kwargs)
    many = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
    changed.arguments[name] = (value,) if many else value
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = function(*changed.args, **changed.kwargs)
            if inspect.isgenerator(result):
                list(result)
        return "result"
    except dynid.DynidError:
        return "dynid"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:90]}"


def main() -> int:
    """Try all; the exit code is 1 if Python's own error came through."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    folder = Path(tempfile.mkdtemp())
    names = shared_names(folder)
    os.chdir(tempfile.mkdtemp())
    ends: Counter[str] = Counter()
    functions = [function for function in public_functions() if function.__module__ != "dynid.kernels"]
    tried = 0
    for function in functions:
        given = first_call(function, names)
        tried += given is not None
        for name in () if given is None else given.arguments:
            if inspect.signature(function).parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                continue
            for kind, value in KINDS.items():
                end = outcome(function, given, name, value)
                ends[end if end in ("dynid", "result") else "python"] += 1
                if end not in ("dynid", "result"):
                    print(f"{function.__module__}.{function.__name__}({name}={kind}): {end}")
    print(
        f"{tried} of {len(functions)} public functions have an example; {ends.total()} calls with one wrong argument:"
    )
    print(f"{ends['dynid']} errors of dynid, {ends['python']} errors of Python, {ends['result']} allowed values")
    return int(ends["python"] > 0)


if __name__ == "__main__":
    sys.exit(main())
