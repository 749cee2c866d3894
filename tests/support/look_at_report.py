"""Pictures of a report in a real browser: ``python tests/support/look_at_report.py RESULT/report.html FOLDER``.

Writes the page at 1400 and 400 px in light and dark, in pieces of a screen each, and as it is printed (PDF). Prints
what the browser complains about and whether anything is wider than the window.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.browser import Browser

HEIGHT = {1400: 1800, 400: 2000}
"""Width of a window -> height of one picture [px]."""


def main() -> int:
    """Take the pictures; the exit code is 1 if the browser complains or a part is too wide."""
    page, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    bad = False
    for width, height in HEIGHT.items():
        for dark in (False, True):
            with Browser(width, height, dark=dark) as browser:
                browser.open(page)
                browser.ask('window.dispatchEvent(new Event("beforeprint")); 1')  # draws the curves below the window
                total, wide = browser.ask(
                    "[document.documentElement.scrollHeight, document.documentElement.scrollWidth]"
                )
                for number, top in enumerate(range(0, total, height)):
                    clip = {"x": 0, "y": top, "width": width, "height": min(height, total - top), "scale": 1}
                    data = browser.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
                    name = f"{width}-{'dark' if dark else 'light'}-{number}.png"
                    (folder / name).write_bytes(base64.b64decode(data))
                complaints = browser.complaints()
                if width == 1400 and not dark:
                    paper = browser.call("Page.printToPDF", printBackground=True)["data"]
                    (folder / "printed.pdf").write_bytes(base64.b64decode(paper))
            print(
                f"{width} px, {'dark' if dark else 'light'}: {total} px high, {wide} px wide, complaints: {complaints}"
            )
            bad |= bool(complaints) or wide > width
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
