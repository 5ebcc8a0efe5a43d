"""Alarms about effects that quantiles do not show: delays in a share of the responses, and stalls
that a closed loop hides. Pure; they use the histograms of a load."""

from __future__ import annotations

from collections.abc import Iterable

from wsgiload.documents.codec import histogram_of
from wsgiload.documents.load_report import LoadReport
from wsgiload.findings.finding import Finding, Fired, percent
from wsgiload.units import duration_words

# nagle-delay: Linux delays an acknowledgement by 40 ms (TCP_DELACK_MIN), rounded to its timer.
DELAYED_ACKNOWLEDGEMENT_NS = (36_000_000, 50_000_000)
# A delayed acknowledgement causes a peak in this window. The windows below and above have the same
# width; a body that is merely slow falls into them as well.
WINDOW_NS = DELAYED_ACKNOWLEDGEMENT_NS[1] - DELAYED_ACKNOWLEDGEMENT_NS[0]
MIN_PEAK = 3.0
MIN_DELAYED_SHARE, MIN_DELAYED = 0.01, 5
# closed-loop-stalls: a response this many times as slow as p99 is a stall. Even an exponential
# distribution exceeds it only once in 10 ** 20 responses.
STALL_FACTOR = 10.0
P99 = 0.99
MIN_STALLED_SHARE = 0.02

Buckets = Iterable[tuple[int, int]]


NAGLE_DELAY = Finding(
    name="nagle-delay",
    examines="the time between the head and the body of each response",
    premise=f"In at least {percent(MIN_DELAYED_SHARE)} of the responses, and at least "
    f"{MIN_DELAYED}, the body arrives {DELAYED_ACKNOWLEDGEMENT_NS[0] / 1e6:g} to "
    f"{DELAYED_ACKNOWLEDGEMENT_NS[1] / 1e6:g} ms after the head, {MIN_PEAK:g} times as often as "
    "slightly earlier or later: Nagle's algorithm waits for a delayed ACK.",
    consequence="p99 includes delays of about 40 ms, caused by Nagle's algorithm and delayed ACKs",
    fix="set TCP_NODELAY in the server, or write head and body together",
    misleads="the kernel's delayed acknowledgements, mistaken for a slow server",
)


def delayed_acknowledgement(load: LoadReport) -> Fired | None:
    """Bodies arrive after their heads with the delay of a delayed acknowledgement."""
    histogram = histogram_of(load.transfer_ns)
    if histogram is None or not len(histogram):
        return None

    buckets = histogram.buckets()
    min_ns, max_ns = DELAYED_ACKNOWLEDGEMENT_NS
    delayed = _count(buckets, min_ns, max_ns)
    around = max(
        _count(buckets, min_ns - WINDOW_NS, min_ns),
        _count(buckets, max_ns, max_ns + WINDOW_NS),
    )
    share = delayed / len(histogram)
    is_peak = delayed >= MIN_DELAYED and delayed >= MIN_PEAK * around
    if share < MIN_DELAYED_SHARE or not is_peak:
        return None

    message = (
        f"in {share * 100:.0f} % of the responses, the body arrives {min_ns / 1e6:.0f} to "
        f"{max_ns / 1e6:.0f} ms after the head: the server writes them separately without "
        "TCP_NODELAY, so Nagle's algorithm waits for a delayed ACK"
    )
    return NAGLE_DELAY.fired(message, share, MIN_DELAYED_SHARE)


CLOSED_LOOP_STALLS = Finding(
    name="closed-loop-stalls",
    examines="closed loop: the share of the users' waiting time spent on responses slower than "
    f"{STALL_FACTOR:g} times p99",
    premise=f"The share is at least {percent(MIN_STALLED_SHARE)}. It is the probability that a "
    "request sent at a random time meets a stall, but users send nothing while they wait, so a "
    "stall adds only one slow response per user.",
    consequence="p99 is too low, because a closed loop hides stalls",
    fix="measure in an open loop (-R or --rates), which keeps sending during a stall",
    misleads="a closed-loop p99, presented as the p99 of independent users",
    blame="method",
)


def hidden_stalls(load: LoadReport) -> Fired | None:
    """A closed loop sends nothing while its users wait for a stalled server, so each stall is only
    one slow response per user, however long it lasts.

    The share of the users' waiting time that is spent in stalls is the sum of x count(x) over x >
    10 p99, divided by the sum over all x. It is the probability that a request sent at a random
    time meets a stall (length-biased sampling); the share of the responses is the probability that
    p99 shows the stall.
    """
    if load.plan.load.closed is None:
        return None
    histogram = histogram_of(load.response_time_ns)
    p99_ns = histogram.quantile(P99) if histogram is not None else None
    if histogram is None or p99_ns is None:
        return None

    buckets = histogram.buckets()
    stalled = [(value, count) for value, count in buckets if value > STALL_FACTOR * p99_ns]
    share = _total_ns(stalled) / max(1, _total_ns(buckets))
    if share < MIN_STALLED_SHARE:
        return None

    longest_ns = max(value for value, _ in stalled)
    responses = sum(count for _, count in stalled) / len(histogram)
    message = (
        f"stalls of up to {duration_words(longest_ns)} took {share * 100:.0f} % of the users' "
        f"waiting time but are only {responses * 100:.2g} % of the responses, because closed-loop "
        "users send nothing while they wait; p99 does not show them"
    )
    return CLOSED_LOOP_STALLS.fired(message, share, MIN_STALLED_SHARE)


def _count(buckets: Buckets, min_ns: int, max_ns: int) -> int:
    return sum(count for value, count in buckets if min_ns <= value < max_ns)


def _total_ns(buckets: Buckets) -> int:
    return sum(value * count for value, count in buckets)
