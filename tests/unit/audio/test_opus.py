from __future__ import annotations

import contextlib
import gc
import tracemalloc

import numpy as np
import pytest

from voicestream.audio.library import PacketError, load_opus
from voicestream.audio.opus import OPUS_RATES_HZ, OpusDecoder, OpusEncoder, has_inband_copy
from voicestream.audio.speech import sample_speech
from voicestream.errors import AudioError
from voicestream.wire.opus_toc import opus_duration_units


def tone(samples: int, rate: int = 48000, hz: float = 330.0, amplitude: float = 8000.0) -> np.ndarray:
    return (amplitude * np.sin(2 * np.pi * hz * np.arange(samples) / rate)).astype(np.int16)


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a.astype(float).reshape(-1), b.astype(float).reshape(-1)
    return float(a @ b / np.sqrt((a @ a) * (b @ b) + 1e-9))


@pytest.mark.parametrize("rate", OPUS_RATES_HZ)
@pytest.mark.parametrize("frame_ms", [10, 20, 40, 60])
def test_what_is_encoded_is_decoded_delayed_by_the_lookahead(rate: int, frame_ms: int) -> None:
    encoder, decoder = OpusEncoder(rate, bitrate_bps=32000), OpusDecoder(rate)
    pcm, size = tone(rate, rate), rate * frame_ms // 1000
    size_units = frame_ms * 2 // 5
    out = []
    for start in range(0, rate - size + 1, size):
        packet = encoder.encode(pcm[start : start + size])
        assert opus_duration_units(packet) == size_units
        out.append(decoder.decode(packet))
    whole = np.concatenate(out)
    assert 0 < encoder.lookahead < rate // 50
    assert max(correlation(whole[rate // 2 + d :][: rate // 4], pcm[rate // 2 :][: rate // 4]) for d in range(rate // 100)) > 0.95


@pytest.mark.parametrize("coded", [1, 2])
@pytest.mark.parametrize("played", [1, 2])
def test_a_packet_of_either_channel_count_is_decoded_to_the_channels_that_are_played(coded: int, played: int) -> None:
    encoder, decoder = OpusEncoder(48000, coded), OpusDecoder(48000, played)
    pcm = tone(9600)
    block = pcm if coded == 1 else np.stack((pcm, pcm), axis=1)
    out = np.concatenate([decoder.decode(encoder.encode(block[start : start + 960])) for start in range(0, 9600, 960)])
    assert out.shape == ((9600,) if played == 1 else (9600, 2))
    assert np.abs(out[4800:].astype(int)).max() > 6000


def test_a_new_bitrate_holds_from_the_next_frame_on() -> None:
    encoder = OpusEncoder(48000, bitrate_bps=64000)
    pcm = np.random.default_rng(1).integers(-3000, 3000, 28800).astype(np.int16) + tone(28800)
    large = [len(encoder.encode(pcm[i : i + 960])) for i in range(0, 9600, 960)]
    encoder.set_bitrate(8000)
    small = [len(encoder.encode(pcm[i : i + 960])) for i in range(9600, 28800, 960)]
    assert max(small) < min(large)


def packets(bitrate_bps: int, complexity: int) -> list[bytes]:
    encoder, pcm = OpusEncoder(48000, bitrate_bps=bitrate_bps, complexity=complexity), sample_speech(1.0, 48000)
    return [encoder.encode(pcm[start : start + 960]) for start in range(0, 47 * 960, 960)]


def test_effort_that_nobody_hears_is_not_spent() -> None:
    assert packets(64000, 9) == packets(64000, 5) != packets(64000, 3)
    assert packets(24000, 9) != packets(24000, 5)


def test_effort_follows_a_new_bitrate() -> None:
    encoder, pcm = OpusEncoder(48000, bitrate_bps=64000, complexity=9), sample_speech(1.0, 48000)
    encoder.set_bitrate(24000)
    assert [encoder.encode(pcm[start : start + 960]) for start in range(0, 47 * 960, 960)] == packets(24000, 9)


@pytest.mark.parametrize("bitrate_bps", [7999, 64001, 0, -1])
def test_a_bitrate_out_of_range_is_refused(bitrate_bps: int) -> None:
    with pytest.raises(ValueError, match=f"8000 to 64000, not {bitrate_bps}"):
        OpusEncoder().set_bitrate(bitrate_bps)


@pytest.mark.parametrize(("rate", "channels"), [(44100, 1), (48000, 3), (48000, 0)])
def test_a_form_that_opus_does_not_know_is_refused(rate: int, channels: int) -> None:
    with pytest.raises(ValueError, match="for Opus, not"):
        OpusEncoder(rate, channels)
    with pytest.raises(ValueError, match="for Opus, not"):
        OpusDecoder(rate, channels)


def test_an_unknown_application_is_refused() -> None:
    with pytest.raises(ValueError, match="voip, audio or lowdelay"):
        OpusEncoder(application="music")  # type: ignore[arg-type]


@pytest.mark.parametrize("samples", [0, 100, 959, 961, 3840])
def test_a_frame_of_another_length_is_refused(samples: int) -> None:
    with pytest.raises(ValueError, match=f"not {samples} samples"):
        OpusEncoder().encode(np.zeros(samples, dtype=np.int16))


def test_silence_under_dtx_gives_packets_of_at_most_two_bytes() -> None:
    encoder = OpusEncoder(16000, bitrate_bps=16000, dtx=True)
    sizes = [len(encoder.encode(np.zeros(320, dtype=np.int16))) for _ in range(100)]
    assert sum(size <= 2 for size in sizes) > 70


def test_concealment_continues_the_signal_and_has_the_length_asked_for() -> None:
    encoder, decoder = OpusEncoder(48000), OpusDecoder(48000)
    pcm = tone(9600, hz=200.0)
    for start in range(0, 9600, 960):
        decoder.decode(encoder.encode(pcm[start : start + 960]))
    concealed = decoder.conceal(960)
    assert len(concealed) == 960
    assert np.abs(concealed.astype(int)).max() > 2000


@pytest.mark.parametrize("samples", [0, 1, 120, 1000, 5760, 6000, 20000])
def test_concealment_of_any_length_is_exact(samples: int) -> None:
    assert len(OpusDecoder(48000).conceal(samples)) == samples


@pytest.mark.parametrize("bitrate_bps", [16000, 32000, 64000])
def test_concealment_in_small_pieces_is_one_signal(bitrate_bps: int) -> None:
    encoder, decoder, other = OpusEncoder(16000, bitrate_bps=bitrate_bps), OpusDecoder(16000), OpusDecoder(16000)
    pcm = sample_speech(2.0, 16000, seed=1)
    for start in range(0, 16000, 320):
        packet = encoder.encode(pcm[start : start + 320])
        decoder.decode(packet)
        other.decode(packet)
    pieces = [decoder.conceal(n) for n in (120, 40, 33, 127, 160)]
    assert np.array_equal(np.concatenate(pieces), np.concatenate([other.conceal(160) for _ in range(3)]))


@pytest.mark.parametrize("packet", [b"", b"\xff", b"\x03", b"\x03\x00", b"\xff\xff\xff", bytes(2000)])
def test_a_corrupt_packet_raises_and_leaves_the_decoder_usable(packet: bytes) -> None:
    decoder = OpusDecoder(48000)
    good = OpusEncoder(48000).encode(tone(960))
    # libopus conceals some of these, for example a frame without bytes; all others must raise this and nothing else.
    with contextlib.suppress(PacketError):
        decoder.decode(packet)
    assert len(decoder.decode(good)) == 960


@pytest.mark.parametrize("packet", [b"", b"\x03", b"\xff\xff\xff", b"\xfd" + bytes(5)])
def test_a_packet_that_breaks_the_framing_is_told_with_its_size(packet: bytes) -> None:
    with pytest.raises(PacketError, match=f"{len(packet)} bytes|empty"):
        OpusDecoder(48000).decode(packet)


def lossy_encoder(percent: int) -> OpusEncoder:
    encoder = OpusEncoder(16000, bitrate_bps=24000)
    encoder.set_inband_fec(percent)
    return encoder


def test_the_in_band_copy_brings_back_a_lost_frame_better_than_concealment() -> None:
    pcm = sample_speech(4.0, 16000)
    packets = [(lossy := lossy_encoder(20)).encode(pcm[:320])]
    packets += [lossy.encode(pcm[i : i + 320]) for i in range(320, len(pcm) - 319, 320)]
    reference = OpusDecoder(16000)
    whole = [reference.decode(packet) for packet in packets]
    gains = []
    for lost in range(30, len(packets) - 1, 10):
        if not has_inband_copy(packets[lost + 1]):
            continue
        with_copy, without = OpusDecoder(16000), OpusDecoder(16000)
        for packet in packets[:lost]:
            with_copy.decode(packet)
            without.decode(packet)
        copy = with_copy.decode_fec(packets[lost + 1], 320)
        gains.append(correlation(copy, whole[lost]) - correlation(without.conceal(320), whole[lost]))
    assert len(gains) >= 5
    assert np.mean(gains) > 0.05


def test_without_a_loss_hint_no_packet_carries_a_copy() -> None:
    pcm = sample_speech(2.0, 16000)
    encoder = lossy_encoder(20)
    encoder.set_inband_fec(0)
    packets = [encoder.encode(pcm[i : i + 320]) for i in range(0, len(pcm) - 319, 320)]
    assert not any(has_inband_copy(packet) for packet in packets)
    with pytest.raises(PacketError, match="no in-band copy"):
        OpusDecoder(16000).decode_fec(packets[5], 320)


@pytest.mark.parametrize(
    ("packet", "expected"),
    [
        (b"\x48\x40", True),  # SILK wide-band 20 ms mono: activity 0, copy 1
        (b"\x48\x80", False),
        (b"\x58\x10", True),  # 60 ms: three activity bits come first
        (b"\x58\x20", False),
        (b"\x4c\x10", True),  # stereo: the side channel's bits follow
        (b"\x4a\x01\x40\x00", True),  # two frames of different length
        (b"\x4b\x81\x40", True),  # code 3, variable, one frame
        (b"\x4b\x41\x01\x40\x00", True),  # code 3 with padding
        (b"\x4b\x41\xff\x00\x40" + bytes(254), True),  # with a padding length of two bytes
        (b"\x4b\x82\x01\x40\x00", True),  # code 3, variable, two frames
        (b"\x4b\x82\x01\x80\x00", False),
        (b"\x4a\xfc\x00\x40" + bytes(251), True),  # a first frame of 252 bytes has a length of two bytes
        (b"\xf8\x40", False),  # CELT has none
        (b"\x48", False),
        (b"", False),
        (b"\x4b", False),
    ],
)
def test_the_flag_of_the_copy_is_found_in_every_framing(packet: bytes, expected: bool) -> None:
    assert has_inband_copy(packet) is expected


@pytest.mark.parametrize("percent", [-1, 101])
def test_a_loss_hint_out_of_range_is_refused(percent: int) -> None:
    with pytest.raises(ValueError, match=f"0 to 100, not {percent}"):
        OpusEncoder().set_inband_fec(percent)


def test_a_setting_that_libopus_refuses_is_told() -> None:
    with pytest.raises(ValueError, match="refuses 11 for its setting 4010"):
        OpusEncoder(complexity=11)


@pytest.mark.parametrize("made", [OpusEncoder, OpusDecoder])
def test_a_codec_that_libopus_cannot_make_is_told(monkeypatch: pytest.MonkeyPatch, made: type) -> None:
    api = load_opus()

    def fail(*arguments: object) -> None:
        arguments[-1]._obj.value = -7  # type: ignore[attr-defined]

    monkeypatch.setattr(api.encoder, "libopus_create", fail)
    monkeypatch.setattr(api.decoder, "libopus_create", fail)
    with pytest.raises(AudioError, match=r"could not make .* \(error -7\)"):
        made()


def test_a_frame_that_libopus_cannot_encode_is_told() -> None:
    encoder = OpusEncoder()
    encoder._encode = lambda *arguments: -3
    with pytest.raises(AudioError, match="error -3"):
        encoder.encode(tone(960))


@pytest.mark.parametrize("samples", [0, 100, -120, 5880])
def test_an_in_band_copy_of_a_broken_length_is_refused(samples: int) -> None:
    with pytest.raises(ValueError, match="multiple of"):
        OpusDecoder(48000).decode_fec(b"\x48\x40", samples)


def test_a_reset_decoder_is_as_good_as_new() -> None:
    packet = OpusEncoder(48000).encode(tone(960))
    decoder, fresh = OpusDecoder(48000), OpusDecoder(48000)
    for _ in range(5):
        decoder.decode(packet)
    decoder.reset()
    assert np.array_equal(decoder.decode(packet), fresh.decode(packet))


def test_a_reset_encoder_is_as_good_as_new() -> None:
    encoder, fresh = OpusEncoder(48000), OpusEncoder(48000)
    for _ in range(5):
        encoder.encode(tone(960))
    encoder.reset()
    assert encoder.encode(tone(960)) == fresh.encode(tone(960))


def test_a_narrower_band_can_be_asked_for() -> None:
    encoder = OpusEncoder(48000, bitrate_bps=32000)
    encoder.set_max_bandwidth("wide")
    rng = np.random.default_rng(1)
    packets = [encoder.encode(rng.integers(-8000, 8000, 960).astype(np.int16)) for _ in range(10)]
    # TOC configurations up to 11 are SILK (8 kHz at most), 16 to 23 CELT of 4 and 8 kHz.
    assert all(packet[0] >> 3 < 12 or 16 <= packet[0] >> 3 < 24 for packet in packets[1:])


def test_coding_a_long_call_grows_neither_objects_nor_memory() -> None:
    encoder, decoder = OpusEncoder(16000), OpusDecoder(16000)
    pcm = sample_speech(2.0, 16000)

    def call(frames: int) -> None:
        for index in range(frames):
            start = index * 320 % 31680
            decoder.decode(encoder.encode(pcm[start : start + 320]))
            decoder.conceal(320)

    call(50)
    gc.collect()
    tracemalloc.start()
    objects, memory = len(gc.get_objects()), tracemalloc.get_traced_memory()[0]
    call(1500)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - memory
    tracemalloc.stop()
    assert len(gc.get_objects()) - objects < 50
    assert grown < 20_000, f"{grown} bytes more after 1500 frames"


def test_the_state_inside_libopus_is_freed_with_its_object(monkeypatch: pytest.MonkeyPatch) -> None:
    api = load_opus()
    freed: list[object] = []
    for module in (api.encoder, api.decoder):
        destroy = module.destroy
        monkeypatch.setattr(module, "destroy", lambda state, destroy=destroy: (freed.append(state), destroy(state)))
    for _ in range(20):
        OpusEncoder(48000, 2)
        OpusDecoder(48000, 2)
    gc.collect()
    assert len(freed) == 40
