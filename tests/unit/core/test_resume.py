"""Session ids and sealed tokens."""

from __future__ import annotations

import random

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.core.resume import MAX_IDENTITY, ResumeToken, TokenSealer, make_session_id, same_bytes
from voicestream.errors import ProtocolError

KEY, OTHER = bytes(32), bytes(range(32))
TOKEN = ResumeToken(session_id=bytes(range(16)), generation=3, identity=b"alice", expires_at=5000)


def entropy(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def refused(sealer: TokenSealer, sealed: bytes, at: int | None = None) -> bool:
    with pytest.raises(ProtocolError) as caught:
        sealer.open(sealed, at=at)
    return caught.value.code is ErrorCode.TOKEN_INVALID and caught.value.reason == "the resume token is not valid"


def test_what_was_sealed_can_be_opened() -> None:
    sealer = TokenSealer(KEY)
    assert sealer.open(sealer.seal(TOKEN, entropy)) == TOKEN


def test_another_key_opens_nothing() -> None:
    assert refused(TokenSealer(OTHER), TokenSealer(KEY).seal(TOKEN, entropy))


def test_a_token_of_an_older_key_can_still_be_opened() -> None:
    assert TokenSealer(OTHER, older=[KEY]).open(TokenSealer(KEY).seal(TOKEN, entropy)) == TOKEN


def test_no_changed_bit_goes_unnoticed() -> None:
    sealer = TokenSealer(KEY)
    sealed = sealer.seal(TOKEN, entropy)
    for position in range(len(sealed)):
        changed = bytearray(sealed)
        changed[position] ^= 1 << position % 8
        assert refused(sealer, bytes(changed))


@pytest.mark.parametrize("size", [0, 1, 5, 13, 20, 28])
def test_a_token_that_is_too_short_is_refused(size: int) -> None:
    sealer = TokenSealer(KEY)
    assert refused(sealer, sealer.seal(TOKEN, entropy)[:size])


def test_an_expired_token_is_refused_like_a_forged_one() -> None:
    sealer = TokenSealer(KEY)
    sealed = sealer.seal(TOKEN, entropy)
    assert sealer.open(sealed, at=5000) == TOKEN
    assert refused(sealer, sealed, at=5001)


def test_the_largest_token_fits_its_parameter() -> None:
    token = ResumeToken(session_id=bytes(16), generation=(1 << 62) - 1, identity=bytes(MAX_IDENTITY), expires_at=(1 << 62) - 1)
    sealed = TokenSealer(KEY).seal(token, entropy)
    assert len(sealed) <= 320
    assert TokenSealer(KEY).open(sealed) == token


def test_the_same_token_is_never_sealed_twice_alike() -> None:
    rng = random.Random(1)
    sealer = TokenSealer(KEY)
    assert len({sealer.seal(TOKEN, rng.randbytes) for _ in range(50)}) == 50


@pytest.mark.parametrize(("session_id", "identity"), [(bytes(15), b""), (bytes(17), b""), (bytes(16), bytes(MAX_IDENTITY + 1))])
def test_values_that_do_not_fit_are_refused(session_id: bytes, identity: bytes) -> None:
    with pytest.raises(ValueError, match="session id"):
        TokenSealer(KEY).seal(ResumeToken(session_id=session_id, generation=0, identity=identity, expires_at=0), entropy)


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_a_key_has_thirty_two_bytes(size: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        TokenSealer(bytes(size))
    with pytest.raises(ValueError, match="32 bytes"):
        TokenSealer(KEY, older=[bytes(size)])


def test_a_session_id_is_pure_entropy() -> None:
    assert make_session_id(entropy) == entropy(16)


def test_bytes_are_compared_whole() -> None:
    assert same_bytes(b"abc", b"abc")
    assert not same_bytes(b"abc", b"abd")
    assert not same_bytes(b"abc", b"ab")
