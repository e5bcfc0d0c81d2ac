// Forms made from JSON Schema: of a tool's arguments, and of what a server asks its user for.

let fields = 0;

/** Makes an element. A child is a node or a text; null is left out. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined));
  return element;
}

/** A form's inputs, and a function that reads them: { elements, read }. */
export function formOf(schema) {
  const required = new Set(schema?.required ?? []);
  const inputs = Object.entries(schema?.properties ?? {}).map(([name, property]) =>
    fieldOf(name, property, required.has(name)),
  );
  const read = () =>
    Object.fromEntries(inputs.map(({ name, value }) => [name, value()]).filter(([, value]) => value !== undefined));
  return { elements: inputs.map(({ element }) => element), read };
}

function fieldOf(name, property, isRequired) {
  const id = `field-${++fields}`;
  const hint = property.description && make('small', { id: `${id}-hint` }, property.description);
  const common = { id, name, required: isRequired, 'aria-describedby': hint && `${id}-hint` };
  const title = property.title ?? name;
  const options = optionsOf(property.type === 'array' ? (property.items ?? {}) : property);
  if (property.type === 'array' && options)
    return { name, ...checkboxes(id, title, hint, options, property, isRequired) };
  if (property.type === 'boolean') return { name, ...checkbox(common, title, hint, property, isRequired) };
  const { input, value } = options ? select(common, options, property) : inputOf(common, property);
  const label = make('label', { for: id }, title, isRequired ? null : make('small', {}, ' optional'));
  return { name, element: make('div', { class: 'field' }, label, hint, input), value };
}

/** What one can choose from, in each of the ways a schema says so: [[value, title]]. */
function optionsOf({ enum: values, enumNames: names, oneOf, anyOf }) {
  if (values) return values.map((value, at) => [value, names?.[at] ?? value]);
  const titled = oneOf ?? anyOf;
  return titled?.every(option => 'const' in option)
    ? titled.map(option => [option.const, option.title ?? option.const])
    : null;
}

function select(common, options, property) {
  const chosen = options.findIndex(([value]) => value === property.default);
  const empty = make('option', { value: '' }, 'Choose …');
  const all = options.map(([, title], at) => make('option', { value: at, selected: at === chosen }, String(title)));
  const input = make('select', common, empty, all);
  return { input, value: () => (input.value === '' ? undefined : options[Number(input.value)][0]) };
}

function checkboxes(id, title, hint, options, property, isRequired) {
  const boxes = options.map(([value], at) =>
    make('input', { id: `${id}-${at}`, type: 'checkbox', checked: property.default?.includes(value) }),
  );
  const rows = options.map(([, text], at) =>
    make('label', { class: 'check', for: boxes[at].id }, boxes[at], String(text)),
  );
  const value = () => {
    const chosen = options.filter((_, at) => boxes[at].checked).map(([each]) => each);
    return chosen.length || isRequired ? chosen : undefined;
  };
  return { element: make('fieldset', { class: 'field' }, make('legend', {}, title), hint, rows), value };
}

function checkbox({ required, ...common }, title, hint, property, isRequired) {
  const box = make('input', { ...common, type: 'checkbox', checked: property.default === true });
  const value = () => (box.checked || isRequired || 'default' in property ? box.checked : undefined);
  return {
    element: make('div', { class: 'field' }, make('label', { class: 'check', for: common.id }, box, title), hint),
    value,
  };
}

function inputOf(common, property) {
  if (property.type === 'integer' || property.type === 'number') return number(common, property);
  return property.type === 'string' ? line(common, property) : json(common, property);
}

function number(common, { type, minimum, maximum, default: preset }) {
  const range = { min: minimum, max: maximum, step: type === 'integer' ? 1 : 'any' };
  const input = make('input', { ...common, type: 'number', ...range, value: preset });
  return { input, value: () => (input.value === '' ? undefined : input.valueAsNumber) };
}

/** An empty text that is required is a text. */
function line(common, { format, minLength, maxLength, pattern, default: preset }) {
  const types = { email: 'email', uri: 'url', date: 'date' };
  const attributes = { minlength: minLength, maxlength: maxLength, pattern, value: preset, autocomplete: 'off' };
  const input = make('input', { ...common, type: types[format] ?? 'text', ...attributes });
  return { input, value: () => (input.value === '' && !common.required ? undefined : input.value) };
}

/** Whatever has no input of its own is written as JSON. */
function json(common, property) {
  const preset = 'default' in property ? JSON.stringify(property.default) : '';
  const input = make('textarea', { ...common, rows: 3, placeholder: 'JSON', spellcheck: 'false' }, preset);
  const parsed = () => (input.value.trim() === '' ? undefined : JSON.parse(input.value));
  input.addEventListener('input', () => {
    input.setCustomValidity('');
    try {
      parsed();
    } catch {
      input.setCustomValidity('This is not JSON.');
    }
  });
  return { input, value: parsed };
}
