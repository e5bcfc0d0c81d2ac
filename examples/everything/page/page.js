// The page: what is chosen, what runs, what is heard. How to talk to the server is in wire.js.

import { Legacy, Modern, Refused } from './wire.js';
import { formOf, make } from './forms.js';
import { ask } from './questions.js';
import { asText, clock, logged, outcome, refusal } from './show.js';

const MAX_LOG = 300;
const MAX_EVENTS = 100;
const MS_TO_RECONNECT = 2000;

/** What can be listed, and how one of them is used. */
const KINDS = {
  tools: {
    title: 'Tools',
    verb: 'Call',
    method: 'tools/call',
    schema: tool => tool.inputSchema,
    params: ({ name }, args) => ({ name, arguments: args }),
  },
  prompts: {
    title: 'Prompts',
    verb: 'Get',
    method: 'prompts/get',
    schema: promptSchema,
    params: ({ name }, args) => ({ name, arguments: args }),
  },
  resources: {
    title: 'Resources',
    verb: 'Read',
    method: 'resources/read',
    schema: () => ({}),
    params: ({ uri }) => ({ uri }),
  },
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
    const kinds = Object.keys(KINDS).filter(each => capabilities[each]);
    await refresh(mine, kinds);
    const session = mine.session ? `session ${mine.session.slice(0, 8)}…` : 'no session';
    const server = `${serverInfo.name ?? 'a server'} ${serverInfo.version ?? ''}`;
    if (client === mine) setState('status', 'on', `Connected to ${server} · ${mine.revision} · ${session}`);
    listen(mine);
  } catch (error) {
    if (client !== mine) return;
    setState('status', 'bad', error instanceof Refused ? 'Refused.' : 'Not connected.');
    $('trouble').replaceChildren(refusal(error, mine.url));
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
  const how = mine.session ? 'on the session’s GET stream' : 'through subscriptions/listen';
  const opened = () => client === mine && setState('listening', 'on', `Listening ${how}.`);
  while (client === mine) {
    const heard = message => heardChange(mine, message);
    const ended = mine.listen(uris, { opened, heard }).then(() => new Error('The stream ended.'));
    const why = await ended.catch(error => error);
    if (client !== mine) return;
    // Who is unknown, or unwelcome, stays so.
    const isOver = [400, 403, 404, 405].includes(why.status);
    setState('listening', 'bad', `Not listening: ${why.message} ${isOver ? 'Connect again.' : 'Trying again …'}`);
    if (isOver) return;
    await new Promise(resolve => void setTimeout(resolve, MS_TO_RECONNECT));
  }
}

function heardChange(mine, { method, params }) {
  const what = method.replace('notifications/', '');
  const detail = params?.uri ?? asText(params?.data ?? '');
  prepend($('events'), make('li', {}, make('time', {}, clock()), make('b', {}, what), detail), MAX_EVENTS);
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
    const { title } = KINDS[input.value];
    input.nextElementSibling.textContent = `${title} ${offered[input.value].length || ''}`;
  }
  const wanted = $('filter').value.toLowerCase();
  const items = offered[kind].filter(({ name }) => name.toLowerCase().includes(wanted));
  const buttons = items.map(item => make('button', { type: 'button', onclick: () => choose(item) }, item.name));
  $('items').replaceChildren(...buttons.map(button => make('li', {}, button)));
  markChosen();
}

function markChosen() {
  const name = chosen?.kind === kind ? chosen.item.name : null;
  for (const button of $('items').querySelectorAll('button')) {
    button.setAttribute('aria-current', button.textContent === name);
  }
}

function choose(item) {
  chosen = { kind, item };
  markChosen();
  $('chosen').textContent = item.title ?? item.name;
  $('description').textContent = item.description ?? item.uri ?? '';
  const { elements, read } = formOf(KINDS[kind].schema(item));
  const call = make('button', { id: 'call' }, KINDS[kind].verb);
  const giveUp = { id: 'cancel', type: 'button', class: 'quiet', onclick: () => running?.abort() };
  const cancel = make('button', giveUp, 'Cancel');
  $('arguments').replaceChildren(...elements, make('div', { class: 'buttons' }, call, cancel));
  $('arguments').onsubmit = event => {
    event.preventDefault();
    if (!running) use(chosen, read());
  };
  showRunning();
  // The next press of Tab leads into the form, past all that was not chosen.
  $('chosen').focus({ preventScroll: true });
  const isBelow = $('work').getBoundingClientRect().top > $('catalogue').getBoundingClientRect().top;
  if (isBelow) $('work').scrollIntoView({ block: 'start' });
}

function promptSchema({ arguments: list = [] }) {
  const properties = list.map(({ name, ...rest }) => [name, { type: 'string', ...rest }]);
  return {
    properties: Object.fromEntries(properties),
    required: list.filter(each => each.required).map(({ name }) => name),
  };
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
    const call = { signal: running.signal, heard, schema: schema(item) };
    const result = await client.request(method, params(item, args), call);
    $('outcome').replaceChildren(outcome(result, took()));
  } catch (error) {
    const cancelled = make('p', { class: 'faint' }, `Cancelled after ${took()}.`);
    $('outcome').replaceChildren(running.signal.aborted ? cancelled : refusal(error, client.url));
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
  if (method !== 'notifications/message') return;
  $('notes').append(make('li', {}, make('b', {}, params.level), ` ${asText(params.data)}`));
}

/** The server asks: in the middle of a call, or on its own. */
function asked(question, signal) {
  $('run').hidden = false;
  return ask($('questions'), question, signal, () => $('cancel')?.focus());
}

function showProgress({ progress, total, message }) {
  $('progress').hidden = false;
  $('bar').max = total ?? 1;
  if (total === undefined) $('bar').removeAttribute('value');
  else $('bar').value = progress;
  const count = total === undefined ? progress : `${progress} of ${total}`;
  $('steps').textContent = message ? `${count} · ${message}` : count;
}

// ---- the log

function log(direction, what) {
  prepend($('log'), logged(direction, what), MAX_LOG);
}

/** Newest first; the oldest go. */
function prepend(list, row, most) {
  list.prepend(row);
  while (list.children.length > most) list.lastElementChild.remove();
}

// ---- the start

function start() {
  const wanted = new URLSearchParams(location.search);
  const own = new URL('mcp', location.href).href;
  $('server').value = wanted.get('server') ?? own;
  const input = document.querySelector(`[name=era][value="${CSS.escape(wanted.get('era') ?? 'modern')}"]`);
  if (input) input.checked = true;
  $('connection').onsubmit = event => {
    event.preventDefault();
    connect();
  };
  for (const each of document.getElementsByName('era')) each.onchange = connect;
  $('kinds').onchange = event => {
    kind = event.target.value;
    showItems();
  };
  $('filter').oninput = showItems;
  $('clear').onclick = () => $('log').replaceChildren();
  // To a server that a link names, only the visitor connects.
  if ($('server').value === own) connect();
}

start();
