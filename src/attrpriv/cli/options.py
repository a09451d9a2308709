"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attrpriv.cli.guard import number

PolicyFile = Annotated[Path, typer.Argument(metavar="POLICY", help="The policy file (YAML).", show_default=False)]
QueryTexts = Annotated[
    list[str] | None,
    typer.Argument(metavar="QUERY", help="avg(column), sum(x) / sum(y), count(*) ...; default: the policy's release."),
]
Plot = Annotated[Path | None, typer.Option("--plot", help="Also draw a picture of it: .svg, .png or .pdf.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print one table of comma-separated values and nothing else.")]
Mechanism = Annotated[str, typer.Option("--mechanism", help="auto, or the name of a mechanism.")]
By = Annotated[str, typer.Option("--by", help="What auto compares: rmse, mean_absolute or alpha95 (the 95% bound).")]
Spend = Annotated[
    float | None,
    typer.Option(
        "--spend",
        parser=number("spend"),
        metavar="SHARE",
        help="Share of what is left of the budget; default: an equal share for each query the policy lists.",
    ),
]
WantedError = Annotated[
    float | None,
    typer.Option(
        "--error", parser=number("error"), metavar="E", help="The least epsilon, up to the policy's, that reaches this error."
    ),
]
