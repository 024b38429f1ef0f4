/** The repair code (section 10): GF(256), source and repair symbols, and solving for what is lost. */
import { flagsOf, fromFlags } from './frames.mjs';

const EXP = new Uint8Array(510);
const LOG = new Uint8Array(256);
for (let i = 0, x = 1; i < 255; i++) {
  EXP[i] = EXP[i + 255] = x;
  LOG[x] = i;
  x = x & 0x80 ? (x << 1) ^ 0x11d : x << 1;
}

export const times = (a, b) => (a && b ? EXP[LOG[a] + LOG[b]] : 0);
const inverse = (a) => EXP[255 - LOG[a]];

/** @param {number} key @param {number | bigint} pts in full */
export const coefficient = (key, pts) => EXP[(key * Number(BigInt(pts) % 255n)) % 255];

/** target += factor * symbol */
function add(target, factor, symbol) {
  for (let i = 0; i < symbol.length; i++) target[i] ^= times(factor, symbol[i]);
}

const sourceSymbol = (f) => Buffer.concat([Buffer.from([f.flags, f.payload.length >> 8, f.payload.length & 0xff]), f.payload]);

/** @param {number} key @param {{pts: number, flags: number, payload: Buffer}[]} sources */
export function repairSymbol(key, sources) {
  const out = Buffer.alloc(Math.max(...sources.map((s) => s.payload.length + 3)));
  for (const s of sources) add(out, coefficient(key, s.pts), sourceSymbol(s));
  return out;
}

/** Full pts of the sources, the newest first. @param {number} newest in full @param {[number, number][]} runs */
export function sourcesOf(newest, runs) {
  const out = [newest];
  for (const [count, step] of runs) for (let i = 0; i < count; i++) out.push(out.at(-1) - step);
  return out;
}

/** Runs of sources given from the newest on. @param {number[]} pts */
export function runsOf(pts) {
  const runs = [];
  for (let i = 1; i < pts.length; i++) {
    const step = pts[i - 1] - pts[i];
    if (runs.at(-1)?.[1] === step) runs.at(-1)[0]++;
    else runs.push([1, step]);
  }
  return runs;
}

/** What a symbol says, or null if it says nothing sensible (section 10.3). */
function readSymbol(symbol) {
  const size = (symbol[1] << 8) | symbol[2];
  if (symbol[0] > 0x0f || size === 0 || size > symbol.length - 3) return null;
  if (symbol.subarray(3 + size).some((b) => b)) return null;
  return { ...fromFlags(symbol[0]), payload: Buffer.from(symbol.subarray(3, 3 + size)) };
}

/** Repair frames of a track for as long as they can help. */
export class Repairer {
  kept = [];

  /** @param {number} newest in full @param {object} frame */
  keep(newest, frame) {
    const sources = sourcesOf(newest, frame.runs);
    if (sources.at(-1) < 0) return;
    this.kept.push({ key: frame.key, sources, symbol: frame.symbol });
    if (this.kept.length > 24) this.kept.shift();
  }

  /**
   * Solves for what can be had now.
   * @param {(pts: number) => object | undefined} have the frame of a pts
   * @returns {object[]} frames with pts
   */
  solve(have) {
    const rows = [];
    for (const { key, sources, symbol } of this.kept) {
      const row = { coefficients: new Map(), symbol: Buffer.from(symbol) };
      let fits = true;
      for (const pts of sources) {
        const frame = have(pts);
        if (!frame) row.coefficients.set(pts, coefficient(key, pts));
        else if (frame.payload.length + 3 > symbol.length) fits = false;
        else add(row.symbol, coefficient(key, pts), sourceSymbol({ flags: flagsOf(frame), payload: frame.payload }));
      }
      if (fits && row.coefficients.size && row.coefficients.size <= 16) rows.push(row);
    }
    return eliminate(rows);
  }
}

function eliminate(rows) {
  const done = [];
  while (rows.length) {
    const pivot = rows.shift();
    const first = pivot.coefficients.entries().next();
    if (first.done) continue;
    const [pts, value] = first.value;
    scale(pivot, inverse(value));
    for (const row of [...rows, ...done]) if (row.coefficients.has(pts)) subtract(row, row.coefficients.get(pts), pivot);
    done.push(pivot);
  }
  return done.filter((row) => row.coefficients.size === 1).flatMap((row) => {
    const frame = readSymbol(row.symbol);
    return frame ? [{ pts: row.coefficients.keys().next().value, ...frame }] : [];
  });
}

function scale(row, factor) {
  for (const [pts, c] of row.coefficients) row.coefficients.set(pts, times(c, factor));
  row.symbol = Buffer.from(row.symbol.map((b) => times(b, factor)));
}

function subtract(row, factor, other) {
  for (const [pts, c] of other.coefficients) {
    const sum = (row.coefficients.get(pts) ?? 0) ^ times(c, factor);
    if (sum) row.coefficients.set(pts, sum);
    else row.coefficients.delete(pts);
  }
  if (row.symbol.length < other.symbol.length) row.symbol = Buffer.concat([row.symbol, Buffer.alloc(other.symbol.length - row.symbol.length)]);
  add(row.symbol, factor, other.symbol);
}
