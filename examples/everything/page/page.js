// The page: what is chosen, what runs, what is heard. How to talk to the server is in wire.js.

import { Legacy, Modern, Refused } from './wire.js';
import { formOf, make } from './forms.js';

const MAX_LOG = 300;
const MAX_EVENTS = 100;
const MS_TO_RECONNECT = 2000;

/** What can be listed, and how one of them is used. */
const KINDS = {
  tools: { verb: 'Call', method: 'tools/call', schema: tool => tool.inputSchema, params: ({ name }, args) => ({ name, arguments: args }) },
  prompts: { verb: 'Get', method: 'prompts/get', schema: promptSchema, params: ({ name }, args) => ({ name, arguments: args }) },
  resources: { verb: 'Read', method: 'resources/read', schema: () => ({}), params: ({ uri }) => ({ uri }) },
};

const HINTS = {
  '-32020': 'A header and the body disagree.',
  '-32021': 'This page has not declared a capability that the request needs.',
  '-32022': 'The server does not serve this revision.',
  '-32601': 'The server does not know this method.',
  '-32602': 'The server does not accept the parameters.',
};

const $ = id => document.getElementById(id);
const era = () => new FormData($('connection')).get('era');

let client = null;
let offered = { tools: [], prompts: [], resources: [] };
let kind = 'tools';
let chosen = null;
let running = null;

// ---- the connection

async function connect() {
  client?.close();
  running?.abort();
  const mine = new (era() === 'legacy' ? Legacy : Modern)($('server').value, { log, asked });
  client = mine;
  offered = { tools: [], prompts: [], resources: [] };
  showItems();
  $('trouble').replaceChildren();
  setState('status', 'busy', 'Connecting …');
  setState('listening', 'off', 'Not listening.');
  try {
    const { serverInfo = {}, capabilities } = await mine.connect();
    await refresh(mine, Object.keys(KINDS).filter(each => capabilities[each]));
    const session = mine.session ? `session ${mine.session.slice(0, 8)}…` : 'no session';
    const server = `${serverInfo.name ?? 'a server'} ${serverInfo.version ?? ''}`;
    if (client === mine) setState('status', 'on', `Connected to ${server} · ${mine.revision} · ${session}`);
    listen(mine);
  } catch (error) {
    if (client !== mine) return;
    setState('status', 'bad', error instanceof Refused ? 'Refused.' : 'Not connected.');
    $('trouble').replaceChildren(refusal(error));
  }
}

async function refresh(mine, kinds) {
  for (const each of kinds) {
    const items = await mine.list(each);
    if (client !== mine) return;
    offered[each] = items;
    showItems();
  }
}

/** Hears changes for as long as this client is the page's, and comes back when the stream breaks. */
async function listen(mine) {
  const uris = offered.resources.slice(0, 20).map(({ uri }) => uri);
  const opened = () => client === mine && setState('listening', 'on', mine.session ? 'Listening on the session’s GET stream.' : 'Listening through subscriptions/listen.');
  while (client === mine) {
    const ended = new Error('The stream ended.');
    const why = await mine.listen(uris, { opened, heard: message => heardChange(mine, message) }).then(() => ended, error => error);
    if (client !== mine) return;
    // Who is unknown, or unwelcome, stays so.
    const isOver = [400, 403, 404, 405].includes(why.status);
    setState('listening', 'bad', `Not listening: ${why.message} ${isOver ? 'Connect again.' : 'Trying again …'}`);
    if (isOver) return;
    await new Promise(resolve => { setTimeout(resolve, MS_TO_RECONNECT); });
  }
}

function heardChange(mine, { method, params }) {
  const what = method.replace('notifications/', '');
  const row = make('li', {}, make('time', {}, clock()), make('b', {}, what), make('span', {}, params?.uri ?? params?.data ?? ''));
  $('events').prepend(row);
  trim($('events'), MAX_EVENTS);
  const listed = /^(\w+)\/list_changed$/.exec(what)?.[1];
  if (KINDS[listed]) refresh(mine, [listed]).catch(() => {});
}

function setState(id, state, text) {
  $(id).dataset.state = state;
  $(id).textContent = text;
}

// ---- what is offered, and what is chosen

function showItems() {
  for (const input of document.getElementsByName('kind')) {
    input.nextElementSibling.textContent = `${input.value[0].toUpperCase()}${input.value.slice(1)} ${offered[input.value].length || ''}`;
  }
  const wanted = $('filter').value.toLowerCase();
  const items = offered[kind].filter(({ name }) => name.toLowerCase().includes(wanted));
  const button = item => make('button', { type: 'button', 'aria-current': isChosen(item) && 'true', onclick: () => choose(item) }, item.name);
  $('items').replaceChildren(...items.map(item => make('li', {}, button(item))));
}

const isChosen = ({ name }) => chosen?.kind === kind && chosen.item.name === name;

