"""What a release was, in words: for messages about what may follow it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# By the kind of its evidence.
_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "calibrated_weights": "a release by calibrated weights",
        "chain": "a release about a chain",
        "constant": "a public constant",
        "count_sequence": "counts with Laplace noise",
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
        "sampled": "a release whose guarantee was checked on samples",
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
