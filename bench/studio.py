"""How fast the studio answers: its first screen after the start, and a move of the slider once the curve is there.

    python bench/studio.py [--moves 200]

A school of 10,000 students and its policy in a temporary folder, the real command in a process of its own, requests one after
the other. Beside each time: the time of a Python that starts and does nothing, by which machines can be compared.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from html import unescape
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urlsplit

from attrpriv.demo import write_students

ROOT = Path(__file__).resolve().parents[1]
FIRST, MOVE = 1.5, 0.1  # seconds that must not be exceeded
_MOST = 300.0  # seconds to wait for a curve


class Client:
    """One connection that is kept, as a browser keeps it."""

    def __init__(self, address: str) -> None:
        self._place = urlsplit(address)
        self._connection = http.client.HTTPConnection(self._place.netloc, timeout=_MOST)
        self._cookie = ""
        self.get(f"{self._place.path}?{self._place.query}")

    def get(self, path: str) -> str:
        self._connection.request("GET", path, headers={"Cookie": self._cookie})
        answer = self._connection.getresponse()
        text = answer.read().decode()
        self._cookie = (answer.getheader("set-cookie") or self._cookie).partition(";")[0]
        return text


def bare_start() -> float:
    """A Python that starts and does nothing."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", ""], check=True)
    return time.perf_counter() - begun


def processor_time(number: int) -> float:
    """What a process has used so far, however busy the machine is; Linux alone says."""
    place = Path(f"/proc/{number}/stat")
    if not place.exists():
        return math.nan
    used = place.read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def report(name: str, seconds: float, bare: float, limit: float | None = None) -> None:
    said = "" if limit is None else f"   {'within' if seconds < limit else 'OVER'} {limit:g} s"
    print(f"{name:46} {seconds * 1000:9.1f} ms {seconds / bare:8.2f} bare starts{said}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the studio's first screen and its slider.")
    parser.add_argument("--moves", type=int, default=200, help="moves of the slider")
    moves = parser.parse_args().moves
    bare = median(bare_start() for _ in range(5))
    report("Python alone", bare, bare)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(ROOT / "examples" / "students" / "students.yaml", folder)
        write_students(folder / "students.parquet", n=10_000)
        command = [sys.executable, "-m", "attrpriv", "studio", name, "--no-browser", "--json"]
        begun = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                measure(process, begun, bare, moves)
            finally:
                process.kill()


def measure(process: subprocess.Popen[bytes], begun: float, bare: float, moves: int) -> None:
    assert process.stdout is not None
    client = Client(json.loads(process.stdout.readline())["address"])
    answered = time.perf_counter()
    client.get("/")
    first = time.perf_counter()
    report("from the command to the first screen", first - begun, bare, FIRST)
    report("of which the studio had a processor", processor_time(process.pid), bare, FIRST)
    report("the first screen, once it answers", first - answered, bare, FIRST)
    for screen in ("table", "hide", "compare", "release"):
        asked = time.perf_counter()
        page = client.get(f"/p/students.yaml/{screen}")
        report(f"{screen}, first look", time.perf_counter() - asked, bare)
        if screen == "compare":
            slide(client, page, bare, moves)


def slide(client: Client, page: str, bare: float, moves: int) -> None:
    """All moves of the slider, when the curve is complete."""
    found, named = re.search(r'data-at="([^"]+)"', page), re.search(r'data-stops="([^"]+)"', page)
    assert found is not None
    assert named is not None
    at, stops = unescape(found[1]), named[1].split()
    begun = time.perf_counter()
    while not json.loads(client.get(f"{at}&epsilon=1"))["ended"] and time.perf_counter() - begun < _MOST:
        time.sleep(0.2)
    report(f"the curve of {len(stops)} epsilons", time.perf_counter() - begun, bare)
    times = []
    for k in range(moves):
        asked = time.perf_counter()
        client.get(f"{at}&epsilon={stops[k % len(stops)]}")
        times.append(time.perf_counter() - asked)
    report(f"a move of the slider, median of {moves}", median(times), bare, MOVE)
    report("a move of the slider, 95 of 100 below", quantiles(times, n=20)[-1], bare, MOVE)


if __name__ == "__main__":
    main()
