"""One budget: its share holds over time, and losses pay for their answers."""

from __future__ import annotations

import pytest

from voicestream.core.recovery.budget import ANSWERS, MOST_OVERDRAFT, OVERDRAFT, RedundancyBudget, Tool, answering


def run(budget: RedundancyBudget, tool: Tool, size: int, datagrams: int) -> float:
    for _ in range(datagrams):
        extra = 0
        if budget.allows(tool, size):
            budget.spend(tool, size)
            extra = size
        budget.carried(150 + extra)
    return sum(budget.spent.values()) / budget.wire_bytes


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3])
def test_a_tool_that_always_wants_more_gets_its_share_and_no_more(share: float) -> None:  # VS-9.4-2 VS-9.4-3
    assert run(RedundancyBudget(share), Tool.REPAIR, 100, 5000) == pytest.approx(share, abs=0.005)


def test_with_no_share_nothing_is_spent_whatever_is_lost() -> None:
    budget = RedundancyBudget(0.0)
    budget.outcome(0, 100)
    assert run(budget, Tool.RETRANSMISSION, 100, 100) == 0


def test_losses_add_to_what_retransmissions_may_take_and_to_nothing_else() -> None:  # VS-9.4-2
    lossy = RedundancyBudget(0.1)
    for _ in range(200):
        lossy.outcome(9, 1)
    assert lossy.loss == pytest.approx(0.1, abs=0.03)
    assert run(lossy, Tool.RETRANSMISSION, 100, 5000) == pytest.approx(min(0.3, 0.1 + ANSWERS * lossy.loss), abs=0.02)
    fresh = RedundancyBudget(0.1)
    for _ in range(200):
        fresh.outcome(9, 1)
    assert run(fresh, Tool.REPAIR, 100, 5000) == pytest.approx(0.1, abs=0.005)


def test_credit_is_not_saved_up_without_bound() -> None:
    budget = RedundancyBudget(0.5)
    for _ in range(10000):
        budget.carried(1000)
    spent = 0
    while budget.allows(Tool.COPY, 100):
        budget.spend(Tool.COPY, 100)
        spent += 100
    assert spent <= 1500
    assert budget.spent[Tool.COPY] == spent


def test_a_burst_is_answered_before_it_is_measured_and_paid_for_later() -> None:
    budget = RedundancyBudget(0.1)
    while budget.allows(Tool.REPAIR, 50):
        budget.spend(Tool.REPAIR, 50)
    sizes = 0
    while budget.allows(Tool.RETRANSMISSION, 150):
        budget.spend(Tool.RETRANSMISSION, 150)
        sizes += 150
    assert 450 <= sizes <= 900
    for _ in range(100):
        budget.outcome(9, 1)
        budget.carried(150)
        assert budget.allows(Tool.RETRANSMISSION, 10)


@pytest.mark.parametrize(("rate_bps", "bytes_ahead"), [(12_000, OVERDRAFT), (80_000, 2000), (400_000, MOST_OVERDRAFT)])
def test_a_burst_is_answered_ahead_of_the_measured_loss_as_far_as_the_path_carries_that(rate_bps: float, bytes_ahead: float) -> None:
    budget = RedundancyBudget(0.1)
    budget.path_carries(rate_bps)
    spent = 0
    while budget.allows(Tool.RETRANSMISSION, 100):
        budget.spend(Tool.RETRANSMISSION, 100)
        spent += 100
    assert spent == bytes_ahead
    assert not budget.allows(Tool.REPAIR, 1)


def test_each_echo_of_an_answer_has_its_credit() -> None:
    assert answering(1) == ANSWERS
    taken = []
    for echoes in (1, 2):
        budget = RedundancyBudget(0.1)
        budget.answers = answering(echoes)
        for _ in range(200):
            budget.outcome(19, 1)
        taken.append((run(budget, Tool.RETRANSMISSION, 100, 5000) - 0.1) / budget.loss)
    assert taken == pytest.approx([2.0, 3.0], abs=0.2)


def test_what_was_saved_up_at_a_better_rate_is_not_spent_at_a_worse_one() -> None:
    budget = RedundancyBudget(0.1)
    budget.carried(15_000)
    assert budget.allows(Tool.REPAIR, 1000)
    budget.tighten()
    assert not budget.allows(Tool.REPAIR, 250)
    assert not budget.allows(Tool.RETRANSMISSION, 250)
    assert budget.allows(Tool.RETRANSMISSION, 150)


def test_all_together_never_takes_more_than_its_most_and_answers_come_first() -> None:  # VS-9.4-3
    budget = RedundancyBudget(0.1, 0.3)
    budget.answers = 3.0
    for _ in range(5000):
        budget.outcome(7, 3)
        size = 150
        for tool, again in ((Tool.REPAIR, False), (Tool.COPY, False), (Tool.RETRANSMISSION, True), (Tool.RETRANSMISSION, False)):
            if budget.allows(tool, 50, again=again):
                budget.spend(tool, 50)
                size += 50
        budget.carried(size)
    spent = budget.spent
    assert sum(spent.values()) <= 0.3 * budget.wire_bytes
    assert spent[Tool.RETRANSMISSION] > 0.9 * sum(spent.values())
    assert budget.is_scarce


def test_an_application_that_asks_for_more_gets_it() -> None:
    assert run(RedundancyBudget(0.5), Tool.REPAIR, 150, 5000) > 0.4
