"""What an application may take at most, told from Spark's settings."""

from dataclasses import replace

from icewright.model.work.admission import Holding
from icewright.model.work.application_size import application_size, task_holding
from tests.builders.specs import settings_of
from tests.cases import each_case

GIB = 1 << 30


def size(master: str, conf: dict[str, str] | None = None, **more: object) -> tuple[int | None, int | None, bool]:
    settings = replace(settings_of(), master=master, spark_conf=conf or {}, **more)  # type: ignore[arg-type]  # by name
    found = application_size(settings, 16)
    return found.cores, found.memory_bytes, found.is_resident


@each_case(("master", "cores"), [("local", 1), ("local[3]", 3), ("local[*]", 16)])
def test_on_this_machine_it_is_what_the_master_says(master: str, cores: int) -> None:
    assert size(master, driver_memory="3g") == (cores, 3 * GIB, True)
    assert size(master, {"spark.executor.instances": "9"}, driver_memory="3g") == (cores, 3 * GIB, True)


def test_on_a_cluster_it_is_what_it_may_grow_to() -> None:
    conf = {"spark.executor.instances": "3", "spark.executor.cores": "4", "spark.executor.memory": "10g"}
    assert size("yarn", conf, driver_memory="2g") == (12, 2 * GIB + 3 * 11 * GIB, True)
    grows = {**conf, "spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "5"}
    assert size("k8s://https://h", grows, driver_memory="2g") == (20, 2 * GIB + 5 * 11 * GIB, True)
    standalone = {"spark.cores.max": "10", "spark.executor.cores": "4", "spark.executor.memoryOverhead": "1024"}
    assert size("spark://h:7077", standalone, driver_memory="1g") == (10, GIB + 3 * 2 * GIB, True)


def test_what_nobody_bounds_is_not_known() -> None:
    assert size("yarn") == (None, None, True)
    assert size("yarn", {"spark.dynamicAllocation.enabled": "true", "spark.executor.instances": "2"}) == (
        None,
        None,
        True,
    )
    assert size("spark://h:7077", {"spark.cores.max": "8"})[:2] == (8, None)


def test_a_task_takes_the_part_of_a_slot_and_alone_it_takes_all() -> None:
    assert task_holding(Holding(8, 9, True), 4) == Holding(2, 3, True)
    assert task_holding(Holding(3, None, True), 2) == Holding(2, None, True)
    assert task_holding(Holding(8, 9, False), 4) == Holding(8, 9, False)
    assert size("local", tasks_max=1)[2] is False
