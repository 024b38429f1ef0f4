"""Where connection ids come from."""

from __future__ import annotations

import os

import pytest

from voicestream.quic.connection_ids import ConnectionIds, random_ids


@pytest.mark.parametrize("length", [1, 8, 20])
def test_random_ids_have_the_length_asked_for(length: int) -> None:
    assert len(random_ids(os.urandom, length).next()) == length


def test_ids_are_as_random_as_the_entropy_given() -> None:
    assert random_ids(lambda size: b"z" * size).next() == b"zzzzzzzz"


@pytest.mark.parametrize("length", [0, 21, -1])
def test_ids_of_impossible_length_are_refused(length: int) -> None:
    with pytest.raises(ValueError, match="1 to 20"):
        random_ids(os.urandom, length)


def test_a_generator_must_keep_its_word() -> None:
    with pytest.raises(ValueError, match="promised 8 bytes and gave 3"):
        ConnectionIds(8, lambda: b"abc").next()
