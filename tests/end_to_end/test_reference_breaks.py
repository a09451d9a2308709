"""What the reference view must not do: each of these was seen to happen, and breaks its promise or what it says of itself."""

from __future__ import annotations

import contextlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import attrpriv as ap
from attrpriv.errors import AttrprivError
from attrpriv.session.record import recheck

N = 2_000
RNG = np.random.default_rng(1)


def table(values: Any, kind: pa.DataType | None = None) -> pa.Table:
    """Hidden x, and a z that says nothing about it."""
    return pa.table({"x": pa.array(values, kind), "z": RNG.normal(size=len(values))})


def policy(place: Path, public: pa.Table | None, **reference: Any) -> ap.Policy:
    stated: dict[str, Any] = {"least_density": 1, "failure": 1e-3, "rarest_event": 0.5, **reference}
    if public is not None:
        pq.write_table(public, place / "public.parquet")
        stated["file"] = str(place / "public.parquet")
    told = {"attrpriv": 1, "epsilon": 1, "delta": 0.01, "protect": [{"secret": "columns(x)"}], "reference": stated}
    return ap.Policy.from_json(told)


def rows(private: pa.Table, asked: ap.Policy, ledger: Path) -> pa.Table:
    with ap.Session(private, asked, ledger=ledger) as session:
        return session.view().to_pyarrow()


def test_a_nan_and_a_missing_entry_of_one_cell_look_alike(tmp_path: Path) -> None:
    """Both are in the cell of what is missing, so how many there are of each is no public number."""
    found = []
    for nans in (0, 900):
        values = [1.0] * 1000 + [float("nan")] * nans + [None] * (1000 - nans)
        asked = policy(tmp_path, table([1.0] * 1000 + [None] * 1000, pa.float64()))
        x = rows(table(values, pa.float64()), asked, tmp_path / f"{nans}.ledger")["x"]
        found.append((x.null_count, pc.sum(pc.is_nan(x)).as_py()))
    assert found[0] == found[1]


def test_the_sign_of_a_zero_decides_no_failure(tmp_path: Path) -> None:
    """Public records count both zeros as one value, and so must the table."""
    signs = np.where(RNG.random(N) < 0.5, 0.0, -0.0)
    values = np.where(RNG.random(N) < 0.5, 1.0, signs)
    asked = policy(tmp_path, table(values))
    # But for ten rows the very same values: this table must not fail.
    assert rows(table(RNG.permutation(values)[10:]), asked, tmp_path / "x.ledger").num_rows > 0


def test_decimals_of_the_table_are_those_of_the_records(tmp_path: Path) -> None:
    """Two decimals that are one float are two values, in the public records as in the table."""
    values = [Decimal(9007199254740992), Decimal(9007199254740993)] * (N // 2)
    kind = pa.decimal128(17, 0)
    asked = policy(tmp_path, table(values, kind))
    assert rows(table(values[10:], kind), asked, tmp_path / "x.ledger").num_rows > 0


@pytest.mark.parametrize("copied", [False, True])
def test_the_table_is_not_its_own_reference(tmp_path: Path, copied: bool) -> None:
    """Its counts would be in the plan, the certificate and the ledger."""
    private = table((RNG.random(N) < 0.37).astype(int))
    asked = policy(tmp_path, private)
    place = tmp_path / "public.parquet"
    if copied:
        place = tmp_path / "private.parquet"
        pq.write_table(private, place)
    with ap.Session(place, asked, ledger=tmp_path / "x.ledger") as session, pytest.raises(AttrprivError):
        session.view()


def test_a_failure_that_cannot_be_recorded_does_not_show(tmp_path: Path) -> None:
    """Else one asks again with other numbers, as often as one likes, and no ledger knows."""
    asked = policy(tmp_path, table([0, 1] * (N // 2)))
    seen = []
    for ones in (1000, 100):
        private = table([1] * ones + [0] * (N - ones))
        with ap.Session(private, asked, ledger=tmp_path / "no such folder" / "x.ledger") as session:
            with pytest.raises(AttrprivError) as caught:
                session.view()
            seen.append((type(caught.value), str(caught.value), type(caught.value.__context__)))
    assert seen[0] == seen[1]


def test_a_table_that_was_replaced_shows_no_row(tmp_path: Path) -> None:
    """The old thresholds keep the same share of every value of the new table, which is its composition."""
    asked = policy(tmp_path, table([0, 1] * (N // 2)), least_density=0.7)
    place = tmp_path / "private.parquet"
    pq.write_table(table([0, 1] * (N // 2)), place)
    with ap.Session(place, asked, ledger=tmp_path / "x.ledger") as session:
        session.view()
        pq.write_table(table([1] * 1600 + [0] * 400), place)
        with pytest.raises(ap.DataError, match="drawn from"):
            session.view()


@pytest.mark.parametrize(
    ("columns", "common", "rare"), [(("x",), (None,), ("missing",)), (("x", "y"), ("a", "b~c"), ("a~b", "c"))]
)
def test_cells_of_one_name_have_their_own_shares(
    tmp_path: Path, columns: tuple[str, ...], common: tuple[str | None, ...], rare: tuple[str, ...]
) -> None:
    """avg(z) is 0.1 and was answered with 1, without an error."""
    each = [rare if k % 10 == 0 else common for k in range(N)]
    hidden = {name: [one[j] for one in each] for j, name in enumerate(columns)}
    private = pa.table({**hidden, "z": [float(k % 10 == 0) for k in range(N)]})
    public = private.slice(0, N - 10)
    pq.write_table(public, tmp_path / "public.parquet")
    told = {"attrpriv": 1, "epsilon": 1, "delta": 0.01, "protect": [{"secret": f"columns({', '.join(columns)})"}]}
    told["reference"] = {"file": str(tmp_path / "public.parquet"), "least_density": 1, "failure": 1e-3, "rarest_event": 0.5}
    with ap.Session(private, ap.Policy.from_json(told), ledger=tmp_path / "x.ledger") as session:
        (answer,) = session.release("avg(z)", "subsample").answers
    assert answer.values[0].value == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize(("values", "kind"), [(["2020-01-01", "2020-1-1"], pa.date32()), ([1.5, 1.0], pa.int64())])
def test_a_reference_that_does_not_fit_is_told_apart_from_a_broken_file(
    tmp_path: Path, values: list[Any], kind: pa.DataType
) -> None:
    asked = policy(tmp_path, None, x={"values": values, "shares": [0.5, 0.5]})
    with pytest.raises(AttrprivError, match=r"reference: .* type"):
        rows(table(pa.array([1] * N, pa.int32()).cast(kind)), asked, tmp_path / "x.ledger")


def test_no_answer_follows_a_view_that_failed(tmp_path: Path) -> None:
    """In a record, too: such an answer came from no view that the ledger knows."""
    from attrpriv.accounting import hash_chain as chain
    from attrpriv.errors import CertificateError

    asked = policy(tmp_path, table([0, 1] * (N // 2)))
    entries = []
    for ones in (100, 1000):
        with ap.Session(table([1] * ones + [0] * (N - ones)), asked, ledger=tmp_path / f"{ones}.ledger") as session:
            with contextlib.suppress(AttrprivError):
                session.release("avg(z)", "subsample")
            entries.append(session.recorded())
    (failed,), (_, answer) = entries
    told = answer.to_json()
    said = {key: told[key] for key in ("kind", "time", "policy_digest", "plan", "answers", "details")}
    forged = chain.next_entry(chain.contents(**said), told["account"], failed)
    with pytest.raises(CertificateError):
        recheck("record", [failed, forged])
