"""Whatever goes wrong becomes one line without the name of an exception."""

from __future__ import annotations

import errno

import pytest

from voicestream.cli.errors import CommandError, sentence, user_values
from voicestream.codepoints import ErrorCode
from voicestream.errors import AudioError, CertificateError, RejectedError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (CommandError("no such thing"), "no such thing"),
        (AudioError("x.wav is empty"), "x.wav is empty"),
        (CertificateError("the certificate is not\nthe pinned one"), "the certificate is not the pinned one"),
        (RejectedError(ErrorCode.NOT_FOUND, "no such agent"), "the server declined the call: NOT_FOUND: no such agent"),
        (
            RejectedError(ErrorCode.REDIRECT, "full", uri="voicestream://b.example/", retry_after=1.5),
            "the server declined the call: REDIRECT: full; it names another address, voicestream://b.example/; try again in 1.5 s",
        ),
        (OSError(errno.EADDRINUSE, "Address already in use"), "the port is already in use; choose another with --port"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "key.pem"), "key.pem: no such file or directory"),
        (OSError("something odd"), "something odd"),
        (OSError(), "OSError"),
    ],
)
def test_an_error_is_one_sentence(error: Exception, text: str) -> None:
    assert sentence(error) == text


def test_a_wrong_value_of_the_user_is_the_users_error_and_a_wrong_type_is_ours() -> None:
    with pytest.raises(CommandError, match=r"^too long$"), user_values():
        raise ValueError("too long")
    with pytest.raises(TypeError), user_values():
        raise TypeError("a bug")
