"""Torques of a robot's joints in closed form, as text, LaTeX and Python ([Atkeson1986] appendix I).

    tau_i = sum over the base parameters p_k of  p_k * (polynomial in velocities, accelerations, sines and cosines)

The recorded regressor is multiplied out and collected by base parameter. Closed forms show which motion reveals which
parameter. They grow fast with the number of joints: `dynid.generate_c` gives shorter code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.export.polynomial_text import LATEX, PYTHON, TEXT, PolynomialPrinter
from dynid.kernels import record_quantity, regressor
from dynid.parameters.base import base_parameters
from dynid.parameters.base_set import BaseParameters
from dynid.robot.model import Robot, require_robot
from dynid.safe_text import c_comment
from dynid.tape.expansion import Expansion, expand_tape

WIDTH = 110
"""Longest line of text and code [characters]; convention."""
ROUNDING = 1e-9
"""Part of the largest entry of a regressor that rounding explains (convention: numerical base parameters reach 1e-12).
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TorqueExpressions:
    """Closed-form torques of a robot in terms of its base parameters."""

    robot: Robot
    """The robot; its lengths [m] and its gravity [m/s^2] are numbers in the expressions."""
    base: BaseParameters
    """The parameters p, in the order of the code's argument."""
    expansion: Expansion
    """The regressor (n, b), multiplied out."""

    @property
    def terms(self) -> int:
        """Number of products in all torques together."""
        return self.expansion.terms

    @property
    def values(self) -> Floats:
        """(b,) values of the base parameters of the robot itself, for the argument p of the code."""
        return self.base.project(self.robot.parameter_vector)

    def coefficient(self, joint: str, parameter: str) -> str:
        """Torque of a joint per unit of a base parameter, as text; "0" where it has no effect.

        Raises:
            ArgumentError: There is no such joint or base parameter.
        """
        for given, known in ((joint, self.robot.joint_names), (parameter, self.base.names)):
            if given not in known:
                raise ArgumentError(f"there is no '{given}'", remedy=f"Choose one of {', '.join(known)}.")
        place = self.robot.joint_names.index(joint), self.base.names.index(parameter)
        return PolynomialPrinter(self.expansion, TEXT).polynomial(self._columns[place])

    def text(self) -> str:
        """The torques for people: ``tau1 = ZZR1*(ddq1) + ...``, with s2 and c2 for sine and cosine of q2."""
        printer = PolynomialPrinter(self.expansion, TEXT)
        lines = [f"Joint torques of robot '{self.robot.name}'", ""]
        for joint, torque in enumerate(self._torques(printer, self.base.names), 1):
            whole = f"tau{joint} = {' + '.join(torque) or '0'}"
            lines += [*wrap(whole, WIDTH, subsequent_indent="    ", break_long_words=False), ""]
        lines += [f"{name} = {value}" for name, value in self._definitions(printer)]
        return "\n".join([*lines, "", *self.base.expressions]) + "\n"

    def latex(self) -> str:
        """The torques as an ``align*`` environment of amsmath, one line per parameter."""
        printer = PolynomialPrinter(self.expansion, LATEX)
        names = [_latex_name(name) for name in self.base.names]
        torques = [
            f"\\tau_{{{joint}}} ={{}}& " + " \\\\\n  &+ ".join(torque or ["0"])
            for joint, torque in enumerate(self._torques(printer, names), 1)
        ]
        return "\\begin{align*}\n" + " \\\\\n".join(torques) + "\n\\end{align*}\n"

    def python(self, name: str = "joint_torques") -> str:
        """A Python function ``name(q, dq, ddq, p)`` that returns a list; it needs ``math`` alone."""
        printer = PolynomialPrinter(self.expansion, PYTHON)
        lines = ["import math", "", "", f"def {_checked(name)}(q, dq, ddq, p):"]
        lines += [f'    """Joint torques of robot {c_comment(self.robot.name)}.', ""]
        lines += [*wrap(f"p: {self._names}.", WIDTH, initial_indent="    ", subsequent_indent="        "), '    """']
        lines += [f"    {short} = {value}" for short, value in self._definitions(printer)]
        for joint, torque in enumerate(self._torques(printer, [f"p[{k}]" for k in self._numbers]), 1):
            lines += [f"    tau{joint} = (", *_fold(torque), "    )"]
        lines.append(f"    return [{', '.join(f'tau{joint + 1}' for joint in range(self.robot.dof))}]")
        return "\n".join(lines) + "\n"

    @property
    def _columns(self) -> NDArray[np.object_]:
        return self.expansion.outputs["output"]

    @property
    def _names(self) -> str:
        return ", ".join(self.base.names)

    @property
    def _numbers(self) -> range:
        return range(len(self.base.names))

    def _definitions(self, printer: PolynomialPrinter) -> list[tuple[str, str]]:
        return printer.definitions(list(self._columns.ravel()))

    def _torques(self, printer: PolynomialPrinter, names: Sequence[str]) -> list[list[str]]:
        """For every joint, the products of a parameter and its polynomial that are not zero."""
        left, right = ("\\left(", "\\right)") if printer.language is LATEX else ("(", ")")
        return [
            [
                f"{name}{printer.language.times}{left}{printer.polynomial(column)}{right}"
                for name, column in zip(names, row, strict=True)
                if column
            ]
            for row in self._columns
        ]


