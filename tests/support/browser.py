"""A headless Chromium to ask questions: the DevTools protocol over two pipes, no library."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

CHROMIUM = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), "")


class Browser:
    """One page in one browser, closed with the ``with`` block."""

    def __init__(self, width: int = 1200, height: int = 900, *, dark: bool = False) -> None:
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        os.set_inheritable(to_read, True)
        os.set_inheritable(to_write, True)
        command = [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
            f"--user-data-dir={self.folder.name}", f"--window-size={width},{height}", "--remote-debugging-pipe",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        ]  # fmt: skip
        shell = ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "browser", *command]
        self.process = subprocess.Popen(shell, close_fds=False, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self._number, self._left, self.events = 0, b"", []
        self.session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._write)
        self.process.terminate()
        self.process.wait(timeout=20)
        os.close(self._read)
        self.folder.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come meanwhile are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            part = os.read(self._read, 1 << 20)
            assert part, "the browser has gone"
            self._left += part
        text, _, self._left = self._left.partition(b"\0")
        message = dict(json.loads(text))
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, page: Path | str) -> None:
        """Load a file or an address and wait for its load event."""
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri() if isinstance(page, Path) else page)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._next()

    def ask(self, script: str) -> Any:
        """The value of an expression; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def complaints(self) -> list[str]:
        """Errors and warnings that the page caused so far."""
        self.ask("1")
        found = []
        for event in self.events:
            data = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(data["exceptionDetails"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and data["type"] in ("error", "warning"):
                found.append(str(data["args"]))
            elif event["method"] == "Log.entryAdded" and data["entry"]["level"] in ("error", "warning"):
                found.append(data["entry"]["text"])
        return found
