/** Events that come and go (section 7), their order, and what a resumption sends again. */
import { ProtocolError } from './bytes.mjs';
import { decodeStream, encodeEvent, payloadSize } from './events.mjs';

const LARGEST = 1048576;
const WAITING = 1024;

export class Inbox {
  next = 1;
  limit = LARGEST;
  waiting = new Map();
  /** Ids of events without order, since one can come again after a resumption. */
  seen = new Set();

  /**
   * @param {Buffer} data what came of a stream so far @param {boolean} end
   * @returns {object[]} events that are due
   */
  stream(data, end) {
    if (!end && data.length > this.limit && payloadSize(data) > this.limit) throw new ProtocolError('EVENT_TOO_LARGE', `${data.length} bytes`);
    if (!end) return [];
    const event = decodeStream(data, this.limit);
    if ('ignored' in event) return [];
    if (event.order === 0) return this.unordered(event);
    if (event.order >= this.next) this.waiting.set(event.order, event);
    if (this.waiting.size > WAITING) throw new ProtocolError('LIMIT_EXCEEDED', 'too many events wait for one');
    const due = [];
    for (; this.waiting.has(this.next); this.next++) {
      due.push(this.waiting.get(this.next));
      this.waiting.delete(this.next);
    }
    return due;
  }

  unordered(event) {
    if (this.seen.has(event.event_id)) return [];
    this.seen.add(event.event_id);
    return [event];
  }
}

export class Outbox {
  id = 0;
  order = 1;
  kept = [];

  /** @returns {Buffer} the bytes of the stream */
  add({ ordered = true, ...event }, limit) {
    if (event.payload.length > limit) throw new RangeError('larger than the peer takes');
    const one = { ...event, event_id: this.id++, order: ordered ? this.order++ : 0 };
    this.kept.push(one);
    if (this.kept.length > 256) this.kept.shift();
    return encodeEvent(one);
  }

  /** Streams to send again: ordered ones from `next` on, the others all. */
  since(next) {
    return this.kept.filter((e) => e.order === 0 || e.order >= (next ?? 1)).map(encodeEvent);
  }
}
