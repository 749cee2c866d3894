"""Tables for other programs: read back by pandas, pyarrow and the csv module, and compared with the result itself."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import dynid
from dynid.cli import main
from dynid.export.data_tables import (
    parameter_table,
    prediction_table,
    result_tables,
    signal_tables,
    write_table,
    write_tables,
)
from support.small_fit import small_fit
from support.written_loads import write_load


def test_parameters_have_value_unit_interval_and_status() -> None:
    fit, _ = small_fit()
    columns = parameter_table(fit)
    assert tuple(columns["parameter"]) == fit.estimate.names
    np.testing.assert_array_equal(columns["value"], fit.estimate.values)
    np.testing.assert_allclose(columns["upper_95"] - columns["lower_95"], 2 * 1.96 * columns["std"], rtol=1e-3)
    assert set(columns["status"]) == {"data"}


def test_what_the_motion_leaves_open_has_no_interval() -> None:
    fit, _ = small_fit()
    open_ones = fit.estimate.undetermined.copy()
    open_ones[3] = True
    estimate = replace(fit.estimate, undetermined=open_ones, prior_dominated=(fit.estimate.names[1],))
    columns = parameter_table(replace(fit, estimate=estimate))
    assert list(columns["status"][:4]) == ["data", "prior", "data", "unidentifiable"]
    assert np.isnan(columns["std"][3])
    assert np.isnan(columns["lower_95"][3])
    assert np.isfinite(columns["std"][1])


def test_status_of_standard_parameters_is_that_of_the_regressor() -> None:
    """Columns of the regressor by themselves: zero ones never act; independent ones are determined alone."""
    fit, run = small_fit()
    columns = parameter_table(fit, "standard")
    stacked = np.concatenate(dynid.regressor(fit.robot, run.q, run.dq, run.ddq))
    rank = np.linalg.matrix_rank(stacked)
    for j, status in enumerate(columns["status"]):
        alone = np.linalg.matrix_rank(np.delete(stacked, j, axis=1)) < rank
        assert alone == (status == "data"), columns["parameter"][j]
        assert (np.abs(stacked[:, j]).max() < 1e-12) == (status == "unidentifiable"), columns["parameter"][j]
    assert np.isfinite(columns["std"]).tolist() == (columns["status"] == "data").tolist()
    np.testing.assert_array_equal(columns["prior"], fit.robot.parameter_vector)


def test_parquet_holds_the_same_numbers_and_units(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    fit, run = small_fit()
    table = prediction_table(fit, run)
    frame = pd.read_parquet(write_table(table, tmp_path / "prediction.parquet"))
    pd.testing.assert_frame_equal(frame, table, check_exact=True)
    assert frame.attrs["units"]["residual_joint1"] == "N m"
    assert frame.attrs["robot"] == "ddarm"
    np.testing.assert_allclose(
        frame["measured_joint1"] - frame["residual_joint1"], fit.torque(run)[:, 0], rtol=0, atol=1e-12
    )


def test_csv_keeps_every_digit_and_names_units(tmp_path: Path) -> None:
    _, run = small_fit()
    (table,) = signal_tables(run, dynid.robots.ddarm())
    with write_table(table, tmp_path / "run.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0][0] == "time [s]"
    assert "dq_joint3 [rad/s]" in rows[0]
    column = rows[0].index("effort_joint2 [N m]")
    found = [float(row[column]) if row[column] else np.nan for row in rows[1:]]
    np.testing.assert_array_equal(found, run.effort[:, 1])
    assert {row[rows[0].index("valid_joint1")] for row in rows[1:]} <= {"True", "False"}


def test_slides_have_metres_and_other_clocks_tables_of_their_own() -> None:
    scara = dynid.robots.scara()
    time = np.arange(5.0)
    log = dynid.Recording(
        time=time, q=np.zeros((5, 4)), effort=np.ones((9, 4)), effort_time=np.arange(9.0) / 2, wrench=np.ones((5, 6))
    )
    motion, effort = signal_tables(log, scara)
    assert (len(motion), len(effort)) == (5, 9)
    sliding = [body.is_prismatic for body in scara.bodies].index(True)
    name = log.joint_names[sliding]
    assert motion.attrs["units"][f"q_{name}"] == "m"
    assert effort.attrs["units"][f"effort_{name}"] == "N"
    assert motion.attrs["units"]["wrench_mz"] == "N m"


def test_without_pyarrow_tables_are_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dynid.export import data_tables

    fit, run = small_fit()
    monkeypatch.setattr(data_tables, "find_spec", lambda name: None)
    files = write_tables(result_tables(fit, [run]), tmp_path)
    assert [file.name for file in files] == ["parameters.csv", "standard_parameters.csv", "prediction_1.csv"]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(dynid.errors.ArgumentError, match=r"dynid\[readers\]"):
        write_tables(result_tables(fit), tmp_path, kind="parquet")
    with pytest.raises(dynid.errors.ExportError, match="exists"):
        write_tables(result_tables(fit), tmp_path, kind="csv")
    with pytest.raises(dynid.errors.ExportError, match=r"\.parquet or \.csv"):
        write_table(parameter_table(fit), tmp_path / "parameters.xlsx")


def test_a_load_is_a_table_of_ten_parameters(tmp_path: Path) -> None:
    body = dynid.Inertia.from_com(2.5, [0.01, -0.03, 0.09], np.diag([0.012, 0.02, 0.025]))
    some = np.array([True, *9 * [False]])
    load = dynid.Load(frame="tool0", vector=body.vector, covariance=1e-6 * np.eye(10), undetermined=some)
    columns = parameter_table(load)
    np.testing.assert_array_equal(columns["value"], body.vector)
    assert columns["status"].tolist() == ["unidentifiable", *9 * ["data"]]
    np.testing.assert_allclose(columns["std"][1:], 1e-3)
    arguments = ["export", str(write_load(tmp_path, load)), "--to", "csv", "--out", str(tmp_path / "tables")]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader((tmp_path / "tables" / "load.csv").read_text().splitlines()))
    assert [float(row["value"]) for row in rows[1:]] == body.vector[1:].tolist()
