"""The error against epsilon, computed in the background, so that a slider is answered at once. Reads no row.

A curve belongs to a policy, what is asked, the ledger and the table of one moment. At each of a few epsilons everything is
planned anew, as it would be with a policy that says this epsilon: the best mechanism, its errors, what a release tells. The
policy's own epsilon comes first, then the others from coarse to fine. One curve is computed at a time, the one that was asked
for last; one that is overtaken keeps its points and goes on from there.

What must never change: what is told at an epsilon was computed at this one or at the next one below, which promises more.
Refusals are values like any other. Whatever else goes wrong ends in a state of fixed words, never in the message of an engine.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock, Thread
from typing import Literal

from attrpriv.errors import AttrprivError
from attrpriv.methods.base.tells import Tells
from attrpriv.methods.choice.error_curve import ErrorCurve
from attrpriv.policy import Policy
from attrpriv.problem.places import file_state
from attrpriv.session.session import Session
from attrpriv.session.split import Ranked

# Where a slider stops, in about equal steps of its logarithm.
EPSILONS = (0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
FAILED = "the curve could not be computed; the numbers of the policy's own epsilon stand on this page."
# Curves that are kept. One that is asked for again is computed again.
_MOST = 8


@dataclass(frozen=True)
class Point:
    """What a release would be like at one epsilon. `errors`: root mean squares by query; None: known once the table is read."""

    epsilon: float
    mechanisms: tuple[str, ...]
    errors: tuple[tuple[str, float | None], ...]
    constant: float | None
    """The error of what the assumption already says, for the first query; None: it says nothing of it."""
    tells: Tells | None
    """Of the first secret, at the promised distance."""

    @property
    def rmse(self) -> float | None:
        """Of the first query."""
        return self.errors[0][1] if self.errors else None


@dataclass(frozen=True)
class Refused:
    """Why nothing can be released at one epsilon."""

    epsilon: float
    error: AttrprivError


@dataclass(frozen=True)
class CurveState:
    """How far a curve has come: what was found, by rising epsilon."""

    total: int
    found: tuple[Point | Refused, ...] = ()
    ended: Literal["", "done", "cancelled", "failed"] = ""

    @property
    def done(self) -> int:
        return len(self.found)

    @property
    def points(self) -> tuple[Point, ...]:
        return tuple(one for one in self.found if isinstance(one, Point))

    @property
    def refusals(self) -> tuple[Refused, ...]:
        return tuple(one for one in self.found if isinstance(one, Refused))

    def at(self, epsilon: float) -> Point | Refused | None:
        """What was found at the largest epsilon that is not above this one, which it names; None: nothing yet."""
        place = bisect_right(self.found, epsilon, key=lambda one: one.epsilon)
        return self.found[place - 1] if place else None

    def curve(self, query: str, epsilon: float) -> ErrorCurve:
        """What a picture of it shows, with this epsilon marked where it was computed."""
        known = [(one, dict(one.errors).get(query)) for one in self.points]
        names = {name for one, _ in known for name in one.mechanisms}
        points = tuple((one.epsilon, error) for one, error in known if error is not None)
        constant = next((one.constant for one, _ in known if one.errors[0][0] == query), None)
        return ErrorCurve(query, names.pop() if len(names) == 1 else "the best mechanism", epsilon, points, constant)

    def grown(self, one: Point | Refused) -> CurveState:
        return replace(self, found=tuple(sorted((*self.found, one), key=lambda each: each.epsilon)))


@dataclass(frozen=True)
class _Job:
    key: str
    policy: Policy
    query: str | None
    epsilons: tuple[float, ...]


class Curves:
    """The curves that were asked for last."""

    def __init__(self, epsilons: Sequence[float] = EPSILONS) -> None:
        self._epsilons = tuple(epsilons)
        self._lock = Lock()
        self._known: dict[str, CurveState] = {}
        self._wanted: _Job | None = None
        self._thread: Thread | None = None

    def start(self, policy: Policy, query: str | None = None) -> str:
        """Have this curve computed, in place of any other one; its key. `query`: by default all that the policy releases."""
        key = key_of(policy, query)
        epsilons = _in_order({*self._epsilons, policy.epsilon}, policy.epsilon)
        with self._lock:
            known = self._known.pop(key, CurveState(len(epsilons)))
            self._known = {**dict(list(self._known.items())[1 - _MOST :]), key: known}
            if known.ended in ("done", "failed") or (self._wanted is not None and self._wanted.key == key):
                return key
            self._stop()
            self._known[key] = replace(known, ended="")
            self._wanted = _Job(key, policy, query, epsilons)
            if self._thread is None:
                self._thread = Thread(target=self._work, name="attrpriv-studio-curve", daemon=True)
                self._thread.start()
        return key

    def state(self, key: str) -> CurveState | None:
        """How far it has come; None: nobody asked for it, or that is long ago."""
        with self._lock:
            return self._known.get(key)

    def cancel(self) -> None:
        """Compute no further; the point that is being computed is the last one, and is forgotten."""
        with self._lock:
            self._stop()

    def join(self, timeout: float | None = None) -> None:
        """Wait until nothing is computed any more."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout)

    def _stop(self) -> None:
        if self._wanted is not None:
            key, self._wanted = self._wanted.key, None
            if key in self._known:
                self._known[key] = replace(self._known[key], ended="cancelled")

    def _work(self) -> None:
        """Until nothing is wanted; there is never a second thread beside this one."""
        while True:
            with self._lock:
                job = self._wanted
                if job is None:
                    self._thread = None
                    return
                known = {one.epsilon for one in self._known[job.key].found} if job.key in self._known else set[float]()
                left = next((one for one in job.epsilons if one not in known), None)
                if left is None or job.key not in self._known:
                    self._end(job, "done")
                    continue
            self._step(job, left)

    def _step(self, job: _Job, epsilon: float) -> None:
        try:
            found = at_epsilon(job.policy, job.query, epsilon)
        except Exception:  # whatever it was, the page says so, and the next curve is computed
            with self._lock:
                self._end(job, "failed")
            return
        with self._lock:
            if self._wanted is job and job.key in self._known:
                self._known[job.key] = self._known[job.key].grown(found)

    def _end(self, job: _Job, how: Literal["done", "failed"]) -> None:
        if self._wanted is job:
            self._wanted = None
            if job.key in self._known:
                self._known[job.key] = replace(self._known[job.key], ended=how)


