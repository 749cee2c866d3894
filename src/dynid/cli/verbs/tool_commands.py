"""Commands about dynid itself: demo, doctor, completion."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dynid.cli.options import FORCE, JSON, command
from dynid.cli.screen import echo, print_json


@command("dynid demo", "dynid demo --seed 3 --out out/third")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out/demo"),
    show_default=True,
    help="Folder for the results.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of all random numbers.")
@FORCE
@JSON
def demo(out: Path, seed: int, force: bool, as_json: bool) -> None:
    """Run the whole workflow on a simulated arm.

    The true parameters are known. The exit code is 1 if the result fails its validation.
    """
    from dynid.cli.demo import run_demo
    from dynid.export.result_file import result_json
    from dynid.runs.run_folder import claim_folder

    claim_folder(out, "demo", force=force or _is_default("out"))
    result = run_demo(out, lambda line: echo(f"- {line}", err=as_json), seed=seed)
    if as_json:
        print_json({**result_json(result.fit, result.check), "seconds": result.seconds, "report": str(result.report)})
    else:
        echo("")
        echo(result.text())
    sys.exit(0 if result.passed else 1)


@command("dynid doctor --json")
@JSON
def doctor(as_json: bool) -> None:
    """Show the versions of dynid, its packages and compilers."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from dynid import __version__
    from dynid.export.c.c_check import find_compiler
    from dynid.kernels import kernel
    from dynid.robot.zoo import puma560

    packages: dict[str, str | None] = {}
    optional = ("h5py", "pyarrow", "mcap", "mujoco", "matplotlib", "casadi", "usd-core")
    for name in ("numpy", "scipy", "llvmlite", "clarabel", *optional):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    made = kernel(puma560(), "inverse_dynamics")
    compiler = find_compiler()
    if as_json:
        machine = {"python": platform.python_version(), "system": platform.system(), "machine": platform.machine()}
        found = {"dynid": __version__, **machine, "packages": packages, "kernels": made.program.backend}
        print_json({**found, "c_compiler": None if compiler is None else str(compiler)})
        return
    echo(f"dynid {__version__}, Python {platform.python_version()}, {platform.machine()} {platform.system()}")
    for name, found_version in packages.items():
        echo(f"  {name:12s} {found_version or 'not installed'}")
    echo(f"kernels run by {made.program.backend}: PUMA 560 inverse dynamics in {made.count}")
    echo(f"C compiler: {compiler or 'none (only needed to verify generated code)'}")


@command(
    "dynid completion bash >> ~/.bashrc",
    "dynid completion zsh >> ~/.zshrc",
    "dynid completion fish > ~/.config/fish/completions/dynid.fish",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a shell script that completes commands and options.

    It also completes files and the names of built-in robots.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    scripted = kind(root, {}, "dynid", "_DYNID_COMPLETE")
    echo(scripted.source_template % scripted.source_vars())


def _is_default(name: str) -> bool:
    """Whether an option of the present command has its default value; the default folder belongs to dynid."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.DEFAULT
