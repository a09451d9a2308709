"""`markov_quilt`: Laplace noise that hides a parameter of the population (docs/theory/markov-quilt.md).

| query | what moves when all entries of some column that it reads change |
|---|---|
| count with a filter | n |
| histogram | 2 n |
| averages and sums | the width of the bounds of each column, shared by all of them |
| variance, covariance, regression, quantile | the width of the range in which it is kept (`yardsticks.non_linear`) |

Where the parameters of everything that is read have an influence of at most epsilon, the exact answer is private and no noise
is added. Columns that are not in the network are allowed: nothing is assumed of them, and they always count as changed. The
secret's `between` and `within` are not used: all its values are hidden from each other.

After earlier releases the noise is the least with which everything released loses at most a target (`cases.quilt`).
"""

from __future__ import annotations

from collections.abc import Sequence

from attrpriv.cases.tally_layout import cell_condition
from attrpriv.errors import QueryError
from attrpriv.methods.base.accuracy import ExpectedError, Noise, laplace_error
from attrpriv.methods.base.certificate import Certificate, common_assumptions
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import LaplaceEvidence, LaplaceTerm
from attrpriv.methods.base.parts import AveragesPart, TallyPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.ranged import ranged
from attrpriv.methods.base.tally import Tally, TallyCell
from attrpriv.methods.base.tally_plan import additive_error
from attrpriv.methods.markov_quilt.case import QuiltCase, quilt_case
from attrpriv.methods.markov_quilt.proof import QuiltCheck, QuiltEvidence, QuiltTerm
from attrpriv.methods.markov_quilt.score import Known
from attrpriv.methods.markov_quilt.sensitivity import ColumnSensitivity
from attrpriv.noise import GRID_BITS, granularity
from attrpriv.numerics.networks.network import ancestral
from attrpriv.numerics.rounding import ROUNDED_UP, SOLVED_DOWN, SOLVED_UP
from attrpriv.problem.composition import bin_names
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, needs_bounds
from attrpriv.queries.conditions import columns_of, parse_condition
from attrpriv.queries.query import Query

_REFERENCE = "docs/theory/markov-quilt.md"
# A certificate carries its network; of a large one only what the answer depends on.
_MOST_SHOWN = 60
# A whole number's noise has no grid to pay for, and a term wants a positive one.
_NO_GRID = 5e-324


def plan(problem: Problem) -> Plan:
    """The least noise of the subset rule, for a count, a histogram, some averages, or one other statistic."""
    case = quilt_case(problem)
    asked = [query for query in problem.queries if not query.whole_table]
    if not asked:
        raise Refusal(
            Cause.STATISTIC,
            "the number of rows is public; ask for a count with a filter, a histogram, a sum or an average.",
            needs="a count with a filter, a histogram, a sum or an average",
        )
    if problem.non_linear:
        return _statistic(case)
    if all(query.plain for query in asked):
        return _averages(case)
    if len({(query.column, query.where, query.group_by) for query in asked}) > 1 or asked[0].column is not None:
        raise Refusal(Cause.TOGETHER, "answers one count or histogram, or some averages over all rows. Ask for one of them.")
    return _counts(case, asked[0])


def _evidence(case: QuiltCase, terms: Sequence[QuiltTerm], found: Sequence[Known]) -> QuiltEvidence:
    read = {column for term in terms for column in term.columns} | set(case.before.columns)
    networks = []
    for network in case.networks:
        needed = [*case.protected, *(name for name in network.nodes if name in read)]
        networks.append(network if len(network.nodes) <= _MOST_SHOWN else ancestral(network, needed))
    return QuiltEvidence(
        networks=tuple(networks),
        tolerances=case.tolerances,
        protected=case.protected,
        terms=tuple(terms),
        checks=tuple(QuiltCheck(secret=known.on, theta=known.theta, known=known.columns) for known in found),
        earlier=case.earlier,
    )


# ------------------------------------------------------------------------------------------------------ counts, histograms


def _counts(case: QuiltCase, query: Query) -> Plan:
    problem = case.problem
    tally, read = _tally(case, query)
    sensitivity = ColumnSensitivity.histogram(read, problem.n) if tally.histogram else ColumnSensitivity.count(read, problem.n)
    scale, found = case.known(sensitivity)
    rows = None
    if problem.individuals is not None:
        scale = max(scale, tally.width / problem.individuals * SOLVED_UP)
        term = LaplaceTerm(column=query.text, sensitivity=float(tally.width), scale=scale, granularity=_NO_GRID)
        rows = LaplaceEvidence(epsilon=problem.individuals, terms=(term,))
    moves = float(problem.n * tally.width)
    evidence = _evidence(case, [QuiltTerm(name=query.text, columns=read, sensitivity=moves, scale=scale)], found)
    tally = tally.model_copy(
        update={"noise": "laplace" if scale else "none", "scale": scale, "parameters": _parameters(evidence)}
    )
    errors = tuple(additive_error(problem, tally, asked) for asked in problem.queries)
    return _assembled(case, evidence, rows, (), tally, errors)