function choose(item) {
  chosen = { kind, item };
  for (const button of $('items').querySelectorAll('button')) button.setAttribute('aria-current', button.textContent === item.name);
  $('chosen').textContent = item.title ?? item.name;
  $('description').textContent = item.description ?? item.uri ?? '';
  const { elements, read } = formOf(KINDS[kind].schema(item));
  const call = make('button', { id: 'call' }, KINDS[kind].verb);
  const cancel = make('button', { id: 'cancel', type: 'button', class: 'quiet', onclick: () => running?.abort() }, 'Cancel');
  $('arguments').replaceChildren(...elements, make('div', { class: 'buttons' }, call, cancel));
  $('arguments').onsubmit = event => {
    event.preventDefault();
    if (!running) use(chosen, read());
  };
  showRunning();
  const isBelow = $('work').getBoundingClientRect().top > $('catalogue').getBoundingClientRect().top;
  if (isBelow) $('work').scrollIntoView({ block: 'start' });
}

function promptSchema({ arguments: list = [] }) {
  const properties = list.map(({ name, ...rest }) => [name, { type: 'string', ...rest }]);
  return { properties: Object.fromEntries(properties), required: list.filter(each => each.required).map(({ name }) => name) };
}

// ---- one call

async function use({ kind: of, item }, args) {
  const { method, params, schema } = KINDS[of];
  running = new AbortController();
  const started = performance.now();
  const took = () => `${Math.round(performance.now() - started)} ms`;
  $('run').hidden = false;
  $('running').textContent = `${method} ${item.name}`;
  $('progress').hidden = true;
  for (const id of ['questions', 'notes', 'outcome']) $(id).replaceChildren();
  showRunning();
  try {
    const result = await client.request(method, params(item, args), { signal: running.signal, heard, schema: schema(item) });
    $('outcome').replaceChildren(outcome(result, took()));
  } catch (error) {
    const gone = running.signal.aborted;
    $('outcome').replaceChildren(gone ? make('p', { class: 'note' }, `Cancelled after ${took()}.`) : refusal(error));
  } finally {
    running = null;
    $('questions').replaceChildren();
    showRunning();
  }
}

function showRunning() {
  if (!$('call')) return;
  // Not `disabled`: who came by keyboard would lose their place.
  $('call').setAttribute('aria-disabled', running !== null);
  $('cancel').setAttribute('aria-disabled', running === null);
  $('run').setAttribute('aria-busy', running !== null);
}

/** What rides on the stream of the answer. */
function heard({ method, params }) {
  if (method === 'notifications/progress') showProgress(params);
  if (method === 'notifications/message') $('notes').append(make('li', {}, make('b', {}, params.level), ` ${asText(params.data)}`));
}

function showProgress({ progress, total, message }) {
  $('progress').hidden = false;
  $('bar').max = total ?? 1;
  if (total === undefined) $('bar').removeAttribute('value');
  else $('bar').value = progress;
  $('steps').textContent = [total === undefined ? progress : `${progress} of ${total}`, message].filter(Boolean).join(' · ');
}

function outcome(result, took) {
  const blocks = result.content ?? result.messages?.map(({ role, content }) => ({ role, ...content })) ?? result.contents ?? [];
  const head = make('p', { class: 'verdict' }, make('b', {}, result.isError ? 'The tool failed' : 'Result'), ` after ${took}`);
  const raw = make('details', {}, make('summary', {}, 'As JSON'), pre(result));
  return make('div', { class: result.isError ? 'box bad' : 'box' }, head, blocks.map(show), raw);
}

function show(block) {
  const { type, text, blob, mimeType = '' } = block.resource ?? block;
  const data = `data:${mimeType};base64,${blob ?? block.data}`;
  if (text !== undefined) return make('p', { class: 'text' }, text);
  if (mimeType.startsWith('image/')) return make('img', { src: data, alt: `A picture, ${mimeType}` });
  if (mimeType.startsWith('audio/')) return make('audio', { src: data, controls: true });
  return make('p', { class: 'text' }, `${type}: ${asText(block)}`);
}

/** Why it was refused, by whom. */
function refusal(error) {
  const { status, code, data, message } = error;
  if (!(error instanceof Refused)) {
    const text = error instanceof TypeError ? `The browser got no answer that it may show. Either nothing listens at ${$('server').value}, or the server does not allow pages of ${location.origin}.` : message;
    return make('div', { class: 'box bad' }, make('p', { class: 'verdict' }, make('b', {}, 'No answer')), make('p', {}, text));
  }
  const head = make('p', { class: 'verdict' }, make('b', {}, 'Refused'), ` HTTP ${status}`, code === undefined ? null : ` · JSON-RPC ${code}`);
  const hint = HINTS[code] ?? (status === 404 ? 'The session is gone. Connect again.' : null);
  return make('div', { class: 'box bad' }, head, make('p', {}, message), hint && make('p', { class: 'faint' }, hint), data === undefined ? null : pre(data));
}

