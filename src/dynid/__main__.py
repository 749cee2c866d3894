"""``python -m dynid``: the command line."""

from dynid.cli import main

if __name__ == "__main__":
    main()
