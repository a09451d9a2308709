"""Mistakes that newcomers make: each gets one cause and one way out, and the way out works when it is followed.

What a message suggests word for word ("Did you mean ...?", "write 2%") must be in the policy that is tried next.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from attrpriv.cli.app import app
from attrpriv.errors import PolicyError, UsageError
from attrpriv.numerics.divergences.wasserstein import wasserstein_inf
from attrpriv.policy import Policy
from attrpriv.problem.secret import Secret
from attrpriv.session.session import Session

MEAN = """\
attrpriv: 1
data: staff.parquet
epsilon: 1.0
delta: 1e-6
protect:
  - secret: mean(education)
    between: [12, 14]
    within: 0.2
assume:
  kind: gaussian
  mean: {education: 13}
  sd: {hours: 9, education: 3.2}
  correlation: {hours~education: 0.6}
  tolerance: {mean: 0.01, sd: 0.02, slope: 0.05}
release:
  - avg(hours)
"""
COUNT = """\
attrpriv: 1
data: staff.parquet
epsilon: 1.0
delta: 1e-6
protect:
  - secret: share(sex = 'F')
    between: [40%, 60%]
    within: 2%
assume:
  kind: counts
  sensitive: sex
  given:
    hours > 45:
      F: 0.3
      M: 0.4
  prior: {F: 0.5}
release:
  - count(*) filter (where hours > 45)
"""
COLUMNS = """\
attrpriv: 1
data: staff.parquet
epsilon: 1.0
delta: 1e-6
protect:
  - secret: columns(education, sex)
reference:
  file: census.parquet
  least_density: 0.8
release:
  - avg(hours)
"""
VIEW = """\
attrpriv: 1
data: staff.parquet
epsilon: 1.0
protect:
  - secret: share(sex = 'F')
    between: [40%, 60%]
release:
  - avg(hours)
"""


@dataclass(frozen=True)
class Mistake:
    """A policy in which `right` is written as `wrong`; the message has `cause` and `way`, and `then` is what that way makes."""

    base: str
    right: str
    wrong: str
    cause: str
    way: str
    then: str | None = None
    """What the way out makes of what is wrong; left out: what was right."""


def m(base: str, right: str, wrong: str, cause: str, way: str, then: str | None = None) -> Mistake:
    return Mistake(base, right, wrong, cause, way, then)


TOLERANCE = "  tolerance: {mean: 0.01, sd: 0.02, slope: 0.05}\n"
REST = "  prior: {F: 0.5}\nrelease:\n  - count(*) filter (where hours > 45)"
REST_40 = REST.replace("45", "40")
SHARE = "  - secret: share(sex = 'F')\n    between: [40%, 60%]\n"
TWO_MEANS = """\
attrpriv: 1
data: staff.parquet
epsilon: 1.0
delta: 1e-6
protect:
  - secret: [mean(education), mean(income)]
    between: {mean(education): [12, 14], mean(income): [49000, 51000]}
assume:
  kind: gaussian
  mean: {education: 13, income: 50000}
  sd: {hours: 9, education: 3.2, income: 9000}
  correlation: {hours~education: 0.6, hours~income: 0, education~income: 0}
  tolerance: {mean: 0.01, sd: 0.02, slope: 0.05}
release:
  - avg(hours)
