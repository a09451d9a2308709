"""What `attrpriv fit` tries by itself: the plans for what the policy lists, under the assumption that was just fitted.

What must never change: of the private table only the number of rows and the types of columns are used, both public.
"""

from __future__ import annotations

from pathlib import Path

from attrpriv.assumptions.shape import Tried
from attrpriv.errors import AttrprivError
from attrpriv.methods.choice.choose import rank
from attrpriv.policy import Policy
from attrpriv.problem.assumption import Assumption
from attrpriv.problem.places import is_remote
from attrpriv.queries.derived import parts_of
from attrpriv.session.against import try_ranking
from attrpriv.session.against_secret import PublicRows
from attrpriv.session.table_reads import opened_table, public_facts

_UNTRIED = "no plan was tried on the public rows"


def try_fitted(policy: Policy, assumption: Assumption, public: Path) -> tuple[tuple[Tried, ...], str | None]:
    """What became of every plan on the public rows; and why there is none, where nothing could be planned.

    What the policy lists is planned together, as it is released; where that cannot be, each statistic by itself.
    """
    stated = policy.model_copy(update={"assume": (assumption,)})
    place = policy.data_path()
    gone = place is None or not (is_remote(place) or Path(place).exists())
    try:
        n, types = public_facts(stated, None if gone and stated.rows is not None else opened_table(place))
        asked, records = parts_of(stated.queries()), PublicRows.of(public)
        together = tuple(try_ranking(rank(stated.problem(asked, n, types)), records))
        if _on_numbers(together):
            return together, None
        alone = tuple(one for part in asked for one in try_ranking(rank(stated.problem((part,), n, types)), records))
    except AttrprivError as error:
        return (), f"{_UNTRIED}: {error}"
    if _on_numbers(alone):
        return alone, None
    return alone, f"{_UNTRIED}: no mechanism that rests on these numbers answers what the policy lists."


def _on_numbers(tried: tuple[Tried, ...]) -> bool:
    """Whether a plan among them rests on the assumption."""
    return any(one.verdict != "any rows" for one in tried)


def on_record(tried: tuple[Tried, ...]) -> tuple[Tried, ...] | None:
    """What the assumption records: plans with a number."""
    return tuple(one for one in tried if one.at_least is not None) or None
