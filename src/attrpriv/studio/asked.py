"""What a page is asked for, and what it works with: the folder, one policy file, the fields of a form.

What must never change: of a table, names and types of columns are known here, and its number of rows where that is public.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from attrpriv.errors import DataError, UsageError
from attrpriv.policy.strict_yaml import load_strict
from attrpriv.problem.places import file_state
from attrpriv.studio.draft import TODO, Draft
from attrpriv.studio.folder import Folder
from attrpriv.studio.html import Html, Inside, h
from attrpriv.studio.security import Keys

if TYPE_CHECKING:
    from attrpriv.engines.tables import Source
    from attrpriv.pictures.marks import Picture
    from attrpriv.studio.curve import Curves
    from attrpriv.studio.plans import Plans


@dataclass
class Studio:
    """One run of the studio: all that its pages share. One thread at a time works with it."""

    folder: Folder
    keys: Keys
    shapes: dict[Path, tuple[Picture, ...]] = field(default_factory=dict)
    """Pictures of public rows, by the assumption that was fitted on them."""
    _sources: dict[tuple[Path, Any], Source] = field(default_factory=dict)

    @cached_property
    def plans(self) -> Plans:
        """Loaded with the first policy, not with the first screen."""
        from attrpriv.studio.plans import Plans

        return Plans()

    @cached_property
    def curves(self) -> Curves:
        from attrpriv.studio.curve import Curves

        return Curves()

    def source(self, name: str) -> Source:
        """A table of the folder, opened: its names and types."""
        from attrpriv.engines.tables import open_table

        place, files = self.folder.root / name, self.folder.all_inside(name, "data")
        if not files:
            raise DataError(f"data: the file must be there. Got {place.name}, which is not.")
        key = (place, tuple((file, file_state(file)) for file in files))
        if key not in self._sources:
            self._sources = {**dict(list(self._sources.items())[-7:]), key: open_table(place)}
        return self._sources[key]


@dataclass(frozen=True)
class Asked:
    """One request."""

    studio: Studio
    screen: str = ""
    named: Draft | None = None
    form: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def draft(self) -> Draft:
        """The policy file that the address names."""
        assert self.named is not None  # the addresses of these pages name one
        return self.named

    def one(self, name: str, default: str = "") -> str:
        """A field of the form, without spaces around it."""
        return self.form.get(name, (default,))[0].strip()

    def several(self, name: str) -> tuple[str, ...]:
        return self.form.get(name, ())

    @property
    def seen(self) -> str:
        """The digest of the text that the page showed."""
        return self.one("seen")

    def address(self, screen: str = "", **query: str) -> str:
        """The address of a screen of this policy."""
        asked = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
        where = "/" if self.named is None else f"/p/{quote(self.named.name, safe='')}/{screen or self.screen}"
        return f"{where}?{asked}" if asked else where

    def columns(self) -> Mapping[str, str]:
        """The columns of the policy's table and their types; none where it is not there."""
        data = self.draft.stated.get("data")
        if not isinstance(data, str):
            load_strict(self.draft.text, where=self.draft.name)  # what is no YAML is told first
            raise UsageError("data: the policy must name a table of this folder. Got none.")
        self.studio.folder.require_inside(self.draft.stated)
        return self.studio.source(data).columns

    def send(self, button: str, *inside: Inside, do: str, screen: str = "", kind: str = "", **more: str) -> Html:
        """A form of this policy, with its key and with what was seen."""
        hidden = {"key": self.studio.keys.form, "do": do, **more}
        hidden |= {} if self.named is None else {"seen": self.named.digest}
        return h(
            "form",
            [h("input", type="hidden", name=name, value=value) for name, value in hidden.items()],
            inside,
            h("button", button, type="submit", class_=kind or None),
            method="post",
            action=self.address(screen),
        )


Act = Callable[[Asked], str]


def releases(stated: Mapping[str, Any]) -> tuple[str, ...]:
    """The queries under `release` that are decided."""
    found = stated.get("release")
    return tuple(one for one in found if isinstance(one, str) and TODO not in one) if isinstance(found, list) else ()


def secrets(stated: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The secrets under `protect` that are decided."""
    found = stated.get("protect")
    listed = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return [one for one in listed if TODO not in str(one.get("secret", one.get("parameter", TODO)))]


def whole_columns(stated: Mapping[str, Any]) -> bool:
    """Whether everything about columns is hidden."""
    return any(str(one.get("secret", "")).strip().lower().startswith("columns(") for one in secrets(stated))
