// Walks a client of the TypeScript SDK through the steps that ../run lists: node walk.mjs v1|v2 URL MODE
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';

const [library, url, mode] = process.argv.slice(2);
const { connect } = await import(`./${library}.mjs`);

const MODERN = '2026-07-28';
const TOOLS = ['echo', 'count', 'poll', 'break', 'sleep', 'cancelled', 'finished', 'change'];

/** Time enough for a call to reach its handler. */
const UNDER_WAY = 500;

/** Time enough for what must come. */
const PATIENCE = 3000;

async function call(client, name, args, options) {
  // Legacy servers ignore the level; without it a modern one sends no log.
  const _meta = { 'io.modelcontextprotocol/logLevel': 'info' };
  const result = await client.callTool({ name, arguments: args, _meta }, options);
  return result.content[0].text;
}

async function list(client) {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map(tool => tool.name), TOOLS);
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

/** A call whose connection the server lets go again and again, and one whose connection breaks. */
async function resume(client) {
  for (const [tool, text] of [['poll', 'polled to 4'], ['break', 'broke off before 4']]) {
    const progress = [];
    const onprogress = report => progress.push(report.progress);
    assert.equal(await call(client, tool, { to: 4, interval_ms: 200 }, { onprogress }), text);
    assert.deepEqual(progress, [1, 2, 3, 4]);
  }
}

async function cancel(client) {
  const before = await number(client, 'cancelled');
  const controller = new AbortController();
  const sleeping = rejected(call(client, 'sleep', { ms: 60_000 }, { signal: controller.signal }));
  await delay(UNDER_WAY);
  controller.abort('enough slept');
  await sleeping;
  await rises(client, 'cancelled', before);
}

/** Hears of a change that a tool publishes: on a subscription, or on the stream that was opened with the session. */
async function changes(client, heard) {
  const filter = { toolsListChanged: true };
  const subscription = client.version === MODERN && (await client.listen(filter));
  if (subscription) assert.deepEqual(subscription.honoredFilter, filter);
  const before = heard.length;
  await call(client, 'change', {});
  const deadline = Date.now() + PATIENCE;
  while (heard.length === before) {
    assert(Date.now() < deadline, 'nothing was heard');
    await delay(10);
  }
  assert.equal(heard.length, before + 1);
  if (subscription) await subscription.close();
}

async function second(client, other) {
  await Promise.all([echo(client, 'one'), echo(other, 'another')]);
}

/** Closes the second connection in the middle of a call, which stops it unless it belongs to a session. */
async function hangUp(client, other) {
  if (url.startsWith('stdio:')) {
    // The other server is a process of its own, and tells in its report what became of the call.
    const sleeping = rejected(call(other, 'sleep', { ms: 60_000 }));
    await delay(UNDER_WAY);
    await other.close();
    return sleeping;
  }
  const [ms, counted] = other.version === MODERN ? [60_000, 'cancelled'] : [1500, 'finished'];
  const before = await number(client, counted);
  const sleeping = rejected(call(other, 'sleep', { ms }));
  await delay(UNDER_WAY);
  await other.close();
  await sleeping;
  await rises(client, counted, before);
}

async function close(client) {
  if (client.version !== MODERN) await client.deleteSession();
  await client.close();
}

async function number(client, tool) {
  return Number(await call(client, tool, {}));
}

async function rises(client, tool, before) {
  const deadline = Date.now() + PATIENCE;
  while ((await number(client, tool)) === before) {
    assert(Date.now() < deadline, `no more is ${tool}`);
    await delay(50);
  }
  assert.equal(await number(client, tool), before + 1);
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
const heard = [];
const client = await connect(
  url,
  mode,
  message => void log.push(message),
  change => void heard.push(change),
);
await step('connect', () => client.version);
await step('list', () => list(client));
await step('echo', () => echo(client, 'Grüße, "world"\n'));
await step('count', () => count(client, log));
if (client.version === MODERN) console.log('resume skipped that revision has no way back');
else await step('resume', () => resume(client));
await step('cancel', () => cancel(client));
await step('changes', () => changes(client, heard));
const other = await connect(url, mode, () => {}, () => {});
await step('second', () => second(client, other));
await step('hang-up', () => hangUp(client, other));
await step('close', () => close(client));
