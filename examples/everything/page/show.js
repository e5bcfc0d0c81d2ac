// How things look: a result, a refusal, a message in the log.

import { Refused } from './wire.js';
import { make } from './forms.js';

const HINTS = {
  '-32020': 'A header and the body disagree.',
  '-32021': 'This page has not declared a capability that the request needs.',
  '-32022': 'The server does not serve this revision.',
  '-32601': 'The server does not know this method.',
  '-32602': 'The server does not accept the parameters.',
};

const json = value => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));
const pre = value => (value === undefined ? null : make('pre', { tabindex: 0 }, json(value)));
const box = (mood, ...children) => make('div', { class: `box ${mood}` }, ...children);

export const asText = value => (typeof value === 'string' ? value : JSON.stringify(value));
export const clock = () => new Date().toLocaleTimeString([], { hour12: false });
export const verdict = (title, rest = '') => make('p', { class: 'verdict' }, make('b', {}, title), rest);

/** What a call returned: of a tool, a prompt or a resource. */
export function outcome(result, took) {
  const blocks = result.content ?? result.messages?.map(({ content }) => content) ?? result.contents ?? [];
  const head = verdict(result.isError ? 'The tool failed' : 'Result', ` after ${took}`);
  const raw = make('details', {}, make('summary', {}, 'As JSON'), pre(result));
  return box(result.isError ? 'bad' : 'good', head, blocks.map(content), raw);
}

function content(block) {
  const { type, text, blob, mimeType = '' } = block.resource ?? block;
  const data = `data:${mimeType};base64,${blob ?? block.data}`;
  if (text !== undefined) return make('p', { class: 'text' }, text);
  if (mimeType.startsWith('image/')) return make('img', { src: data, alt: `A picture, ${mimeType}` });
  if (mimeType.startsWith('audio/')) return make('audio', { src: data, controls: true });
  return make('p', { class: 'text' }, `${type}: ${asText(block)}`);
}

/** Why there is no result, and who says so. */
export function refusal(error, url) {
  const { status, code, data, message } = error;
  // The browser does not tell a page more than this.
  const unread =
    `The browser got no answer that it may show. Either nothing listens at ${url}, ` +
    `or the server does not allow pages of ${location.origin}.`;
  if (error instanceof TypeError) return box('bad', verdict('No answer'), make('p', {}, unread));
  if (!(error instanceof Refused)) return box('bad', verdict('No answer'), make('p', {}, message));
  const facts = ` HTTP ${status}${code === undefined ? '' : ` · JSON-RPC ${code}`}`;
  const hint = HINTS[code] ?? (status === 404 ? 'The session is gone. Connect again.' : '');
  return box('bad', verdict('Refused', facts), make('p', {}, message), make('p', { class: 'faint' }, hint), pre(data));
}

/** The method of each request that was sent or received, for the title of its answer. */
const methods = { sent: new Map(), received: new Map() };

/** A message, or what else went over the wire, to be unfolded. */
export function logged(direction, { title, status, headers, message }) {
  const isSent = direction === 'sent';
  const { id, method } = message ?? {};
  if (method && id !== undefined) methods[direction].set(id, method);
  const request = method ?? methods[isSent ? 'received' : 'sent'].get(id);
  const facts = [request !== title && request, id !== undefined && `id ${id}`, status >= 300 && status].filter(Boolean);
  const head = headers && Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const summary = make(
    'summary',
    {},
    make('span', { class: direction, 'aria-label': direction, role: 'img' }, isSent ? '→' : '←'),
    make('code', {}, title),
    make('small', {}, facts.join(' · ')),
    make('time', {}, clock()),
  );
  const mood = status >= 300 || message?.error ? 'bad' : undefined;
  return make('li', { class: mood }, make('details', {}, summary, pre(head?.join('\n')), pre(message)));
}
