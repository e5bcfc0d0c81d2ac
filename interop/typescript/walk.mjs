// Walks a client of the TypeScript SDK through the steps that ../run lists: node walk.mjs v1|v2 URL MODE
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';

const [library, url, mode] = process.argv.slice(2);
const { connect } = await import(`./${library}.mjs`);

/** Time enough for a call to reach its handler. */
const UNDER_WAY = 500;

async function call(client, name, args, options) {
  // Legacy servers ignore the level; without it a modern one sends no log.
  const _meta = { 'io.modelcontextprotocol/logLevel': 'info' };
  const result = await client.callTool({ name, arguments: args, _meta }, options);
  return result.content[0].text;
}

async function list(client) {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map(tool => tool.name), ['echo', 'count', 'sleep', 'cancellations']);
}

async function echo(client, text) {
  assert.equal(await call(client, 'echo', { text }), text);
}

async function count(client, log) {
  const progress = [];
  const onprogress = report => progress.push(report.progress);
  assert.equal(await call(client, 'count', { to: 5, interval_ms: 20 }, { onprogress }), 'counted to 5');
  assert.deepEqual(progress, [1, 2, 3, 4, 5]);
  assert.equal(log.length, 5);
}

async function cancel(client) {
  const before = await cancellations(client);
  const controller = new AbortController();
  const sleeping = rejected(call(client, 'sleep', { ms: 60_000 }, { signal: controller.signal }));
  await delay(UNDER_WAY);
  controller.abort('enough slept');
  await sleeping;
  await stopped(client, before);
}

async function second(client, other) {
  await Promise.all([echo(client, 'one'), echo(other, 'another')]);
}

/** Closes the second connection in the middle of a call. */
async function hangUp(client, other) {
  const before = await cancellations(client);
  const sleeping = rejected(call(other, 'sleep', { ms: 60_000 }));
  await delay(UNDER_WAY);
  await other.close();
  await sleeping;
  await stopped(client, before);
}

async function cancellations(client) {
  return Number(await call(client, 'cancellations', {}));
}

async function stopped(client, before) {
  const deadline = Date.now() + 3000;
  while ((await cancellations(client)) === before) {
    assert(Date.now() < deadline, 'the handler is still running');
    await delay(50);
  }
}

/** Waits until the promise is rejected, and hears of it even if that comes before anybody waits. */
function rejected(promise) {
  return promise.then(
    () => assert.fail('the call was answered'),
    () => {},
  );
}

/** Prints how a step went. */
async function step(name, work) {
  try {
    console.log(`${name} ok ${(await work()) ?? ''}`);
  } catch (error) {
    console.log(`${name} failed ${error.message.replaceAll('\n', ' ')}`);
  }
}

const log = [];
const client = await connect(url, mode, message => void log.push(message));
await step('connect', () => client.version);
await step('list', () => list(client));
await step('echo', () => echo(client, 'Grüße, "world"\n'));
await step('count', () => count(client, log));
await step('cancel', () => cancel(client));
const other = await connect(url, mode, () => {});
await step('second', () => second(client, other));
await step('hang-up', () => hangUp(client, other));
await step('close', () => client.close());
