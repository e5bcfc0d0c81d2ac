// What 2026-07-28 mirrors from the body into headers.

/** A value as a header can carry it (2026-07-28): Base64 where it is not plain ASCII, or looks like such Base64. */
export function headerValue(value) {
  const text = String(value);
  const isPlain = /^[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?$/.test(text) || text === '';
  if (isPlain && !(text.startsWith('=?base64?') && text.endsWith('?='))) return text;
  const bytes = new TextEncoder().encode(text);
  return `=?base64?${btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(''))}?=`;
}

/** The `x-mcp-header` annotations of a schema, with the paths of their arguments; null where one breaks the rules. */
export function annotations(schema) {
  const found = [];
  const visit = (node, path) => {
    for (const [key, property] of Object.entries(node?.properties ?? {})) {
      if (typeof property?.['x-mcp-header'] === 'string') found.push([property, [...path, key]]);
      visit(property, [...path, key]);
    }
  };
  visit(schema, []);
  const names = found.map(([property]) => property['x-mcp-header']);
  const isGood = found.every(
    ([{ type, 'x-mcp-header': name }]) =>
      ['string', 'integer', 'boolean'].includes(type) && /^[-!#$%&'*+.^_`|~\w]+$/.test(name),
  );
  const isUnique = new Set(names.map(name => name.toLowerCase())).size === names.length;
  // One that no chain of `properties` leads to is not in `found`.
  return isGood && isUnique && annotated(schema) === found.length
    ? found.map(([, path], at) => [names[at], path])
    : null;
}

function annotated(node) {
  if (typeof node !== 'object' || node === null) return 0;
  const below = Object.values(node).reduce((sum, child) => sum + annotated(child), 0);
  return below + (typeof node['x-mcp-header'] === 'string' ? 1 : 0);
}