"""
# What a message says to write, word for word.
SUGGESTED = re.compile(
    r"(?:Did you mean (\S+?)\?|Close: (\S+?)\.|in percent, write (\S+%)\."
    r"|Write (?!it )(\S+) without quotes\.|single quotes: (\S+)\.)(?= |$)"
)
REFERENCE = "reference:\n  file: census.parquet\n  least_density: 0.8\n"
MISTAKES = {
    "a key": m(MEAN, "epsilon:", "epsilom:", "epsilom: unknown key", "Did you mean epsilon?"),
    "a key inside": m(MEAN, "tolerance:", "tolerence:", "tolerence: unknown key", "Did you mean tolerance?"),
    "a secret's column": m(MEAN, "mean(education)", "mean(eduction)", "protect: the column", "Close: education."),
    "a query's column": m(MEAN, "avg(hours)", "avg(hour)", "query: the column", "Close: hours."),
    "a query's function": m(MEAN, "avg(hours)", "average(hours)", "release: query", "must be avg(column)"),
    "a kind": m(MEAN, "kind: gaussian", "kind: gausian", "assume: kind", "Did you mean gaussian?"),
    "a secret's function": m(
        MEAN, "mean(education)", "avrg(education)", "protect[0]", "Did you mean avg(education)?", "avg(education)"
    ),
    "a pair": m(MEAN, "hours~education", "hours~educaton", "correlation: educaton", "Known are hours, education."),
    "a pair with a dash": m(MEAN, "hours~education", "hours-education", "correlation: keys", "as in weight~income"),
    "no delta": m(MEAN, "delta: 1e-6\n", "", "delta: a Gaussian mechanism needs", "delta"),
    "a tolerance in percent, without its sign": m(MEAN, "sd: 0.02", "sd: 2", "sd: must be less than 1", "write 2%.", "sd: 2%"),
    "a number in quotes": m(MEAN, "epsilon: 1.0", "epsilon: '1.0'", "epsilon: must be a number", "without quotes"),
    "no tolerance": m(MEAN, TOLERANCE, "", "tolerance: is required", "Add it."),
    "a bare tolerance": m(MEAN, TOLERANCE, "  tolerance: 0.05\n", "tolerance: must be a mapping", "such as {mean: 0.01"),
    "no sd": m(MEAN, "{hours: 9, education: 3.2}", "{hours: 9}", "education", "Add it under sd"),
    "no correlation": m(MEAN, "  correlation: {hours~education: 0.6}\n", "", "correlation", "Missing: hours~education."),
    "a correlation above 1": m(MEAN, "0.6}", "60}", "correlation: hours~education", "between -1 and 1", "60%}"),
    "a negative sd": m(MEAN, "hours: 9", "hours: -9", "sd.hours", "must be greater than 0"),
    "a range upside down": m(MEAN, "[12, 14]", "[14, 12]", "between: the low end", "below the high end"),
    "a range of one value": m(MEAN, "[12, 14]", "12", "between", "must be a list"),
    "within 0": m(MEAN, "within: 0.2", "within: 0", "within", "greater than 0"),
    "no range": m(MEAN, "    between: [12, 14]\n    within: 0.2\n", "", "protect[0]", "needs between: [low, high]"),
    "epsilon 0": m(MEAN, "epsilon: 1.0", "epsilon: 0", "epsilon", "greater than 0"),
    "epsilon in words": m(MEAN, "epsilon: 1.0", "epsilon: one", "epsilon", "must be a number"),
    "delta 1": m(MEAN, "delta: 1e-6", "delta: 1", "delta", "less than 1"),
    "a table that is not there": m(
        MEAN, "staff.parquet", "stuff.parquet", "data: the file must exist", "Did you mean 'staff.parquet'?"
    ),
    "a folder": m(MEAN, "data: staff.parquet", "data: .", "data: it must be one file", "Name a file in it"),
    "a spreadsheet": m(MEAN, "data: staff.parquet", "data: staff.xlsx", "data: the file's name", "must end in .parquet"),
    "an average of words": m(MEAN, "avg(hours)", "avg(sex)", "query: avg and sum", "need a numeric column"),
    "another table": m(
        MEAN, "avg(hours)", "SELECT avg(hours) FROM staff", "the only table", "FROM data", "SELECT avg(hours) FROM data"
    ),
    "a maximum": m(
        VIEW, "avg(hours)", "max(hours)", "max is not supported", "ask for approx_quantile(", "approx_quantile(hours, 0.95)"
    ),
    "a tab": m(MEAN, "  - avg(hours)", "\t- avg(hours)", "line 16", "Indent with spaces"),
    "a key twice": m(MEAN, "epsilon: 1.0", "epsilon: 1.0\nepsilon: 2.0", "line 4: keys must be unique", "Remove one"),
    "no colon": m(MEAN, "attrpriv: 1", "attrpriv 1", "line 2: must be valid YAML", "colons"),
    "another version": m(MEAN, "attrpriv: 1", "attrpriv: 2", "attrpriv", "must be 1"),
    "a decision left": m(MEAN, "within: 0.2", "within: TODO", "within: must be decided", "Write your decision"),
    "a percent sign that is no number": m(MEAN, "epsilon: 1.0", "epsilon: 1.0 %", "epsilon", "must be a number"),
    "a list instead of a mapping": m(MEAN, "mean: {education: 13}", "mean: [13]", "assume[0].mean", "mapping"),
    "a mean of no column": m(MEAN, "mean(education)", "mean()", "protect[0]", "must be mean(...)"),
    "a bracket left open": m(MEAN, "avg(hours)", "avg(hours", "release: query", "avg(column)"),
    "a value in double quotes": m(COUNT, "sex = 'F'", 'sex = "F"', "condition", "in single quotes: 'F'"),
    "a value without quotes": m(COUNT, "sex = 'F'", "sex = F", "condition", "in single quotes: 'F'"),
    "a value": m(COUNT, "sex = 'F'", "sex = 'Female'", "the policy lists 'F', 'M'", "Write one of these"),
    "a value in lower case": m(COUNT, "sex = 'F'", "sex = 'f'", "the policy lists 'F', 'M'", "Did you mean 'F'?"),
    "percent without its sign": m(COUNT, "[40%, 60%]", "[40, 60]", "shares must be from 0 to 1", "as in 25%"),
    "a category left out": m(COUNT, "      M: 0.4\n", "", "given.hours > 45", "two or more categories"),
    "an event that is not given": m(
        *(COUNT, "hours > 45:\n      F: 0.3\n      M: 0.4\n" + REST, "hours > 45:\n      F: 0.3\n      M: 0.4\n" + REST_40),
        *("the assumption does not say enough", "what helps: the probability of hours > 40"),
        "hours > 40:\n      F: 0.6\n      M: 0.7\n" + REST_40,
    ),
    "a probability above 1": m(COUNT, "F: 0.3", "F: 30", "probabilities must be between 0 and 1", "write 30%.", "F: 30%"),
    "a prior in percent": m(COUNT, "F: 0.5", "F: 50", "probabilities must be between", "write 50%.", "F: 50%"),
    "a distance in percent, without its sign": m(COUNT, "within: 2%", "within: 2", "at most 1 apart", "as in 5%"),
    "an average under counts": m(
        *(COUNT, "count(*) filter (where hours > 45)", "avg(hours)", "must give the values of hours"),
        *("For an average, bounds of hours are enough.", "avg(hours)\nbounds: {hours: [0, 99]}"),
    ),
    "another sensitive column": m(
        COUNT, "sensitive: sex", "sensitive: gender", "share(sex = 'F'): must be about gender", "the sensitive column"
    ),
    "two kinds of secret": m(
        *(COUNT, "assume:", "  - secret: mean(education)\n    between: [12, 14]\nassume:"),
        *("refused count(*) filter (where hours > 45): the secret is not covered", "what helps: a count or share of sex"),
        "  - secret: share(sex = 'M')\n    between: [40%, 60%]\n    within: 2%\nassume:",
    ),
    "two means without a mean": m(
        *(TWO_MEANS, "mean: {education: 13, income: 50000}", "mean: {education: 13}"),
        *("refused avg(hours): the assumption does not say enough", "what helps: the mean of income"),
    ),
    "records that are not there": m(
        COLUMNS, "census.parquet", "cencus.parquet", "reference: must be a file", "Did you mean 'census.parquet'?"
    ),
    "the table as public records": m(
        COLUMNS, "file: census.parquet", "file: staff.parquet", "reference: must be of other records", "Find public records"
    ),
    "a density in percent, without its sign": m(
        COLUMNS, "least_density: 0.8", "least_density: 80", "must be at most 1", "write 80%.", "least_density: 80%"
    ),
    "no public records": m(COLUMNS, REFERENCE, "", "reference: everything about columns", "Name a file"),
    "a hidden column that the records lack": m(
        *(COLUMNS, "columns(education, sex)", "columns(education, income)", "hidden columns must be in census.parquet"),
        *("It has: education, sex.", "columns(education, sex)"),
    ),
    "a percent sign behind a space": m(VIEW, "40%,", "40 %,", "between[0]: must be a number", "write 40% without spaces"),
    "a percent sign in quotes": m(
        VIEW, "40%,", "'40%',", "between[0]: must be a number", "write 40% without spaces and quotes"
    ),
    "a range without brackets": m(VIEW, "[40%, 60%]", "40%, 60%", "between: must be a list", "Put it in brackets"),
    "groups that nobody named": m(
        *(VIEW, "  - avg(hours)", "  - avg(hours) group by sex", "needs public categories", "categories: {sex: [a, b, other]}"),
        "  - avg(hours) group by sex\ncategories: {sex: [F, M, other]}",
    ),
    "a number compared with a text": m(
        *(VIEW, "avg(hours)", "count(*) filter (where hours > '45')", "must compare an integer column with a number"),
        *("Got hours > '45'", "count(*) filter (where hours > 45)"),
    ),
    "two shares": m(
        *(VIEW, SHARE, SHARE + "  - secret: share(education >= 12)\n    between: [40%, 60%]\n"),
        *("several compositions need one distribution(...)", "what helps: one distribution of crossed cells"),
        "  - secret: distribution(sex, education)\n    between:\n"
        + "".join(f"      '{cell}': [5%, 50%]\n" for cell in ("F~[8, 12)", "F~[12, 18]", "M~[8, 12)", "M~[12, 18]"))
        + "bins: {education: [8, 12, 18]}\n",
    ),
    "a view without a range": m(VIEW, "    between: [40%, 60%]\n", "", "share(sex = 'F')", "needs between: [low, high]"),
    "a median as a secret": m(
        *(COLUMNS, "columns(education, sex)", "median(education)", "must be a mean, a sum, a count or a share"),
        *("columns(education) hides", "columns(education)"),
    ),
    # A value of another kind than its key takes.
    "a secret without its dash": m(
        *(
            MEAN,
            "  - secret: mean(education)",
            "    secret: mean(education)",
            "protect: must be a list",
            "with a dash: `- secret: ...`",
        ),
    ),
    "a secret without its key": m(
        *(COLUMNS, "secret: columns(education, sex)", "columns(education, sex)"),
        *("protect[0]: must begin with its key.", "Write `secret: columns(education, sex)`."),
    ),
    "a query without its dash": m(
        MEAN, "  - avg(hours)", "  avg(hours)", "release: must be a list", "with a dash: `- avg(hours)`"
    ),
    "a query with a name": m(
        MEAN, "  - avg(hours)", "  - query: avg(hours)", "release[0]: must be text", "Write it alone, without a name before it."
    ),
    "a query that is a list": m(
        MEAN, "  - avg(hours)", "  - [avg(hours)]", "release[0]: must be text", "Write one alone, without brackets and dashes."
    ),
    "a query that is a number": m(MEAN, "  - avg(hours)", "  - 5", "release[0]: must be text. Got 5", "Put it in quotes."),
    "release without a query": m(
        *(
            MEAN,
            "release:\n  - avg(hours)",
            "release:",
            "release: must be a list. Got nothing",
            "Write it, or remove the line.",
        ),
        "",
    ),
    "a table in brackets": m(MEAN, "data: staff.parquet", "data: [staff.parquet]", "data: must be text", "Write one alone"),
    "an epsilon in brackets": m(MEAN, "epsilon: 1.0", "epsilon: [1.0]", "epsilon: must be a number", "Write one alone"),
    "an epsilon with a name": m(MEAN, "epsilon: 1.0", "epsilon: {value: 1}", "epsilon: must be a number", "Write it alone"),
    "nothing after epsilon": m(MEAN, "epsilon: 1.0", "epsilon:", "epsilon: must be a number. Got nothing", "Write it"),
    "nothing after delta": m(
        COLUMNS, "delta: 1e-6\n", "delta: null\n", "delta: must be a number. Got nothing", "Write it, or remove the line."
    ),
    "a decimal comma": m(MEAN, "epsilon: 1.0", "epsilon: 1,0", "epsilon: must be a number", "a point before decimals"),
    "a thousands separator": m(
        *(MEAN, "data: staff.parquet", "data: staff.parquet\nrows: 2,000", "rows: must be a whole number"),
        *("Write its digits without separators", "data: staff.parquet\nrows: 2000"),
    ),
    "a unit": m(MEAN, "within: 0.2", "within: 0.2 years", "within: must be a number", "Write a number in digits alone"),
    "a currency": m(MEAN, "hours: 9,", "hours: $9,", "sd.hours: must be a number", "Write a number in digits alone"),
    "rows in quotes": m(
        *(MEAN, "data: staff.parquet", "data: staff.parquet\nrows: '2000'", "rows: must be a whole number"),
        *("Write it without quotes.", "data: staff.parquet\nrows: 2000"),
    ),
    "a range with names": m(
        MEAN, "[12, 14]", "{low: 12, high: 14}", "between: must be a list", "Put the two ends in brackets: [12, 14]."
    ),
    "a range with a dash": m(MEAN, "[12, 14]", "12-14", "between: must be a list", "Put it in brackets, with commas"),
    "a range without a comma": m(
        MEAN, "[12, 14]", "[12 14]", "between[0]: must be a number", "Put a comma between the two numbers."
    ),
    "a dash in a range": m(MEAN, "[12, 14]", "[12-14]", "between[0]: must be a number", "Put a comma between the two numbers."),
    "digits in groups": m(
        *(MEAN, "data: staff.parquet", "data: staff.parquet\nrows: 2 000", "rows: must be a whole number"),
        *("Write its digits without separators", "data: staff.parquet\nrows: 2000"),
    ),
    "no range at all": m(
        *(
            COUNT,
            "    between: [40%, 60%]\n    within: 2%\n",
            "    between:\n",
            "needs between: [low, high]",
            "within: distance",
        ),
    ),
    "a secret that is a list of words": m(
        MEAN,
        "secret: mean(education)",
        "secret: [education]",
        "protect[0]: must be a statistic of a column",
        "Write mean(education),",
    ),
    "a secret that is a word": m(
        VIEW, "share(sex = 'F')", "sex", "protect[0]: must be a statistic of a column", "share(sex = 'a value')"
    ),
    "a query that is a column": m(
        VIEW, "avg(hours)", "hours", "must say what is asked of a column", "For its average: avg(hours)."
    ),
    "a query's name with spaces": m(
        VIEW, "avg(hours)", "avg(hours per week)", 'Write avg("hours per week")', "in double quotes", 'avg("hours per week")'
    ),
    "curly quotes": m(VIEW, "'F'", "\u2018F\u2019", "must compare a column with a constant", "in straight single quotes: 'F'."),
    "a count of words": m(
        *(VIEW, "avg(hours)", "avg(sex)", "need a numeric column", "Write count(*) filter (where sex = 'a value')."),
        "count(*) filter (where sex = 'F')",
    ),
    "an average of dates": m(
        *(VIEW, "avg(hours)", "avg(day)", "Got day, which is a date", "Write count(*) filter (where day > '2024-05-01')."),
        "count(*) filter (where day > '2024-05-01')",
    ),
    "a mean of words": m(
        *(VIEW, "share(sex = 'F')\n    between: [40%, 60%]", "mean(sex)\n    between: [12, 14]"),
        *("need a numeric column", "Write share(sex = 'a value')."),
    ),
    "a path of Windows in double quotes": m(
        *(VIEW, "data: staff.parquet", r'data: "C:\users\staff.parquet"'),
        *("must be valid YAML", "write paths in those, or with / instead", "data: './staff.parquet'"),
    ),
    "a table that is elsewhere": m(
        VIEW, "data: staff.parquet", "data: https://example.org/staff.parquet", "must exist", "Download it first."
    ),
    "a spreadsheet by its name": m(VIEW, "data: staff.parquet", "data: staff.xlsx", "must end in", "Save the sheet as CSV"),
    "a secret that is a number": m(VIEW, "share(sex = 'F')", "5", "protect[0]: must be a statistic", "such as mean(income)"),
    "an assumption that is a word": m(
        *(VIEW, "release:", "assume: counts\nrelease:", "assume: must be a mapping", "the first of which is `kind: counts`"),
    ),
    "an assumption's file without its key": m(
        *(VIEW, "release:", "assume: fitted.yaml\nrelease:", "assume: must be a mapping", "line below it: `file: fitted.yaml`"),
    ),
    "means in a list": m(
        *(MEAN, "mean: {education: 13}", "mean: [education, 13]", "mean: must be a mapping", "without brackets and dashes"),
    ),
    "one standard deviation for all": m(MEAN, "{hours: 9, education: 3.2}", "9", "sd: must be a mapping", "{name: value}"),
    "a tolerance that is a word": m(
        MEAN, "{mean: 0.01, sd: 0.02, slope: 0.05}", "small", "tolerance: must be a mapping such as", "slope: 0.05}"
    ),
    "a sensitive column in brackets": m(
        COUNT, "sensitive: sex", "sensitive: [sex]", "sensitive: must be text", "Write one alone, without brackets and dashes."
    ),
    "a probability that is a word": m(COUNT, "F: 0.3", "F: low", "must be a probability or an interval", "[low, high]"),
    "a prior without its category": m(COUNT, "prior: {F: 0.5}", "prior: 0.5", "prior: must be a mapping", "{name: value}"),
    "an answer instead of true": m(
        *(MEAN, "epsilon: 1.0", "epsilon: 1.0\naccept_fit_risk: yes", "must be true or false", "Write true."),
        "epsilon: 1.0\naccept_fit_risk: true",
    ),
    "public records in brackets": m(
        COLUMNS, "file: census.parquet", "file: [census.parquet]", "reference.file: must be text", "Write one alone"
    ),
    "public records without their key": m(
        *(COLUMNS, REFERENCE, "reference: census.parquet\n", "reference: must be a mapping", "such as {name: value}"),
    ),
    "a density that is a word": m(
        COLUMNS, "least_density: 0.8", "least_density: 0,8", "least_density: must be a number", "a point before decimals"
    ),
    "one identifier": m(
        *(VIEW, "release:", "identifiers: income\nrelease:", "identifiers: must be a list", "with a dash: `- income`"),
        "identifiers:\n- income\nrelease:",
    ),
    "bounds in a list": m(
        *(VIEW, "release:", "bounds: [hours, 0, 99]\nrelease:", "bounds: must be a mapping", "without brackets and dashes"),
        "bounds:\n  hours: [0, 99]\nrelease:",
    ),
    "a bound of one number": m(
        *(VIEW, "release:", "bounds: {hours: 99}\nrelease:", "bounds.hours: must be a list", "Put it in brackets, with commas"),
        "bounds: {hours: [0, 99]}\nrelease:",
    ),
    "bounds of words": m(
        *(VIEW, "release:", "bounds: {sex: [0, 1]}\nrelease:", "bounds: needs a numeric column. Got sex", "Remove it."),
    ),
    "bins of words": m(
        *(VIEW, "release:", "bins: {sex: [0, 1]}\nrelease:", "bins: needs a numeric column. Got sex", "Remove it."),
    ),
    # A constant of another type than its column.
    "a secret's number in quotes": m(
        *(
            VIEW,
            "share(sex = 'F')",
            "share(smoker = '1')",
            "protect: must compare an integer column",
            "Write 1 without quotes.",
        ),
        "share(smoker = 1)",
    ),
    "a secret's limit in quotes": m(
        *(VIEW, "share(sex = 'F')", "share(education > '12')", "protect: must compare an integer", "Write 12 without quotes."),
        "share(education > 12)",
    ),
    "a secret's code without quotes": m(
        *(VIEW, "share(sex = 'F')", "share(code = 1)", "protect: must compare a text column", "single quotes: '1'."),
        "share(code = '1')",
    ),
    "a secret's truth in quotes": m(
        *(VIEW, "share(sex = 'F')", "share(member = 'yes')", "protect: must compare a boolean", "Write true without quotes."),
        "share(member = true)",
    ),
    "truth as a number": m(
        *(
            VIEW,
            "avg(hours)",
            "count(*) filter (where member = 0)",
            "query: must compare a boolean",
            "Write false without quotes.",
        ),
        "count(*) filter (where member = false)",
    ),
    "a number as truth": m(
        *(VIEW, "avg(hours)", "count(*) filter (where smoker = true)", "query: must compare an integer", "Write 1."),
        "count(*) filter (where smoker = 1)",
    ),
    "cells of a boolean column": m(
        *(VIEW, "share(sex = 'F')\n    between: [40%, 60%]"),
        "distribution(member)\n    between: {'yes': [40%, 60%], other: [40%, 60%]}",
        *("a category of member must be 'true' or 'false'", "in quotes"),
        "distribution(member)\n    between: {'true': [40%, 60%], other: [40%, 60%]}",
    ),
    "a cell's number without quotes": m(
        *(VIEW, "share(sex = 'F')\n    between: [40%, 60%]"),
        "distribution(smoker)\n    between: {1: [40%, 60%], other: [40%, 60%]}",
        *("between: its keys must be text", "Put it in quotes."),
        "distribution(smoker)\n    between: {'1': [40%, 60%], other: [40%, 60%]}",
    ),
    "groups of another type": m(
        *(VIEW, "  - avg(hours)", "  - avg(hours) group by code\ncategories: {code: [1, 2, other]}"),
        *("categories: must compare a text column", "single quotes: '1'."),
        "  - avg(hours) group by code\ncategories: {code: ['1', '2', other]}",
    ),
    "a moment instead of a date": m(
        *(VIEW, "avg(hours)", "count(*) filter (where seen > '2024-01-01')", "must hold numbers, text, booleans or dates"),
        *("such as the date of a time", "count(*) filter (where day > '2024-01-01')"),
    ),
}


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("newcomer")
    random = np.random.default_rng(1)
    education, sex = random.integers(8, 19, 2_000), np.where(random.random(2_000) < 0.5, "F", "M")
    hours = np.rint(40 + 2 * (education - 13) + random.normal(0, 6, 2_000)).astype(int)
    frame = pd.DataFrame({"education": education, "hours": hours, "sex": sex, "income": random.normal(5e4, 9e3, 2_000)})
    frame = frame.assign(smoker=random.integers(0, 2, 2_000), member=random.random(2_000) < 0.5, code="1")
    frame = frame.assign(seen=pd.Timestamp("2024-05-01"), day=date(2024, 5, 1))
    frame["hours per week"] = hours
    frame.to_parquet(folder / "staff.parquet")
    public = {"education": random.integers(8, 19, 9_000), "sex": np.where(random.random(9_000) < 0.5, "F", "M")}
    pd.DataFrame(public).to_parquet(folder / "census.parquet")
    return folder


def check(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    monkeypatch.chdir(folder)
    Path("p.yaml").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["check", "p.yaml"])
    return done.exit_code, " ".join(done.output.split())


def test_there_are_a_hundred() -> None:
    assert len(MISTAKES) + 8 >= 100  # the others are below: they need more than a policy


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_its_cause_and_its_way_out(name: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = MISTAKES[name]
    assert one.right in one.base
    code, told = check(place, one.base.replace(one.right, one.wrong, 1), monkeypatch)
    assert code in (2, 3)
    assert one.cause in told
    assert one.way in told
    assert len(re.findall(r"\brefused \S+.*?: ", told.partition("attrpriv: ")[0])) <= 1  # one cause
    followed = one.right if one.then is None else one.then
    for suggested in SUGGESTED.finditer(told):
        assert next(filter(None, suggested.groups())).strip("'") in followed
    code, told = check(place, one.base.replace(one.right, followed, 1), monkeypatch)
    assert code == 0, told


def test_a_mechanism(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(place, MEAN, monkeypatch)
    wrong = CliRunner().invoke(app, ["plan", "p.yaml", "--mechanism", "gausian"])
    assert wrong.exit_code == 2
    assert "Did you mean gaussian?" in wrong.output
    assert CliRunner().invoke(app, ["plan", "p.yaml", "--mechanism", "gaussian"]).exit_code == 0


def test_an_assumption_that_is_still_to_be_fitted(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    pd.read_parquet("staff.parquet").sample(1_500, random_state=5).to_parquet("public.parquet")
    given = re.sub(r"(?s)assume:.*(?=release:)", "assume: {file: said.yaml}\n", COUNT)
    code, told = check(place, given, monkeypatch)
    assert (code, told.count("no such file.")) == (2, 1)
    way = re.search(r"Write it with: attrpriv (.*)", told)
    assert way is not None
    assert run(*way[1].replace("POLICY", "p.yaml").replace("RECORDS", "public.parquet").split())[0] == 0
    assert run("check", "p.yaml")[0] == 0


def test_a_second_ledger_of_one_table_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(place, VIEW + "ledger: first.ledger\n", monkeypatch)
    assert CliRunner().invoke(app, ["release", "p.yaml"]).exit_code == 0
    _, told = check(place, VIEW + "ledger: second.ledger\n", monkeypatch)
    assert "first.ledger holds releases of this table too" in told
    assert "Release from one ledger alone." in told
    code, told = check(place, VIEW + "ledger: first.ledger\n", monkeypatch)
    assert (code, "second.ledger" in told) == (0, False)


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, " ".join(done.output.split())


def test_a_file_without_a_line_of_names(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message names the next command, and the last one ends in a policy that is accepted."""
    monkeypatch.chdir(place)
    rows = pd.read_parquet("staff.parquet")[["education", "hours", "sex"]]
    Path("people.data").write_text("".join(f"{a}, {b}, {c}\n" for a, b, c in rows.itertuples(index=False)), encoding="utf-8")
    rows.to_csv("bare.csv", index=False, header=False)
    assert run("init", "people.data")[1].endswith("a text file with: attrpriv tidy people.data")
    code, told = run("tidy", "people.data")
    assert (code, "--names first,second" in told) == (2, True)
    code, told = run("init", "bare.csv", "--secret", "share(sex = 'F')")
    assert (code, "attrpriv tidy bare.csv --names first,second" in told) == (2, True)
    code, told = run("tidy", "people.data", "--names", "education,hours")
    assert (code, "as many as the columns of the file, 3" in told) == (2, True)
    for file in ("people.data", "bare.csv"):
        code, told = run("tidy", file, "--names", "education,hours,sex", "--out", "named.parquet", "--force")
        assert code == 0
        following = re.search(r"with: attrpriv (init \S+)", told)
        assert following is not None
        asked = ("--secret", "share(sex = 'F')", "--release", "avg(hours)", "--template", "hospital", "--between", "40%,60%")
        assert run(*following[1].split(), *asked, "--force")[0] == 0
        assert run("check", "named.yaml")[0] == 0