def _tally(case: QuiltCase, query: Query) -> tuple[Tally, tuple[str, ...]]:
    """What is counted, and the columns that it reads."""
    problem, reason = case.problem, None
    try:
        if query.group_by is None:
            event = parse_condition(query.where or "")
            cells: tuple[TallyCell, ...] = (TallyCell(name=str(event), where=str(event), value=1),)
            read = tuple(dict.fromkeys(columns_of(event)))
        else:
            if query.where is not None:
                raise QueryError(f"query: {query.text} is not covered; ask for the histogram without the filter.")
            cells, read = _cells(case, query.group_by), (query.group_by,)
        histogram = query.group_by is not None
        whole = Tally(cells=cells, complete=histogram, categories=(), fill=problem.missing, clip=problem.bounds)
        return whole.model_copy(update={"histogram": histogram}), read
    except QueryError as error:
        reason = str(error)
    raise Refusal(Cause.STATISTIC, reason, usage=True)


def _cells(case: QuiltCase, column: str) -> tuple[TallyCell, ...]:
    """One cell for each bin or category."""
    problem = case.problem
    listed = [member.attributes[column].categories for member in case.theta if column in member.attributes]
    names: Sequence[str] = bin_names(problem.bins[column]) if column in problem.bins else next(filter(None, listed), ())
    if not names:
        raise QueryError(f"query: a histogram of {column} needs bins, or its categories (family: categorical).")
    return tuple(
        TallyCell(name=name, where=str(cell_condition(problem, column, name, k)), value=1) for k, name in enumerate(names)
    )


# --------------------------------------------------------------------------------------------------------------- averages


def _averages(case: QuiltCase) -> Plan:
    """Noise in proportion to the widths of the bounds; none for a column whose parameter every set lets show."""
    problem = case.problem
    widths = {column: _width(problem, column) for column in problem.columns}
    declared = tuple((frozenset((column,)), 1.0) for column, width in widths.items() if width is not None)
    lacking = [column for column, width in widths.items() if width is None]
    scale, found = case.known(ColumnSensitivity(problem.columns, declared), lacking)
    if scale:
        scale = max(_with_grid(case, known, len(problem.columns)) for known in found)
    exact = {column for column in problem.columns if all(column in known.columns for known in found)}
    if problem.individuals is not None:
        scale, exact = max(scale, _row_scale(problem)), set()
    if not exact.issuperset(lacking):
        raise needs_bounds(lacking)
    terms = tuple(_term(column, widths[column], 0.0 if column in exact else scale) for column in problem.columns)
    evidence = _evidence(case, terms, found)
    parts = tuple(_column(problem, term, evidence) for term in terms)
    return _assembled(case, evidence, _rows(problem, terms), parts, None, ())


def _width(problem: Problem, column: str) -> float | None:
    if column not in problem.bounds:
        return None
    low, high = problem.bounds[column]
    width = (high - low) * ROUNDED_UP
    if not width < float("inf"):
        raise Refusal(Cause.PUBLIC_FACT, f"bounds of {column} are too wide for a float.", needs=f"narrower bounds of {column}")
    return width


def _with_grid(case: QuiltCase, known: Known, grids: int) -> float:
    """The scale, in the unit of the sensitivity, that also pays for the grids of this many noises."""
    if not known.sensitivity:
        return 0.0
    left = case.target * SOLVED_DOWN - known.spent - grids * 2.0**-GRID_BITS
    if not left > 0:
        raise Refusal(
            Cause.BUDGET,
            f"the grid of the noise costs more than epsilon {case.problem.epsilon:g} allows.",
            needs="a larger epsilon",
        )
    return known.sensitivity / left * SOLVED_UP


def _row_scale(problem: Problem) -> float:
    """The scale, in widths, that protects single rows, which move an average by an n-th of its width."""
    count = len(problem.columns)
    left = (problem.individuals or 0.0) * SOLVED_DOWN - count * 2.0**-GRID_BITS
    if not left > 0:
        raise Refusal(
            Cause.BUDGET, "individuals: the grid of the noise costs more than this epsilon allows.", needs="a larger epsilon"
        )
    return count / problem.n / left * SOLVED_UP


