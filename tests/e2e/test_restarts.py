"""Servers in processes of their own with a real Redis: restarted one after the other, killed, and bereft of Redis under live calls."""

from __future__ import annotations

import pytest

from voicestream.testing.redis_server import has_redis
from voicestream.testing.restarts import run_case

pytestmark = pytest.mark.skipif(not has_redis(), reason="no redis-server, or no redis-py")

CALLS = 3


async def test_when_a_server_is_killed_its_calls_go_on_at_the_other_one_and_no_word_is_lost() -> None:
    outcome = await run_case("kill", CALLS, talk_s=1.5)
    assert (outcome.ended, outcome.moved) == (0, CALLS), str(outcome)
    assert outcome.lost <= outcome.said // 100, str(outcome)
    assert outcome.twice == 0, str(outcome)


async def test_calls_do_not_notice_that_redis_freezes_stops_and_comes_back_empty() -> None:
    outcome = await run_case("redis", CALLS, talk_s=0.5)
    assert (outcome.ended, outcome.moved) == (0, 0), str(outcome)
    assert outcome.lost <= outcome.said // 100, str(outcome)
    assert outcome.twice == 0, str(outcome)
