"""Arithmetic of the repair code against shift-and-add."""

from __future__ import annotations

import pytest

from voicestream.core.recovery.gf256 import coefficient, divide, multiply, product, scale


def slow(a: int, b: int) -> int:
    total = 0
    for bit in range(8):
        if b >> bit & 1:
            total ^= a << bit
    for bit in range(14, 7, -1):
        if total >> bit & 1:
            total ^= 0x11D << (bit - 8)
    return total


def test_products_are_those_of_shift_and_add() -> None:
    for a in range(256):
        for b in range(256):
            assert multiply(a, b) == slow(a, b)


def test_division_undoes_multiplication() -> None:
    for a in range(256):
        for b in range(1, 256):
            assert divide(multiply(a, b), b) == a
    with pytest.raises(ZeroDivisionError):
        divide(1, 0)


def test_symbols_are_scaled_byte_by_byte_whether_bytes_or_integers() -> None:
    symbol = bytes(range(1, 40))
    for factor in (1, 2, 0x8F, 255):
        expected = bytes(slow(value, factor) for value in symbol)
        assert scale(symbol, factor) == expected
        assert product(int.from_bytes(symbol, "big"), factor, len(symbol)) == int.from_bytes(expected, "big")


def test_coefficients_are_those_of_the_specification() -> None:  # VS-10.2-1
    assert (coefficient(3, 8), coefficient(3, 16), coefficient(5, 8), coefficient(5, 16)) == (0x8F, 0x46, 0x6A, 0xFD)
    assert {coefficient(0, pts) for pts in range(0, 4000, 8)} == {1}
