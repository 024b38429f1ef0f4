#!/usr/bin/env node
/**
 * The peer as the interop suite calls it, by environment: ROLE (client, server), TESTCASE, HOST, PORT, URI, CERT, KEY
 * (PEM files), PIN (SHA-256 of the certificate), TOKEN, SECONDS. Exit: 0 it went as it should, 1 it did not, 127 no such case.
 */
import { readFileSync } from 'node:fs';

const env = process.env;
const seconds = Number(env.SECONDS || 3);
const say = (line) => process.stdout.write(`${line}\n`);
const file = (name) => (name ? readFileSync(name, 'utf8') : undefined);

async function client({ CLIENT }, voice) {
  const { Client } = await import('./src/client.mjs');
  const { run, extra } = CLIENT[env.TESTCASE];
  const uri = env.URI || `voicestream://${env.HOST || '127.0.0.1'}:${env.PORT || 4433}/${env.TESTCASE}`;
  const target = { uri, host: env.HOST, port: Number(env.PORT) || undefined, pin: env.PIN?.toLowerCase(), ca: env.PIN ? undefined : file(env.CERT), token: env.TOKEN, extra };
  const session = watch(new Client(target, voice));
  await session.call();
  await Promise.race([new Promise((done) => session.once('open', done)), overBefore(session), later(10, 'ACCEPT')]);
  await run(session, { seconds });
  if (!session.end) session.close('NO_ERROR', 'done');
  await new Promise((done) => setTimeout(done, 400));
  return session;
}

async function server({ SERVER, listen }, voice) {
  const { Server } = await import('./src/server.mjs');
  const door = new Server();
  const port = await door.listen({ host: env.HOST || '127.0.0.1', port: Number(env.PORT || 4433), cert: file(env.CERT), key: file(env.KEY) }, voice);
  say(`listening on port ${port}`);
  const session = await Promise.race([new Promise((done) => door.once('session', done)), later(60, 'a client')]);
  watch(session);
  session.talking = true;
  session.echoed = 0;
  session.on('event', ({ kind, payload }) => {
    session.sendEvent({ kind, payload });
    session.echoed++;
  });
  await SERVER[env.TESTCASE](session, { seconds });
  await listen(session, seconds);
  if (session.end.code !== 'NO_ERROR') throw new Error(`the session ended with ${session.end.code} (${session.end.by}): ${session.end.reason}`);
  await new Promise((done) => setTimeout(done, 200));
  return session;
}

function watch(session) {
  session.on('closed', (end) => (session.end = end));
  return session;
}

const overBefore = (session) => new Promise((_, failed) => session.once('closed', (end) => failed(new Error(`refused: ${end.code} ${end.reason}`))));
const later = (s, what) => new Promise((_, failed) => setTimeout(() => failed(new Error(`not seen in ${s} s: ${what}`)), s * 1000).unref());

async function main() {
  if (env.TESTCASE === 'vectors') {
    const { runVectors } = await import('./src/vectors.mjs');
    return runVectors(say) ? 1 : 0;
  }
  const cases = await import('./src/cases.mjs');
  const known = { client: cases.CLIENT, server: cases.SERVER }[env.ROLE];
  if (!known || !Object.hasOwn(known, env.TESTCASE ?? '')) {
    say(`unsupported: ${env.ROLE} ${env.TESTCASE}`);
    return 127;
  }
  const voice = JSON.parse(readFileSync(new URL('./voice.json', import.meta.url), 'utf8'));
  voice.spurts = voice.spurts.map((spurt) => spurt.map((p) => Buffer.from(p, 'hex')));
  const session = await (env.ROLE === 'client' ? client : server)(cases, voice);
  say(`ok: ${env.ROLE} ${env.TESTCASE}${session.note ? `: ${session.note}` : ''}`);
  return 0;
}

main().then((code) => process.exit(code)).catch((error) => {
  say(`failed: ${env.ROLE} ${env.TESTCASE}: ${error.code === 'ERR_ASSERTION' ? error.message : (error.stack ?? error)}`);
  process.exit(1);
});
