// The page at other origins than the server's: allowed ones, and others.
import assert from 'node:assert/strict';
import { FRIEND, REVISIONS, STRANGER, Server, Tab } from './kit.mjs';

const REFUSED = /^refused: OriginNotAllowed: .*HTTP 403\)$/;

export async function origins({ test, browser, binary }) {
  // One serves the page, the other is talked to.
  const host = await Server.start(binary);
  const server = await Server.start(binary, '--allow-origin', `http://${FRIEND}:${host.port}`);
  const at = name => host.page(name);
  const open = (where, era) => Tab.open(browser, where, { era, server: server.url });

  for (const era of Object.keys(REVISIONS)) {
    for (const [name, where] of [
      ['loopback', at('localhost')],
      ['listed', at(FRIEND)],
    ]) {
      await test(`${REVISIONS[era]}/origin/${name}`, async () => allowed(await open(where, era), era));
    }
    await test(`${REVISIONS[era]}/origin/stranger`, async () => {
      server.forget();
      await stranger(await open(at(STRANGER), era), server);
    });
    await test(`${REVISIONS[era]}/origin/stranger, preflight skipped`, async () => {
      server.forget();
      await skipped(await open(at(STRANGER), era), server);
    });
  }
  await test('origin/stranger without a preflight', async () => {
    server.forget();
    await withoutPreflight(await open(at(STRANGER), 'modern'), server);
  });
  await test('origin/rebinding', async () => {
    server.forget();
    await rebinding(await Tab.open(browser, server.page(STRANGER)), server);
  });
  await test('page/headers', () => headers(server));
  host.stop();
  server.stop();
}

/** All of it works, after a preflight, and the session can be read. */
async function allowed(tab, era) {
  const preflights = await watchPreflights(tab);
  await tab.connect();
  await tab.connected(REVISIONS[era]);
  assert(preflights.length > 0 && preflights.every(status => status === 204), `preflights: ${preflights}`);
  if (era === 'legacy') assert.match(await tab.text('#status'), /session [\w-]{8}…/);
  await tab.says('#listening', 'Listening');
  await tab.call('test_elicitation', { message: 'Who is there?' });
  await tab.answer({ username: 'ann', email: 'ann@example.com' });
  await tab.results(/User response: .*ann/);
  await tab.call('test_custom_header', { value: 'Grüße' });
  await tab.results('Grüße');
  await tab.call('test_trigger_tool_change');
  await tab.says('#events', 'tools/list_changed');
  await tab.call('count', { to: 500 });
  await tab.says('#steps', /\d+ of 500/);
  await tab.page.getByRole('button', { name: 'Cancel' }).click();
  await tab.results('Cancelled after');
  assert.deepEqual(tab.complaints, []);
  await tab.close();
}

async function watchPreflights(tab) {
  const [asked, statuses] = [new Set(), []];
  const devtools = await tab.context.newCDPSession(tab.page);
  devtools.on(
    'Network.requestWillBeSent',
    ({ requestId, initiator }) => initiator.type === 'preflight' && asked.add(requestId),
  );
  devtools.on(
    'Network.responseReceived',
    ({ requestId, response }) => asked.has(requestId) && statuses.push(response.status),
  );
  await devtools.send('Network.enable');
  return statuses;
}

/** The browser asks first, and the server says no. */
async function stranger(tab, server) {
  await tab.connect();
  await tab.says('#trouble', new RegExp(`does not allow pages of http://${STRANGER}`));
  await server.says(REFUSED);
  assert.deepEqual(server.started, []);
  await tab.close();
}

/** A browser that was told that all is allowed: nothing but the server is left to say no. */
async function skipped(tab, server) {
  const sent = [];
  // Where requests are intercepted, preflights are answered by whoever does it.
  await tab.page.route(server.url, route => {
    sent.push(route.request().method());
    return route.continue();
  });
  await tab.connect();
  await tab.says('#trouble', 'No answer');
  await server.says(REFUSED);
  assert.deepEqual([sent, server.log.length], [['POST'], 1], server.log.join());
  assert.deepEqual(server.started, []);
  await tab.close();
}

/** A request that no browser asks about first. */
async function withoutPreflight(tab, server) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'test_simple_text' } });
  await tab.page.evaluate(
    ([url, text]) => fetch(url, { method: 'POST', mode: 'no-cors', body: text }),
    [server.url, body],
  );
  await server.says(REFUSED);
  assert.deepEqual(server.started, []);
  await tab.close();
}

/** The stranger's name was made to point at the server: to the browser, its page and `/mcp` are one origin. */
async function rebinding(tab, server) {
  await tab.says('#trouble', /Refused HTTP 403 · JSON-RPC -32600/);
  await server.says(REFUSED);
  // A GET to one's own origin carries no `Origin`.
  const status = await tab.page.evaluate(() =>
    fetch('/mcp', { headers: { Accept: 'text/event-stream' } }).then(answer => answer.status),
  );
  assert.equal(status, 403);
  await server.says(/^refused: HostNotAllowed: .*HTTP 403\)$/);
  assert.deepEqual(server.started, []);
  await tab.close();
}

async function headers(server) {
  for (const file of ['', 'page.css', 'page.js', 'wire.js', 'forms.js', 'headers.js', 'questions.js', 'show.js']) {
    const answer = await fetch(`${server.page()}${file}`);
    assert.equal(answer.status, 200, file);
    assert.match(answer.headers.get('Content-Security-Policy'), /^default-src 'none'; script-src 'self'; /);
    assert.equal(answer.headers.get('X-Content-Type-Options'), 'nosniff');
    assert.doesNotMatch(await answer.text(), /<script>|<style>|\son\w+="|(src|href)="?https?:|@import/);
  }
}
