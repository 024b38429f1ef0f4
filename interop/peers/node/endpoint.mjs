#!/usr/bin/env node
/**
 * The peer as the interop suite calls it, by environment: ROLE (client, server), TESTCASE, HOST, PORT, URI, CERT, KEY
 * (PEM files), PIN (SHA-256 of the certificate), TOKEN, SECONDS. Exit: 0 it went as it should, 1 it did not, 127 no such
 * case. The case "peer" has no end: a client dials whenever it has no call, a server takes every call.
 */
import { readFileSync } from 'node:fs';

const env = process.env;
const seconds = Number(env.SECONDS || 3);
const say = (line) => process.stdout.write(`${line}\n`);
const file = (name) => (name ? readFileSync(name, 'utf8') : undefined);
const sleep = (s) => new Promise((done) => setTimeout(done, s * 1000));
const later = (s, what) => new Promise((_, failed) => setTimeout(() => failed(new Error(`not seen in ${s} s: ${what}`)), s * 1000).unref());

function target(extra) {
  const uri = env.URI || `voicestream://${env.HOST || '127.0.0.1'}:${env.PORT || 4433}/${env.TESTCASE}`;
  const pin = env.PIN?.toLowerCase().replaceAll(':', '');
  return { uri, host: env.HOST || undefined, port: Number(env.PORT) || undefined, pin, ca: pin ? undefined : file(env.CERT), token: env.TOKEN, extra };
}

/** Calls, and waits until the call is taken. */
async function dial(voice, extra) {
  const { Client } = await import('./src/client.mjs');
  const session = watch(new Client(target(extra), voice));
  const refused = new Promise((_, failed) => session.once('closed', (end) => failed(new Error(`refused: ${end.code} ${end.reason}`))));
  const lost = new Promise((_, failed) => session.once('detached', (why) => failed(new Error(`no connection: ${why}`))));
  refused.catch(() => {});
  lost.catch(() => {});
  await session.call();
  await Promise.race([new Promise((done) => session.once('open', done)), refused, lost, later(12, 'ACCEPT')]);
  return session;
}

let watched = null;

/** How a session stands, for whoever reads why a case failed. */
function standing(s) {
  const d = s.flow?.departures;
  const heard = [...s.receivers.values()].map((r) => ({ ...r.counts, end: r.end, playhead: Math.floor(r.playhead), holes: r.holes(0).length }));
  return JSON.stringify({ state: s.state, end: s.end, sent: d?.next, arrived: d?.arrived, reports: d?.reports, roundTrip: d?.roundTrip, heard });
}

function watch(session) {
  watched = session;
  session.on('closed', (end) => (session.end = end));
  session.on('detached', (why) => env.VERBOSE && say(`detached: ${why}`));
  return session;
}

async function client({ run, extra, close = ['NO_ERROR', 'done'] }, voice) {
  const session = await dial(voice, extra);
  await run(session, { seconds });
  if (session.end && session.end.code !== 'NO_ERROR') throw new Error(`the session ended with ${session.end.code}: ${session.end.reason}`);
  session.close(...close);
  await sleep(0.4);
  return session;
}

/** Talks, and sends back the events that come. */
function converse(session) {
  watch(session);
  session.talking = true;
  session.echoed = 0;
  session.on('event', ({ kind, payload }) => {
    if (payload.length > (session.limits.max_event_size ?? 1048576)) return;
    session.sendEvent({ kind, payload });
    session.echoed++;
  });
  return session;
}

async function listen(voice) {
  const { Server } = await import('./src/server.mjs');
  const door = new Server();
  const port = await door.listen({ host: env.HOST || '127.0.0.1', port: Number(env.PORT || 4433), cert: file(env.CERT), key: file(env.KEY) }, voice);
  say(`listening on port ${port}`);
  return door;
}

async function server({ run, code = 'NO_ERROR' }, voice, closed) {
  const door = await listen(voice);
  const session = converse(await Promise.race([new Promise((done) => door.once('session', done)), later(60, 'a client')]));
  await run(session, { seconds });
  await closed(session);
  if (session.end.code !== code) throw new Error(`the session ended with ${session.end.code} (${session.end.by}): ${session.end.reason}`);
  await sleep(0.2);
  return session;
}

/** Until somebody ends this process. */
async function forever(voice) {
  if (env.ROLE === 'server') (await listen(voice)).on('session', converse);
  while (env.ROLE === 'client') {
    try {
      const session = converse(await dial(voice));
      session.on('detached', () => session.comeBack().catch(() => {}));
      while (!session.end) await sleep(0.02);
    } catch (error) {
      say(error.message);
    }
    await sleep(0.05);
  }
  await new Promise(() => {});
}

async function main() {
  if (env.TESTCASE === 'vectors') {
    const { runVectors } = await import('./src/vectors.mjs');
    return runVectors(say) ? 1 : 0;
  }
  const cases = await import('./src/cases.mjs');
  const known = { client: cases.CLIENT, server: cases.SERVER }[env.ROLE];
  if (!known || (env.TESTCASE !== 'peer' && !Object.hasOwn(known, env.TESTCASE ?? ''))) {
    say(`unsupported: ${env.ROLE} ${env.TESTCASE}`);
    return 127;
  }
  const voice = JSON.parse(readFileSync(new URL('./voice.json', import.meta.url), 'utf8'));
  voice.spurts = voice.spurts.map((spurt) => spurt.map((p) => Buffer.from(p, 'hex')));
  if (env.TESTCASE === 'peer') return forever(voice);
  const session = await (env.ROLE === 'client' ? client : server)(known[env.TESTCASE], voice, cases.closed);
  say(`ok: ${env.ROLE} ${env.TESTCASE}${session.note ? `: ${session.note}` : ''}`);
  return 0;
}

main().then((code) => process.exit(code)).catch((error) => {
  say(`failed: ${env.ROLE} ${env.TESTCASE}: ${error.code === 'ERR_ASSERTION' ? error.message : (error.stack ?? error)}`);
  if (watched) say(standing(watched));
  process.exit(1);
});
