from __future__ import annotations

import numpy as np

from voicestream.audio.fifo import SampleFifo


def block(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int16)


def test_samples_leave_in_the_order_they_came_whatever_the_block_lengths() -> None:
    fifo = SampleFifo(1, np.int16)
    for part in (block(1, 2, 3), block(), block(4), block(5, 6, 7, 8)):
        fifo.push(part)
    assert len(fifo) == 8
    assert fifo.take(2).tolist() == [1, 2]
    assert fifo.take(4).tolist() == [3, 4, 5, 6]
    assert len(fifo) == 2


def test_more_than_is_there_gives_what_is_there() -> None:
    fifo = SampleFifo(1, np.int16)
    fifo.push(block(1, 2))
    assert fifo.take(10).tolist() == [1, 2]
    assert fifo.take(10).shape == (0,)
    assert len(fifo) == 0


def test_stereo_keeps_its_shape_even_when_empty() -> None:
    fifo = SampleFifo(2, np.int16)
    assert fifo.take(3).shape == (0, 2)
    fifo.push(np.zeros((5, 2), dtype=np.int16))
    assert fifo.take(3).shape == (3, 2)
