/** Durations of coded frames (section 6.4), with the rules R1 to R7 of RFC 6716 section 3.4. */
import { ProtocolError } from './bytes.mjs';
import { CODECS } from './registry.mjs';

const bad = (reason) => {
  throw new ProtocolError('MEDIA_ERROR', reason);
};
const MAX_FRAME = 1275;
const MAX_UNITS = 48;

function unitsOfFrame(config) {
  if (config < 12) return [4, 8, 16, 24][config & 3];
  if (config < 16) return [4, 8][config & 1];
  return [1, 2, 4, 8][config & 3];
}

/** One length of RFC 6716 section 3.2.1: the length and the place behind it. */
function lengthAt(p, at) {
  if (at >= p.length) bad('a length is cut off');
  if (p[at] < 252) return [p[at], at + 1];
  if (at + 1 >= p.length) bad('a length is cut off');
  return [p[at] + 4 * p[at + 1], at + 2];
}

function manyFrames(p, unit) {
  if (p.length < 2) bad('no frame count');
  const count = p[1] & 0x3f;
  if (count < 1 || count * unit > MAX_UNITS) bad(`${count} frames`);
  let at = 2;
  let padding = 0;
  if (p[1] & 0x40) {
    let more;
    do {
      if (at >= p.length) bad('padding is cut off');
      more = p[at++];
      padding += more === 255 ? 254 : more;
    } while (more === 255);
  }
  let sum = 0;
  if (p[1] & 0x80) {
    for (let i = 0; i < count - 1; i++) {
      let size;
      [size, at] = lengthAt(p, at);
      if (size > MAX_FRAME) bad('a frame is too long');
      sum += size;
    }
  }
  const left = p.length - at - padding - sum;
  if (left < 0) bad('frames do not fit');
  if (!(p[1] & 0x80) && left % count) bad('frames of unequal size');
  if ((p[1] & 0x80 ? left : left / count) > MAX_FRAME) bad('a frame is too long');
  return count;
}

/** @param {Uint8Array} p @returns {{units: number, channels: number, celt: boolean}} */
export function opusPacket(p) {
  if (!p.length) bad('an empty packet');
  const config = p[0] >> 3;
  const unit = unitsOfFrame(config);
  const left = p.length - 1;
  let count = 1;
  if ((p[0] & 3) === 0) {
    if (left > MAX_FRAME) bad('a frame is too long');
  } else if ((p[0] & 3) === 1) {
    count = 2;
    if (left % 2 || left / 2 > MAX_FRAME) bad('two frames of unequal size');
  } else if ((p[0] & 3) === 2) {
    count = 2;
    const [size, at] = lengthAt(p, 1);
    if (size > p.length - at || p.length - at - size > MAX_FRAME) bad('frames do not fit');
  } else {
    count = manyFrames(p, unit);
  }
  return { units: count * unit, channels: p[0] & 4 ? 2 : 1, celt: config >= 16 };
}

/** @param {object} track @param {Uint8Array} payload @returns {number} duration in units of 2.5 ms */
export function frameUnits(track, payload) {
  const units = unitsOf(track, payload);
  if (track.frame_units && units !== track.frame_units) bad(`${units} units in a track of ${track.frame_units}`);
  return units;
}

function unitsOf(track, payload) {
  if (track.codec === CODECS.OPUS) return opusPacket(payload).units;
  if (track.codec >= CODECS.PRIVATE) return track.frame_units;
  const width = track.channels * (track.codec === CODECS.L16 ? 2 : 1);
  const units = (payload.length / width) * (400 / track.clock_rate_hz);
  if (payload.length % width || units !== Math.floor(units) || units < 1 || units > MAX_UNITS) bad(`${payload.length} bytes`);
  return units;
}
