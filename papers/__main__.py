"""``python -m papers [PAPER ...]``: compute the tables and figures of the papers anew and write them to out/papers."""

from __future__ import annotations

import argparse
from pathlib import Path

from papers import PAPERS, count_verdicts, reproduce, write_results


def main() -> None:
    """Reproduce some papers or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("papers", nargs="*", help=f"of {', '.join(PAPERS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer random draws, for a first look")
    parser.add_argument("--out", type=Path, default=Path("out/papers"), help="folder for the results")
    options = parser.parse_args()
    if unknown := set(options.papers) - set(PAPERS):
        parser.error(f"there is no paper {', '.join(sorted(unknown))}; choose of {', '.join(PAPERS)}")
    found = reproduce(options.papers or list(PAPERS), quick=options.quick, tell=lambda text: print(text, flush=True))
    write_results(found, options.out)
    for name, (_, parts) in found.items():
        counts = count_verdicts([row for part in parts for row in part.rows])
        print(f"{name}: {', '.join(f'{count} {verdict}' for verdict, count in counts.items() if count)}")
    print(f"written: {options.out}")


if __name__ == "__main__":
    main()
