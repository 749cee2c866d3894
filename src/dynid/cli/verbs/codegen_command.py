"""dynid codegen: write C code of a run or of a robot."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid import errors
from dynid.cli.options import FORCE, HOLD, JSON, OUT, command, held_joints, read_robot
from dynid.cli.screen import echo, print_json
from dynid.cli.verbs.run_commands import invoke, safe_arguments

if TYPE_CHECKING:
    from dynid.export.result_file import SavedResult
    from dynid.links.pruning import PrunedRobot
    from dynid.robot.model import Robot


@command(
    "dynid codegen result/ --out arm_dynamics",
    "dynid codegen arm.urdf --functions gravity,friction --out arm_dynamics",
    "dynid codegen ur10 --precision float --load --out ur10_dynamics",
    "dynid codegen result/ --prune 1% --out short_dynamics",
)
@click.argument("model", metavar="RUN|ROBOT")
@HOLD
@OUT
@click.option(
    "--functions",
    default="inverse_dynamics,inertia_matrix,gravity,velocity_torque,friction",
    metavar="NAME[,NAME...]",
    help="Functions to write: inverse_dynamics, inertia_matrix, gravity, velocity_torque, friction (these by default); "
    "also available: christoffel_coefficients, forward_dynamics, energy, regressor, external_torque, observer_step.",
)
@click.option(
    "--precision",
    type=click.Choice(["double", "float"]),
    default="double",
    show_default=True,
    help="Type of the numbers in the code.",
)
@click.option(
    "--parameters",
    type=click.Choice(["folded", "struct"]),
    default="folded",
    show_default=True,
    help="Write parameters as constants (folded), or in a struct that can change at run time.",
)
@click.option("--load", is_flag=True, help="Add a load on the last link that can change at run time.")
@click.option(
    "--prune",
    metavar="PERCENT",
    help="Write the short model of a run: without the parameters that contribute less than this part of a joint's "
    "largest torque, such as 1%, fitted again. Repeats the identification unless the run had the same --significant.",
)
@click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Compile the code with the system's compiler, and compare it with the model.",
)
@FORCE
@JSON
def codegen(
    model: str,
    hold: tuple[str, ...],
    out: Path,
    functions: str,
    precision: Any,
    parameters: Any,
    load: bool,
    prune: str | None,
    verify: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write C99 code of a robot's dynamics, with a self-test.

    The code runs in real time. RUN is a folder that dynid identify wrote, or its result.json; the code then contains
    everything that was identified. The code of a ROBOT contains what its file states; URDF files cannot state rotor
    inertias and offsets.
    """
    from dynid.export.c.c_check import find_compiler
    from dynid.export.c.c_package import generate_c

    source = _source(model, hold)
    pruned = None if prune is None else _pruned(Path(model), source, prune)
    code = generate_c(
        pruned or source,
        [name.strip() for name in functions.split(",") if name.strip()],
        precision=precision,
        parameters=parameters,
        load="struct" if load else None,
    )
    if (out / "run.json").exists():
        remedy = f"Give the code a folder of its own, such as --out {out.name}_code."
        raise errors.ArgumentError(
            f"'{out}' is the folder of a run, and C files would mix with its files", remedy=remedy
        )
    compiled = verify and find_compiler() is not None
    if compiled:
        code.check(samples=200)
    code.write(out, force=force)
    summary = code.summary() + (f"\n\n{pruned.cost}\n" if pruned is not None and pruned.cost else "")
    if as_json:
        said = {"folder": str(out), "compiled_and_compared": compiled, "summary": summary.splitlines()}
        print_json(said | {"warnings": [" ".join(code.warnings)] if code.warnings else []})
        return
    echo(summary)
    state = "compiled and compared with the model" if compiled else "not compiled"
    if verify and not compiled:
        state += ": there is no C compiler; install gcc or clang, or set CC"
    echo(f"written: {out} ({state})")
    if code.warnings:
        echo(f"{code.warnings[0]} Read the summary above before you use the code.", err=True)


def _source(name: str, hold: tuple[str, ...]) -> Robot | SavedResult:
    """Read a result from its folder or file, or a robot."""
    from dynid.export.result_file import read_result
    from dynid.robot import zoo

    path = Path(name)
    folder = path.is_dir() and (name not in zoo.names() or (path / "result.json").exists())
    if not folder and path.suffix.lower() != ".json":
        return read_robot(name, held_joints(hold))
    if hold:
        raise errors.ArgumentError(
            "--hold applies to robot files, but this is a result", remedy="Use --hold with dynid identify."
        )
    return read_result(path)


def _pruned(path: Path, source: Robot | SavedResult, share: str) -> PrunedRobot:
    """The significant parameters of a run; the identification is repeated if the run was made with another share."""
    import tempfile

    from dynid.export.result_file import SavedResult, read_result
    from dynid.links.pruning import read_share
    from dynid.runs.run_folder import read_run

    wanted = f"{100 * read_share(share):g}%"
    if not isinstance(source, SavedResult):
        remedy = "Give a run of dynid identify; for planned motions of a robot use dynid.export.prune in Python."
        raise errors.ArgumentError("--prune needs the data of a run, and this is a robot", remedy=remedy)
    if source.significant == wanted:
        return source.pruned()
    folder = path if path.is_dir() else path.parent
    facts = read_run(folder)
    if facts["verb"] != "identify" or facts["arguments"] is None:
        remedy = f"Repeat it in Python: fit.with_significant('{wanted}')."
        raise errors.DataError("the run was not made by dynid identify", path=folder, remedy=remedy)
    echo(f"the identification is repeated with --significant {wanted}", err=True)
    with tempfile.TemporaryDirectory() as temporary:
        target = Path(temporary) / "run"
        words = [*safe_arguments(facts, folder), "--significant", wanted, "--out", str(target)]
        if (code := invoke(words)) > 1:
            sys.exit(code)
        return read_result(target).pruned()
