/** The registries of the specification, read where they stand: spec/registries of this repository. */
import { readFileSync } from 'node:fs';

export const SPEC = new URL('../../../../spec/', import.meta.url);

/** @param {string} name @returns {{value: string, name: string, messages?: string[]}[]} */
const entries = (name) => JSON.parse(readFileSync(new URL(`registries/${name}.json`, SPEC), 'utf8')).entries;

const numbers = (name) => Object.fromEntries(entries(name).map((e) => [e.name, Number(e.value)]));

export const ERRORS = numbers('error-codes');
export const FRAMES = numbers('frame-types');
export const MESSAGES = numbers('message-types');
export const KINDS = numbers('event-kinds');
export const CODECS = numbers('codecs');
export const ALPN = entries('alpn')[0].value;
export const PARAMETERS = entries('parameters');

/** Name of an error code; an unknown one is INTERNAL_ERROR (section 13.1). */
export const errorName = (code) => Object.keys(ERRORS).find((name) => ERRORS[name] === Number(code)) ?? 'INTERNAL_ERROR';

/** Reserved values (section 12.1). @param {number} n */
export const grease = (n) => 0x1f * n + 0x3d;
