"""``python -m papers [PAPER]``: compute the tables and figures of the five papers anew and write them to out/papers."""

from __future__ import annotations

import argparse

from papers import REPRODUCTIONS, reproduce


def main() -> None:
    """Reproduce one paper or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paper", nargs="?", default="all", choices=[*REPRODUCTIONS, "all"])
    parser.add_argument("--quick", action="store_true", help="fewer random draws, for a first look")
    parser.add_argument("--out", default="out/papers", help="folder for the results")
    options = parser.parse_args()
    result = reproduce(
        options.paper,
        options.out,
        lambda done, total, title: print(f"{done + 1}/{total} {title}", flush=True),
        quick=options.quick,
    )
    print(result.summary())
    print(f"written: {options.out}")


if __name__ == "__main__":
    main()
