/** Runs spec/vectors: each input is read, compared with what is expected, and written again. */
import { readFileSync, readdirSync } from 'node:fs';
import { MessageParser, decodeParameters, encodeMessage, encodeParameters } from './messages.mjs';
import { ProtocolError, Reader, tick, tickDelta, unwrap, varint } from './bytes.mjs';
import { decodeDatagram, encodeDatagram } from './frames.mjs';
import { decodeStream, encodeEvent } from './events.mjs';
import { frameUnits, opusPacket } from './opus.mjs';
import { repairSymbol } from './repair.mjs';
import { SPEC } from './registry.mjs';

const hex = (s) => Buffer.from(s, 'hex');
const ABSENT = { number: 0, bigint: 0n, boolean: false, string: '' };

/** JSON whose integers beyond 2^53 stay exact. */
function parse(text) {
  const big = text.replace(/([:[,]\s*)(\d{16,})(?=\s*[,\]}])/g, '$1"big:$2"');
  return JSON.parse(big, (_, v) => (typeof v === 'string' && v.startsWith('big:') ? exact(BigInt(v.slice(4))) : v));
}

const exact = (n) => (n <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(n) : n);

/** Buffers as hexadecimal. */
export function plain(v) {
  if (v instanceof Uint8Array) return Buffer.from(v).toString('hex');
  if (Array.isArray(v)) return v.map(plain);
  return v && typeof v === 'object' ? Object.fromEntries(Object.entries(v).map(([k, x]) => [k, plain(x)])) : v;
}

/** A member that is absent is 0, false or an empty list; a parameter that is absent is absent. */
export function same(got, want, parameters = false) {
  if (want === undefined || got === undefined) {
    const there = want ?? got;
    return !parameters && there !== null && (Array.isArray(there) ? !there.length : there === ABSENT[typeof there]);
  }
  if (got === null || want === null || typeof got !== 'object') return got === want;
  if (Array.isArray(got) !== Array.isArray(want) || (Array.isArray(got) && got.length !== want.length)) return false;
  return [...new Set([...Object.keys(got), ...Object.keys(want)])].every((k) => same(got[k], want[k], k === 'parameters' ? false : parameters && !Array.isArray(got)));
}

/** Strings that are bytes, back as bytes. */
const BYTES = ['payload', 'symbol', 'token', 'metadata', 'session_id', 'resume_token', 'route_token'];
export function binary(v, key = '') {
  if (BYTES.includes(key)) return hex(v);
  if (key === 'unknown') return v.map(([id, value]) => [id, hex(value)]);
  if (Array.isArray(v)) return v.map((x) => binary(x));
  return v && typeof v === 'object' ? Object.fromEntries(Object.entries(v).map(([k, x]) => [k, binary(x, k)])) : v;
}

function whole(data, read) {
  const r = new Reader(data, 'FRAME_ENCODING_ERROR');
  const value = read(r);
  r.end();
  return value;
}

function oneMessage(data) {
  const parser = new MessageParser();
  const [message] = parser.feed(data);
  if (!message || parser.inside) throw new ProtocolError('CONTROL_STREAM_ERROR', 'not a whole message');
  return message;
}

const READ = {
  varint: (t) => whole(hex(t.input), (r) => r.varint()),
  sequence: ({ input: i }, { operation }) => ({ unwrap: () => unwrap(i.value, i.reference), tick: () => tick(i.seconds), tick_delta: () => tickDelta(i.a, i.b) })[operation](),
  datagram: (t) => decodeDatagram(hex(t.input)),
  parameters: (t) => decodeParameters(hex(t.input)),
  message: (t) => oneMessage(hex(t.input)),
  'event-stream': (t, p) => decodeStream(hex(t.input), p.max_event_size),
  'opus-packet': (t) => opusPacket(hex(t.input)),
  'frame-duration': ({ input: i }) => frameUnits({ ...i.track, track: i.track.track ?? 0 }, i.payload ? hex(i.payload) : Buffer.alloc(i.payload_size)),
  repair: ({ input: i }) => repairSymbol(i.key ?? 0, i.sources.map((s) => ({ pts: s.pts ?? 0, flags: s.flags ?? 0, payload: hex(s.payload) }))),
  conversation: ({ input: i }) => conversation(i.steps),
  report: ({ input: i, expect }) => fits(report(i.arrivals), expect),
  echo: ({ input: i, expect }) => near(echo(i), expect),
  loss: ({ input: i }) => losses(i),
};
/** Of these only an application with sessions, devices and a network can say anything. */
const BEYOND = ['report-timing', 'playout', 'rate'];
const WRITE = {
  varint, datagram: (v) => encodeDatagram(v), parameters: encodeParameters, message: encodeMessage,
  'event-stream': (v) => ('ignored' in v ? null : encodeEvent(v)),
};
const CHANNELS = { control: 'message', datagram: 'datagram', event: 'event-stream' };

