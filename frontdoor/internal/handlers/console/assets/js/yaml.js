// Writes objects as YAML. The server reads the YAML that users write.

// plain matches the strings that need no quotes: no other type, comment or indicator can be
// read from them.
const plain = /^[A-Za-z_][\w./@+=() -]*(:[\w./@+=()-][\w./@+=() -]*)*$/;
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const special = /^(true|false|null|yes|no|on|off|y|n|~)$/i;

// breaks are the line breaks and marks that YAML sees where JSON sees text.
const breaks = /[\u0085\u2028\u2029\ufeff]/g;

function scalar(value) {
  if (typeof value !== 'string') return JSON.stringify(value);
  if (uuid.test(value)) return value;
  if (plain.test(value) && !special.test(value) && !value.endsWith(' ')) return value;
  return JSON.stringify(value).replace(breaks, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

// block reports whether a string is written as lines of its own.
const block = (value) => typeof value === 'string' && /^[^\s].*\n/.test(value) && !/[ \t]\n|[^\n\t\x20-\x7e\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]|\n\n$/.test(value);

function lines(value, indent) {
  if (Array.isArray(value)) {
    if (!value.length) return [' []'];
    return ['', ...value.flatMap((item) => {
      const [first, ...rest] = lines(item, `${indent}  `);
      if (first === '' && !Array.isArray(item)) return [`${indent}- ${rest[0].trimStart()}`, ...rest.slice(1)];
      return [`${indent}-${first}`, ...rest];
    })];
  }
  if (value && typeof value === 'object') {
    const keys = Object.keys(value).filter((key) => value[key] !== undefined).sort();
    if (!keys.length) return [' {}'];
    return ['', ...keys.flatMap((key) => {
      const [first, ...rest] = lines(value[key], Array.isArray(value[key]) ? indent : `${indent}  `);
      return [`${indent}${scalar(key)}:${first}`, ...rest];
    })];
  }
  if (!block(value)) return [` ${scalar(value)}`];
  const text = value.endsWith('\n') ? value.slice(0, -1) : value;
  return [value.endsWith('\n') ? ' |' : ' |-', ...text.split('\n').map((l) => (l ? indent + l : ''))];
}

// toYAML returns an object as a document, its keys sorted.
export const toYAML = (object) => `${lines(object, '').slice(1).join('\n')}\n`;

// shown returns the YAML of an object without its managed fields, which have a tab of their
// own. A PUT without them keeps what the server has.
export const shown = (object) => toYAML({ ...object, metadata: { ...object.metadata, managedFields: undefined } });
