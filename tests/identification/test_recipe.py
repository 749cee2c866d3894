"""One recipe: the library and the command give the same numbers, and recipe files are read strictly."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dynid
from dynid.cli import main
from dynid.errors import ArgumentError
from dynid.identification.recipe import Recipe
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot.term_names import add_terms
from dynid.robot.zoo import cylindrical
from dynid.terms.friction import Coulomb, SaturatingViscous, Viscous
from dynid.terms.motors import Offset, RotorInertia
from support.header_styles import write_columns
from support.three_joints import HEADER

MAP_TEXT = """[time]
column = "t"
unit = "s"
[position]
columns = ["q1", "q2", "q3"]
unit = ["rad", "m", "m"]
[effort]
columns = ["tau1", "tau2", "tau3"]
unit = ["N m", "N", "N"]
"""


def test_a_recipe_file_gives_the_recipe_back(tmp_path: Path) -> None:
    recipe = Recipe(springs=("joint1",), band_hz=8.0, cutoff_hz=None, delay_s="auto", hold_out="30%", friction="plain")
    recipe.write(tmp_path / "recipe.toml")
    assert Recipe.read(tmp_path / "recipe.toml") == recipe
    other = Recipe(dead_band=0.0, terms=())
    other.write(tmp_path / "recipe.toml", force=True)
    assert Recipe.read(tmp_path / "recipe.toml") == other
    (tmp_path / "short.toml").write_text('band_hz = 5\nfriction = "plain"\n')
    assert Recipe.read(tmp_path / "short.toml") == Recipe(band_hz=5.0, friction="plain")


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("bandhz = 5", "bandhz", "Did you mean band_hz?"),
        ("band_hz = 'wide'", "band_hz", "Give a number above zero"),
        ("band_hz = true", "band_hz", "Give a number above zero"),
        ("gate = 1", "gate", "Give true or false"),
        ("springs = 'joint1'", "springs", "Give a list"),
        ("cutoff_hz = inf", "cutoff_hz", '"auto"'),
        ("cutoff_hz = 'none", None, "not TOML"),
        ("estimator = 'best'", None, "Known names: feasible"),
        ("terms = ['glue']", None, "rotor-inertia"),
        ("band_hz = -1", None, "band_hz"),
        ("hold_out = 'half'", None, "Write 40% for the last"),
    ],
)
def test_a_wrong_recipe_file_is_refused_by_file_and_key(
    tmp_path: Path, text: str, place: str | None, words: str
) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    with pytest.raises(ArgumentError) as caught:
        Recipe.read(path)
    assert caught.value.path == str(path)
    assert place is None or caught.value.place == place
    assert words in str(caught.value)


def test_words_change_a_recipe() -> None:
    recipe = Recipe().with_words(["band_hz=30", "delay_s=auto", "springs=a,b", "friction=plain", "hold_out=every:3:1"])
    assert recipe == Recipe(band_hz=30.0, delay_s="auto", springs=("a", "b"), friction="plain", hold_out="every:3:1")
    assert Recipe().with_words(["terms=none"]) == Recipe().with_words(["terms="]) == Recipe(terms=())
    with pytest.raises(ArgumentError, match="KEY=VALUE"):
        Recipe().with_words(["band_hz"])


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("friction", "smooth", '"rich"'),
        ("gate", "false", "Give true or false"),
        ("gate", 1, "Give true or false"),
        ("law", 5, "a text or none"),
        ("springs", "yaw", "Give a list"),
        ("springs", (3,), "Give a list"),
    ],
)
def test_a_setting_of_a_wrong_kind_is_refused_by_name(key: str, value: object, words: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        Recipe(**{key: value})  # type: ignore[arg-type]
    assert str(caught.value.place).startswith(key)
    assert words in str(caught.value)


def test_numbers_and_lists_of_other_libraries_are_settings_too() -> None:
    recipe = Recipe(
        band_hz=np.float32(8.0),  # type: ignore[arg-type]
        springs=["joint1"],  # type: ignore[arg-type]
        gate=np.bool_(False),  # type: ignore[arg-type]
        law=Path("law.toml"),  # type: ignore[arg-type]
    )
    assert recipe == Recipe(band_hz=8.0, springs=("joint1",), gate=False, law="law.toml")


def test_a_band_beyond_half_the_sampling_rate_is_refused() -> None:
    robot = cylindrical()
    log = simulate_experiment(robot, sum_of_sines(3, seed=1), rate_hz=250, duration_s=2)
    with pytest.raises(ArgumentError, match=r"9999.* 125 Hz, half the sampling rate"):
        dynid.identify(robot, log, Recipe.bare(band_hz=9999.0, estimator="wls"))


def test_terms_are_added_where_they_are_missing() -> None:
    robot = cylindrical().with_terms(Viscous(0.7))
    found = add_terms(robot)
    assert [type(model) for model in found.moving_joints[0].terms] == [RotorInertia, Viscous, Coulomb, Offset]
    assert found.moving_joints[0].terms[1] == Viscous(0.7)
    assert add_terms(robot, ()) is robot


def test_every_registered_term_of_one_joint_without_a_scale_has_a_name() -> None:
    found = add_terms(cylindrical(), Recipe(terms=("viscous", "saturating-viscous")).terms)
    assert [type(term) for term in found.moving_joints[0].terms] == [Viscous, SaturatingViscous]
    with pytest.raises(ArgumentError, match="there is no 'stribeck'"):
        Recipe(terms=("stribeck",))


def values_of_command(*words: object) -> dict[str, float]:
    result = CliRunner().invoke(main, ["identify", *map(str, words), "--json"])
    assert result.exit_code == 0, result.output
    return {entry["name"]: entry["value"] for entry in json.loads(result.stdout)["base_parameters"]}


def values_of(fit: dynid.Identification) -> dict[str, float]:
    return dict(zip(fit.estimate.names, fit.estimate.values.tolist(), strict=True))


def test_library_and_command_agree_on_a_simulated_log(tmp_path: Path) -> None:
    robot = cylindrical().with_terms(RotorInertia(0.1), Viscous(0.5), Coulomb(0.3), Offset(0.1))
    log = simulate_experiment(robot, sum_of_sines(3, seed=1), rate_hz=100, duration_s=8, noise=Noise(effort=0.05))
    write_columns(tmp_path / "run.csv", [HEADER], [log.time, log.q, log.effort])
    (tmp_path / "map.toml").write_text(MAP_TEXT)
    chart = tomllib.loads(MAP_TEXT)
    dynid.write_urdf(cylindrical(), tmp_path / "arm.urdf")
    by_command = values_of_command(tmp_path / "arm.urdf", tmp_path / "run.csv", "--map", tmp_path / "map.toml",
                                   "--out", tmp_path / "out")  # fmt: skip
    arm = dynid.read_urdf(tmp_path / "arm.urdf")
    assert values_of(dynid.identify(arm, tmp_path / "run.csv", channel_map=chart)) == by_command
    recording = dynid.read_recording(tmp_path / "run.csv", arm, channel_map=chart)
    assert values_of(dynid.identify(arm, [recording])) == by_command
    with pytest.raises(ArgumentError, match="mixed"):
        dynid.identify(arm, [recording, dynid.process(recording)])
    with pytest.raises(ArgumentError, match="splits logs before"):
        dynid.identify(arm, dynid.process(recording), Recipe(hold_out="30%"))
