// What a server asks its client, as forms.

import { formOf, make } from './forms.js';
import { asText, verdict } from './show.js';

/** What each kind of question shows, and the answer it wants. */
const QUESTIONS = {
  'elicitation/create': ({ message, requestedSchema }) => ({
    title: message,
    schema: requestedSchema,
    answer: content => ({ action: 'accept', content }),
    declined: { action: 'decline' },
  }),
  'sampling/createMessage': ({ messages }) => ({
    title: `What does the model say to: ${messages.map(({ content }) => content.text ?? asText(content)).join(' / ')}`,
    schema: { properties: { text: { type: 'string', title: 'The model’s words' } }, required: ['text'] },
    answer: ({ text }) => ({ role: 'assistant', model: 'you', content: { type: 'text', text } }),
  }),
  'roots/list': () => ({
    title: 'Which folder do you work in?',
    schema: {
      properties: { uri: { type: 'string', title: 'A file URI', pattern: 'file://.*', default: 'file:///home/you' } },
      required: ['uri'],
    },
    answer: ({ uri }) => ({ roots: [{ uri }] }),
  }),
};

const INPUTS = 'input, select, textarea, button';

/** Puts a form into `place`, and resolves to the answer. `leave` takes the focus when no question is left. */
export function ask(place, { method, params }, signal, leave) {
  const question = QUESTIONS[method]?.(params ?? {});
  if (!question) return Promise.reject(Object.assign(new Error('Method not found'), { code: -32601 }));
  return new Promise((resolve, reject) => {
    const { elements, read } = formOf(question.schema);
    const form = make('form', { class: 'question', 'aria-label': 'A question of the server' });
    const done = (settle, value) => {
      const hadFocus = form.contains(document.activeElement);
      form.remove();
      const next = place.querySelector(INPUTS);
      if (hadFocus && next) next.focus();
      else if (hadFocus) leave();
      settle(value);
    };
    const decline = () =>
      question.declined ? done(resolve, question.declined) : done(reject, new Error('The user declined.'));
    const no = make('button', { type: 'button', class: 'quiet', onclick: decline }, 'Decline');
    form.append(
      verdict('The server asks'),
      make('p', {}, question.title),
      ...elements,
      make('div', { class: 'buttons' }, make('button', {}, 'Answer'), no),
    );
    form.addEventListener('submit', event => {
      event.preventDefault();
      done(resolve, question.answer(read()));
    });
    signal?.addEventListener('abort', () => done(reject, new Error('The question was taken back.')), { once: true });
    place.append(form);
    if (place.firstElementChild === form) form.querySelector(INPUTS).focus();
  });
}
