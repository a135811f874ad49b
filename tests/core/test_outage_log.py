"""An outage is told of at once, then once a minute with a count, and asked about less and less often."""

from icewright.core.outage_log import PAUSE_S_MAX, Outage


def test_the_first_failure_is_told_then_one_a_minute_with_the_count() -> None:
    outage, told = Outage(), {}
    for second in range(200):
        failures = outage.failed(float(second))
        if failures is not None:
            told[second] = failures
    assert told == {0: 1, 60: 61, 120: 121, 180: 181}
    assert (outage.over(), outage.over()) == (200, 0)
    assert outage.failed(200.5) == 1, "the next outage is told at once"


def test_pauses_double_up_to_a_bound_and_never_fall_below_the_usual_one() -> None:
    outage = Outage()
    assert outage.pause_s(0.5) == 0.5
    pauses = []
    for _ in range(2000):
        outage.failed(0.0)
        pauses.append(outage.pause_s(0.5))
    assert pauses[:5] == [1.0, 2.0, 4.0, PAUSE_S_MAX, PAUSE_S_MAX]
    assert (max(pauses), outage.pause_s(30.0)) == (PAUSE_S_MAX, 30.0)
