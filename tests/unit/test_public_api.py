"""The public names: exactly these, each of them there, and nothing heavy imported before one is used."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import attrpriv
from tests.end_to_end.material import environment

ROOT = Path(__file__).resolve().parents[2]

NAMES = """
    AttrprivError Bridge Cause Certificate CertificateError Chain Channel Counts DataError Gaussian GroupTolerance Groups
    Guarantee Hierarchy ParameterNetwork Laws LeakageMap ModelAudit Parameter Plan Policy PolicyError Problem PublicTable Query
    QueryError RecordedTable Records Reference Refusal RefusedError Release ReleaseAudit Secret Session Tolerance UsageError
    __version__ audit_model audit_release bridge calibration count divergences extend laws leaks mean plan queries rank register
    total try_on
""".split()

HEAVY = {
    "scipy",
    "ibis",
    "duckdb",
    "opendp",
    "typer",
    "rich",
    "pandas",
    "polars",
    "pyarrow",
    "sqlglot",
    "yaml",
    "numpy",
    "pydantic",
}


def test_the_public_names_are_these() -> None:
    assert sorted(attrpriv.__all__) == sorted(NAMES)
    assert dir(attrpriv) == sorted(attrpriv.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_there(name: str) -> None:
    value = getattr(attrpriv, name)
    assert value is getattr(attrpriv, name)
    if isinstance(value, type):
        assert value.__name__ == name
        assert value.__doc__


def test_no_other_name_is() -> None:
    with pytest.raises(AttributeError, match="module 'attrpriv' has no attribute 'Sesion'"):
        _ = attrpriv.Sesion


def test_the_version_is_the_project_s() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert attrpriv.__version__ == project["version"]


def test_errors_have_one_root_and_an_exit_code() -> None:
    codes = {name: getattr(attrpriv, name).exit_code for name in NAMES if name.endswith("Error")}
    assert codes == {
        "AttrprivError": 1,
        "CertificateError": 1,
        "DataError": 2,
        "PolicyError": 2,
        "QueryError": 2,
        "RefusedError": 3,
        "UsageError": 2,
    }
    assert all(issubclass(getattr(attrpriv, name), attrpriv.AttrprivError) for name in codes)


def loaded_by(code: str) -> set[str]:
    """The top-level packages that a fresh process has loaded after `code`."""
    shown = f"{code}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    command = [sys.executable, "-c", shown]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=environment())
    return set(done.stdout.split())


def test_importing_it_imports_nothing_heavy() -> None:
    assert loaded_by("import attrpriv") & HEAVY == set()


def test_a_policy_needs_no_engine() -> None:
    loaded = loaded_by("import attrpriv; attrpriv.Policy")
    assert loaded & {"scipy", "ibis", "duckdb", "opendp", "typer", "rich", "pandas", "polars", "pyarrow"} == set()


def test_the_test_of_imports_can_fail() -> None:
    assert {"numpy", "pydantic"} <= loaded_by("import attrpriv, numpy; attrpriv.Policy") & HEAVY


def test_every_module_can_be_imported() -> None:
    source = Path(attrpriv.__file__).parent
    modules = sorted(path.relative_to(source.parent).with_suffix("").as_posix() for path in source.rglob("*.py"))
    names = [module.removesuffix("/__init__").replace("/", ".") for module in modules]
    assert len(names) > 30
    for name in names:
        importlib.import_module(name)
