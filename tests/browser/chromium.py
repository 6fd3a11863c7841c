"""A headless Chromium, driven over its debugging pipe: no library, no port."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions", "about:blank")


class Browser:
    """One page. Close it: its processes end, and its profile is the caller's folder."""

    def __init__(self, profile: Path) -> None:
        assert PROGRAM is not None
        reads, self._commands = os.pipe()
        self._answers, writes = os.pipe()
        # The browser's end is 3 (it reads) and 4 (it writes), whatever numbers we have.
        launch = f'exec 3<&{reads} 4>&{writes}; exec "$0" "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", launch, PROGRAM, "--remote-debugging-pipe", f"--user-data-dir={profile}", *_OPTIONS],
            pass_fds=(reads, writes), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(reads)
        os.close(writes)
        self._buffer, self._number = b"", 0
        self._session: str | None = None
        self.console: list[str] = []
        pages = self._ask("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in pages if one["type"] == "page")
        self._session = self._ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable")

    def close(self) -> None:
        self._session = None
        try:
            self._ask("Browser.close")
            self._process.wait(20)
        finally:
            self._process.kill()
            self._process.wait(20)
            os.close(self._commands)
            os.close(self._answers)

    def open(self, address: str, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        self._ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])
        self._ask("Page.navigate", url=address)
        self.until("document.documentElement.dataset.ready === 'yes'")

    def value(self, expression: str) -> Any:
        """What a JavaScript expression, or promise, comes to."""
        told = self._ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def until(self, expression: str, timeout_s: float = 30) -> None:
        """Wait for an expression to be true; the browser looks at it with every frame."""
        limit = int(timeout_s * 1000)
        waiting = (
            f"new Promise((done) => {{ const end = Date.now() + {limit}; const look = () => {{ let seen = false;"
            f" try {{ seen = !!({expression}); }} catch {{}}"
            " if (seen || Date.now() > end) done(seen); else setTimeout(look, 15); }; look(); })"
        )
        end = time.monotonic() + timeout_s
        while True:
            try:
                assert self.value(waiting), f"never true: {expression}"
                return
            except RuntimeError:  # the page changed under us
                if time.monotonic() > end:
                    raise

    def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self._ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def screenshot(self, path: Path) -> None:
        taken = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    def _ask(self, method: str, **options: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": options}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._number:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                found: dict[str, Any] = told["result"]
                return found
            if told.get("method") == "Runtime.exceptionThrown":
                self.console.append(json.dumps(told["params"]["exceptionDetails"]))
            if told.get("method") == "Log.entryAdded" and told["params"]["entry"]["level"] == "error":
                self.console.append(told["params"]["entry"]["text"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], 60)
            piece = os.read(self._answers, 1 << 16) if ready else b""
            if not piece:
                raise RuntimeError("the browser does not answer")
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found