def torque_expressions(robot: Robot, base: BaseParameters | None = None) -> TorqueExpressions:
    """Write a robot's joint torques in closed form.

    Args:
        robot: Geometry, gravity and kinds of terms; lengths and gravity become numbers in the expressions.
        base: Base parameters in which the torques are written; by default those of `dynid.base_parameters`.

    Raises:
        ArgumentError: The expressions are too long to be of use, or the base parameters do not determine the torques.

    Example:
        >>> type(dynid.export.torque_expressions(dynid.robots.ddarm())).__name__
        'TorqueExpressions'
    """
    require_robot(robot)
    chosen = base_parameters(robot) if base is None else base
    columns = list(chosen.columns)
    _check_base(robot, chosen)
    tape = record_quantity(robot, "regressor").select({"output": np.s_[..., columns]})
    expansion, mix = expand_tape(tape), np.linalg.inv(chosen.grouping[:, columns])
    if not np.array_equal(mix, np.eye(chosen.rank)):  # a set in which a parameter is no single column
        expansion = expansion.mix("output", np.asarray(mix, dtype=np.float64))
    return TorqueExpressions(robot=robot, base=chosen, expansion=expansion)


def _check_base(robot: Robot, base: BaseParameters) -> None:
    """Refuse base parameters of a smaller motion, such as rest, or of another robot."""
    rng = np.random.default_rng(0)
    columns = list(base.columns)
    if base.grouping.shape[1] == robot.parameter_vector.size:
        Y = regressor(robot, *rng.normal(size=(3, robot.dof)))
        again = Y[:, columns] @ np.linalg.solve(base.grouping[:, columns], base.grouping)
        if np.allclose(Y, again, atol=ROUNDING * float(np.abs(Y).max())):
            return
    raise ArgumentError(
        f"the base parameters do not determine all torques of robot '{robot.name}'",
        remedy="Give base parameters of this robot with all joints in motion, or none.",
    )


def _checked(name: str) -> str:
    if not (name.isascii() and name.isidentifier()):
        raise ArgumentError(f"'{name}' cannot be the name of a function", remedy="Give letters, digits and _.")
    return name


def _latex_name(name: str) -> str:
    """The letters of a parameter in italics, its number as an index."""
    letters = name.rstrip("0123456789")
    number = name[len(letters) :]
    shown = letters.replace("_", "\\_")
    return f"\\mathit{{{shown}}}" + (f"_{{{number}}}" if number else "")


def _fold(summands: Sequence[str]) -> list[str]:
    """A sum over several lines of code, each summand folded at its own signs."""
    whole = " + ".join(summands) or "0.0"
    return wrap(whole, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8, break_long_words=False)
