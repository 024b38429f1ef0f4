"""Session ids and sealed tokens."""

from __future__ import annotations

import random

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.core.resume import (
    MAX_IDENTITY,
    Generations,
    ResumeToken,
    TokenSealer,
    make_session_id,
    same_bytes,
)
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


def test_another_key_opens_nothing() -> None:  # VS-11.3-2
    assert refused(TokenSealer(OTHER), TokenSealer(KEY).seal(TOKEN, entropy))


def test_a_token_of_an_older_key_can_still_be_opened() -> None:
    assert TokenSealer(OTHER, older=[KEY]).open(TokenSealer(KEY).seal(TOKEN, entropy)) == TOKEN


def test_no_changed_bit_goes_unnoticed() -> None:  # VS-11.3-2
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


def test_a_session_id_is_pure_entropy() -> None:  # VS-11.3-1
    assert make_session_id(entropy) == entropy(16)


def test_bytes_are_compared_whole() -> None:  # VS-11.3-3
    assert same_bytes(b"abc", b"abc")
    assert not same_bytes(b"abc", b"abd")
    assert not same_bytes(b"abc", b"ab")


def token_of(generation: int, session_id: bytes = bytes(16), identity: bytes = b"anna") -> ResumeToken:
    return ResumeToken(session_id=session_id, generation=generation, identity=identity, expires_at=0)


def test_a_token_is_good_until_the_client_has_shown_the_next_one() -> None:
    # VS-11.3-5
    generations = Generations(bytes(16), b"anna")
    for _ in range(3):
        generations.admit(token_of(0), 0, b"anna")
        assert (generations.confirmed, generations.issued) == (0, 1)
        generations.next_token = generations.next_token or b"next"
    assert generations.next_token == b"next"
    generations.confirm(1)
    with pytest.raises(ProtocolError) as caught:
        generations.admit(token_of(0), 0, b"anna")
    assert caught.value.code is ErrorCode.TOKEN_USED


def test_the_newest_token_confirms_itself() -> None:
    generations = Generations(bytes(16), b"anna")
    generations.admit(token_of(0), 0, b"anna")
    generations.next_token = b"one"
    generations.admit(token_of(1), 1, b"anna")
    assert (generations.confirmed, generations.issued, generations.next_token) == (1, 2, b"")


@pytest.mark.parametrize(
    ("token", "generation", "identity"),
    [
        (token_of(1), 1, b"anna"),  # never given out
        (token_of(0), 1, b"anna"),
        (token_of(0, session_id=bytes(15) + b"\1"), 0, b"anna"),
        (token_of(0, identity=b"bert"), 0, b"anna"),
        (token_of(0), 0, b"bert"),
    ],
)
def test_any_other_token_is_invalid(token: ResumeToken, generation: int, identity: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        Generations(bytes(16), b"anna").admit(token, generation, identity)
    assert caught.value.code is ErrorCode.TOKEN_INVALID


@pytest.mark.parametrize("generation", [0, 2])
def test_a_confirmation_of_another_generation_is_invalid(generation: int) -> None:
    # VS-11.3-7
    generations = Generations(bytes(16), b"anna")
    generations.admit(token_of(0), 0, b"anna")
    with pytest.raises(ProtocolError) as caught:
        generations.confirm(generation)
    assert caught.value.code is ErrorCode.TOKEN_INVALID


@pytest.mark.parametrize(("confirmed", "issued", "known"), [(0, 0, 0), (0, 1, 0), (1, 1, 1), (0, 5, 4), (4, 5, 4), (5, 5, 5)])
def test_what_another_server_has_written_is_taken_and_a_newer_token_shows_that_the_one_before_was_held(
    confirmed: int, issued: int, known: int
) -> None:
    generations = Generations(bytes(16), b"me")
    generations.restore(confirmed, issued)
    assert (generations.confirmed, generations.issued) == (known, issued)


def test_a_key_is_changed_only_for_keys_of_the_right_size() -> None:
    sealer = TokenSealer(KEY)
    for keys in ((bytes(31), []), (bytes(33), []), (OTHER, [bytes(31)])):
        with pytest.raises(ValueError, match="a key must have 32 bytes"):
            sealer.change(keys[0], older=keys[1])
    assert sealer.open(sealer.seal(TOKEN, entropy)) == TOKEN
    sealer.change(OTHER, older=[KEY])
    assert TokenSealer(OTHER).open(sealer.seal(TOKEN, entropy)) == TOKEN
    sealer.change(OTHER)
    assert refused(sealer, TokenSealer(KEY).seal(TOKEN, entropy))
