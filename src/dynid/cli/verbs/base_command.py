"""dynid base and dynid robots: which parameters can be identified, and the built-in robots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dynid import errors
from dynid.cli.options import JSON, command, robot_argument
from dynid.cli.screen import echo, print_json, wrap_lines

if TYPE_CHECKING:
    from dynid.robot.model import Robot


@command("dynid robots --json")
@JSON
def robots(as_json: bool) -> None:
    """List the built-in robots."""
    from dynid.robot import zoo

    if as_json:
        print_json(list(zoo.names()))
        return
    for name in zoo.names():
        echo(f"{name:22s} {zoo.get(name)!r}")


@command("dynid base puma560 --format markdown", "dynid base arm.urdf --usual-terms --json",
         "dynid base ddarm --torques latex")  # fmt: skip
@robot_argument
@click.option("--method", type=click.Choice(["auto", "closed-form", "minimal-combinations", "numeric", "structural"]),
              default="auto", show_default=True, help="Method that finds the base parameters.")  # fmt: skip
@click.option("--format", "style", type=click.Choice(["text", "markdown", "latex", "json"]), default="text",
              show_default=True, help="Format of the output.")  # fmt: skip
@JSON
@click.option(
    "--unmoved",
    multiple=True,
    metavar="JOINT",
    help="Joint that does not move in the logs; its link stays a body of its own (unlike --hold); repeatable.",
)
@click.option("--static", is_flag=True, help="Assume that the robot stands still, in any number of poses.")
@click.option("--usual-terms", is_flag=True,
              help="Add rotor inertia, viscous and dry friction and offset to every joint.")  # fmt: skip
@click.option("--frames", type=click.Choice(["body", "distal"]), default="body", show_default=True,
              help="Frames of the links: the robot's own, or standard DH frames at their far ends.")  # fmt: skip
@click.option("--counts", is_flag=True, help="Also print the operation count of inverse dynamics.")
@click.option("--torques", type=click.Choice(["text", "latex", "python"]),
              help="Print the joint torques as formulas of the base parameters instead.")  # fmt: skip
def base(
    robot: Robot,
    method: str,
    style: str,
    as_json: bool,
    unmoved: tuple[str, ...],
    static: bool,
    usual_terms: bool,
    frames: str,
    counts: bool,
    torques: str | None,
) -> None:
    """Show which parameters can be identified.

    Parameters that cannot be separated are shown as combinations.
    """
    from dynid.export.formulas import torque_expressions
    from dynid.parameters.base import base_parameters
    from dynid.parameters.dh_frames import distal_base_parameters, has_closed_form
    from dynid.parameters.minimal_dynamics import count_inverse_dynamics, steps_table
    from dynid.robot.term_names import add_terms

    style = "json" if as_json else style
    if counts and style != "text":
        raise errors.ArgumentError("--counts prints text only", remedy="Use it with --format text.")
    model = add_terms(robot) if usual_terms else robot
    chosen: Any = None if method == "auto" else method
    if torques is not None and (unmoved or static or counts or style != "text"):
        raise errors.ArgumentError(
            "--torques excludes --unmoved, --static, --counts and --format",
            remedy="Give --torques with --method and --usual-terms only.",
        )
    if frames == "distal" and (unmoved or static or torques is not None or chosen is not None):
        raise errors.ArgumentError(
            "--frames distal excludes --method, --unmoved, --static and --torques",
            remedy="Leave them out, or use the robot's own frames.",
        )
    if frames == "distal":
        result = distal_base_parameters(model).base
    else:
        result = base_parameters(model, method=chosen, unmoved=unmoved, static=static)
    if torques is not None:
        formulas = torque_expressions(model, result)
        echo(getattr(formulas, torques)().rstrip("\n"))
        return
    render = {"text": result.to_text, "markdown": result.to_markdown, "latex": result.to_latex, "json": result.to_json}
    shown = render[style]()
    echo(wrap_lines(shown, tables=False) if style == "text" else shown)
    if counts:
        echo(f"\nInverse dynamics of this robot's links: {count_inverse_dynamics(robot)}")
        if has_closed_form(robot.with_terms()):
            cost = count_inverse_dynamics(robot, form="minimal")
            echo(f"In minimal linear combinations: {cost}\n\n{steps_table(robot)}")
