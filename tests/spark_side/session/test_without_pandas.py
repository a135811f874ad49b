"""Importing pandas costs a worker more than a small merge; shown in a process of its own, since it happens once."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark_side.executors.merge.test_merge_faults import job_in

_MERGE = """
import pickle, sys
from pathlib import Path
from icewright_spark.executors.merge.merge import merge_group
from icewright_spark.session.without_pandas import leave_pandas_out

{first}
merge_group(pickle.loads(Path(sys.argv[1]).read_bytes()))
print("pandas" in sys.modules)
import pyarrow
assert pyarrow.array([1, None]).to_pandas().isna().sum() == 1
"""


@pytest.mark.parametrize(("first", "imported"), [("leave_pandas_out()", "False"), ("", "True")])
def test_a_merge_needs_no_pandas_and_who_does_can_have_it(first: str, imported: str, tmp_path: Path) -> None:
    job = tmp_path / "job"
    job.write_bytes(pickle.dumps(job_in(tmp_path)))
    command = [sys.executable, "-c", _MERGE.format(first=first), str(job)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own words
    assert found.stdout.strip() == imported
