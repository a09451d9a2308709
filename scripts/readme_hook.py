"""The README as a package index shows it: hatchling calls this when it builds the wheel.

An index shows the text alone, so relative links lead nowhere there. With `Repository` under [project.urls] they lead to files
of this version; before the repository has a public address, a link becomes its words and a picture its description.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:)([^)\s]+)\)")


class ReadmeHook(MetadataHookInterface):  # type: ignore[misc]  # hatchling is there only while a wheel is built
    """Fills in `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        address = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {"content-type": "text/markdown", "text": shown(text, address, metadata["version"])}


def shown(text: str, address: str | None, version: str) -> str:
    """The text with links that lead somewhere, or none.

    >>> shown("[a](docs/a.md), ![b](b.svg), [c](https://example.org)", None, "1.0")
    'a, *b*, [c](https://example.org)'
    >>> shown("[a](docs/a.md#x), ![b](b.svg)", "https://example.org/r", "1.0")
    '[a](https://example.org/r/blob/v1.0/docs/a.md#x), ![b](https://example.org/r/raw/v1.0/b.svg)'
    """

    def one(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        if target.startswith("#"):
            return found[0]
        if address is None:
            return f"*{words}*" if picture else words
        return f"{picture}[{words}]({address}/{'raw' if picture else 'blob'}/v{version}/{target})"

    return _LINK.sub(one, text)


def get_metadata_hook() -> type[MetadataHookInterface]:
    return ReadmeHook
