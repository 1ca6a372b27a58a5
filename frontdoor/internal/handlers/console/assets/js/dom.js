// Builds elements. Text is always a text node: nothing in the console parses HTML.

// h returns an element. Attributes that begin with "on" are listeners; false, null and
// undefined leave an attribute out.
export function h(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
    else if (name === 'value') e.value = value;
    else e.setAttribute(name, value === true ? '' : value);
  }
  e.append(...children.flat(3).filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

// note returns a message: kind is "", "warn" or "bad". Errors are announced at once.
export function note(text, kind = '') {
  return h('p', { class: `note ${kind}`, role: kind === 'bad' ? 'alert' : 'status' }, text);
}

// table returns a plain table: columns are [title, cell of a row, is it a number].
export function table(label, columns, rows, empty = 'Nothing here.') {
  if (!rows.length) return h('p', { class: 'quiet' }, empty);
  return h('div', { class: 'wide' }, h('table', { class: 'plain', 'aria-label': label },
    h('thead', {}, h('tr', {}, columns.map(([title, , number]) => h('th', { scope: 'col', class: number && 'number' }, title)))),
    h('tbody', {}, rows.map((row) => h('tr', {}, columns.map(([, cell, number]) => h('td', { class: number && 'number' }, cell(row) ?? '')))))));
}

// ask shows a dialog and returns a promise of the value of the button that closed it, or ''.
export function ask(title, content, ...buttons) {
  return new Promise((resolve) => {
    const d = h('dialog', { 'aria-label': title, onclose: () => { d.remove(); resolve(d.returnValue); } },
      h('form', { method: 'dialog' }, h('h2', {}, title), content,
        h('div', { class: 'bar' }, buttons.map(([label, value, kind]) => h('button', { value, class: kind, autofocus: value === '' }, label)))));
    document.body.append(d);
    d.showModal();
  });
}

// age returns the time since a date as kubectl writes it: 90s, 5m, 3h, 12d.
export function age(from, now = Date.now()) {
  const s = Math.max(0, Math.round((now - Date.parse(from)) / 1000));
  if (!Number.isFinite(s)) return '';
  if (s < 120) return `${s}s`;
  if (s < 600) return `${Math.floor(s / 60)}m${s % 60 ? `${s % 60}s` : ''}`;
  if (s < 3 * 3600) return `${Math.floor(s / 60)}m`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)}h`;
  return `${Math.floor(s / 86400)}d`;
}

// bytes returns a size with its unit.
export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
  return `${i && n < 10 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}
