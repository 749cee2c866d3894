"""All five papers with reduced effort, once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynid.studies.papers import Reproduction, Row, reproduce


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("papers")


@pytest.fixture(scope="session")
def steps() -> list[tuple[int, int, str]]:
    return []


@pytest.fixture(scope="session")
def everything(folder: Path, steps: list[tuple[int, int, str]]) -> Reproduction:
    return reproduce("all", folder, lambda *step: steps.append(step), quick=True)


@pytest.fixture(scope="session")
def rows(everything: Reproduction) -> dict[tuple[str, str], Row]:
    """By paper and by what they compare."""
    return {(part.title.split(":")[0], row.what): row for part in everything.parts for row in part.rows}
