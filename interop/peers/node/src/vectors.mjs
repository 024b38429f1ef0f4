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
  conversation: ({ input: i }) => i.steps.map((s) => step(s)) && 'closed',
};
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
  const folder = new URL('vectors/', SPEC);
  for (const file of readdirSync(folder).filter((f) => f.endsWith('.json')).sort()) {
    const suite = parse(readFileSync(new URL(file, folder), 'utf8'));
    for (const group of suite.groups) {
      for (const test of group.tests) {
        const wrong = READ[suite.type] ? run(suite.type, test, group.params ?? {}) : `no reader for the type ${suite.type}`;
        if (wrong) say(`FAIL ${test.id} (${test.comment}): ${wrong}`);
        wrong ? failed++ : passed++;
      }
    }
  }
  say(`vectors: ${passed} passed, ${failed} failed`);
  return failed;
}
