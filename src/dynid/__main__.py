"""``python -m dynid``: the command line."""

import sys

if __name__ == "__main__":
    try:
        from dynid.cli import main
    except KeyboardInterrupt:
        sys.exit(130)
    main()
