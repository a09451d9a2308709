"""Read the UCI Adult data: `python -m examples.adult.load DIRECTORY [--out FILE]`.

The directory holds `adult.data` (32,561 rows, for training) and `adult.test` (16,281 rows, for measuring accuracy) as the UCI
Machine Learning Repository gives them out. No row is dropped: a missing entry, `?` in the files, stays a category of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

FILES = ("adult.data", "adult.test")
COLUMNS = (
    "age workclass fnlwgt education education_num marital_status occupation relationship race sex "
    "capital_gain capital_loss hours_per_week native_country income"
).split()
WHERE = "Download the Adult data set from the UCI Machine Learning Repository: https://archive.ics.uci.edu/dataset/2/adult"


class Adult(NamedTuple):
    """The two parts of the data, as Arrow tables."""

    train: Any
    test: Any


def load(directory: str | Path) -> Adult:
    """Both files; `FileNotFoundError` or `ValueError` with what to do if they are not there or are something else."""
    place = Path(directory)
    lacking = [name for name in FILES if not (place / name).is_file()]
    if lacking:
        raise FileNotFoundError(f"directory: must hold {' and '.join(FILES)}. {place} lacks {' and '.join(lacking)}. {WHERE}")
    return Adult(*(_read(place / name) for name in FILES))


def _read(path: Path) -> Any:
    # adult.test begins with a line that is no row, and ends each label with a full stop
    frame = pd.read_csv(path, names=COLUMNS, skipinitialspace=True, comment="|")
    frame["income"] = frame["income"].astype(str).str.rstrip(".")
    if set(frame["income"]) != {"<=50K", ">50K"} or set(frame["sex"]) != {"Female", "Male"}:
        raise ValueError(f"{path.name}: must be the Adult data in its original form, 15 columns without a header. {WHERE}")
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)


def load_or_exit(directory: Path) -> Adult:
    """`load` for a script: a message instead of a traceback."""
    try:
        return load(directory)
    except (FileNotFoundError, ValueError) as error:
        raise SystemExit(str(error)) from None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write the training rows of the UCI Adult data as Parquet.")
    parser.add_argument("directory", type=Path, help=f"where {' and '.join(FILES)} are")
    parser.add_argument("--out", type=Path, default=Path("adult.parquet"), help="default adult.parquet")
    options = parser.parse_args(arguments)
    train = load_or_exit(options.directory).train
    pq.write_table(train, options.out)
    print(f"wrote {options.out.name}: {train.num_rows:,} rows")


if __name__ == "__main__":
    main()
