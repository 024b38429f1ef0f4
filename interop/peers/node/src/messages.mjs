/** Control messages and parameter lists (section 5). Values have the field names of spec/vectors; bytes are Buffers. */
import { Reader, ProtocolError, utf8, varint } from './bytes.mjs';
import { SHARED } from './frames.mjs';
import { MESSAGES, PARAMETERS } from './registry.mjs';

const CODE = 'MESSAGE_ENCODING_ERROR';
const bad = (reason) => {
  throw new ProtocolError('PARAMETER_ERROR', reason);
};

const number = (low, high) => ({
  read: (v) => {
    const r = new Reader(v, 'PARAMETER_ERROR');
    const n = r.varint();
    r.end();
    return n < low || n > high ? bad(`${n} is out of range`) : n;
  },
  write: varint,
});
const bytes = (low, high) => ({
  read: (v) => (v.length < low || v.length > high ? bad(`${v.length} bytes`) : v),
  write: (v) => v,
});
const text = (low, high, first = '') => ({
  read: (v) => {
    const s = utf8(bytes(low, high).read(v), 'PARAMETER_ERROR');
    return s.startsWith(first) ? s : bad(`a text that does not begin with ${first}`);
  },
  write: (v) => Buffer.from(v, 'utf8'),
});

function readTrack(v) {
  const r = new Reader(v, 'PARAMETER_ERROR');
  const [track, codec, clock_rate_hz, channels, direction, frame_units] = [0, 0, 0, 0, 0, 0].map(() => r.varint());
  if (track > 3 || clock_rate_hz < 1 || clock_rate_hz > 384000 || channels < 1 || channels > 8) bad('a track out of range');
  if (direction < 1 || direction > 3 || frame_units > 48) bad('a track out of range');
  if (codec >= 0x40 && codec <= 0x7f && frame_units === 0) bad('a private codec without frame units');
  return { track, codec, clock_rate_hz, channels, send: Boolean(direction & 1), receive: Boolean(direction & 2), frame_units };
}

const writeTrack = (t) =>
  Buffer.concat([t.track ?? 0, t.codec, t.clock_rate_hz, t.channels, (t.send ? 1 : 0) | (t.receive ? 2 : 0), t.frame_units ?? 0].map(varint));

function readHeld(v) {
  const r = new Reader(v, 'PARAMETER_ERROR');
  const held = { track: r.varint(), next_pts: r.varint(), ranges: [] };
  if (held.track > 3) bad('a track above 3');
  let end = BigInt(held.next_pts);
  for (let count = r.varint(); count > 0; count--) {
    const range = [r.varint(), r.varint()];
    if (range[1] < 1 || BigInt(range[0]) < end) bad('ranges that overlap or are empty');
    end = BigInt(range[0]) + BigInt(range[1]);
    held.ranges.push(range);
  }
  r.end();
  return held;
}

const writeHeld = (h) =>
  Buffer.concat([varint(h.track ?? 0), varint(h.next_pts ?? 0), varint((h.ranges ?? []).length), ...(h.ranges ?? []).flat().map(varint)]);

const ANY = 1n << 62n;
const FORMS = {
  AUTHORITY: text(0, 255), PATH: text(1, 2048, '/'), TOKEN: bytes(0, 2048), METADATA: bytes(0, 4096),
  TRACK: { read: readTrack, write: writeTrack }, MAX_DATAGRAM_SIZE: number(256, ANY), MAX_EVENT_SIZE: number(0, ANY),
  LOOKAHEAD_MS: number(0, 500), RETAIN_MS: number(0, ANY), MAX_RATE_BPS: number(0, ANY), SESSION_ID: bytes(16, 16),
  RESUME_TOKEN: bytes(1, 512), GENERATION: number(0, ANY), LIFETIME_MS: number(0, ANY), HELD: { read: readHeld, write: writeHeld },
  NEXT_EVENT: number(0, ANY), REPLAY_MS: number(0, 2000), REASON: text(0, 1024), URI: text(0, 2048), ROUTE_TOKEN: bytes(8, 20),
  RETRY_AFTER_MS: number(0, ANY),
};
const LISTS = { TRACK: 'tracks', HELD: 'held' };
const keyOf = (name) => LISTS[name] ?? name.toLowerCase();

/** @param {Uint8Array} data @param {string | null} message the message it stands in, or null for any */
export function decodeParameters(data, message = null) {
  const r = new Reader(data, 'PARAMETER_ERROR');
  const out = {};
  while (r.left) {
    const id = r.varint();
    const value = r.bytes(r.varint());
    const known = PARAMETERS.find((p) => Number(p.value) === id);
    if (!known || (message && !known.messages.includes(message))) {
      (out.unknown ??= []).push([id, value]);
      continue;
    }
    const key = keyOf(known.name);
    const read = FORMS[known.name].read(value);
    if (LISTS[known.name]) {
      if (out[key]?.some((other) => other.track === read.track)) bad(`two ${known.name} of track ${read.track}`);
      (out[key] ??= []).push(read);
    } else {
      if (key in out) bad(`${known.name} twice`);
      out[key] = read;
    }
  }
  return out;
}

/** In ascending order of the ids, those of unknown meaning last. */
export function encodeParameters(p) {
  const out = [];
  const put = (id, value) => out.push(varint(id), varint(value.length), value);
  for (const { value: id, name } of PARAMETERS) {
    const value = p[keyOf(name)];
    for (const one of LISTS[name] ? (value ?? []) : value === undefined ? [] : [value]) put(Number(id), FORMS[name].write(one));
  }
  for (const [id, value] of p.unknown ?? []) put(id, value);
  return Buffer.concat(out);
}