// ---- questions

/** What each kind of question shows, and the answer it wants. */
const QUESTIONS = {
  'elicitation/create': ({ message, requestedSchema }) => ({ title: message, schema: requestedSchema, answer: content => ({ action: 'accept', content }), declined: { action: 'decline' } }),
  'sampling/createMessage': ({ messages }) => ({
    title: `What does the model say to: ${messages.map(({ content }) => content.text ?? asText(content)).join(' / ')}`,
    schema: { properties: { text: { type: 'string', title: 'The model’s words' } }, required: ['text'] },
    answer: ({ text }) => ({ role: 'assistant', model: 'you', content: { type: 'text', text } }),
  }),
  'roots/list': () => ({
    title: 'Which folder do you work in?',
    schema: { properties: { uri: { type: 'string', title: 'A file URI', pattern: 'file://.*', default: 'file:///home/you' } }, required: ['uri'] },
    answer: ({ uri }) => ({ roots: [{ uri }] }),
  }),
};

const INPUTS = 'input, select, textarea, button';

function asked({ method, params }, signal) {
  const question = QUESTIONS[method]?.(params ?? {});
  if (!question) return Promise.reject(Object.assign(new Error('Method not found'), { code: -32601 }));
  return new Promise((resolve, reject) => {
    const { elements, read } = formOf(question.schema);
    const form = make('form', { class: 'question', 'aria-label': 'A question of the server' });
    const done = (settle, value) => {
      const hadFocus = form.contains(document.activeElement);
      form.remove();
      if (hadFocus) ($('questions').querySelector(INPUTS) ?? $('cancel'))?.focus();
      settle(value);
    };
    const decline = () => (question.declined ? done(resolve, question.declined) : done(reject, new Error('The user declined.')));
    const no = make('button', { type: 'button', class: 'quiet', onclick: decline }, 'Decline');
    form.append(make('p', { class: 'verdict' }, make('b', {}, 'The server asks')), make('p', {}, question.title), ...elements, make('div', { class: 'buttons' }, make('button', {}, 'Answer'), no));
    form.addEventListener('submit', event => { event.preventDefault(); done(resolve, question.answer(read())); });
    signal?.addEventListener('abort', () => done(reject, new Error('The question was taken back.')), { once: true });
    $('run').hidden = false;
    $('questions').append(form);
    if ($('questions').firstElementChild === form) form.querySelector(INPUTS).focus();
  });
}

// ---- the log of messages

/** The method of each request that was sent or received, for the title of its answer. */
const methods = { sent: new Map(), received: new Map() };

function log(direction, { title, status, headers, message }) {
  const arrow = make('span', { class: direction, 'aria-label': direction, role: 'img' }, direction === 'sent' ? '→' : '←');
  const { id, method } = message ?? {};
  if (method && id !== undefined) methods[direction].set(id, method);
  const request = method ?? methods[direction === 'sent' ? 'received' : 'sent'].get(id);
  const facts = [request !== title && request, id !== undefined && `id ${id}`, status >= 300 && status].filter(Boolean).join(' · ');
  const summary = make('summary', {}, arrow, make('code', {}, title), make('small', {}, facts), make('time', {}, clock()));
  const head = headers && pre(Object.entries(headers).map(([name, value]) => `${name}: ${value}`).join('\n'));
  $('log').prepend(make('li', { class: status >= 300 || message?.error ? 'bad' : undefined }, make('details', {}, summary, head, message === undefined ? null : pre(message))));
  trim($('log'), MAX_LOG);
}

const pre = value => make('pre', { tabindex: 0 }, typeof value === 'string' ? value : JSON.stringify(value, null, 2));
const asText = value => (typeof value === 'string' ? value : JSON.stringify(value));
const clock = () => new Date().toLocaleTimeString([], { hour12: false });

function trim(list, most) {
  while (list.children.length > most) list.lastElementChild.remove();
}

// ---- the start

function start() {
  const wanted = new URLSearchParams(location.search);
  const own = new URL('mcp', location.href).href;
  $('server').value = wanted.get('server') ?? own;
  const input = document.querySelector(`[name=era][value="${CSS.escape(wanted.get('era') ?? 'modern')}"]`);
  if (input) input.checked = true;
  $('connection').onsubmit = event => { event.preventDefault(); connect(); };
  for (const each of document.getElementsByName('era')) each.onchange = connect;
  for (const each of document.getElementsByName('kind')) each.onchange = () => { kind = each.value; showItems(); };
  $('filter').oninput = showItems;
  $('clear').onclick = () => $('log').replaceChildren();
  // To a server that a link names, only the visitor connects.
  if ($('server').value === own) connect();
}

start();
