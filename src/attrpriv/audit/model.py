"""Does a model tell a property of the table that it was trained on? `audit_model` attacks many models to find out.

    audit = audit_model(train, "census.parquet", "share(sex = 'Female')", (0.27, 0.38), rows=5_000, defences=policy)
    print(audit)

Tables with either value of the secret are drawn from public records, a model is trained on each, an attack is learned from some
of the models (*shadows*) and tried on the others (*targets*).

What must never change: no row of a private table is read, unless the owner says `source="own"`; an attack, its threshold, and
which attack is in the foreground are decided before any target is looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, get_args

import numpy as np

from attrpriv.audit.answers import PROBE_ROWS
from attrpriv.audit.bounds import epsilon_bound, epsilon_cap, interval
from attrpriv.audit.discriminant import Discriminant, Flags
from attrpriv.audit.features import Features
from attrpriv.audit.jobs import Watcher, bar, collected, seconds_of
from attrpriv.audit.result import Attacked, ModelAudit, Source
from attrpriv.audit.tables import Draws, Statistic
from attrpriv.audit.told_rows import n_leaked, told_rows
from attrpriv.audit.views import ALL_ROWS, View, called, defences_of, policies_in, require_other_records, spot_check
from attrpriv.audit.work import PARAMETERS, PREDICTIONS, Collected, Key, Work, one_thread
from attrpriv.engines.tables import open_table, quietly
from attrpriv.errors import DataError, UsageError

LEAST_SHADOWS = 20
ATTACKS = (PARAMETERS, PREDICTIONS)
Train = Callable[..., Any]


def audit_model(
    train: Train | Mapping[str, Train],
    records: object,
    secret: str,
    values: Sequence[float],
    *,
    rows: int = 5_000,
    defences: object = None,
    attacks: Sequence[str] = ATTACKS,
    parameters: Callable[[Any], Any] | None = None,
    probe: object = None,
    shadows: int = 250,
    targets: int = 300,
    jobs: int = 1,
    seed: int = 1,
    time_limit: str | float | None = None,
    delta: float = 1e-6,
    confidence: float = 0.95,
    source: Source = "records",
    watch: Watcher | None = None,
) -> ModelAudit:
    """Attack models of tables in which the secret has one of two values, and say how often the attack is right.

    train       a function of a table (pandas) and a seed that gives whatever is handed out; or several, by name
    records     public rows with the columns that it needs: a file or a table
    secret      share(...), count(...), mean(...) or sum(...); `values` are the two between which it is guessed
    rows        of the table that is to be trained on
    defences    what may be done to a table before: a policy or a session, whose view is drawn; a function of a table and a
                seed; or several of them, by name
    parameters  a function that gives the numbers of a model to be looked at; left out: all that are found in it
    probe       rows for the model to answer, as it takes them, or a function of the model; left out: some of the records
    shadows, targets   how many tables to learn from, and how many to guess
    attacks     what is attacked: the model's "parameters", its "predictions" or both
    jobs, seed  how many processes share the work, and where the randomness begins
    time_limit  such as "10min": then the tables made so far count
    delta       of the epsilon that is reported; `confidence` is that of all intervals and bounds together
    source      "own" where the records are the owner's own table. The audit then tells about that table.
    watch       a function that is told how far it is

    >>> import pandas
    >>> people = pandas.DataFrame({"sex": ["F", "M"] * 200, "age": range(400)})
    >>> def share_of_women(table, seed):
    ...     return (table["sex"] == "F").mean()
    >>> audit = audit_model(share_of_women, people, "share(sex = 'F')", (0.3, 0.5), rows=50, shadows=20, targets=20)
    >>> print(audit)
    Does a model reveal whether share(sex = 'F') of its 50 rows was 0.3 or 0.5? ...
    share of women, all rows: yes, its parameters give it away. 20 of 20 right, 100.0% ...
    ...
    """
    began = time.monotonic()
    _check(rows=rows, shadows=shadows, targets=targets, jobs=jobs, seed=seed)
    if source not in get_args(Source):
        raise UsageError(f"source: must be records (public ones) or own (the owner's table). Got {source!r}.")
    limit = seconds_of(time_limit)
    _require_shares(delta, confidence)
    if source == "records":
        own = '; or, for a report that nobody else may see, say source="own"'
        require_other_records(records, policies_in(defences), way_out=own)
    frame = frame_of(records)
    table = open_table(frame)
    draws = Draws.of(Statistic.of(secret, table, frame, rows), values, rows)
    trains = {str(name): one for name, one in train.items()} if isinstance(train, Mapping) else {_name(train): train}
    protected = defences_of(defences, table, draws.statistic, rows)
    asked = probe if probe is not None else frame.iloc[_generator(seed).integers(len(frame), size=PROBE_ROWS)]
    work = Work(frame, draws, trains, protected, {}, parameters, asked, shadows, targets, seed)
    work, notes = _tried(work, tuple(attacks), given=probe is not None)
    with bar() if watch is None else nullcontext(watch) as told:
        made = collected(work, jobs=jobs, limit=limit, watch=told)
    if len(made.shadows) < LEAST_SHADOWS or not made.targets:
        raise UsageError(
            f"time_limit: {len(made.seen)} of {work.tables} tables were made in it, and at least {LEAST_SHADOWS} shadows are "
            "needed. Give more time, or ask for fewer rows."
        )
    if len(made.seen) < work.tables:
        notes = (f"What more models would show: the time limit came after {len(made.seen):,} of {work.tables:,}.", *notes)
    error = 1 - confidence
    return ModelAudit(
        secret=draws.statistic.text,
        values=draws.values,
        table_rows=rows,
        records=len(frame),
        shadows=len(made.shadows),
        targets=len(made.targets),
        tables_asked=work.tables,
        seed=seed,
        delta=float(delta),
        confidence=float(confidence),
        source=source,
        seconds=time.monotonic() - began,
        results=_results(made, delta, error),
        notes=notes,
    )


# ------------------------------------------------------------------------------------------------------ what was given


def _check(**numbers: int) -> None:
    least = {"rows": 2, "shadows": LEAST_SHADOWS, "targets": 1, "jobs": 1, "seed": 0}
    for name, number in numbers.items():
        if not isinstance(number, int) or isinstance(number, bool) or number < least[name]:
            raise UsageError(f"{name}: must be a whole number of at least {least[name]}. Got {number!r}.")


def _require_shares(delta: float, confidence: float) -> None:
    if not 0 <= delta < 1:
        raise UsageError(f"delta: must be at least 0 and below 1. Got {delta!r}.")
    if not 0.5 <= confidence < 1:
        raise UsageError(f"confidence: must be at least 0.5 and below 1. Got {confidence!r}.")


def _name(train: object) -> str:
    if not callable(train):
        raise UsageError(f"train: must be a function of a table and a seed, or several by name. Got a {type(train).__name__}.")
    name = getattr(train, "__name__", type(train).__name__)
    return "model" if name == "<lambda>" else str(name).replace("_", " ")


def frame_of(records: object) -> Any:
    """The records as a pandas table."""
    import pandas as pd

    if isinstance(records, pd.DataFrame):
        found = records.reset_index(drop=True)
    else:
        source = open_table(records)
        read = quietly(lambda: source.engine.to_pyarrow(source.table).to_pandas())
        if read is None:
            raise DataError("records: the engine could not read them. Check that the file is complete.")
        found = read
    if not len(found):
        raise DataError("records: must have some rows. Got none.")
    return found


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 0, 3])


# --------------------------------------------------------------------------------------- before the models: a first one


def _tried(work: Work, attacks: tuple[str, ...], *, given: bool) -> tuple[Work, tuple[str, ...]]:
    """Which attacks can be tried on which models, found out on one of each; and the draw of views is compared."""
    unknown = [one for one in attacks if one not in ATTACKS]
    if unknown or not attacks:
        raise UsageError(f"attacks: must be some of {', '.join(ATTACKS)}. Got {', '.join(map(str, unknown)) or 'none'}.")
    rows, seed = work.rows(0), work.seed_of(0)
    for defence in work.defences.values():
        if isinstance(defence, View):
            spot_check(defence, work.frame, rows, seed)
    possible: dict[str, tuple[str, ...]] = {}
    notes: list[str] = []
    for name, train in work.trains.items():
        with one_thread():
            model = called(train, work.defences[ALL_ROWS].table(work.frame, rows, seed), seed)
        reasons = {attack: _why_not(work, model, attack, given=given) for attack in attacks}
        possible[name] = tuple(attack for attack, reason in reasons.items() if not reason)
        notes += [f"The {attack} of {name}: {reason}" for attack, reason in reasons.items() if reason]
        if not possible[name]:
            raise UsageError(f"train: nothing of {name} can be attacked. {' '.join(filter(None, reasons.values()))}")
    return Work(**{**vars(work), "attacks": possible}), tuple(notes)


def _why_not(work: Work, model: Any, attack: str, *, given: bool) -> str:
    """Why an attack cannot be tried on a model; nothing where it can. What the caller gave must work."""
    if attack == PARAMETERS:
        seen = work.look(model, (PARAMETERS,))[PARAMETERS]
        return "" if seen else "no number was found in it. Give parameters, a function that gives its numbers."
    if given:
        work.look(model, (PREDICTIONS,))
        return ""
    try:
        work.look(model, (PREDICTIONS,))
    except Exception:  # of any library, and about rows that nobody chose
        return "it does not answer the records as they are. Give probe: rows as it takes them, or a function of the model."
    return ""


# -------------------------------------------------------------------------------------------------------------- results


def _results(made: Collected, delta: float, error: float) -> tuple[Attacked, ...]:
    """Every attack on every kind of model, each with its part of the error."""
    keys: list[Key] = [(name, kind) for kind in made.work.defences for name in made.work.trains]
    each = error / sum(len(made.work.attacks[name]) for name, _ in keys)
    rows_of = told_rows(made.work.draws)
    found: list[Attacked] = []
    for key in keys:
        learned = {attack: _learned(made, key, attack) for attack in made.work.attacks[key[0]]}
        best = max(learned, key=lambda attack: learned[attack][1].validated)
        found += [
            _attacked(made, key, attack, one, chosen=attack == best, delta=delta, error=each, rows_of=rows_of)
            for attack, one in learned.items()
        ]
    return tuple(found)


def _learned(made: Collected, key: Key, attack: str) -> tuple[Features, Discriminant]:
    """An attack, from shadows alone."""
    shadows = made.numbers(key, attack, made.shadows)
    features = Features.of(shadows)
    return features, Discriminant.trained(features.table(shadows), made.high(made.shadows))


def _attacked(
    made: Collected,
    key: Key,
    attack: str,
    learned: tuple[Features, Discriminant],
    *,
    chosen: bool,
    delta: float,
    error: float,
    rows_of: Callable[[float], int],
) -> Attacked:
    """What a learned attack says of the targets, and what that proves."""
    features, discriminant = learned
    high: Flags = made.high(made.targets)
    says: Flags = discriminant.says_high(features.table(made.numbers(key, attack, made.targets)))
    right, targets = int(np.sum(says == high)), len(high)
    low_end, high_end = interval(right, targets, error)
    highs, lows = int(high.sum()), int((~high).sum())
    draws, defence = made.work.draws, made.work.defences[key[1]]
    is_share = draws.statistic.counted
    return Attacked(
        model=key[0],
        trained_on=key[1],
        attack=attack,
        chosen=chosen,
        validated=discriminant.validated,
        right=right,
        targets=targets,
        low=low_end,
        high=high_end,
        epsilon=epsilon_bound(int(says[high].sum()), highs, int(says[~high].sum()), lows, delta=delta, error=error),
        epsilon_cap=epsilon_cap(highs, lows, delta=delta, error=error),
        rows=rows_of(right / targets),
        rows_low=rows_of(low_end),
        rows_high=rows_of(high_end),
        n_leaked=n_leaked(right / targets, draws.means) if is_share else None,
        promise=defence.promise,
        every_table=defence.every_table,
        caution=defence.caution,
    )
