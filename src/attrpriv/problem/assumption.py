"""What an adversary may already believe: the base of every assumption.

An assumption is a class Theta of distributions. Each kind registers itself by name, so that a problem read from JSON finds
its class again without this package knowing the kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from attrpriv.frozen import FrozenModel
from attrpriv.problem.shapes import MIXED

if TYPE_CHECKING:
    from attrpriv.problem.belief import Belief
    from attrpriv.problem.secret import Secret


class Assumption(FrozenModel):
    """A class of distributions, with an explicit tolerance."""

    kinds: ClassVar[dict[str, type[Assumption]]] = {}
    shape: ClassVar[str] = MIXED
    """What it makes of a statistic (`problem.shapes`): methods know shapes, not assumptions."""
    kind: str

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        Assumption.kinds[str(cls.model_fields["kind"].default)] = cls

    @classmethod
    def of_kind(cls, value: object) -> Assumption:
        """Read an assumption of any registered kind."""
        if isinstance(value, Assumption):
            return value
        kind = value.get("kind") if isinstance(value, dict) else None
        if kind not in cls.kinds:
            raise ValueError(f"kind must be one of {', '.join(sorted(cls.kinds))}. Got {kind!r}.")
        return cls.kinds[kind].model_validate(value)

    # What follows is asked of every assumption. One of your own overrides what it can say; as it stands here, it says nothing.

    def belief(self, secret: Secret, n: int, bins: Mapping[str, Sequence[float]]) -> Belief | None:
        """How likely the values of a secret are (`problem.belief`), to warn of promises that hide little; None: not known."""
        return None
