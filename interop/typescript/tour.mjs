// Takes a client of the TypeScript SDK through everything: node tour.mjs v1|v2 URL|COMMAND MODE
import assert from 'node:assert/strict';

const [library, server, mode] = process.argv.slice(2);

/** What the user fills in, whatever form it is. */
const FORM = { name: 'Ann', color: 'red', ok: true, username: 'ann', email: 'ann@example.com', context: 'tea' };

/** Time enough for a call to reach its handler. */
const MS_UNDER_WAY = 500;

const capabilities = { elicitation: {}, sampling: {}, roots: {} };

const answers = {
  elicit({ params }) {
    const asked = Object.keys(params.requestedSchema.properties);
    const content = Object.fromEntries(asked.filter(name => name in FORM).map(name => [name, FORM[name]]));
    return { action: 'accept', content };
  },
  sample: () => ({ role: 'assistant', model: 'none', content: { type: 'text', text: 'Paris' } }),
  roots: () => ({ roots: [{ uri: 'file:///tour', name: 'tour' }] }),
};

async function v2(log) {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  const modes = { legacy: {}, auto: { mode: 'auto' }, pin: { mode: { pin: '2026-07-28' } } };
  const options = { capabilities, versionNegotiation: mode === 'legacy' ? undefined : modes[mode] };
  const client = new Client({ name: 'tour', version: '0.0.0' }, options);
  client.setNotificationHandler('notifications/message', log);
  client.setRequestHandler('elicitation/create', answers.elicit);
  client.setRequestHandler('sampling/createMessage', answers.sample);
  client.setRequestHandler('roots/list', answers.roots);
  await client.connect(transport(StreamableHTTPClientTransport, StdioClientTransport));
  return { client, version: client.getNegotiatedProtocolVersion(), call: (...args) => client.callTool(...args) };
}

async function v1(log) {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const types = await import('@modelcontextprotocol/sdk/types.js');
  const client = new Client({ name: 'tour', version: '0.0.0' }, { capabilities });
  client.setNotificationHandler(types.LoggingMessageNotificationSchema, log);
  client.setRequestHandler(types.ElicitRequestSchema, answers.elicit);
  client.setRequestHandler(types.CreateMessageRequestSchema, answers.sample);
  client.setRequestHandler(types.ListRootsRequestSchema, answers.roots);
  let version;
  const connection = transport(StreamableHTTPClientTransport, StdioClientTransport);
  const { setProtocolVersion } = connection;
  connection.setProtocolVersion = negotiated => {
    version = negotiated;
    setProtocolVersion?.call(connection, negotiated);
  };
  await client.connect(connection);
  return { client, version, call: (params, options) => client.callTool(params, undefined, options) };
}

function transport(Http, Stdio) {
  return server.startsWith('http') ? new Http(new URL(server)) : new Stdio({ command: server, args: ['--stdio'] });
}

const log = [];
const { client, version, call } = await { v1, v2 }[library](message => void log.push(message));
client.onerror = error => console.error(`onerror: ${error}`);

async function texts(name, args = {}, options) {
  // Legacy servers ignore the level; without it a modern one sends no log.
  const _meta = { 'io.modelcontextprotocol/logLevel': 'info' };
  const { content } = await call({ name, arguments: args, _meta }, options);
  return content.filter(block => block.type === 'text').map(block => block.text);
}

async function says(expected, tool, args) {
  const found = await texts(tool, args);
  assert(found.some(text => text.includes(expected)), `${tool}: ${found}`);
}

async function tools() {
  const { tools } = await client.listTools();
  assert.equal(tools[0].name, 'test_simple_text');
  const blocks = async name => (await call({ name, arguments: {} })).content;
  const kinds = (await blocks('test_multiple_content_types')).map(block => block.type);
  assert.deepEqual(kinds, ['text', 'image', 'resource']);
  assert.equal((await blocks('test_audio_content'))[0].mimeType, 'audio/wav');
  assert.equal((await call({ name: 'test_error_handling', arguments: {} })).isError, true);
  await says('Grüße', 'test_custom_header', { value: 'Grüße' });
  await says('Hello, Ann!', 'greet', { name: 'Ann' });
}

async function reports() {
  const progress = [];
  await texts('test_tool_with_progress', {}, { onprogress: report => void progress.push(report.progress) });
  assert.deepEqual(progress, [0, 50, 100]);
  const before = log.length;
  await texts('test_tool_with_logging');
  assert.equal(log.length - before, 3);
}

async function questions() {
  await says('LLM response: Paris', 'test_sampling', { prompt: 'The capital?' });
  await says('ann@example.com', 'test_elicitation', { message: 'Who are you?' });
}

async function rounds() {
  await says('Hello, Ann!', 'test_input_required_result_elicitation');
  await says('file:///tour', 'test_input_required_result_list_roots');
  await says('Paris', 'test_input_required_result_multiple_inputs');
  await says('Ann likes red.', 'test_input_required_result_multi_round');
  await says('state-ok, confirmed: true', 'test_input_required_result_request_state');
}

async function prompts() {
  assert.equal((await client.listPrompts()).prompts.length, 5);
  const get = async (name, args) => (await client.getPrompt({ name, arguments: args })).messages[0].content.text;
  assert((await get('test_prompt_with_arguments', { arg1: 'one', arg2: 'two' })).includes("arg2='two'"));
  assert.equal(await get('test_input_required_result_prompt'), 'The context is: tea');
}

async function resources() {
  assert.equal((await client.listResources()).resources.length, 3);
  assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 1);
  const { contents } = await client.readResource({ uri: 'test://template/7/data' });
  assert(contents[0].text.includes('Data for ID: 7'));
}

async function reconnection() {
  await says('The client came back', 'test_reconnection');
}

async function cancel() {
  const given = new AbortController();
  const running = texts('slow_compute', { seconds: 60, label: 'it' }, { signal: given.signal });
  setTimeout(() => given.abort('no longer wanted'), MS_UNDER_WAY);
  await assert.rejects(running, /no longer wanted/);
  await says('Hello, Ann!', 'greet', { name: 'Ann' });
}

/** Prints how a step went. */
async function step(name, work) {
  try {
    console.log(`${name} ok ${(await work()) ?? ''}`);
  } catch (error) {
    console.log(`${name} failed ${error.message.replaceAll('\n', ' ')}`);
  }
}

await step('connect', () => version);
await step('tools', tools);
await step('reports', reports);
await step('questions', questions);
await step('rounds', rounds);
await step('prompts', prompts);
await step('resources', resources);
await step('reconnection', reconnection);
await step('cancel', cancel);
// It complains of its own streams.
client.onerror = undefined;
await client.close();
