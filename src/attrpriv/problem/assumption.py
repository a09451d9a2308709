"""What an adversary may already believe: the base of every assumption.

An assumption is a class Theta of distributions. Each kind registers itself by name, so that a problem read from JSON finds
its class again; ours load when one is first read (`OURS` says where they are), so that a plan loads the kind that it uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

from attrpriv.frozen import FrozenModel
from attrpriv.problem.installed import installed, require_free
from attrpriv.problem.shapes import MIXED

if TYPE_CHECKING:
    from attrpriv.assumptions.gaussian import FittedRecord
    from attrpriv.problem.belief import Belief
    from attrpriv.problem.secret import Secret
    from attrpriv.queries.evaluate import Category

_ROOM = "attrpriv.assumptions"
OURS: Mapping[str, str] = MappingProxyType(
    {kind: f"{_ROOM}.{kind}" for kind in ("chain", "counts", "gaussian", "groups", "hierarchy", "parameter_network")}
)
"""The kinds of this package, each with its module."""


@dataclass(frozen=True)
class NamedCategories:
    """The categories of a column that an assumption is about, and the one of them that all other rows count as."""

    column: str
    names: tuple[str, ...]
    other: str | None = None


@dataclass(frozen=True)
class ExpectedEntry:
    """An entry of a column in a row of which nothing else is known: its mean, how far that may be off, its largest sd."""

    mean: float
    off: float
    sd: float


@dataclass(frozen=True)
class PublicRecords:
    """The public table behind an assumption, by its digest: of numbers (`engines.moments`), or of any entries."""

    rows: int
    columns: tuple[str, ...]
    digest: str
    numbers: bool = True


class Assumption(FrozenModel):
    """A class of distributions, with an explicit tolerance."""

    kinds: ClassVar[dict[str, type[Assumption]]] = {}
    shape: ClassVar[str] = MIXED
    """What it makes of a statistic (`problem.shapes`): methods know shapes, not assumptions."""
    normal_rows: ClassVar[bool] = False
    """Whether it rests on rows being normal, so that the shape of public records matters."""
    kind: str

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        kind = cls.model_fields["kind"].default
        if isinstance(kind, str):
            if OURS.get(kind, cls.__module__) != cls.__module__:
                import_module(OURS[kind])  # another class asks for a kind of ours
            require_free("assumption", kind, cls, Assumption.kinds.get(kind))
            Assumption.kinds[kind] = cls

    @classmethod
    def knows(cls, kind: object) -> TypeGuard[str]:
        """Whether there is such a kind; installed packages are asked where it is not ours."""
        if not isinstance(kind, str):  # a file may say anything
            return False
        if kind not in cls.known():
            installed()
        return kind in cls.known()

    @classmethod
    def of_kind(cls, value: object) -> Assumption:
        """Read an assumption of any registered kind."""
        if isinstance(value, Assumption):
            return value
        kind = value.get("kind") if isinstance(value, dict) else None
        if not cls.knows(kind):
            raise ValueError(f"kind must be one of {', '.join(cls.known())}. Got {kind!r}.")
        return cls.class_of(kind).model_validate(value)

    @classmethod
    def known(cls) -> tuple[str, ...]:
        """All kinds by name, loaded or not."""
        return tuple(sorted({*OURS, *cls.kinds}))

    @classmethod
    def class_of(cls, kind: str) -> type[Assumption]:
        """The class of a known kind."""
        if kind not in cls.kinds:
            import_module(OURS[kind])
        return cls.kinds[kind]

    # What follows is asked of every assumption. One of your own overrides what it can say; as it stands here, it says nothing.

    def belief(self, secret: Secret, n: int, bins: Mapping[str, Sequence[float]]) -> Belief | None:
        """How likely the values of a secret are (`problem.belief`), to warn of promises that hide little; None: not known."""
        return None

    def named_categories(self) -> NamedCategories | None:
        """The sensitive column, where rows are told apart by its categories; None: they are not."""
        return None

    def listed_values(self) -> Mapping[str, Sequence[Category]]:
        """Of other columns: all values that they can have. Queries that compare with another one are refused."""
        return {}

    def named_events(self) -> tuple[str, ...]:
        """The conditions that it names; the values that they compare with must be listed ones, too."""
        return ()

    def public_records(self) -> PublicRecords | None:
        """What it was fitted on, so that a release can tell that this is another table; None: it is stated."""
        return None

    def public_centres(self) -> Mapping[str, tuple[float, float]]:
        """Mean and standard deviation of columns, both public: floats near them are added without rounding."""
        return {}

    def expected_rows(self, columns: Sequence[str], n: int) -> list[dict[str, ExpectedEntry]]:
        """Of the columns that it knows the mean of: entries with which an average over n rows has mean and sd/sqrt(n).

        One mapping for each law that has to be looked at, the one to be answered by first; none: it expects nothing.
        """
        return []

    def fit_record(self) -> FittedRecord | None:
        """The fit whose confidence is paid for, and what it found of the rows' shape; None: there is no such risk."""
        return None

    def nearly(self) -> tuple[float, float]:
        """How far the laws of averages may be from the stated ones: within a factor e^lambda, up to probability eta."""
        return 0.0, 0.0

    def slope_tolerance(self) -> float | None:
        """How far regression slopes may be off, relative; None: it states no such tolerance."""
        return None

    def surer(self, share: float) -> Assumption | None:
        """The same with this share of its slope tolerance, to say what more knowledge would gain; None: it has none."""
        return None

    def explained(self) -> tuple[str, ...]:
        """Whose belief it is, and what they may know, in sentences for `attrpriv explain`."""
        return (f"Whoever believes: {self}.",)
