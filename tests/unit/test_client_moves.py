"""What a client is told of its network."""

from __future__ import annotations

import pytest

import voicestream
from voicestream.client_moves import check_address


@pytest.mark.parametrize("address", [None, "192.0.2.7", "2001:db8::7", "fe80::1%eth0"])
def test_an_address_is_taken(address: str | None) -> None:
    check_address(address)


@pytest.mark.parametrize("address", ["nonsense", "", "192.0.2.7:4433", "[::1]", "localhost"])
def test_anything_else_is_the_callers_mistake(address: str) -> None:
    with pytest.raises(ValueError, match="local_address must be an IPv4 or IPv6 address"):
        voicestream.connect("voicestream://voice.example/").network_changed(address)
