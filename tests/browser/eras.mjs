// The page at its own origin, in each era.
import assert from 'node:assert/strict';
import path from 'node:path';
import { REVISIONS, Server, Tab } from './kit.mjs';

/** What is the same in both. */
const STORIES = {
  lists,
  progress,
  question,
  rounds,
  declined,
  'other questions': otherQuestions,
  changes,
  cancel,
  'mirrored headers': mirrored,
  logs,
  'connection let go': reconnection,
  'prompts and resources': promptsAndResources,
};

export async function eras(era, { test, browser, binary, pictures }) {
  const server = await Server.start(binary);
  const revision = REVISIONS[era];
  const open = options => Tab.open(browser, server.page(), { era, ...options });
  const on = (name, options, story) =>
    test(`${revision}/${name}`, async () => {
      server.forget();
      const tab = await open(options);
      await tab.connected(revision);
      await story(tab, { era, revision, server, open });
      assert.deepEqual(tab.complaints, []);
      await tab.close();
    });
  for (const [name, story] of Object.entries(STORIES)) await on(name, {}, story);
  const file = what => path.join(pictures, `${era}-${what}.png`);
  await on('picture', {}, tab => picture(tab, file('1280')));
  await on('picture, dark', { scheme: 'dark' }, tab => picture(tab, file('dark')));
  await on('picture, narrow', { width: 390 }, tab => narrow(tab, file('390')));
  if (era === 'modern') await test(`${revision}/refusal`, async () => refusal(await open(), file('refused')));
  else await on('session ends', {}, sessionEnds);
  await on('server gone', {}, (tab, { server }) => serverGone(tab, server));
}

async function lists(tab, { era }) {
  const tools = await tab.page.locator('#items button').count();
  assert(tools > 30, `${tools} tools`);
  await tab.says('#kinds', new RegExp(`Tools ${tools}`));
  assert.match(await tab.text('#status'), era === 'legacy' ? /session [\w-]{8}…/ : /no session/);
  // A schema becomes a form.
  await tab.choose('json_schema_2020_12_tool');
  const kinds = await tab.page
    .locator('#arguments :is(input, select, textarea)')
    .evaluateAll(all => all.map(each => `${each.name} ${each.localName}`));
  assert.deepEqual(kinds.sort(), [
    'address textarea',
    'contactMethod select',
    'email input',
    'name input',
    'phone input',
  ]);
}

async function progress(tab) {
  // Every value that the bar ever has.
  await tab.page.evaluate(() => {
    window.seen = [];
    const bar = document.getElementById('bar');
    new MutationObserver(() => window.seen.push(bar.value / bar.max)).observe(bar, { attributes: true });
  });
  await tab.call('count', { to: 5 });
  await tab.says('#steps', /\d of 5/);
  assert(await tab.page.locator('#bar').isVisible());
  await tab.results('Counted to 5.');
  const seen = await tab.page.evaluate(() => window.seen);
  const rising = [...new Set(seen)];
  assert(rising.length >= 4, `the bar hardly moved: ${seen}`);
  assert.deepEqual(
    rising.slice(1),
    [...rising.slice(1)].sort((a, b) => a - b),
  );
  assert.equal(await tab.page.locator('#bar').evaluate(bar => bar.value / bar.max), 1);
  assert.equal(await tab.text('#steps'), '5 of 5');
}

async function question(tab) {
  await tab.call('test_elicitation', { message: 'Who is there?' });
  await tab.says('.question', 'Who is there?');
  assert.equal(await tab.page.evaluate(() => document.activeElement.name), 'email', 'the question has the focus');
  await tab.answer({ username: 'ann', email: 'ann@example.com' });
  await tab.results(/User response: .*"username": ?"ann"/);
  assert.match(await tab.text('#outcome'), /ann@example\.com/);
}

async function rounds(tab) {
  await tab.call('test_input_required_result_multi_round');
  await tab.says('.question', 'Step 1');
  await tab.answer({ name: 'Ann' });
  await tab.says('.question', 'Step 2');
  await tab.answer({ color: 'red' });
  await tab.results('Ann likes red.');
  await tab.call('test_input_required_result_request_state');
  await tab.page.locator('.question').getByLabel('ok').check();
  await tab.answer({});
  await tab.results('state-ok, confirmed: true');
}

async function declined(tab) {
  await tab.call('test_elicitation', { message: 'Who is there?' });
  await tab.answer({}, 'Decline');
  await tab.results(/User response: .*decline/);
}

async function otherQuestions(tab) {
  await tab.call('test_input_required_result_multiple_inputs');
  await tab.page.locator('.question').nth(2).waitFor();
  const forms = tab.page.locator('.question');
  await forms.filter({ hasText: 'your name' }).getByLabel('name').fill('Ann');
  await forms.filter({ hasText: 'your name' }).getByRole('button', { name: 'Answer' }).click();
  await forms.filter({ hasText: 'the model say' }).getByLabel('words').fill('Good day');
  await forms.filter({ hasText: 'the model say' }).getByRole('button', { name: 'Answer' }).click();
  await forms.filter({ hasText: 'folder' }).getByRole('button', { name: 'Answer' }).click();
  await tab.results(/Ann.*Good day.*file:\/\/\/home\/you/s);
  await tab.call('test_elicitation_sep1330_enums');
  await forms.getByLabel('untitledSingle').selectOption('two');
  await forms.getByLabel('The second').check();
  await tab.answer({});
  await tab.results(/untitledSingle": ?"two".*|titledMulti": ?\["two"\]/s);
  assert.match(await tab.text('#outcome'), /"titledMulti": ?\["two"\]/);
}

