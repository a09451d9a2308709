"""Examples in docstrings as code: a paragraph that starts with `>>> ` gets a fence, for the API reference on the site.

Docstrings are plain text with doctests, so that `help` shows them as they are; Markdown would take `>>>` for a quotation.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^>>> .*?(?=\n[ \t]*\n|\Z)", flags=re.MULTILINE | re.DOTALL)


class Doctests(Extension):
    """Named in mkdocs.yml."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The text with a fence around each example that is not indented (others stand in a section of their own).

    >>> fenced("A sum.\\n\\n>>> 1 + 1\\n2\\n\\nThat is all.").splitlines()
    ['A sum.', '', '```pycon', '>>> 1 + 1', '2', '```', '', 'That is all.']
    """
    return _EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```", text)
