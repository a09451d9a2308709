"""What a release was, in words: for messages about what may follow it, and about what its promise rests on."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# By the kind of its evidence.
_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "calibrated_weights": "a release by calibrated weights",
        "chain": "a release about a chain",
        "constant": "a public constant",
        "count_sequence": "answers with Laplace noise",
        "coupling": "a count by the optimal mechanism",
        "gaussian": "averages with Gaussian noise",
        "group_transport": "averages by transport, under groups",
        "group_vector_transport": "averages by transport, under groups",
        "groups": "averages with Gaussian noise, under groups",
        "groups_vector": "averages with Gaussian noise, under groups",
        "hierarchy": "averages under a hierarchy",
        "kernel": "a count by the optimal mechanism",
        "laplace": "a release with Laplace noise for its whole range",
        "quantile_clip": "an average by quantile clipping",
        "quilts": "a release under a parameter network",
        "transport": "averages by transport, all at once",
        "transport_sequence": "averages by transport",
        "view": "a view",
        "wasserstein": "a count by the Wasserstein mechanism",
    }
)


def in_words(kind: str) -> str:
    """A release by the kind of its evidence.

    >>> in_words("view"), in_words("count_transport")
    ('a view', 'a count that stands alone')
    """
    if kind in _WORDS:
        return _WORDS[kind]
    if kind.startswith("count"):
        return "a count that stands alone"
    return "a count under a parameter network" if kind.startswith("parameter") else "a release of another kind"


# What the assumption of an evidence lets one state, where its numbers are not known exactly.
_ABOUT_COUNTS = ("coupling", "kernel", "wasserstein")
_ROOM: Mapping[str, str] = MappingProxyType(
    {
        "chain": "List further matrices under transition, or laws under initial.",
        "hierarchy": "A hierarchy takes no tolerance in this version.",
    }
)


def room(kind: str) -> str:
    """What to state instead of exact numbers, by the kind of a release's evidence.

    >>> room("count_laplace"), room("transport")
    ('State intervals under given (of a network, a tolerance).', 'State a tolerance.')
    """
    if kind.startswith("count") or kind in _ABOUT_COUNTS:
        return "State intervals under given (of a network, a tolerance)."
    return _ROOM.get(kind, "State a tolerance.")
