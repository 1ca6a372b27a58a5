// The objects of a type as a Table that follows its watch.
import { h, note, age } from '../dom.js';
import { Grid } from '../grid.js';
import { getJSON, listPath, settings, tableOf, watch } from '../api.js';
import { listHref, objectHref } from '../types.js';

const chunk = 500;

export async function listView(view, type) {
  const { main, signal, query } = view;
  const namespace = type.namespaced ? query.get('ns') ?? '' : '';
  const grid = new Grid(type.resource);
  const older = setInterval(() => grid.change(), 10000); // ages grow
  signal.addEventListener('abort', () => { clearInterval(older); grid.close(); });
  const state = h('span', { class: 'quiet', role: 'status' });
  const said = h('div');
  const filter = h('input', { id: 'filter', type: 'search', placeholder: 'Filter (/)', 'aria-label': 'Filter', value: query.get('q') ?? '', oninput: () => { grid.setFilter(filter.value); keep(); } });
  const selector = h('input', { type: 'search', placeholder: 'Labels: app=web,tier!=db', 'aria-label': 'Label selector', value: query.get('l') ?? '', onchange: () => go() });
  const spaces = type.namespaced && h('select', { 'aria-label': 'Namespace', onchange: () => go() }, h('option', { value: '' }, 'all namespaces'), namespace && h('option', { value: namespace, selected: true }, namespace));
  const address = () => {
    const q = new URLSearchParams();
    if (spaces?.value) q.set('ns', spaces.value);
    if (selector.value) q.set('l', selector.value);
    if (filter.value) q.set('q', filter.value);
    if (grid.sort.column || grid.sort.down) q.set('s', `${grid.sort.column}${grid.sort.down ? 'd' : ''}`);
    return `${listHref(type)}${q.size ? `?${q}` : ''}`;
  };
  const go = () => { location.hash = address(); };
  const keep = () => history.replaceState(null, '', address()); // without showing the view again
  grid.sort = { column: parseInt(query.get('s'), 10) || 0, down: query.get('s')?.endsWith('d') ?? false };
  grid.sorted = keep;
  main.replaceChildren(
    h('div', { class: 'bar' }, h('h1', {}, type.resource), state, h('span', { class: 'space' }), spaces, selector, filter),
    said, grid.element);
  if (spaces) fillNamespaces(spaces, namespace, view);
  grid.counted = (shown, all) => { state.textContent = shown === all ? `${all}` : `${shown} of ${all}`; };
  grid.setFilter(filter.value);

  const path = listPath(type, namespace);
  const options = { ...(query.get('l') && { labelSelector: query.get('l') }) };
  const put = rowsOf(grid, type, namespace);
  for (;;) {
    let resourceVersion;
    try {
      resourceVersion = await readAll(path, options, signal, put, grid, said);
    } catch (err) {
      if (err.code !== 403 || !type.namespaced || namespace) throw err;
      said.replaceChildren(note(`${err.message}. Choose a namespace in which you may list ${type.resource}.`, 'warn'));
      return;
    }
    grid.empty = `There are no ${type.resource}${namespace ? ` in namespace ${namespace}` : ''}.`;
    grid.change();
    if (!type.verbs.includes('watch')) return;
    try {
      await watch(path, options, resourceVersion, tableOf(), signal, (event) => {
        for (const row of event.object.rows ?? []) {
          if (event.type === 'DELETED') grid.delete(idOf(row.object.metadata)); else put(row, true, event.object.columnDefinitions);
        }
      });
    } catch (err) {
      if (err.code !== 410) {
        said.replaceChildren(note(`This list no longer follows changes: ${err.message}`, 'bad'));
        return;
      }
    }
    if (signal.aborted) return;
  }
}

const idOf = (metadata) => `${metadata.namespace ?? ''}/${metadata.name}`;

// readAll reads the list chunk by chunk and returns its resourceVersion. Rows that are gone
// leave the grid.
async function readAll(path, options, signal, put, grid, said) {
  const seen = new Set();
  let next = '', columns;
  for (;;) {
    const q = new URLSearchParams({ ...options, limit: chunk });
    if (next) q.set('continue', next);
    let list;
    try {
      list = await getJSON(`${path}?${q}`, { accept: tableOf(), signal });
    } catch (err) {
      if (err.code !== 410 || !next) throw err;
      next = ''; // the continue token has expired
      continue;
    }
    columns = list.columnDefinitions ?? columns;
    if (columns) put.columns(columns);
    for (const row of list.rows ?? []) {
      put(row, false, columns);
      seen.add(idOf(row.object.metadata));
    }
    if (!columns) said.replaceChildren(note('The server returns no Table for this type.', 'warn'));
    next = list.metadata?.continue;
    if (next) continue;
    for (const id of grid.rows.keys()) if (!seen.has(id)) grid.delete(id);
    return list.metadata?.resourceVersion ?? '';
  }
}

// rowsOf returns the function that puts a row of a Table into the grid, and sets the
// columns with the first one. Rows keep no managedFields.
function rowsOf(grid, type, namespace) {
  let indices;
  const set = (columns) => {
    const narrow = matchMedia('(max-width: 46rem)').matches;
    indices = columns.map((c, i) => [c, i]).filter(([c]) => !c.priority).slice(0, narrow ? 2 : undefined);
    const shown = indices.map(([c, i], n) => ({
      name: c.name, title: c.description || c.name,
      width: c.format === 'name' ? `minmax(${narrow ? 8 : 11}rem, 3fr)` : `minmax(${narrow ? 3.5 : 5}rem, 1fr)`,
      ...(c.name === 'Age' && { key: (row) => -Date.parse(row.created), text: (row) => age(row.created) }),
      ...((c.type === 'integer' || c.type === 'number') && { key: (row) => Number(row.cells[n + (type.namespaced && !namespace ? 1 : 0)]) }),
    }));
    if (type.namespaced && !namespace) shown.unshift({ name: 'Namespace', title: 'Namespace', width: `minmax(${narrow ? 5 : 7}rem, 1fr)` });
    grid.setColumns(shown);
  };
  const put = (row, fresh, columns) => {
    if (columns) put.columns(columns);
    const m = row.object.metadata;
    const cells = (indices ?? []).map(([, i]) => row.cells[i] ?? '');
    if (type.namespaced && !namespace) cells.unshift(m.namespace);
    grid.set({ id: idOf(m), cells, fresh, created: m.creationTimestamp, href: objectHref(type, m.namespace, m.name) });
  };
  put.columns = (columns) => { if (!indices) set(columns); };
  return put;
}

async function fillNamespaces(select, chosen, { signal }) {
  const accept = `application/json;as=PartialObjectMetadataList;v=v1;g=${settings.groups.meta},application/json`;
  try {
    const list = await getJSON('/api/v1/namespaces?limit=1000', { accept, signal });
    for (const { metadata: { name } } of list.items) if (name !== chosen) select.append(h('option', { value: name }, name));
  } catch (err) {
    if (err.code !== 403) return;
    // Who may not list namespaces writes the name.
    const input = h('input', { 'aria-label': 'Namespace', placeholder: 'Namespace', value: chosen, onchange: select.onchange });
    input.addEventListener('change', () => { select.append(h('option', { value: input.value, selected: true })); select.value = input.value; select.dispatchEvent(new Event('change')); });
    select.before(input);
    select.hidden = true;
  }
}