def test_spaces_around_cells(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    rows = pd.read_parquet("staff.parquet")
    rows.assign(sex=" " + rows["sex"]).to_csv("padded.csv", index=False)
    policy = VIEW.replace("data: staff.parquet", "data: padded.csv\nrows: 2000\nledger: padded.ledger")
    Path("padded.yaml").write_text(policy, encoding="utf-8")
    code, told = run("release", "padded.yaml")
    assert (code, "values as the table writes them, spaces included" in told) == (2, True)
    Path("padded.yaml").write_text(policy.replace("'F'", "' F'").replace("padded.ledger", "spaces.ledger"), encoding="utf-8")
    assert run("release", "padded.yaml")[0] == 0
    assert run("tidy", "padded.csv", "--out", "trimmed.parquet")[0] == 0
    assert set(pd.read_parquet("trimmed.parquet")["sex"]) == {"F", "M"}


def test_a_category_that_the_assumption_lacks(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    rows = pd.read_parquet("staff.parquet")
    rows.loc[:5, "sex"] = "X"
    rows.to_parquet("three.parquet")
    policy = COUNT.replace("staff.parquet", "three.parquet")
    Path("three.yaml").write_text(policy + "ledger: three.ledger\n", encoding="utf-8")
    code, told = run("release", "three.yaml")
    assert (code, "Name the value in the assumption as the table writes it" in told) == (2, True)
    named = policy.replace("      M: 0.4\n", "      M: 0.4\n      X: 0.4\n")
    Path("three.yaml").write_text(named + "ledger: named.ledger\n", encoding="utf-8")
    assert run("release", "three.yaml")[0] == 0


def test_a_table_and_a_policy_in_each_others_place(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    code, told = run("check", "staff.parquet")
    assert (code, "Got 'staff.parquet', a table." in told) == (2, True)
    following = re.search(r"with: attrpriv (init staff.parquet)", told)
    assert following is not None
    assert run(*following[1].split(), "--out", "begun.yaml")[0] == 0
    code, told = run("init", "begun.yaml", "--out", "other.yaml")
    assert (code, "That is a policy. Name the table." in told) == (2, True)
    assert run("init", "staff.parquet", "--out", "other.yaml")[0] == 0


def test_public_records_that_cannot_be_fitted(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    pd.read_parquet("staff.parquet").sample(1_500, random_state=7).to_parquet("public.parquet")
    Path("p.yaml").write_text(re.sub(r"(?s)assume:.*(?=release:)", "assume: {file: fitted.yaml}\n", MEAN), encoding="utf-8")
    code, told = run("fit", "p.yaml", "--public", "publc.parquet", "--out", "fitted.yaml")
    assert (code, "public: must be a file that is there" in told, "Did you mean 'public.parquet'?" in told) == (2, True, True)
    code, told = run("fit", "p.yaml", "--public", "census.parquet", "--out", "fitted.yaml")
    assert (code, "public: the file must have the column hours." in told) == (2, True)
    assert run("fit", "p.yaml", "--public", "public.parquet", "--out", "fitted.yaml")[0] == 0


def test_another_unit(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Years in one line and months in another: both are numbers, and the assumption gives the range no chance."""
    code, told = check(place, MEAN.replace("[12, 14]", "[144, 168]"), monkeypatch)
    assert (code, "the assumption gives its range no chance" in told, "Correct one of the two." in told) == (0, True, True)
    code, told = check(place, MEAN, monkeypatch)
    assert (code, "no chance" in told) == (0, False)


def test_objects_in_the_wrong_place_in_python(place: Path) -> None:
    """Each is one line that says what to write, and no error of another library."""
    table, secret = pd.read_parquet(place / "staff.parquet"), Secret("share(sex = 'F')", between=(0.4, 0.6))
    with pytest.raises(PolicyError, match=r"^protect: must be a list\. Got one Secret\. .* protect=\[Secret\(\.\.\.\)\]\.$"):
        Policy(epsilon=1.0, protect=secret)
    policy = Policy(epsilon=1.0, protect=[secret])
    with pytest.raises(UsageError, match=r"as in Session\(table, policy\)\. Got an object of type DataFrame\.$"):
        Session(policy, table)  # type: ignore[arg-type]
    assert Session(table, policy, place / "python.ledger").plan("avg(hours)").mechanism == "subsample"
    with pytest.raises(UsageError, match=r"such as \{0: 0\.4, 1: 0\.6\}, or be a law\. Got a list\."):
        wasserstein_inf([0.4, 0.6], [0.5, 0.5])  # type: ignore[arg-type]
    assert wasserstein_inf({0: 0.4, 1: 0.6}, {0: 0.5, 1: 0.5}).distance == 1


def test_a_share_in_quotes_in_python(place: Path) -> None:
    with pytest.raises(PolicyError, match=r"in Python 0\.4\."):
        Secret("share(sex = 'F')", between=("40%", "60%"))
    assert Secret("share(sex = 'F')", between=(0.4, 0.6)).ends == (0.4, 0.6)