/** A step of a conversation must be what its value says. */
function step(s) {
  const type = CHANNELS[s.channel];
  const got = plain(READ[type]({ input: s.bytes }, { max_event_size: 1048576 }));
  if (!same(got, s.value)) throw new ProtocolError('INTERNAL_ERROR', `${s.bytes} read as ${show(got)}`);
  return got;
}

/** The bytes of a conversation mean what it says, also where the last ones come at the wrong time; which is for a session to find. */
function conversation(steps) {
  let state = 'open';
  for (const s of steps.filter((one) => CHANNELS[one.channel])) {
    if (['CLOSE', 'REJECT'].includes(step(s).message)) state = 'closed';
  }
  return state;
}

/** What there is to report of [number, send tick, arrival tick], down to datagram 0 (sections 4.4 and 9.2). */
function report(arrivals) {
  const first = new Map();
  for (const [n, sent, came] of arrivals) if (!first.has(n)) first.set(n, { came, delay: came - sent });
  const newest = Math.max(...first.keys());
  const statuses = [];
  let later = first.get(newest).delay;
  for (let n = newest - 1; n >= 0 && statuses.length < 255; n--) {
    const one = first.get(n);
    statuses.push(one ? tickDelta(one.delay & 0xffff, later & 0xffff) : null);
    later = one ? one.delay : later;
  }
  return { newest: newest & 0xffff, arrival: first.get(newest).came, statuses };
}

const fits = (got, want) => ({ ...got, at_least: want.at_least });

/** Section 9.3: the hold, the round trip, and how far the other clock is ahead. */
function echo({ sent_ms: t1, arrival_tick: arrival, reply_tick: reply, now_ms: t4 }) {
  const hold = ((reply - arrival) & 0xffff) / 4;
  const rtt = t4 - t1 - hold;
  if (hold > 8000 || rtt < -0.5) return { used: false };
  const ahead = arrival / 4 + hold / 2 - (t1 + t4) / 2;
  return { used: true, rtt_ms: rtt, offset_ms: ((ahead + 8192) % 16384 + 16384) % 16384 - 8192 };
}

const near = (got, want) => (got.used && want.used && Math.abs(got.rtt_ms - want.rtt_ms) <= want.tolerance_ms
  && Math.abs(got.offset_ms - want.offset_ms) <= want.tolerance_ms ? want : got);

/** Section 9.3: lost is what three newer ones have overtaken, until a report says that it came. */
function losses({ sent, reports }) {
  const acked = new Set();
  const lost = new Set();
  for (const one of reports) {
    const newest = unwrap(one.newest, Math.max(sent - 1, 0));
    const all = [0, ...one.statuses];
    if (newest >= sent || all.some((s, i) => s !== null && newest - i < 0)) throw new ProtocolError('REPORT_ERROR', 'never sent');
    all.forEach((s, i) => (s === null ? i >= 3 && lost.add(newest - i) : acked.add(newest - i)));
  }
  const ascending = (set) => [...set].sort((a, b) => a - b);
  return { acked: ascending(acked), lost: ascending(lost).filter((n) => !acked.has(n)) };
}

const show = (v) => JSON.stringify(v, (_, x) => (typeof x === 'bigint' ? `${x}n` : x));

/** @returns {string | null} what is wrong, or null */
function run(type, test, params) {
  let got;
  try {
    got = READ[type](test, params);
  } catch (error) {
    if (!(error instanceof ProtocolError)) return `fell over: ${error.stack}`;
    return test.result === 'invalid' && error.code === test.error ? null : `refused with ${error.message}`;
  }
  if (test.result === 'invalid' && type === 'conversation') return null;
  if (test.result === 'invalid') return `read as ${show(plain(got))}, ${test.error} expected`;
  if (!same(plain(got), test.expect, type === 'parameters')) return `read as ${show(plain(got))}, ${show(test.expect)} expected`;
  if (!WRITE[type] || test.flags?.length) return null;
  const bytes = WRITE[type](binary(test.expect, type));
  return !bytes || bytes.toString('hex') === test.input ? null : `written as ${bytes.toString('hex')}`;
}

/** @param {(line: string) => void} say @returns {number} how many failed */
export function runVectors(say) {
  let failed = 0;
  let passed = 0;
  let beyond = 0;
  const folder = new URL('vectors/', SPEC);
  for (const file of readdirSync(folder).filter((f) => f.endsWith('.json')).sort()) {
    const suite = parse(readFileSync(new URL(file, folder), 'utf8'));
    for (const group of suite.groups) {
      for (const test of group.tests) {
        if (BEYOND.includes(suite.type)) {
          beyond++;
          continue;
        }
        const wrong = READ[suite.type] ? run(suite.type, test, group.params ?? {}) : `no reader for the type ${suite.type}`;
        if (wrong) say(`FAIL ${test.id} (${test.comment}): ${wrong}`);
        wrong ? failed++ : passed++;
      }
    }
  }
  say(`vectors: ${passed} passed, ${failed} failed, ${beyond} of behaviour not tried`);
  return failed;
}
