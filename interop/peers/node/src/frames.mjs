/**
 * Datagrams and frames (section 4). A frame is a plain object with the field names of spec/vectors; bytes are Buffers.
 */
import { Reader, ProtocolError, u8, u16, varint } from './bytes.mjs';
import { FRAMES } from './registry.mjs';

const CODE = 'FRAME_ENCODING_ERROR';
const MAX_DATAGRAM = 1200;
const MAX_FRAMES = 64;
const fail = (reason) => {
  throw new ProtocolError(CODE, reason);
};

/** S, E and clear number as they stand in AUDIO. */
export const flagsOf = (f) => (f.talkspurt_start ? 8 : 0) | (f.talkspurt_end ? 4 : 0) | (f.clear_number ?? 0);
export const fromFlags = (flags) => ({ talkspurt_start: Boolean(flags & 8), talkspurt_end: Boolean(flags & 4), clear_number: flags & 3 });

const TYPES = Object.entries(FRAMES)
  .filter(([name]) => name !== 'AUDIO' && name !== 'PADDING')
  .map(([name, base]) => ({ name, base, tracks: base >= 0x10 ? 4 : 1 }));
const typeOf = (byte) => TYPES.find((t) => byte >= t.base && byte < t.base + t.tracks);

/** @param {Uint8Array} data */
export function decodeDatagram(data) {
  if (data.length < 4 || data.length > MAX_DATAGRAM) fail(`a datagram of ${data.length} bytes`);
  const r = new Reader(data, CODE);
  const datagram = { number: r.u16(), send_tick: r.u16(), frames: [] };
  while (r.left) {
    if (datagram.frames.length === MAX_FRAMES) fail('more than 64 frames');
    datagram.frames.push(decodeFrame(r));
  }
  return datagram;
}

function decodeFrame(r) {
  const first = r.u8();
  if (first & 0x80) return decodeAudio(first, r);
  if (first === FRAMES.PADDING) {
    let size = 1;
    for (; r.left && r.data[r.at] === 0; r.at++) size++;
    return { frame: 'PADDING', size };
  }
  const body = new Reader(r.bytes(r.varint()), CODE);
  const type = typeOf(first);
  if (!type) return { frame: 'UNKNOWN', type: first, payload: body.rest() };
  const frame = { frame: type.name, ...(type.tracks > 1 ? { track: first - type.base } : {}), ...BODIES[type.name](body) };
  body.end();
  return frame;
}

function decodeAudio(first, r) {
  const head = { frame: 'AUDIO', track: (first >> 5) & 3, ...fromFlags(first), pts: r.u16() };
  const payload = first & 0x10 ? r.bytes(r.varint()) : r.rest();
  if (!payload.length) fail('audio without payload');
  return { ...head, payload };
}

function media(b) {
  const frame = { ...fromFlags(b.u8()), pts: b.u16(), payload: b.rest() };
  if (!frame.payload.length) fail('media without payload');
  return frame;
}

/** Fields that CLEAR, CLEARED and PROGRESS have in messages too (section 4.9). */
export const SHARED = {
  CLEAR: (b) => {
    const number = b.varint();
    const from_receiver = Boolean(BigInt(b.varint()) & 1n);
    const frame = { number, from_receiver, from_pts: b.varint(), to_pts: b.varint() };
    if (frame.from_pts > frame.to_pts) b.fail('a clear that ends before it begins');
    return frame;
  },
  CLEARED: (b) => ({ number: b.varint(), heard_pts: b.varint() }),
  PROGRESS: (b) => ({ played_pts: b.varint() }),
};

const BODIES = {
  ...SHARED,
  REPORT: decodeReport,
  PROBE: (b) => ({ cluster: b.varint(), size: b.rest().length }),
  REPAIR: decodeRepair,
  COPY: media,
  RETRANSMISSION: media,
  ANCHOR: (b) => ({ ahead: Boolean(b.u8() & 1), pts: b.varint() }),
  MISSING: (b) => {
    const ranges = [];
    while (b.left) {
      const range = [b.u16(), b.varint()];
      if (range[1] < 1 || range[1] > 32767) fail('a range of no or too many units');
      ranges.push(range);
    }
    if (ranges.length < 1 || ranges.length > 32) fail(`${ranges.length} ranges`);
    return { ranges };
  },
};

