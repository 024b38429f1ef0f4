"""Session ids and sealed resume tokens (specification section 11.3).

A token is what a server gave away so that it need not ask anyone who may take a session up again: only a holder of the key can make
one, read one or change one. Its content is of use to servers with the same key only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import constant_time
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from voicestream.codepoints import ErrorCode
from voicestream.errors import ProtocolError
from voicestream.wire.buffer import Reader, Writer

__all__ = ["KEY_SIZE", "MAX_IDENTITY", "SESSION_ID_SIZE", "Generations", "ResumeToken", "TokenSealer", "make_session_id", "same_bytes"]

KEY_SIZE: Final = 32
SESSION_ID_SIZE: Final = 16
MAX_IDENTITY: Final = 256

_FORMAT: Final = b"\x01"
_NONCE_SIZE: Final = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class ResumeToken:
    """What a token says.

    Attributes:
        session_id: 16 bytes.
        generation: How many times the session has been taken up; each take-over gives a token of the next generation.
        identity: Who opened the session, as `authenticate` told, at most 256 bytes.
        expires_at: Seconds on the clock that the servers share, after which the token is void.
    """

    session_id: bytes
    generation: int
    identity: bytes = field(default=b"", repr=False)
    expires_at: int


def make_session_id(entropy: Callable[[int], bytes]) -> bytes:
    """A session id that nobody can guess: 128 bits of entropy. VS-11.3-1"""
    return entropy(SESSION_ID_SIZE)


def same_bytes(one: bytes, other: bytes) -> bool:
    """Compare in a time that does not tell where the two differ. VS-11.3-3"""
    return constant_time.bytes_eq(one, other)


class TokenSealer:
    """Seals and opens resume tokens with ChaCha20-Poly1305 (VS-11.3-2).

    Args:
        key: 32 secret bytes, shared by the servers that may take over each other's sessions.
        older: Keys that were used before and whose tokens are still good.
    """

    __slots__ = ("_ciphers",)

    def __init__(self, key: bytes, *, older: Sequence[bytes] = ()) -> None:
        self._ciphers: tuple[ChaCha20Poly1305, ...] = ()
        self.change(key, older=older)

    def change(self, key: bytes, *, older: Sequence[bytes] = ()) -> None:
        """Seal with another key from now on; what was sealed with one that is not among these is void.

        Raises:
            ValueError: A key has another size.
        """
        for one in (key, *older):
            if len(one) != KEY_SIZE:
                raise ValueError(f"a key must have {KEY_SIZE} bytes, not {len(one)}")
        self._ciphers = tuple(ChaCha20Poly1305(one) for one in (key, *older))

    def seal(self, token: ResumeToken, entropy: Callable[[int], bytes]) -> bytes:
        """The token as sealed bytes, at most 320 of them.

        Raises:
            ValueError: A value is out of its range.
        """
        if len(token.session_id) != SESSION_ID_SIZE or len(token.identity) > MAX_IDENTITY:
            raise ValueError(f"a token needs a session id of {SESSION_ID_SIZE} bytes and an identity of at most {MAX_IDENTITY}")
        writer = Writer()
        writer.bytes(token.session_id)
        writer.varint(token.generation)
        writer.varint(token.expires_at)
        writer.bytes(token.identity)
        nonce = entropy(_NONCE_SIZE)
        return _FORMAT + nonce + self._ciphers[0].encrypt(nonce, writer.data(), _FORMAT)

    def open(self, sealed: bytes, *, at: int | None = None) -> ResumeToken:
        """The token in `sealed`.

        Args:
            sealed: What a client handed in.
            at: Seconds on the servers' clock to hold against the token's expiry; None to leave that to the caller.

        Raises:
            ProtocolError: TOKEN_INVALID, whatever the fault: a forger learns nothing from it (VS-11.3-4).
        """
        nonce, body = sealed[1 : 1 + _NONCE_SIZE], sealed[1 + _NONCE_SIZE :]
        if sealed[:1] == _FORMAT and len(nonce) == _NONCE_SIZE:
            for cipher in self._ciphers:
                try:
                    token = _parse(cipher.decrypt(nonce, body, _FORMAT))
                except InvalidTag:
                    continue
                if at is None or at <= token.expires_at:
                    return token
        raise ProtocolError(ErrorCode.TOKEN_INVALID, "the resume token is not valid")


def _parse(plain: bytes) -> ResumeToken:
    reader = Reader(plain, ErrorCode.TOKEN_INVALID)
    session_id = reader.bytes(SESSION_ID_SIZE)
    generation, expires_at = reader.varint(), reader.varint()
    return ResumeToken(session_id=session_id, generation=generation, expires_at=expires_at, identity=reader.rest())


class Generations:
    """Which tokens of one session are good (VS-11.3-5).

    A token is used up only when the client has shown that it holds the next one. Until then the older one is accepted again, and
    gives the same next token: an answer that got lost costs the client nothing.

    Args:
        session_id: Of the session.
        identity: Who opened it.

    Attributes:
        confirmed: Generation whose token the client is known to hold.
        issued: Generation of the newest token given out; `confirmed` or one more.
        next_token: That token, sealed.
    """

    __slots__ = ("_identity", "_session_id", "confirmed", "issued", "next_token")

    def __init__(self, session_id: bytes, identity: bytes = b"") -> None:
        self._session_id = session_id
        self._identity = identity
        self.confirmed = 0
        self.issued = 0
        self.next_token = b""

    def admit(self, token: ResumeToken, generation: int, identity: bytes) -> None:
        """A client asks to take the session up; afterwards `issued` is the generation of the token that it gets.

        Args:
            token: The opened token.
            generation: What the client says that it is.
            identity: Who the client has just proved to be.

        Raises:
            ProtocolError: TOKEN_USED for a token of a generation that is over, TOKEN_INVALID for any other fault.
        """
        good = same_bytes(token.session_id, self._session_id) & same_bytes(token.identity, self._identity)
        if not good or not same_bytes(identity, self._identity) or token.generation != generation or generation > self.issued:
            raise ProtocolError(ErrorCode.TOKEN_INVALID, "the resume token is not valid")
        if generation < self.confirmed:
            raise ProtocolError(ErrorCode.TOKEN_USED, "the resume token has been used")
        if generation == self.issued:
            # It holds the newest token: that is as good as a confirmation.
            self.confirmed = generation
            self.issued = generation + 1
            self.next_token = b""

    def restore(self, confirmed: int, issued: int) -> None:
        """Another server has given out the token of generation `issued`, and knows that the client holds that of `confirmed`.

        What it has written may be a little old: a newer token, sealed with the servers' key, shows that by itself.
        """
        self.issued = issued
        self.confirmed = max(confirmed, issued - 1)

    def confirm(self, generation: int) -> None:
        """The client says that it holds the token of this generation.

        Raises:
            ProtocolError: TOKEN_INVALID, when that is not the newest one (VS-11.3-7).
        """
        if generation != self.issued:
            raise ProtocolError(ErrorCode.TOKEN_INVALID, f"generation {generation} is not the one given out")
        self.confirmed = generation