def at_epsilon(policy: Policy, query: str | None, epsilon: float) -> Point | Refused:
    """How all of it would be released if the policy said this epsilon."""
    try:
        with Session(policy=policy.model_copy(update={"epsilon": epsilon})) as session:
            ranked = session.ranked(query)
        if ranked.refused is not None:
            raise ranked.refused.error()
        return _point(ranked, epsilon)
    except AttrprivError as error:
        error.__cause__ = error.__context__ = None
        return Refused(epsilon, error.with_traceback(None))


def _point(ranked: Ranked, epsilon: float) -> Point:
    plans = [one.chosen for one in ranked.rankings if one.chosen is not None]
    asked = [(plan, query) for plan in plans for query in plan.queries if not query.whole_table]
    asked = asked or [(plan, query) for plan in plans for query in plan.queries]
    told = None
    with suppress(AttrprivError):
        told = plans[-1].tells()  # the last step's proof is of all steps together
    constant = next((plan for plan in ranked.rankings[0].plans if plan.mechanism == "constant"), None)
    level = None if constant is None else constant.error_of(asked[0][1]).rmse
    errors = tuple((query.text, plan.error_of(query).rmse) for plan, query in asked)
    return Point(epsilon, tuple(dict.fromkeys(plan.mechanism for plan in plans)), errors, level, told)


def key_of(policy: Policy, query: str | None) -> str:
    """What a curve depends on, as one word."""
    head, state = None, None
    with suppress(AttrprivError):
        with Session(policy=policy) as session:
            head = session.ledger.head
        place = policy.data_path()
        state = None if place is None else file_state(place)
    parts = (str(policy.origin), policy.digest, policy.data, policy.release, query, head, state)
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


def _in_order(epsilons: set[float], first: float) -> tuple[float, ...]:
    """The first one, then the ends and the middles between those that are there."""
    ordered = sorted(epsilons)
    places, step = [ordered.index(first), 0, len(ordered) - 1], len(ordered)
    while step > 1:
        step = (step + 1) // 2
        places += range(0, len(ordered), step)
    return tuple(ordered[place] for place in dict.fromkeys(places))
