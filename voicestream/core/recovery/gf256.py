"""Arithmetic in GF(256) on whole symbols (specification section 10.1): polynomial 0x11D, generator 2.

Symbols are held as integers, big-endian, so that a sum is one exclusive or; a product by a constant is one table translation.
"""

from __future__ import annotations

from typing import Final

__all__ = ["coefficient", "divide", "multiply", "product", "row", "scale"]

_POLYNOMIAL: Final = 0x11D
_ORDER: Final = 255


def _tables() -> tuple[bytes, bytes]:
    exp, log = bytearray(2 * _ORDER), bytearray(256)
    value = 1
    for power in range(_ORDER):
        exp[power] = exp[power + _ORDER] = value
        log[value] = power
        value <<= 1
        if value & 0x100:
            value ^= _POLYNOMIAL
    return bytes(exp), bytes(log)


_EXP, _LOG = _tables()


def multiply(a: int, b: int) -> int:
    """Product of two elements."""
    return _EXP[_LOG[a] + _LOG[b]] if a and b else 0


def divide(a: int, b: int) -> int:
    """Quotient of two elements. Raises ZeroDivisionError for `b` = 0."""
    if not b:
        raise ZeroDivisionError("division by zero in GF(256)")
    return _EXP[_LOG[a] + _ORDER - _LOG[b]] if a else 0


_ROWS: Final = tuple(bytes(multiply(factor, value) for value in range(256)) for factor in range(256))


def row(factor: int) -> bytes:
    """Products of each element with `factor`."""
    return _ROWS[factor]


def scale(symbol: bytes, factor: int) -> bytes:
    """`symbol` with each byte multiplied by `factor`."""
    return symbol.translate(_ROWS[factor])


def product(symbol: int, factor: int, size: int) -> int:
    """The same for a symbol of `size` bytes held as an integer."""
    return symbol if factor == 1 else int.from_bytes(symbol.to_bytes(size, "big").translate(_ROWS[factor]), "big")


def coefficient(key: int, pts: int) -> int:
    """Coefficient of the source frame at `pts` in the repair with this key: 2 to the power (key * pts) mod 255. VS-10.2-1"""
    return _EXP[key * pts % _ORDER]
