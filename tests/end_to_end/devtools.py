"""A browser with several tabs, driven as a person does: mouse, keyboard, back and forward. Over Chromium's own pipe.

Every wait is bounded. What the console calls an error, such as something that a content policy stopped, is kept in `errors`.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from tests.end_to_end.browser import axe_core, chromium

_PATIENCE = 240.0  # seconds for one answer or one page, on a busy machine
_QUIET = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run", "--hide-scrollbars", "--disable-dev-shm-usage", "--remote-debugging-pipe"),
)
# Chromium reads commands from descriptor 3 and writes to 4.
_PIPES = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execvp(sys.argv[3], sys.argv[3:])"
_KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    " ": (32, " "),
    "ArrowDown": (40, ""),
    "ArrowRight": (39, ""),
    "Home": (36, ""),
    "End": (35, ""),
}
_FOUND = """
(words, tag) => {
  const seen = one => one.checkVisibility() && (one.innerText || one.value || '').trim() === words;
  return [...document.querySelectorAll(tag)].filter(seen)[0];
}
"""
# Where the middle of something is once it keeps still; `pressed` and `still()` say later whether the mouse met it there.
_STILL = """
async find => {
  let one, before;
  const middle = () => {
    const box = one.getClientRects()[0];
    return box ? [box.x + box.width / 2, box.y + box.height / 2] : [-1, -1];
  };
  const same = (a, b) => a[0] === b[0] && a[1] === b[1];
  for (let k = 0; k < 100; k++) {
    if (!(one = find())) return null;
    one.scrollIntoView({block: 'center', behavior: 'instant'});
    const now = middle();
    if (before && same(before, now)) break;
    before = now;
    await new Promise(done => setTimeout(done, 20));
  }
  const [x, y] = middle();
  const meets = there => there && (one.contains(there) || there.contains(one));
  window.pressed = false;
  window.still = () => same([x, y], middle());
  addEventListener('mousedown', event => { window.pressed = meets(event.target); }, {capture: true, once: true});
  return {x, y, free: Boolean(meets(document.elementFromPoint(x, y)))};
}
"""
_FILL = """
(form, fields) => {
  for (const [name, value] of Object.entries(fields)) {
    const found = [...form.querySelectorAll('[name]')].filter(one => one.name === name);
    if (!found.length) throw new Error('no field ' + name);
    for (const one of found) {
      if (one.type === 'checkbox') one.checked = [].concat(value).includes(one.value);
      else if (one.tagName === 'SELECT') {
        one.value = value;
        if (one.value !== value) throw new Error('no option ' + value);
      } else one.value = value;
    }
  }
}
"""


class Browser:
    """A headless Chromium with a profile of its own."""

    def __init__(self, place: Path) -> None:
        there, theirs_out = (fcntl.fcntl(one, fcntl.F_DUPFD, 10) for one in os.pipe())
        theirs_in, here = (fcntl.fcntl(one, fcntl.F_DUPFD, 10) for one in os.pipe())
        command = [chromium(), *_QUIET, f"--user-data-dir={place}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PIPES, str(theirs_in), str(theirs_out), *command],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._read, self._write = there, here
        self._rest, self._number = b"", 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.call("Browser.close")
            self._process.wait(20)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait(20)
        finally:
            os.close(self._read)
            os.close(self._write)

    def tab(self, *, width: int = 1440, height: int = 900) -> Tab:
        """A new tab; all of them share their cookies."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Tab(self, session, target, width, height)

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """One command and its answer; events that come meanwhile are kept."""
        self._number += 1
        told = {"id": self._number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        data = json.dumps(told).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        end = time.monotonic() + _PATIENCE
        while True:
            message = self._next(end, method)
            if message.get("id") == self._number:
                assert "error" not in message, f"{method}: {message['error']}"
                found: dict[str, Any] = message["result"]
                return found
            self.events.append(message)

    def wait(self, method: str, session: str) -> dict[str, Any]:
        """The next event of this kind, which may have come already."""
        end = time.monotonic() + _PATIENCE
        while True:
            for place, event in enumerate(self.events):
                if event.get("method") == method and event.get("sessionId") == session:
                    return self.events.pop(place)
            self.events.append(self._next(end, method))

    def _next(self, end: float, wanted: str) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"Chromium did not answer: {wanted}"
            more = os.read(self._read, 1 << 20)
            assert more, "Chromium ended"
            self._rest += more
        line, self._rest = self._rest.split(b"\0", 1)
        found: dict[str, Any] = json.loads(line)
        return found


class Tab:
    """One page."""

    def __init__(self, browser: Browser, session: str, target: str, width: int, height: int) -> None:
        self.browser, self._session, self._target = browser, session, target
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(width, height)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, self._session, **params)

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self._target)

    def size(self, width: int, height: int = 900) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name: str) -> None:
        """light or dark; without motion, so that no colour is looked at on its way from one to the other."""
        wanted = {"prefers-color-scheme": name, "prefers-reduced-motion": "reduce"}
        self.call("Emulation.setEmulatedMedia", features=[{"name": key, "value": value} for key, value in wanted.items()])

    @property
    def errors(self) -> list[str]:
        """What the console called an error so far."""
        mine = [one for one in self.browser.events if one.get("sessionId") == self._session]
        logged = [one["params"]["entry"] for one in mine if one["method"] == "Log.entryAdded"]
        thrown = [one["params"]["exceptionDetails"]["text"] for one in mine if one["method"] == "Runtime.exceptionThrown"]
        return [f"{one['text']} ({one.get('url', '')})" for one in logged if one["level"] == "error"] + thrown

    # ------------------------------------------------------------------------------------------------- the way to a page

    @contextmanager
    def loading(self) -> Iterator[None]:
        """What happens inside leads to another page, and that is there at the end."""
        self.browser.events = [
            one
            for one in self.browser.events
            if (one.get("sessionId"), one.get("method")) != (self._session, "Page.loadEventFired")
        ]
        yield
        self.browser.wait("Page.loadEventFired", self._session)

    def open(self, address: str) -> None:
        with self.loading():
            self.call("Page.navigate", url=address)

    def reload(self) -> None:
        with self.loading():
            self.call("Page.reload")

    def back(self, steps: int = 1) -> None:
        history = self.call("Page.getNavigationHistory")
        entry = history["entries"][history["currentIndex"] - steps]["id"]
        self.browser.events = [one for one in self.browser.events if one.get("method") != "Page.frameNavigated"]
        self.call("Page.navigateToHistoryEntry", entryId=entry)
        self.browser.wait("Page.frameNavigated", self._session)  # a page that was kept is not loaded again
        self.until("document.readyState === 'complete'")

    @property
    def address(self) -> str:
        return str(self.value("location.href"))

    @property
    def text(self) -> str:
        """What a person reads."""
        return str(self.value("document.body.innerText"))

    @property
    def main(self) -> str:
        return str(self.value("document.querySelector('main').innerText"))

    def value(self, script: str) -> Any:
        """What a script in the page gives."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"].get("exception", done["exceptionDetails"])
        return done["result"].get("value")

    def until(self, script: str) -> Any:
        """Wait for a script to give something true."""
        end = time.monotonic() + _PATIENCE
        while not (found := self.value(script)):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.05)
        return found

    # ---------------------------------------------------------------------------------------------------- what a person does

    def click(self, words: str, tag: str = "a, button, summary") -> None:
        """With the mouse, in the middle of what has these words; again where the page moved it away meanwhile."""
        end = time.monotonic() + _PATIENCE
        while True:
            place = self.value(f"({_STILL})(() => ({_FOUND})({json.dumps(words)}, {json.dumps(tag)}))")
            assert place is not None, f"nothing says {words!r} on {self.address}:\n{self.text}"
            assert place["free"], f"{words!r} is covered by something else"
            self._mouse("mousePressed", place)
            if self.value("pressed && still()"):
                return self._mouse("mouseReleased", place)
            self._mouse("mouseReleased", {"x": 0, "y": 0})
            assert time.monotonic() < end, f"{words!r} does not keep still"

    def _mouse(self, kind: str, place: dict[str, Any]) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=place["x"], y=place["y"], button="left", clickCount=1)

    def follow(self, words: str) -> None:
        """Click what leads to another page."""
        with self.loading():
            self.click(words)

    def send(self, button: str, **fields: Any) -> None:
        """Fill the form of this button, and press it."""
        self.value(f"({_FILL})(({_FOUND})({json.dumps(button)}, 'button').form, {json.dumps(fields)})")
        with self.loading():
            self.click(button, "button")

    def press(self, key: str, *, shift: bool = False) -> None:
        code, text = _KEYS.get(key, (ord(key.upper()[0]), key))
        known = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", **known, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **known)

    def type(self, text: str) -> None:
        """Into what has the focus."""
        self.call("Input.insertText", text=text)

    # ----------------------------------------------------------------------------------------------------- what it looks like

    def picture(self, path: Path) -> None:
        """A screenshot of the whole page."""
        shown = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shown["data"]))

    def violations(self) -> list[str]:
        """What axe-core finds."""
        if not self.value("typeof axe === 'object'"):
            self.value(f"{axe_core()};0")
        rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
        found = json.loads(self.value(f"axe.run(document, {{runOnly: {json.dumps(rules)}}}).then(one => JSON.stringify(one))"))
        assert found["passes"]
        return [f"{one['id']}: {' | '.join(node['html'][:160] for node in one['nodes'])}" for one in found["violations"]]

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.value("document.documentElement.scrollWidth - innerWidth"))
