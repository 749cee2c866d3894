"""``python -m dynid``: the command line."""

import sys

if __name__ == "__main__":
    try:
        from dynid.cli import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        # An interrupt within code made from text, such as a dataclass, leaves a mark in CPython, although it is caught:
        # `python -m` would end by the signal instead of with our code. Running any text removes the mark.
        exec("")
