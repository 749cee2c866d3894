"""``python -m benchmarks.estimators ROBOT``: estimators beside each other on simulated logs of known truth."""

from __future__ import annotations

import argparse

from benchmarks.estimators.compare_page import comparison_table
from benchmarks.estimators.compared_methods import DEFAULT
from benchmarks.estimators.condition import conditions
from benchmarks.estimators.study import run_study
from benchmarks.estimators.trial import Setting, planted_robot
from dynid.robot import zoo


def main() -> None:
    """Simulate the logs, identify by every method, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("robot", nargs="?", default="gautier_khalil_3r", help="name of a built-in robot")
    parser.add_argument("--noise", nargs="+", type=float, default=[1e-4, 1e-3], help="noise of positions [rad or m]")
    parser.add_argument("--rate", nargs="+", type=float, default=[100.0], help="sampling rates [Hz]")
    parser.add_argument("--gains", nargs="+", type=float, default=[0.0], help="relative errors of the known gains")
    parser.add_argument("--methods", nargs="+", default=DEFAULT, help="estimators; +f for low-pass filtered positions")
    parser.add_argument("--runs", type=int, default=20, help="logs per condition")
    parser.add_argument("--seconds", type=float, default=10.0, help="duration of a log [s]")
    options = parser.parse_args()
    chosen = conditions(position_std=options.noise, rate_hz=options.rate, gain_error=options.gains)
    setting = Setting(robot=planted_robot(zoo.get(options.robot)), duration_s=options.seconds)
    print(comparison_table(run_study(setting, chosen, options.methods, runs=options.runs)).to_text())


if __name__ == "__main__":
    main()
