// The two ways to talk to an MCP server over HTTP. Both classes have the same face:
//
//   connect()                      what the server says of itself
//   request(method, params, call)  the result; call: { signal, heard, schema }
//   listen(uris, stream)           changes, until the stream ends; stream: { opened, heard }
//   close()
//
// hooks: { log(direction, { title, status, headers, message }), asked(request, signal) }. `asked` returns what the user
// says, or throws.

import { annotations, headerValue } from './headers.js';

const META = 'io.modelcontextprotocol/';
const ABOUT = { name: 'everything-page', version: '1' };
const CAPABILITIES = { elicitation: { form: {} }, sampling: {}, roots: {} };
const MAX_ROUNDS = 20;
const MAX_PAGES = 20;

/** The server, or the browser in its name, said no. */
export class Refused extends Error {
  constructor(status, error) {
    super(error?.message ?? `HTTP ${status}`);
    Object.assign(this, { status, code: error?.code, data: error?.data });
  }
}

class Client {
  #ids = 0;
  #closed = new AbortController();

  constructor(url, hooks) {
    Object.assign(this, { url, hooks });
  }

  get closed() {
    return this.#closed.signal;
  }

  close() {
    this.#closed.abort();
  }

  nextId() {
    return ++this.#ids;
  }

  async list(what) {
    const all = [];
    let cursor;
    for (let page = 0; page < MAX_PAGES && cursor !== null; page += 1) {
      const result = await this.request(`${what}/list`, cursor ? { cursor } : {});
      all.push(...result[what]);
      cursor = result.nextCursor ?? null;
    }
    return all;
  }

  /** Sends a message, and returns the answer with its head. */
  async send(verb, headers, message, signal) {
    const accept = verb === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream';
    const all = { Accept: accept, ...(message && { 'Content-Type': 'application/json' }), ...headers };
    this.hooks.log('sent', { title: message?.method ?? (message ? 'answer' : verb), headers: all, message });
    const signals = [signal, verb === 'DELETE' ? null : this.closed].filter(Boolean);
    const body = message && JSON.stringify(message);
    const response = await fetch(this.url, { method: verb, headers: all, body, signal: AbortSignal.any(signals) });
    const type = response.headers.get('Content-Type') ?? 'nothing';
    if (!response.ok || type === 'nothing') {
      const text = await response.text();
      const error = parse(text);
      this.hooks.log('received', {
        title: error ? titleOf(error) : `HTTP ${response.status}`,
        status: response.status,
        message: error ?? text,
      });
      if (!response.ok) throw new Refused(response.status, error?.error);
    }
    return response;
  }

  /** The messages of an answer, one by one, whichever way it travels. */
  async *messages(response) {
    const type = response.headers.get('Content-Type') ?? '';
    const all = type.startsWith('text/event-stream') ? events(response.body) : whole(response);
    for await (const event of all) {
      const { message } = event;
      if (message) this.hooks.log('received', { title: titleOf(message), status: response.status, message });
      yield event;
    }
  }

  /** Takes what is the answer out of a message; else tells whoever listens. */
  take(message, id, heard, status) {
    if (message.method) {
      heard?.(message);
    } else if (message.id === id) {
      if (message.error) throw new Refused(status, message.error);
      return message.result;
    }
    return undefined;
  }
}

/** 2026-07-28: every request says all there is to know, and leaving is how one cancels. */
export class Modern extends Client {
  revision = '2026-07-28';

  connect() {
    return this.request('server/discover', {}).then(result => ({
      ...result,
      serverInfo: result._meta?.[`${META}serverInfo`],
    }));
  }

  /** A tool whose annotations are broken must not be called. */
  async list(what) {
    const all = await super.list(what);
    const bad = what === 'tools' ? all.filter(tool => !annotations(tool.inputSchema)) : [];
    for (const { name } of bad)
      console.warn(`The tool ${name} is left out: its x-mcp-header annotations break the rules.`);
    return all.filter(item => !bad.includes(item));
  }

  async request(method, params, call = {}) {
    let round = {};
    for (let rounds = 0; rounds < MAX_ROUNDS; rounds += 1) {
      const result = await this.#once(method, { ...params, ...round }, call);
      if (result.resultType !== 'input_required') return result;
      round = await this.#answer(result, call.signal);
    }
    throw new Error(`The server asks for more after ${MAX_ROUNDS} rounds.`);
  }

  async listen(uris, { opened, heard }) {
    const notifications = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
    if (uris.length) notifications.resourceSubscriptions = uris;
    const hear = message => (message.method === 'notifications/subscriptions/acknowledged' ? opened() : heard(message));
    await this.#once('subscriptions/listen', { notifications }, { heard: hear });
  }

  async #once(method, params, { signal, heard, schema }) {
    const id = this.nextId();
    const _meta = {
      [`${META}protocolVersion`]: this.revision,
      [`${META}clientInfo`]: ABOUT,
      [`${META}clientCapabilities`]: CAPABILITIES,
      ...(heard && { progressToken: id, [`${META}logLevel`]: 'info' }),
    };
    const message = { jsonrpc: '2.0', id, method, params: { ...params, _meta } };
    const response = await this.send('POST', this.#headers(method, params, schema), message, signal);
    for await (const { message } of this.messages(response)) {
      const result = message && this.take(message, id, heard, response.status);
      if (result) return result;
    }
    throw new Error('The server broke off its answer.');
  }

