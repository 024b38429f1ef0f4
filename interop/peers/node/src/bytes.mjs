/**
 * Bytes of the wire: variable-length integers (RFC 9000 section 16), reading and writing, and numbers that wrap
 * (sections 1.3, 6.2 and 6.3 of the specification).
 */

/** What a peer did wrong, by the name of the code in spec/registries/error-codes.json. */
export class ProtocolError extends Error {
  /** @param {string} code @param {string} reason */
  constructor(code, reason) {
    super(`${code}: ${reason}`);
    this.code = code;
    this.reason = reason;
  }
}

/** A bound on how many of something come in a second, in the mean over some seconds (section 14). */
export class Rate {
  level = 0;
  at = 0;

  /** @param {string} what @param {number} rate a second @param {number} seconds */
  constructor(what, rate, seconds) {
    Object.assign(this, { what, rate, most: rate * seconds });
  }

  one(now) {
    this.level = Math.max(0, this.level - (now - this.at) * this.rate) + 1;
    this.at = now;
    if (this.level > this.most) throw new ProtocolError('LIMIT_EXCEEDED', `too many ${this.what}`);
  }
}

/** Reads a buffer from its start; what is not there is an error of the code given. */
export class Reader {
  /** @param {Uint8Array} data @param {string} code */
  constructor(data, code) {
    this.data = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    this.at = 0;
    this.code = code;
  }

  get left() {
    return this.data.length - this.at;
  }

  fail(reason) {
    throw new ProtocolError(this.code, reason);
  }

  need(n) {
    if (n > this.left) this.fail(`${n} bytes wanted, ${this.left} left`);
  }

  u8() {
    this.need(1);
    return this.data[this.at++];
  }

  u16() {
    this.need(2);
    this.at += 2;
    return this.data.readUInt16BE(this.at - 2);
  }

  /** A number, or a BigInt when it is too large for one. */
  varint() {
    this.need(1);
    const size = 1 << (this.data[this.at] >> 6);
    this.need(size);
    let value = BigInt(this.data[this.at] & 0x3f);
    for (let i = 1; i < size; i++) value = (value << 8n) | BigInt(this.data[this.at + i]);
    this.at += size;
    return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
  }

  /** @param {number | bigint} n @returns {Buffer} */
  bytes(n) {
    this.need(n);
    this.at += Number(n);
    return this.data.subarray(this.at - Number(n), this.at);
  }

  rest() {
    return this.bytes(this.left);
  }

  end() {
    if (this.left) this.fail(`${this.left} bytes behind the last field`);
  }
}

/** The shortest form of an integer. @param {number | bigint} value */
export function varint(value) {
  if (value < 0 || BigInt(value) >= 1n << 62n) throw new RangeError(`${value} does not fit 62 bits`);
  if (value < 64) return Buffer.from([Number(value)]);
  const size = value < 16384 ? 2 : value < 1073741824 ? 4 : 8;
  const out = Buffer.alloc(size);
  let rest = BigInt(value);
  for (let i = size - 1; i >= 0; i--, rest >>= 8n) out[i] = Number(rest & 0xffn);
  out[0] |= { 2: 0x40, 4: 0x80, 8: 0xc0 }[size];
  return out;
}

export const u8 = (value) => Buffer.from([value & 0xff]);
export const u16 = (value) => Buffer.from([(value >> 8) & 0xff, value & 0xff]);

/** Strict UTF-8. @param {Uint8Array} data @param {string} code */
export function utf8(data, code) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data);
  } catch {
    throw new ProtocolError(code, 'text that is not UTF-8');
  }
}

/** The number with these 16 low bits that is nearest to the reference (section 6.2). */
export function unwrap(value, reference) {
  if (typeof reference === 'bigint') return unwrapBig(BigInt(value), reference);
  const d = (((value - reference) % 65536) + 65536) % 65536;
  const full = d <= 32768 ? reference + d : reference + d - 65536;
  return full < 0 ? full + 65536 : full;
}

function unwrapBig(value, reference) {
  const d = BigInt.asUintN(16, value - reference);
  const full = d <= 32768n ? reference + d : reference + d - 65536n;
  return full < 0n ? full + 65536n : full;
}

/** @param {number} seconds of a monotonic clock */
export const tick = (seconds) => Math.floor(seconds * 4000) % 65536;

/** a - b, signed (section 6.3). */
export const tickDelta = (a, b) => ((((a - b + 32768) % 65536) + 65536) % 65536) - 32768;

/** Seconds of this process's monotonic clock. */
export const clock = () => performance.now() / 1000;
