"""The command line: one sub-command per verb. Only this folder prints and exits.

Exit codes are in `dynid.cli.group`. Heavy imports happen inside the commands, so that ``dynid --help`` is instant.
"""

from __future__ import annotations

import gc
import os
import sys

gc.set_threshold(100_000, 50, 100)  # imports make many objects that stay: a search for unused cycles would find none
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # read once, when NumPy is loaded
    os.environ.setdefault(_name, "1")  # small problems take longer with threads, and the last bits depend on them

try:
    import click

    from dynid.cli.group import EXIT_CODES, ErrorGroup
    from dynid.cli.verbs import folder_verbs, model_verbs, run_verbs, tool_verbs
except KeyboardInterrupt:  # no command has started that could report it
    sys.stderr.write("dynid: interrupted. Nothing was started.\n")
    sys.exit(130)

__all__ = ["main"]

EXAMPLES = """\b
Examples:
  dynid demo
  dynid base puma560
  dynid inspect run1.csv > map.toml
  dynid identify arm.urdf run1.csv --map map.toml --out result
  dynid validate result/ run9.csv --map map.toml"""


@click.group(
    cls=ErrorGroup, context_settings={"help_option_names": ["-h", "--help"]}, epilog=f"{EXAMPLES}\n\n{EXIT_CODES}"
)
@click.version_option(package_name="dynid")
@click.option("--allow-unphysical", is_flag=True,
              help="Use robot files with impossible masses or tensors as they are; may also be written after the "
              "name of the command.")  # fmt: skip
@click.option("--no-snap", is_flag=True, help="Take rounded right angles of URDF files (1.5708) as they are "
              "written; may also be written after the name of the command.")  # fmt: skip
@click.option("--verbose", is_flag=True, help="Print all findings and details, not only the verdict; may also be "
              "written after the name of the command.")  # fmt: skip
def main(no_snap: bool, allow_unphysical: bool, verbose: bool) -> None:
    """Identify the dynamics of robots from logs of their motion.

    ROBOT is a file (.urdf; .xml or .mjcf for MJCF; .toml for a DH table) or the name of a built-in robot: dynid
    robots lists them.
    """


for _verbs in (model_verbs, run_verbs, folder_verbs, tool_verbs):
    for _command in [item for item in vars(_verbs).values() if isinstance(item, click.Command)]:
        main.add_command(_command)