  /** What a proxy may want to know without reading the body. */
  #headers(method, params, schema) {
    const headers = { 'MCP-Protocol-Version': this.revision, 'Mcp-Method': method };
    const name = method === 'resources/read' ? params.uri : params.name;
    if (['tools/call', 'prompts/get', 'resources/read'].includes(method)) headers['Mcp-Name'] = headerValue(name);
    for (const [header, path] of annotations(schema) ?? []) {
      const value = path.reduce((object, key) => object?.[key], params.arguments);
      if (value !== undefined && value !== null) headers[`Mcp-Param-${header}`] = headerValue(value);
    }
    return headers;
  }

  async #answer({ inputRequests = {}, requestState }, signal) {
    const asked = Object.entries(inputRequests).map(async ([key, request]) => [
      key,
      await this.hooks.asked(request, signal),
    ]);
    const inputResponses = Object.fromEntries(await Promise.all(asked));
    return { ...(asked.length && { inputResponses }), ...(requestState !== undefined && { requestState }) };
  }
}

/** 2025-11-25: a handshake, a session, and requests in both directions. */
export class Legacy extends Client {
  revision = '2025-11-25';
  session = null;
  #headers = {};
  #questions = new Map();
  #lastChange = null;

  async connect() {
    const params = { protocolVersion: this.revision, capabilities: CAPABILITIES, clientInfo: ABOUT };
    const result = await this.request('initialize', params, { greeted: response => this.#greeted(response) });
    this.revision = result.protocolVersion;
    this.#headers['MCP-Protocol-Version'] = this.revision;
    await this.notify('notifications/initialized');
    return result;
  }

  #greeted(response) {
    this.session = response.headers.get('Mcp-Session-Id');
    if (this.session) this.#headers['Mcp-Session-Id'] = this.session;
  }

  close() {
    super.close();
    if (this.session) this.send('DELETE', this.#headers).catch(() => {});
  }

  notify(method, params) {
    return this.send('POST', this.#headers, { jsonrpc: '2.0', method, ...(params && { params }) });
  }

  async request(method, params, { signal, heard, greeted } = {}) {
    signal?.throwIfAborted();
    const id = this.nextId();
    const message = {
      jsonrpc: '2.0',
      id,
      method,
      params: { ...params, ...(heard && { _meta: { progressToken: id } }) },
    };
    // The connection stays: in a session, who leaves may come back.
    const cancel = () =>
      this.notify('notifications/cancelled', { requestId: id, reason: 'The user cancelled.' }).catch(() => {});
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      const response = await this.send('POST', this.#headers, message);
      greeted?.(response);
      return await this.#answerTo(id, response, heard, signal);
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  /** Reads the answer, and fetches the rest of it where the connection ends before. */
  async #answerTo(id, response, heard, signal) {
    let last;
    let wait = 1000;
    for (;;) {
      for await (const event of this.messages(response)) {
        last = event.id ?? last;
        wait = event.retry ?? wait;
        const result = event.message && this.take(event.message, id, heard, response.status);
        if (result) return result;
      }
      signal?.throwIfAborted();
      if (!last) throw new Error('The server broke off its answer.');
      await new Promise(resolve => {
        setTimeout(resolve, wait);
      });
      response = await this.send('GET', { ...this.#headers, 'Last-Event-ID': last });
    }
  }

  take(message, id, heard, status) {
    if (message.method && message.id !== undefined) this.#asked(message);
    else if (message.method === 'notifications/cancelled') this.#questions.get(message.params.requestId)?.abort();
    else return super.take(message, id, heard, status);
    return undefined;
  }

  /** A request of the server's own: on whichever stream it comes, the answer is a POST. */
  async #asked({ id, method, params }) {
    const taken = new AbortController();
    this.#questions.set(id, taken);
    const signal = AbortSignal.any([taken.signal, this.closed]);
    const answer = await (method === 'ping' ? Promise.resolve({}) : this.hooks.asked({ method, params }, signal)).then(
      result => ({ result }),
      error => ({ error: { code: error.code ?? -1, message: error.message } }),
    );
    this.#questions.delete(id);
    if (!signal.aborted) await this.send('POST', this.#headers, { jsonrpc: '2.0', id, ...answer }).catch(() => {});
  }

  async listen(uris, { opened, heard }) {
    for (const uri of uris) await this.request('resources/subscribe', { uri });
    const from = this.#lastChange && { 'Last-Event-ID': this.#lastChange };
    const response = await this.send('GET', { ...this.#headers, ...from });
    opened();
    for await (const { id, message } of this.messages(response)) {
      this.#lastChange = id ?? this.#lastChange;
      if (message) this.take(message, null, heard, response.status);
    }
  }
}

/** An event stream as it arrives: { id, retry, message }. */
async function* events(body) {
  let rest = '';
  for await (const chunk of chunks(body.pipeThrough(new TextDecoderStream()))) {
    const blocks = (rest + chunk).split(/\r?\n\r?\n/);
    rest = blocks.pop();
    yield* blocks.map(event);
  }
}

function event(block) {
  const fields = block.split(/\r?\n/).map(line => /^(\w+): ?(.*)$/.exec(line)?.slice(1) ?? []);
  const all = wanted => fields.filter(([name]) => name === wanted).map(([, value]) => value);
  const [id, retry, data] = [all('id').at(-1), all('retry').at(-1), all('data').join('\n')];
  return { id, retry: retry && Number(retry), message: data ? JSON.parse(data) : undefined };
}

/** Not every browser lets a stream be iterated. */
async function* chunks(stream) {
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function* whole(response) {
  const text = await response.text();
  if (text) yield { message: JSON.parse(text) };
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function titleOf(message) {
  if (message.method) return message.method;
  return message.error ? `error ${message.error.code}` : (message.result?.resultType ?? 'result');
}
