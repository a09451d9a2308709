"""Run the code cells of a notebook: `python scripts/run_notebook.py NOTEBOOK [--write]`. Needs no Jupyter.

Cells run in order in one namespace, in the current directory. What a cell prints, and the value of a last line that is an
expression, as text, are its outputs; `--write` puts them into the file. An error ends the run with the cell's number.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def run(notebook: dict[str, Any]) -> None:
    """Run all code cells, and put their outputs where a notebook has them."""
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        count += 1
        cell["execution_count"] = count
        cell["outputs"] = _outputs("".join(cell["source"]), f"cell {number}", names, count)


def _outputs(source: str, name: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    body = ast.parse(source, name).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(keepends=True)})
    if value is not None:
        text = repr(value).splitlines(keepends=True)
        shown = {"data": {"text/plain": text}, "metadata": {}, "execution_count": count}
        found.append({"output_type": "execute_result", **shown})
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Run the code cells of a notebook.")
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--write", action="store_true", help="put the outputs into the file")
    options = parser.parse_args(arguments)
    sys.path.insert(0, "")
    notebook = json.loads(options.notebook.read_text(encoding="utf-8"))
    run(notebook)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            print("".join(output.get("text") or output["data"]["text/plain"]).rstrip("\n"))
    if options.write:
        options.notebook.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
