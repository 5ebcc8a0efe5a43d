"""What blocks of launches say about servers: behind, tied, open or failed."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from wsgiload.statistics.leading import Block, Compared, Rules, State, compare, fit_of, judge

INFINITE = math.inf
RULES = Rules(planned_blocks=8)


def _blocks(values: Mapping[str, float], count: int, wobble: float = 0.02) -> list[Block]:
    """Blocks with a small spread that differs from server to server and block to block."""
    return [
        {
            name: math.log(value) + wobble * math.sin(1 + 7 * number + 3 * place)
            for place, (name, value) in enumerate(values.items())
        }
        for number in range(count)
    ]


def _relations(state: State) -> dict[str, str]:
    return {one.server: one.relation for one in state.standings}


def test_one_block_drops_only_what_is_far_behind() -> None:
    state = judge(("a", "b", "c"), _blocks({"a": 20, "b": 30, "c": 76}, 1), RULES)
    assert (state.leader, state.contenders) == ("a", ("a", "b"))
    assert _relations(state) == {"b": "open", "c": "behind"}
    assert not state.is_decided


def test_further_blocks_name_the_winner_with_ratios_and_intervals() -> None:
    state = judge(("d", "c", "a"), _blocks({"a": 10, "c": 12, "d": 20}, 6), RULES)
    assert (state.contenders, state.is_decided) == (("a",), True)
    [near, far] = state.standings
    assert (near.server, far.server) == ("c", "d")
    assert near.ratio == pytest.approx(1.2, rel=0.03)
    assert near.interval is not None
    assert 1 < near.interval[0] < 1.2 < near.interval[1]


def test_equal_servers_are_tied_once_the_interval_lies_within_the_margin() -> None:
    equal = {"a": 10.0, "b": 10.1}
    assert not judge(tuple(equal), _blocks(equal, 2), RULES).is_decided
    state = judge(tuple(equal), _blocks(equal, 8), RULES)
    assert (set(_relations(state).values()), state.is_decided) == ({"tied"}, True)
    strict = judge(tuple(equal), _blocks(equal, 8), Rules(margin=0.01, planned_blocks=8))
    assert set(_relations(strict).values()) == {"open"}


def test_an_open_race_says_how_many_blocks_would_decide_it_and_whether_the_leader_is_good() -> None:
    close = {"a": 10.0, "b": 10.8}
    state = judge(tuple(close), _blocks(close, 5, wobble=0.05), RULES)
    assert _relations(state) == {"b": "open"}
    assert state.blocks_left is not None and state.blocks_left > 0
    assert state.is_good
    longer = judge(tuple(close), _blocks(close, 5 + state.blocks_left, wobble=0.05), RULES)
    assert longer.is_decided


def test_a_server_that_fails_twice_drops_out_and_the_others_continue() -> None:
    blocks = [{**block, "b": INFINITE} for block in _blocks({"a": 10, "b": 5, "c": 10.5}, 2)]
    state = judge(("a", "b", "c"), blocks, RULES)
    assert (state.contenders, _relations(state)["b"]) == (("a", "c"), "failed")
    once = [_blocks({"a": 10, "b": 5}, 1)[0] | {"b": INFINITE}, *_blocks({"a": 10, "b": 5}, 5)]
    assert judge(("a", "b"), once, RULES).leader == "b"


def test_a_race_is_over_if_every_server_fails() -> None:
    state = judge(("a", "b"), [{"a": INFINITE, "b": INFINITE}] * 2, RULES)
    assert (state.contenders, state.leader, state.is_decided) == ((), None, True)


def test_a_disturbed_launch_does_not_count() -> None:
    blocks = [dict(block) for block in _blocks({"a": 10, "b": 13, "c": 14}, 6)]
    blocks[3]["a"] += math.log(3)
    state = judge(("a", "b", "c"), blocks, RULES)
    assert state.contenders == ("a",)
    assert {one.blocks for one in state.standings} == {5}


def test_a_noisy_server_is_not_dropped_by_the_small_spread_of_the_others() -> None:
    quiet = _blocks({"a": 10, "b": 14, "c": 15, "d": 16}, 4, wobble=0.01)
    noise = (0.5, -0.3, 0.6, -0.2)
    blocks = [{**block, "e": math.log(9) + one} for block, one in zip(quiet, noise, strict=True)]
    assert "e" in judge(tuple("abcde"), blocks, RULES).contenders


def test_a_missing_launch_affects_only_its_block() -> None:
    blocks = [dict(block) for block in _blocks({"a": 10, "b": 12}, 6)]
    del blocks[2]["b"]
    [standing] = judge(("a", "b"), blocks, RULES).standings
    assert standing.blocks == 5


def test_a_dropout_is_final() -> None:
    blocks = _blocks({"a": 10, "b": 11, "c": 80}, 2) + _blocks({"a": 10, "b": 11, "c": 1}, 2)
    assert "c" not in judge(("a", "b", "c"), blocks, RULES).contenders


def test_pairs_are_compared_with_p_adjusted_for_all_analyses() -> None:
    def compared(count: int) -> Compared | None:
        blocks = _blocks({"a": 10, "b": 12}, count)
        return compare("b", "a", blocks, fit_of(("a", "b"), blocks), RULES)

    found = compared(6)
    assert found is not None
    assert math.exp(found.mean) == pytest.approx(1.2, rel=0.03)
    assert found.p < found.p_adjusted < 0.05
    assert (abs(found.mean) > found.half) == (found.p_adjusted < RULES.error)
    assert compared(1) is None


def test_an_analysis_long_before_the_end_claims_next_to_nothing() -> None:
    blocks: list[Block] = [{"a": 0.0, "b": 0.5}, {"a": 0.1, "b": 0.7}]
    early = Rules(error=0.0005, planned_blocks=30.0)
    assert 0 < early.beyond(2, 2) < 1e-12
    compared = compare("b", "a", blocks, fit_of(("a", "b"), blocks), early)
    assert compared is not None and compared.p_adjusted == 1.0


def test_a_certain_difference_that_does_not_matter_is_a_tie() -> None:
    state = judge(("a", "b"), _blocks({"a": 10, "b": 10.3}, 8, wobble=0.001), RULES)
    assert _relations(state) == {"b": "tied"}