/** Published by a call in the other era, from another tab. */
async function changes(tab, { era, open }) {
  await tab.says('#listening', 'Listening');
  const other = await open({ era: era === 'modern' ? 'legacy' : 'modern' });
  await other.says('#status', 'Connected');
  for (const [tool, heard] of [
    ['test_trigger_tool_change', 'tools/list_changed'],
    ['test_trigger_prompt_change', 'prompts/list_changed'],
    ['test_trigger_resource_change', 'resources/updated\\s*test://watched-resource'],
  ]) {
    await other.call(tool);
    await tab.says('#events', new RegExp(heard));
  }
  // What one hears of is listed anew.
  assert.equal(await tab.page.locator('#log code', { hasText: /^tools\/list$/ }).count(), 2);
  await other.close();
}

async function cancel(tab, { era, revision, server }) {
  await tab.call('count', { to: 500 });
  await tab.says('#steps', /[1-9]\d* of 500/);
  await tab.page.getByRole('button', { name: 'Cancel' }).click();
  await tab.results('Cancelled after');
  const why = { modern: 'Disconnected', legacy: 'Requested' }[era];
  await server.says(new RegExp(`^ended: ${revision} tools/call: Cancelled\\(${why}\\)$`));
  assert.equal(server.log.filter(line => line.includes('Cancelled')).length, 1);
}

async function mirrored(tab, { era }) {
  for (const value of ['plain', 'Grüße, Welt', ' padded ', '=?base64?literal?=']) {
    const request = tab.page.waitForRequest(
      sent => sent.method() === 'POST' && sent.postDataJSON().method === 'tools/call',
    );
    await tab.call('test_custom_header', { value });
    const headers = (await request).headers();
    await tab.page.locator('#outcome .box:not(.bad) .text').waitFor();
    assert.equal(await tab.page.locator('#outcome .text').textContent(), value);
    if (era === 'legacy') {
      assert(
        !('mcp-name' in headers) && headers['mcp-session-id'] && headers['mcp-protocol-version'] === REVISIONS.legacy,
      );
      continue;
    }
    const base64 = `=?base64?${Buffer.from(value).toString('base64')}?=`;
    assert.equal(headers['mcp-param-value'], value === 'plain' ? value : base64);
    assert.equal(headers['mcp-name'], 'test_custom_header');
    assert.equal(headers['mcp-method'], 'tools/call');
    assert.equal(headers['mcp-protocol-version'], REVISIONS.modern);
  }
}

async function logs(tab) {
  await tab.call('test_tool_with_logging');
  await tab.says('#notes', 'Tool execution completed');
  assert.equal(await tab.page.locator('#notes li').count(), 3);
  // Every message is in the log, with its headers.
  const entry = tab.page.locator('#log li', { has: tab.page.locator('code', { hasText: /^tools\/call$/ }) }).first();
  await entry.locator('summary').click();
  assert.match(await entry.innerText(), /MCP-Protocol-Version: 202[56].*"method": "tools\/call"/s);
}

async function reconnection(tab) {
  await tab.call('test_reconnection');
  await tab.results('The client came back, or never went.');
}

async function promptsAndResources(tab) {
  await tab.choose('test_prompt_with_arguments', 'Prompts');
  await tab.page.getByLabel('arg1').fill('one');
  await tab.page.getByLabel('arg2').fill('two');
  await tab.page.getByRole('button', { name: 'Get' }).click();
  await tab.results("arg1='one', arg2='two'");
  await tab.choose('A text', 'Resources');
  await tab.page.getByRole('button', { name: 'Read' }).click();
  await tab.results('content of the static text resource');
}

async function picture(tab, file) {
  await tab.says('#listening', 'Listening');
  await tab.call('test_trigger_tool_change');
  await tab.says('#events', 'tools/list_changed');
  await tab.call('count', { to: 100 });
  await tab.says('#steps', /[1-9]\d* of 100/);
  await tab.page.screenshot({ path: file, fullPage: true });
}

async function narrow(tab, file) {
  await tab.says('#listening', 'Listening');
  await tab.call('test_elicitation', { message: 'Who is there?' });
  await tab.says('.question', 'Who is there?');
  await tab.page.screenshot({ path: file, fullPage: true });
  await tab.page.setViewportSize({ width: 360, height: 780 });
  const width = await tab.page.evaluate(() => document.scrollingElement.scrollWidth);
  assert(width <= 360, `the page is ${width} wide`);
}

async function refusal(tab, file) {
  await tab.call('failing_job');
  await tab.results(/Refused HTTP 400 · JSON-RPC -32021/);
  await tab.results(/io\.modelcontextprotocol\/tasks/);
  await tab.page.screenshot({ path: file });
  await tab.close();
}

async function sessionEnds(tab) {
  const deleted = tab.page.waitForResponse(response => response.request().method() === 'DELETE');
  await tab.page.locator('#connection label', { hasText: REVISIONS.modern }).click();
  assert.equal((await deleted).status(), 204);
  await tab.connected(REVISIONS.modern);
}

/** The last story. */
async function serverGone(tab, server) {
  await tab.says('#listening', 'Listening');
  server.stop();
  await tab.says('#listening', 'Trying again');
  await tab.call('test_simple_text');
  await tab.results('No answer');
  // The browser says so too.
  tab.complaints = tab.complaints.filter(text => !/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED/.test(text));
}
