"""`inspect_log` proposes a channel map that loads, and says why."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from campaigns.log_writers import planted
from dynid import check_recording, process
from dynid.errors import DataError, LogReadError
from dynid.logs.inspect import inspect_log
from dynid.logs.reading import read_recording
from dynid.processing.simulation import sum_of_sines
from support.header_styles import write_columns

LOG = planted(60)


def propose(path: Path) -> dict[str, object]:
    proposal = inspect_log(path)
    assert all(guess.reason for guess in proposal.guesses)
    assert proposal.toml in str(proposal)
    return tomllib.loads(proposal.toml)


@pytest.mark.parametrize(
    ("header", "scale", "section", "unit", "certain"),
    [
        ("q1 [deg],q2 [deg]", 1, "position", "deg", True),
        ("q_1,q_2", 100, "position", "deg", False),
        ("pos_deg_1,pos_deg_2", 1, "position", "deg", False),
        ("joint_1,joint_2", 1, "position", "rad", False),
        ("tau1,tau2", 1, "effort", "N m", False),
        ("torque 1 (N mm),torque 2 (N mm)", 1, "effort", "N mm", True),
        ("current_1,current_2", 1, "current", "A", False),
        ("dq0,dq1", 1, "velocity", "rad/s", False),
    ],
)
def test_units_are_guessed_with_a_reason(
    header: str, scale: float, section: str, unit: str, certain: bool, tmp_path: Path
) -> None:
    path = tmp_path / "log.csv"
    values = scale * LOG.q[:, :2] / np.abs(LOG.q[:, :2]).max()
    write_columns(path, [header], [values])
    proposal = inspect_log(path)
    assert tomllib.loads(proposal.toml)[section]["unit"] == unit
    guess = next(guess for guess in proposal.guesses if guess.section == section and guess.text.startswith("unit"))
    assert guess.certain == certain


@pytest.mark.parametrize(("factor", "unit"), [(1, "s"), (1e3, "ms"), (1e6, "us"), (1e9, "ns")])
def test_unit_of_time(factor: float, unit: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "log.npz", time=LOG.time * factor, q=LOG.q)
    assert propose(tmp_path / "log.npz")["time"]["unit"] == unit  # type: ignore[index]


def test_wide_arrays_several_files_and_wrench(tmp_path: Path) -> None:
    np.savez(tmp_path / "wide.npz", t=LOG.time, q=LOG.q.T, w=LOG.wrench)
    np.savez(tmp_path / "plain.npz", t=LOG.time, q=LOG.q.T)
    assert propose(tmp_path / "wide.npz")["position"]["transpose"]  # type: ignore[index]
    assert propose(tmp_path / "wide.npz")["wrench"]["columns"] == "w"  # type: ignore[index]
    write_columns(tmp_path / "ft.csv", ["Fx", "Fy", "Fz", "Tx", "Ty", "Tz"], [LOG.wrench])
    proposal = tomllib.loads(inspect_log([tmp_path / "plain.npz", tmp_path / "ft.csv"]).toml)
    assert proposal["files"] == {"file1": "plain.npz", "file2": "ft.csv"}
    assert proposal["wrench"]["columns"][0] == "Fx"


def test_odd_names_make_valid_toml(tmp_path: Path) -> None:
    np.savez(tmp_path / "log.npz", **{'pos"\n\\1': LOG.q[:, 0], "q": LOG.q})
    assert "position" in propose(tmp_path / "log.npz")
    with pytest.raises(LogReadError):
        inspect_log(tmp_path / "none.csv")


def test_columns_without_names_get_a_hint_that_works(tmp_path: Path) -> None:
    values = np.column_stack([np.arange(40) / 100.0, np.random.default_rng(0).normal(size=(40, 18))])
    np.save(tmp_path / "run.npy", values)
    np.savetxt(tmp_path / "run.txt", values)
    for name in ("run.npy", "run.txt"):
        hint = inspect_log(tmp_path / name).toml.replace("# [", "[").replace("# col", "col").replace("# unit", "unit")
        chosen = tomllib.loads(hint.replace('unit = "ms"\n', ""))
        np.testing.assert_allclose(read_recording(tmp_path / name, channel_map=chosen).q, values[:, 1:7])


def test_a_log_with_one_row_says_so(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("time,q1,q2,tau1,tau2\n0,1,2,3,4\n")
    assert any("one row" in note for note in inspect_log(path).notes)
    units = {"position": "rad", "effort": "N m"}
    columns = {"position": "q{1..2}", "effort": "tau{1..2}"}
    chosen = {"time": {"column": "time", "unit": "s"}, **{k: {"columns": columns[k], "unit": units[k]} for k in units}}
    recording = read_recording(path, channel_map=chosen)
    with pytest.raises(DataError, match=r"the log has one row\. Record a motion"):
        process(recording)
    assert "the log has one row" in [finding.message for finding in check_recording(recording).findings]


def test_the_map_leaves_places_for_torque_constants(tmp_path: Path) -> None:
    names = ["timestamp", *(f"actual_{part}_{j}" for part in ("q", "qd", "current") for j in range(6))]
    values = np.arange(20 * 19).reshape(20, 19) / 1000.0
    write_columns(tmp_path / "ur.csv", names, [values])
    toml = inspect_log(tmp_path / "ur.csv").toml
    assert 'torque_constant = ["?", "?", "?", "?", "?", "?"]' in toml
    (tmp_path / "map.toml").write_text(toml)
    place = r"map\.toml: \[current\] torque_constant: fill in torque_constant \(N m/A\) of the 6 joints"
    with pytest.raises(DataError, match=place):
        read_recording(tmp_path / "ur.csv", channel_map=tmp_path / "map.toml")
    write_columns(tmp_path / "ur.csv", names[:-1], [values[:, :-1]])
    proposal = inspect_log(tmp_path / "ur.csv")  # one current is missing
    assert "[current] not mapped: actual_current_0" in proposal.explanation
    assert "current" not in tomllib.loads(proposal.toml)


@pytest.mark.parametrize("position", ["rad", "deg", "°"])
def test_velocities_have_the_unit_of_the_positions(position: str, tmp_path: Path) -> None:
    time = np.arange(1000) / 100.0
    q, dq, _ = sum_of_sines(3, amplitude=1.5, seed=4)(time)
    written = [x * (1.0 if position == "rad" else 180.0 / np.pi) for x in (q, dq)]
    np.savez(tmp_path / "log.npz", time=1e3 * time, dq=written[1], **{"q [°]" if position == "°" else "q": written[0]})
    recording = read_recording(tmp_path / "log.npz", channel_map=propose(tmp_path / "log.npz"))
    np.testing.assert_allclose(recording.q, q)
    np.testing.assert_allclose(recording.dq, dq)