def _term(column: str, width: float | None, scale: float) -> QuiltTerm:
    noise = scale * (width or 0.0)
    step = granularity(noise) if noise else 0.0
    return QuiltTerm(name=column, columns=(column,), sensitivity=width, granularity=step, scale=noise)


def _rows(problem: Problem, terms: Sequence[QuiltTerm]) -> LaplaceEvidence | None:
    if problem.individuals is None:
        return None
    rows = tuple(
        LaplaceTerm(
            column=term.name, sensitivity=(term.sensitivity or 0.0) / problem.n, scale=term.scale, granularity=term.granularity
        )
        for term in terms
    )
    return LaplaceEvidence(epsilon=problem.individuals, terms=rows)


def _column(problem: Problem, term: QuiltTerm, evidence: QuiltEvidence) -> ColumnPlan:
    exact = ExpectedError(rmse=0.0, mean_absolute=0.0, alpha95=0.0, worst=0.0)
    return ColumnPlan(
        column=term.name,
        noise=Noise(kind="laplace" if term.scale else "none", scale=term.scale),
        error=laplace_error(term.scale) if term.scale else exact,
        fill=problem.missing.get(term.name),
        clip=problem.bounds.get(term.name),
        parameters=_parameters(evidence),
    )


# ------------------------------------------------------------------------------------------ variances, regressions, quantiles


def _statistic(case: QuiltCase) -> Plan:
    """Noise in proportion to the width of the range; none where every set lets all columns show that are read."""
    asked = ranged(case.problem)
    scale, found = case.known(ColumnSensitivity.kept(asked.query.columns, asked.width))
    if scale:
        scale = max(_with_grid(case, known, 1) for known in found)
    step = granularity(scale) if scale else 0.0
    term = QuiltTerm(name=asked.query.text, columns=asked.query.columns, sensitivity=asked.width, granularity=step, scale=scale)
    evidence = _evidence(case, (term,), found)
    part = _column(case.problem, term, evidence).model_copy(update={"fill": None, "clip": None})
    made = _assembled(case, evidence, None, (part,), None, ())
    return made.rebuilt(statistic=asked.how, notes=(*made.notes, *asked.notes))


# ------------------------------------------------------------------------------------------------------------------- both


def _parameters(evidence: QuiltEvidence) -> dict[str, object]:
    """Of each secret the set that may show, and its influence."""
    return {
        "known": [
            {
                "secret": check.secret,
                "theta": check.theta,
                "known": list(check.known),
                "influence": evidence.influence_of(check),
            }
            for check in evidence.checks
        ]
    }


def _assembled(
    case: QuiltCase,
    evidence: QuiltEvidence,
    rows: LaplaceEvidence | None,
    columns: tuple[ColumnPlan, ...],
    tally: Tally | None,
    errors: tuple[ExpectedError, ...],
) -> Plan:
    problem = case.problem
    exact = not any(term.scale for term in evidence.terms)
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=problem.delta,
        evidence=evidence,
        individuals=rows,
        assumes=_assumptions(case),
        exact=exact,
        gap=0.0 if exact else 1.0,
    )
    certificate.verify()
    return assemble(
        problem,
        "markov_quilt",
        AveragesPart(columns=columns) if tally is None else TallyPart(tally=tally),
        certificate,
        reference=_REFERENCE,
        errors=errors,
        model_error=evidence.model_error(problem.epsilon, problem.delta),
        notes=_notes(case, evidence),
    )


def _assumptions(case: QuiltCase) -> tuple[str, ...]:
    lines = ["given the parameters of the population the columns are independent, and each depends on its own alone: assumed"]
    lines += [f"{'one of: ' if len(case.theta) > 1 else ''}{member}" for member in case.theta]
    return (*lines, "the adversary knows no row", *common_assumptions(case.problem))


def _notes(case: QuiltCase, evidence: QuiltEvidence) -> tuple[str, ...]:
    notes = []
    for check in evidence.checks:
        shows = f"the parameter(s) of {', '.join(check.known)} may show" if check.known else "no parameter may show"
        notes.append(f"{check.secret}: {shows} (influence {evidence.influence_of(check):.6g}); noise covers everything else.")
    if evidence.earlier:
        notes.append(f"all releases together, this one included, lose {evidence.loss():.6g} at most.")
    notes += [f"{term.name}: the exact answer is private; no noise is added." for term in evidence.terms if not term.scale]
    for column in dict.fromkeys(column for term in evidence.terms for column in term.columns):
        if any(column not in network.nodes for network in case.networks):
            notes.append(f"{column}: is not in the network; nothing is assumed of it.")
    if any(secret.between is not None or secret.within is not None for secret in case.problem.secrets):
        notes.append("all values of each parameter are hidden from each other, not only those that between or within name.")
    return tuple(notes)
