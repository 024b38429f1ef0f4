"""Taking a session from the store: races, a store that lies or does not answer, keys that differ or are the wrong size."""

from __future__ import annotations

import pytest

import voicestream
from voicestream.core.resume import ResumeToken, TokenSealer
from voicestream.errors import ProtocolError
from voicestream.server import _checked_keys
from voicestream.session.carried import Carried
from voicestream.store import MemoryStore

ONE, OTHER = b"1" * 32, b"2" * 32


def entropy(size: int) -> bytes:
    return bytes(size)


def test_a_new_key_seals_and_the_old_one_still_opens_until_it_is_dropped() -> None:
    token = ResumeToken(session_id=bytes(16), generation=3, identity=b"me", expires_at=0)
    sealer = TokenSealer(ONE)
    old = sealer.seal(token, entropy)
    sealer.change(OTHER, older=[ONE])
    new = sealer.seal(token, entropy)
    assert sealer.open(old) == sealer.open(new) == token == TokenSealer(OTHER).open(new)
    sealer.change(OTHER)
    assert sealer.open(new) == token
    with pytest.raises(ProtocolError):
        sealer.open(old)
    with pytest.raises(ValueError, match="32 bytes"):
        sealer.change(b"short", older=[ONE])
    assert sealer.open(new) == token


@pytest.mark.parametrize("keys", [[], [b"short"], [ONE, bytes(33)], [ONE] * 17])
def test_keys_of_a_wrong_size_or_number_are_refused(keys: list[bytes]) -> None:
    with pytest.raises(ValueError, match="resume_keys"):
        _checked_keys(keys)


@pytest.mark.parametrize("keys", [ONE, "x" * 32, ["x" * 32]])
def test_keys_that_are_no_list_of_bytes_are_refused(keys: object) -> None:
    with pytest.raises(TypeError, match="resume_keys"):
        _checked_keys(keys)  # type: ignore[arg-type]


def test_serve_refuses_bad_keys_before_it_starts() -> None:
    async def handler(call: voicestream.Call) -> None: ...

    with pytest.raises(ValueError, match="resume_keys"):
        voicestream.serve(handler, certfile="c", keyfile="k", resume_keys=[b"short"])
    with pytest.raises(ValueError, match="store needs resume_keys"):
        voicestream.serve(handler, certfile="c", keyfile="k", store=MemoryStore())


GOOD = {
    "tracks": [[0, 1, 48000, 1, True, True, 0]],
    "peer": [1200, 1000, 150, 30000, None],
    "lifetime": 300.0,
    "sent": [[0, 800, 700, False, 1, 400]],
    "received": [[0, None, 900, None, 0, 0]],
    "events": [1, 1, [1, 3]],
}


def test_what_a_session_takes_along_comes_back_the_same() -> None:
    carried = Carried.from_json(GOOD)
    assert Carried.from_json(carried.to_json()) == carried


@pytest.mark.parametrize(
    "changes",
    [
        {"tracks": []},
        {"tracks": [[9, 1, 48000, 1, True, True, 0]]},
        {"tracks": [[0]]},
        {"peer": [1200]},
        {"lifetime": "long"},
        {"lifetime": 1e9},
        {"sent": []},
        {"sent": [[0, -1, 0, False, 0, 0]]},
        {"sent": [[0, 1 << 61, 0, False, 0, 0]]},
        {"received": [[1, None, 0, None, 0, 0]]},
        {"received": [[0, "x", 0, None, 0, 0]]},
        {"events": [1, 0, []]},
        {"events": None},
    ],
)
def test_what_no_session_could_have_written_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"state|values|number|track"):
        Carried.from_json({**GOOD, **changes})
    with pytest.raises(ValueError, match="state"):
        Carried.from_json(["no", "session"])
