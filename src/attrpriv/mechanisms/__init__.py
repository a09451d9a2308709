"""Mechanisms: a problem in, a proved plan out. One module a mechanism, one registry."""

from attrpriv.mechanisms.plan import Plan
from attrpriv.mechanisms.ranking import Ranking
from attrpriv.mechanisms.registry import MECHANISMS, plan, plan_view_of, rank

__all__ = ["MECHANISMS", "Plan", "Ranking", "plan", "plan_view_of", "rank"]