function decodeReport(b) {
  const report = { newest: b.u16(), arrival: b.u16(), statuses: [], playout: [] };
  const count = b.varint();
  if (count > 255) fail(`${count} statuses`);
  for (let i = 0; i < count; i++) {
    const v = b.varint();
    if (v > 65536) fail(`a status of ${v}`);
    report.statuses.push(v === 0 ? null : (v - 1) % 2 ? -v / 2 : (v - 1) / 2);
  }
  while (b.left) {
    const entry = { track: b.u8(), playhead: b.u16(), level_units: b.varint(), target_units: b.varint() };
    if (entry.track > 3 || report.playout.some((e) => e.track === entry.track)) fail('a playout entry too many');
    report.playout.push(entry);
  }
  return report;
}

function decodeRepair(b) {
  const repair = { key: b.u8(), newest_pts: b.u16(), runs: [], symbol: Buffer.alloc(0) };
  const count = b.varint();
  let sources = 1;
  let span = 0;
  for (let i = 0; i < count; i++) {
    const run = [b.varint(), b.varint()];
    if (run[0] < 1 || run[1] < 1) fail('a run of nothing');
    sources += Number(run[0]);
    span += Number(run[0]) * Number(run[1]);
    if (sources > 64 || span > 32767) fail('a repair of too much');
    repair.runs.push(run);
  }
  repair.symbol = b.rest();
  if (repair.symbol.length < 4) fail('a repair symbol of less than 4 bytes');
  return repair;
}

const ENCODERS = {
  REPORT: (f) => [
    u16(f.newest), u16(f.arrival), varint((f.statuses ?? []).length),
    ...(f.statuses ?? []).map((d) => varint(d === null ? 0 : (d >= 0 ? 2 * d : -2 * d - 1) + 1)),
    ...(f.playout ?? []).flatMap((e) => [u8(e.track ?? 0), u16(e.playhead ?? 0), varint(e.level_units ?? 0), varint(e.target_units ?? 0)]),
  ],
  PROBE: (f) => [varint(f.cluster ?? 0), Buffer.alloc(f.size ?? 0)],
  REPAIR: (f) => [u8(f.key ?? 0), u16(f.newest_pts ?? 0), varint((f.runs ?? []).length), ...(f.runs ?? []).flatMap(([c, s]) => [varint(c), varint(s)]), f.symbol],
  COPY: (f) => [u8(flagsOf(f)), u16(f.pts ?? 0), f.payload],
  RETRANSMISSION: (f) => [u8(flagsOf(f)), u16(f.pts ?? 0), f.payload],
  ANCHOR: (f) => [u8(f.ahead ? 1 : 0), varint(f.pts ?? 0)],
  CLEAR: (f) => [varint(f.number ?? 0), varint(f.from_receiver ? 1 : 0), varint(f.from_pts ?? 0), varint(f.to_pts ?? 0)],
  CLEARED: (f) => [varint(f.number ?? 0), varint(f.heard_pts ?? 0)],
  PROGRESS: (f) => [varint(f.played_pts ?? 0)],
  MISSING: (f) => f.ranges.flatMap(([first, units]) => [u16(first), varint(units)]),
};

/** @param {object} f @param {boolean} last whether nothing follows it in the datagram */
export function encodeFrame(f, last = false) {
  if (f.frame === 'PADDING') return Buffer.alloc(f.size);
  if (f.frame === 'AUDIO') {
    const type = 0x80 | ((f.track ?? 0) << 5) | (last ? 0 : 0x10) | flagsOf(f);
    return Buffer.concat([u8(type), u16(f.pts ?? 0), last ? Buffer.alloc(0) : varint(f.payload.length), f.payload]);
  }
  if (f.frame === 'UNKNOWN') return Buffer.concat([u8(f.type), varint(f.payload.length), f.payload]);
  const body = Buffer.concat(ENCODERS[f.frame](f));
  return Buffer.concat([u8(FRAMES[f.frame] + (f.track ?? 0)), varint(body.length), body]);
}

/** @param {{number?: number, send_tick?: number, frames?: object[]}} d */
export function encodeDatagram(d) {
  const frames = d.frames ?? [];
  return Buffer.concat([u16(d.number ?? 0), u16(d.send_tick ?? 0), ...frames.map((f, i) => encodeFrame(f, i === frames.length - 1))]);
}
