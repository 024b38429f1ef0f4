/** Application events, one unidirectional stream each (section 7). */
import { Reader, ProtocolError, utf8, varint } from './bytes.mjs';
import { KINDS } from './registry.mjs';

const CODE = 'EVENT_ENCODING_ERROR';
const EVENT = 1;

/** Type of a unidirectional stream, or null when it has not come yet. @param {Uint8Array} data */
export function streamType(data) {
  try {
    return new Reader(data, 'short').varint();
  } catch {
    return null;
  }
}

/** Bytes of payload that have come of an event, 0 while its header has not. @param {Uint8Array} data */
export function payloadSize(data) {
  try {
    return decodeStream(data, -1).payload?.length ?? 0;
  } catch (error) {
    return error.size ?? 0;
  }
}

/**
 * A whole stream. Ignored is true for one of another type, and false for one that ended before its type.
 * @param {Uint8Array} data @param {number} max_event_size
 */
export function decodeStream(data, max_event_size) {
  const type = streamType(data);
  if (type !== EVENT) return { ignored: type !== null };
  const r = new Reader(data, CODE);
  r.varint();
  const [kind, event_id, order, flags] = [r.varint(), r.varint(), r.varint(), r.varint()];
  const event = { kind, event_id, order };
  if (BigInt(flags) & 1n) {
    event.track = r.varint();
    if (event.track > 3) r.fail('a track above 3');
    event.pts = r.varint();
  }
  event.payload = r.rest();
  if (event.payload.length > max_event_size) throw Object.assign(new ProtocolError('EVENT_TOO_LARGE', `${event.payload.length} bytes`), { size: event.payload.length });
  if (kind === KINDS.TEXT || kind === KINDS.JSON) {
    const text = utf8(event.payload, CODE);
    if (kind === KINDS.JSON) readJson(text);
  }
  return event;
}

function readJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new ProtocolError(CODE, 'JSON that cannot be parsed');
  }
}

export function encodeEvent(e) {
  const aligned = e.pts !== undefined;
  const fields = [EVENT, e.kind ?? 0, e.event_id ?? 0, e.order ?? 0, aligned ? 1 : 0, ...(aligned ? [e.track ?? 0, e.pts] : [])];
  return Buffer.concat([...fields.map(varint), e.payload]);
}
