"""The other libraries that are measured: by name and version, each in an environment of its own, and what each promises."""

from __future__ import annotations

import shutil
from typing import NamedTuple

from bench.peers.budget import Unavailable
from bench.peers.environment import versions_in


class Library(NamedTuple):
    """`package` is what its version is read from; `needs` a command that must be there."""

    name: str
    words: str
    package: str
    requirements: tuple[str, ...]
    needs: str | None = None


READER = "pyarrow==26.0.1"

LIBRARIES = (
    Library("opendp", "OpenDP (Polars)", "opendp", ("opendp[polars]==0.16.0", "polars==1.36.1", READER)),
    # Newer versions of scikit-learn lack names that it imports.
    Library(
        "diffprivlib", "diffprivlib", "diffprivlib", ("diffprivlib==0.6.6", "scikit-learn==1.5.2", "pandas==3.1.1", READER)
    ),
    Library("smartnoise", "SmartNoise SQL", "smartnoise-sql", ("smartnoise-sql==1.0.10", "setuptools<80", READER)),
    Library("pipelinedp", "PipelineDP (local)", "pipeline-dp", ("pipeline-dp==0.3.1", READER)),
    Library("tumult", "Tumult Analytics (Spark)", "tmlt.analytics", ("tmlt.analytics==0.21.0",), "java"),
)


def version(each: Library) -> str:
    """What its environment, which is made where it is not there, says; `Unavailable` where there can be none."""
    if each.needs and shutil.which(each.needs) is None:
        raise Unavailable(f"needs {each.needs}, which is not on this machine")
    return versions_in(each.name, each.requirements, [each.package])[each.package]
