"""The action of rewriting manifests, as a value."""

import pytest

from icewright.core.codec import dumps, loads
from icewright.core.errors import InvalidMessage
from icewright.model.actions.rewrite_manifests import (
    InputManifest,
    ManifestCause,
    ManifestClass,
    ManifestContent,
    Opened,
    OutputManifest,
    RewriteManifests,
    RewriteManifestsFigures,
    RewriteManifestsPrediction,
    Share,
)
from icewright.model.iceberg.files import Partition
from tests.cases import each_case

DATA = ManifestClass(0, ManifestContent.DATA)
ACTION = RewriteManifests(
    base_snapshot_id=7,
    causes=(ManifestCause.MANY_SMALL, ManifestCause.SPREAD),
    manifests=(
        InputManifest("s3://b/t/metadata/a.avro", 5000, 5, DATA, 3, 1),
        InputManifest("s3://b/t/metadata/b.avro", 4000, 6, DATA, 2, 0),
    ),
    outputs=(OutputManifest(DATA, (Share('["a"]', 2), Share('["b"]', 3))),),
    target_size_bytes=8_388_608,
)
PREDICTION = RewriteManifestsPrediction(2, 1, 9000, 8000, 5, (Opened(DATA, 2, 2, 1, 2.0, 1.0),), "CALL ...")


def test_its_figures_say_everything_but_the_names() -> None:
    assert ACTION.figures == RewriteManifestsFigures(
        base_snapshot_id=7,
        causes=ACTION.causes,
        manifests_replaced=2,
        manifests_written=1,
        entries=5,
        removed_entries=1,
        input_bytes=9000,
        target_size_bytes=8_388_608,
    )
    assert ACTION.partitions == {Partition(0, '["a"]'), Partition(0, '["b"]')}


@each_case("value", [ACTION, ACTION.figures, PREDICTION])
def test_it_travels_as_json_and_comes_back_the_same(value: object) -> None:
    assert loads(type(value), dumps(value)) == value


def test_what_is_not_understood_is_refused() -> None:
    with pytest.raises(InvalidMessage):
        loads(RewriteManifests, dumps(ACTION).replace("many-small", "too-many"))
