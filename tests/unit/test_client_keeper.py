"""How often servers may send a client from one to another."""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from voicestream.client_keeper import MAX_MOVES, MOVES_WITHIN, Keeper, Redial
from voicestream.config import Limits
from voicestream.quic.configuration import ClientTls
from voicestream.session.negotiation import Destination


def redial() -> Redial:
    return Redial(
        host="home", port=4433, tls=ClientTls(server_name="home", insecure=True), limits=Limits(), route_token=None, resume=True,
        replay_ms=0, timeout=None,
    )  # fmt: skip


def sent_to(place: Destination | None) -> tuple[Redial, Keeper]:
    """Whom a keeper dials whose server has sent its client there."""
    session = SimpleNamespace(sent_to=place, moving_to=None)
    keeper = Keeper.__new__(Keeper)
    keeper._link = SimpleNamespace(now=lambda: 0.0, locked=lambda: nullcontext(session))  # type: ignore[assignment]
    keeper._session = session  # type: ignore[assignment]
    keeper._keeper = SimpleNamespace(watch=SimpleNamespace(attempts=1))  # type: ignore[assignment]
    keeper._sent, keeper._others, keeper._redial = deque(maxlen=MAX_MOVES), [], redial()
    return keeper._choose(), keeper


def test_a_route_token_is_the_first_connection_id_at_the_server_that_it_came_with() -> None:
    # VS-11.2-1
    chosen, keeper = sent_to(Destination("voicestream://other:5000/", b"routetoken"))
    assert (chosen.host, chosen.port, chosen.tls.server_name, chosen.route_token) == ("other", 5000, "other", b"routetoken")
    keeper._moved(chosen)
    assert keeper._redial.route_token == b"routetoken", "its dials after the next break go there as well"
    assert [one.host for one in keeper._others] == ["home"]


def test_a_route_token_alone_leads_to_another_server_behind_the_same_address() -> None:
    chosen, keeper = sent_to(Destination(None, b"routetoken"))
    assert (chosen.host, chosen.port, chosen.route_token) == ("home", 4433, b"routetoken")
    keeper._moved(chosen)
    assert keeper._others == []
    assert sent_to(None)[0].route_token is None
    assert "routetoken" not in repr(Destination(None, b"routetoken"))


def test_servers_that_send_a_client_in_circles_are_followed_five_times(caplog: pytest.LogCaptureFixture) -> None:
    """VS-5.2.3-1: "it MUST NOT follow more than 5 in a row"."""
    clock = SimpleNamespace(at=0.0)
    keeper = Keeper.__new__(Keeper)
    keeper._link = SimpleNamespace(now=lambda: clock.at)  # type: ignore[assignment]
    keeper._sent, keeper._others = deque(maxlen=MAX_MOVES), []
    keeper._redial = redial()
    followed = []
    for turn in range(8):
        clock.at += 1.0
        followed.append(keeper._sent_to(f"voicestream://server{turn % 2}/") is not None)
    assert followed == [True] * 5 + [False] * 3
    assert "from one to another" in caplog.text
    clock.at += MOVES_WITHIN
    assert keeper._sent_to("voicestream://server9/") is not None
    assert keeper._sent_to("no place") is None
