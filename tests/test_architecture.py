"""The house rules, held by a walk over the syntax trees: layers, cycles, print and exit, public names, sizes."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import dynid

ROOT = Path(dynid.__file__).parent
LAYERS = [
    ["errors"],
    ["findings"],
    ["tables"],
    ["files"],
    ["plain_data"],
    ["spatial"],
    ["checks"],
    ["settings"],
    ["terms"],
    ["robot"],
    ["dynamics", "tape"],
    ["kernels"],
    ["information"],
    ["parameters"],
    ["excitation"],
    ["loop"],
    ["logs"],
    ["processing"],
    ["gate"],
    ["estimation"],
    ["links"],
    ["load"],
    ["export"],
    ["report"],
    ["studies"],
    ["__init__"],
    ["cli"],
    ["__main__"],
]
"""From the ground up; a module may import its own layer's folder and lower layers; siblings in one layer never meet."""
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
FILES = sorted(ROOT.rglob("*.py"))
LONGEST_FILE, LONGEST_BODY = 600, 60


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


def imports(path: Path) -> Iterator[str]:
    """Modules of the package that a file imports at run time, lazily or not."""
    for node in _run_time_nodes(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("dynid"))
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dynid"):
            for alias in node.names:
                candidate = f"{node.module}.{alias.name}"
                yield candidate if _is_module(candidate) else node.module


def _run_time_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _run_time_nodes(child)


def _is_module(name: str) -> bool:
    path = ROOT.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def layer(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def test_every_top_level_module_has_a_layer() -> None:
    present = {path.stem if path.is_file() else path.name for path in ROOT.iterdir() if _is_source(path)}
    assert present <= set(LEVEL), f"no layer for {present - set(LEVEL)}"


def _is_source(path: Path) -> bool:
    return path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").exists())


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    here = layer(module_name(path))
    for target in imports(path):
        there = layer(target)
        assert there == here or LEVEL[there] < LEVEL[here], f"{module_name(path)} imports {target}"


def test_no_import_cycles() -> None:
    graph = {module_name(path): set(imports(path)) - {module_name(path)} for path in FILES}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join((*trail[trail.index(module) :], module))
        if module in done:
            return
        for target in graph.get(module, set()):
            visit(target, (*trail, module))
        done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_command_line_prints_and_exits(path: Path) -> None:
    if path.parent.name == "cli" or path.name == "__main__.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name not in ("print", "exit", "quit", "sys.exit", "os._exit", "eval", "exec"), f"line {node.lineno}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_sizes_stay_within_the_budget(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= LONGEST_FILE
    assert "TODO" not in text
    assert "FIXME" not in text
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            assert (node.end_lineno or 0) - first.lineno < LONGEST_BODY, f"{node.name}, line {node.lineno}"


def test_public_names_resolve() -> None:
    for name in dynid.__all__:
        assert getattr(dynid, name) is not None
    for info in pkgutil.walk_packages(dynid.__path__, "dynid."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{info.name}.{name}"