const NEEDED = {
  HELLO: ['authority', 'path', 'tracks'], ACCEPT: ['session_id', 'resume_token', 'generation', 'lifetime_ms', 'tracks'],
  RESUME: ['session_id', 'resume_token', 'generation'], RESUMED: ['resume_token', 'generation'],
};

function parametersOf(name, data) {
  const parameters = decodeParameters(data, name);
  for (const key of NEEDED[name] ?? []) if (!(key in parameters)) bad(`${name} without ${key}`);
  return parameters;
}

const withVersion = (name) => (r) => {
  const version = r.varint();
  if (version !== 1) return r.rest() && { version, parameters: {} };
  return { version, parameters: parametersOf(name, r.rest()) };
};
const withTrack = (read) => (r) => {
  const track = r.varint();
  if (track > 3) r.fail('a track above 3');
  return { track, ...read(r) };
};

const BODIES = {
  HELLO: withVersion('HELLO'), ACCEPT: withVersion('ACCEPT'), RESUME: withVersion('RESUME'),
  REJECT: (r) => ({ code: r.varint(), parameters: parametersOf('REJECT', r.rest()) }),
  RESUMED: (r) => ({ parameters: parametersOf('RESUMED', r.rest()) }),
  CONFIRM: (r) => ({ generation: r.varint() }),
  SETTINGS: (r) => ({ parameters: parametersOf('SETTINGS', r.rest()) }),
  GOING_AWAY: (r) => ({ parameters: parametersOf('GOING_AWAY', r.rest()) }),
  CLEAR: withTrack(SHARED.CLEAR), CLEARED: withTrack(SHARED.CLEARED), PROGRESS: withTrack(SHARED.PROGRESS),
  FINISH: withTrack((r) => ({ pts: r.varint() })), FINISHED: withTrack((r) => ({ played_pts: r.varint() })),
  CLOSE: (r) => {
    const close = { code: r.varint(), may_resume: Boolean(BigInt(r.varint()) & 1n) };
    const size = r.varint();
    if (size > 1024) r.fail('a reason of more than 1024 bytes');
    return { ...close, reason: utf8(r.bytes(size), CODE) };
  },
};
const LARGE = ['HELLO', 'ACCEPT', 'REJECT', 'RESUME', 'RESUMED'];
const nameOf = (type) => Object.keys(MESSAGES).find((name) => MESSAGES[name] === type);

/** @param {number} type @param {Uint8Array} payload */
export function decodePayload(type, payload) {
  const name = nameOf(type);
  if (!name) return { message: 'UNKNOWN', type, payload };
  const r = new Reader(payload, CODE);
  const message = { message: name, ...BODIES[name](r) };
  r.end();
  return message;
}

const n = (m, ...keys) => keys.map((key) => varint(m[key] ?? 0));
const ENCODERS = {
  HELLO: (m) => [...n(m, 'version'), encodeParameters(m.parameters)], ACCEPT: (m) => [...n(m, 'version'), encodeParameters(m.parameters)],
  RESUME: (m) => [...n(m, 'version'), encodeParameters(m.parameters)], REJECT: (m) => [...n(m, 'code'), encodeParameters(m.parameters)],
  RESUMED: (m) => [encodeParameters(m.parameters)], SETTINGS: (m) => [encodeParameters(m.parameters)],
  GOING_AWAY: (m) => [encodeParameters(m.parameters)], CONFIRM: (m) => n(m, 'generation'),
  CLEAR: (m) => [...n(m, 'track', 'number'), varint(m.from_receiver ? 1 : 0), ...n(m, 'from_pts', 'to_pts')],
  CLEARED: (m) => n(m, 'track', 'number', 'heard_pts'), PROGRESS: (m) => n(m, 'track', 'played_pts'),
  FINISH: (m) => n(m, 'track', 'pts'), FINISHED: (m) => n(m, 'track', 'played_pts'),
  CLOSE: (m) => {
    const reason = Buffer.from(m.reason ?? '', 'utf8');
    return [...n(m, 'code'), varint(m.may_resume ? 1 : 0), varint(reason.length), reason];
  },
};

export function encodeMessage(m) {
  const payload = m.message === 'UNKNOWN' ? m.payload : Buffer.concat(ENCODERS[m.message](m));
  return Buffer.concat([varint(m.message === 'UNKNOWN' ? m.type : MESSAGES[m.message]), varint(payload.length), payload]);
}

/** Takes the bytes of the control stream as they come and gives whole messages. */
export class MessageParser {
  buffer = Buffer.alloc(0);

  /** @param {Uint8Array} data @returns {Generator<object>} */
  *feed(data) {
    this.buffer = Buffer.concat([this.buffer, data]);
    for (;;) {
      const head = this.head();
      if (!head || this.buffer.length < head.at + head.size) return;
      const payload = this.buffer.subarray(head.at, head.at + head.size);
      this.buffer = this.buffer.subarray(head.at + head.size);
      yield decodePayload(head.type, payload);
    }
  }

  get inside() {
    return this.buffer.length > 0;
  }

  head() {
    const r = new Reader(this.buffer, 'short');
    try {
      const type = r.varint();
      const size = r.varint();
      if (size > (LARGE.includes(nameOf(type)) ? 8192 : 4096)) throw new ProtocolError('MESSAGE_TOO_LARGE', `${size} bytes`);
      return { type, size, at: r.at };
    } catch (error) {
      if (error.code === 'short') return null;
      throw error;
    }
  }
}
