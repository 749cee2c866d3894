"""Every optional dependency is used by the code, and every optional library that the code names can be installed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
MODULES = {
    "pin": "pinocchio", "pytest-xdist": "-n 2",
    "example-robot-data": "example_robot_data",
}  # fmt: skip
"""Package -> what names it in the code, where that is not its own name."""


def packages(extra: str) -> list[str]:
    return [re.split(r"[><=\[; ]", wanted)[0] for wanted in EXTRAS[extra] if not wanted.startswith("dynid[")]


def text_of(*places: str) -> str:
    files = [file for place in places for file in sorted((ROOT / place).rglob("*")) if file.suffix in (".py", ".toml")]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


@pytest.fixture(scope="module")
def source() -> str:
    return text_of("src", "examples", "benchmarks")


@pytest.mark.parametrize("extra", [name for name in EXTRAS if name not in ("all", "docs", "test")])
def test_every_extra_is_used_by_the_code(extra: str, source: str) -> None:
    for package in packages(extra):
        module = re.escape(MODULES.get(package, package))
        pattern = rf"^[ \t]*(?:import|from) {module}\b|[\"']{module}[\"'.]"
        assert re.search(pattern, source, re.MULTILINE), f"nothing imports {package} of the extra {extra}"


def test_every_named_extra_exists(source: str) -> None:
    named = set(re.findall(r"dynid\[([a-z0-9]+)\]", source)) - {"extra"}
    assert {"casadi", "readers"} <= named <= set(EXTRAS)


def test_the_conda_recipe_has_the_requirements_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    run = re.findall(r"^ {4}- (.+)$", recipe.split("  run:\n")[1].split("\n\n")[0], re.M)
    names = {"msgspec": "msgspec-python"}  # what conda-forge calls it
    wanted = [re.split("(?=[><=])", package, maxsplit=1) for package in project["dependencies"]]
    assert run == ["python " + project["requires-python"], *(f"{names.get(p, p)} {v}" for p, v in wanted)]
    assert f'version: "{project["version"]}"' in recipe
