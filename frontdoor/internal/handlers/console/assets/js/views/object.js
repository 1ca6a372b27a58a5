// One object: as YAML that can be edited, its managed fields, events and history.
import { h, note, ask, age, table } from '../dom.js';
import { diffView } from '../diff.js';
import { shown } from '../yaml.js';
import { getJSON, listPath, may, objectPath, path, request, streamLines, watch } from '../api.js';
import { listHref } from '../types.js';

// revisions bounds how many states of the object the page keeps.
const revisions = 50;

export async function objectView(view, type, namespace, name) {
  const { main, signal } = view;
  const o = { type, namespace, name, path: objectPath(type, namespace, name), signal, seen: [], said: h('div'), body: h('div', { role: 'tabpanel', id: 'panel' }) };
  o.body.style.cssText = 'display:flex;flex-direction:column;flex:1;min-height:0';
  const object = await getJSON(o.path, { signal });
  const { metadata } = object;
  if (metadata?.name !== name || (metadata.namespace ?? '') !== namespace) throw new Error('The server returned another object.');
  remember(o, object);
  const tabs = [['YAML', yamlTab], ['Managed fields', fieldsTab], ['Events', eventsTab], ['History', historyTab]];
  if (type.resource === 'pods') tabs.push(['Log', logTab]);
  let current = new AbortController();
  const bar = h('div', { role: 'tablist' }, tabs.map(([title, tab], i) => h('button', { type: 'button', role: 'tab', 'aria-controls': 'panel', 'aria-selected': String(i === 0), onclick: (e) => open(e.target, tab) }, title)));
  const open = async (button, tab) => {
    current.abort();
    current = new AbortController();
    for (const b of bar.children) b.setAttribute('aria-selected', String(b === button));
    o.tab = AbortSignal.any([signal, current.signal]);
    try {
      await tab(o);
    } catch (err) {
      if (!o.tab.aborted) o.body.replaceChildren(note(err.message, 'bad'));
    }
  };
  const remove = h('button', { type: 'button', class: 'danger', disabled: true, onclick: () => deleteObject(o) }, 'Delete');
  may('delete', type, namespace, name).then((allowed) => { remove.disabled = !allowed; }, () => {});
  main.replaceChildren(
    h('div', { class: 'bar' }, h('h1', {}, h('a', { href: listHref(type, namespace) }, type.kind), ' ', namespace && `${namespace}/`, name), h('span', { class: 'space' }), remove),
    o.said, bar, o.body);
  follow(o);
  await open(bar.firstChild, yamlTab);
}

// remember keeps a state of the object, the newest first.
function remember(o, object, past) {
  const version = object.metadata.resourceVersion;
  if (o.seen.some((s) => s.version === version)) return;
  const state = { version, object, text: shown(object), at: new Date(), past };
  if (past) o.seen.push(state); else o.seen.unshift(state);
  o.seen.length = Math.min(o.seen.length, revisions);
  if (!past) o.changed?.();
}

async function follow(o) {
  if (!o.type.verbs.includes('watch')) return;
  try {
    await watch(listPath(o.type, o.namespace), { fieldSelector: `metadata.name=${o.name}` }, o.seen[0].version, 'application/json', o.signal, (event) => {
      if (event.type === 'DELETED') {
        o.said.replaceChildren(note('This object has been deleted.', 'warn'));
        return;
      }
      remember(o, { apiVersion: o.seen[0].object.apiVersion, kind: o.seen[0].object.kind, ...event.object });
    });
  } catch (err) {
    if (err.code !== 403) o.said.replaceChildren(note(`This page no longer follows changes: ${err.message}`, 'warn'));
  }
}

// yamlTab shows the newest state until the user edits. A conflict keeps the user's text.
async function yamlTab(o) {
  let base = o.seen[0];
  const said = h('div'), rights = h('span', { class: 'quiet' });
  const area = h('textarea', { class: 'text', spellcheck: 'false', wrap: 'off', 'aria-label': 'YAML', readonly: true, value: base.text, oninput: () => edited() });
  const save = h('button', { type: 'button', class: 'first', disabled: true, onclick: () => send(false) }, 'Save');
  const check = h('button', { type: 'button', disabled: true, title: 'Send as a dry run and show what would change', onclick: () => send(true) }, 'Check');
  const reset = h('button', { type: 'button', disabled: true, onclick: () => { said.replaceChildren(); load(); } }, 'Load the newest');
  const dirty = () => area.value !== base.text;
  const edited = () => {
    save.disabled = check.disabled = area.readOnly || !dirty();
    reset.disabled = !dirty() && base === o.seen[0];
  };
  const load = () => {
    base = o.seen[0];
    area.value = base.text;
    edited();
  };
  const send = async (dry) => {
    said.replaceChildren();
    const query = new URLSearchParams({ fieldValidation: 'Strict', fieldManager: 'console', ...(dry && { dryRun: 'All' }) });
    try {
      const object = await (await request(`${o.path}?${query}`, { method: 'PUT', type: 'application/yaml', body: area.value, signal: o.tab })).json();
      if (dry) {
        said.replaceChildren(note('The request would be accepted. Changes:'), diffView(base.text, shown(object)));
        return;
      }
      area.value = base.text; // is no longer an edit
      remember(o, object);
      load();
      said.replaceChildren(note('Saved.'));
    } catch (err) {
      const changes = err.code === 409 ? await conflict() : '';
      said.replaceChildren(note(err.message, 'bad'), changes);
    }
  };
  const conflict = async () => {
    const newest = await getJSON(o.path, { signal: o.tab });
    remember(o, newest);
    const keep = () => {
      area.value = area.value.replace(/^( {2}resourceVersion: ).*$/m, `$1"${newest.metadata.resourceVersion}"`);
      said.replaceChildren(note('Saving will overwrite that change. Check shows the difference.', 'warn'));
      edited();
    };
    return h('div', {}, h('p', {}, 'Another client has changed this object since you started editing:'), diffView(base.text, shown(newest)),
      h('div', { class: 'bar' }, h('button', { type: 'button', onclick: keep }, 'Keep my text and overwrite the change')));
  };
  o.changed = () => {
    if (dirty()) said.replaceChildren(note('This object has changed since you started editing.', 'warn')); else load();
    edited();
  };
  o.tab.addEventListener('abort', () => { o.changed = undefined; });
  o.body.replaceChildren(h('div', { class: 'bar' }, save, check, reset, rights), said, area);
  const allowed = o.type.verbs.includes('update') && await may('update', o.type, o.namespace, o.name);
  area.readOnly = !allowed;
  rights.replaceChildren(allowed ? '' : 'You may not change this object.');
}

async function fieldsTab(o) {
  const draw = () => {
    const entries = o.seen[0].object.metadata.managedFields ?? [];
    o.body.replaceChildren(...entries.map((m) => h('section', {}, h('h2', {}, m.manager, ' ', h('span', { class: 'quiet' }, `${m.operation}${m.subresource ? ` of ${m.subresource}` : ''}, ${m.apiVersion}${m.time ? `, ${age(m.time)} ago` : ''}`)),
      h('pre', { class: 'text' }, paths(m.fieldsV1 ?? {}).join('\n')))), entries.length ? '' : h('p', { class: 'quiet' }, 'This object has no managed fields.'));
  };
  o.changed = draw;
  o.tab.addEventListener('abort', () => { o.changed = undefined; });
  draw();
}

// paths flattens a set of fields: f:spec f:replicas becomes .spec.replicas.
function paths(set, prefix = '') {
  const out = [];
  for (const [key, below] of Object.entries(set)) {
    if (key === '.') { out.push(prefix); continue; }
    const field = prefix + (key.startsWith('f:') ? `.${key.slice(2)}` : `[${key.slice(2)}]`);
    if (Object.keys(below).length) out.push(...paths(below, field)); else out.push(field);
  }
  return out.sort();
}

async function eventsTab(o) {
  const { uid } = o.seen[0].object.metadata;
  const q = new URLSearchParams({ fieldSelector: `involvedObject.uid=${uid}`, limit: 500 });
  const list = await getJSON(`${path('api', 'v1', ...(o.namespace ? ['namespaces', o.namespace] : []), 'events')}?${q}`, { signal: o.tab });
  const last = (e) => e.lastTimestamp || e.series?.lastObservedTime || e.eventTime || e.metadata.creationTimestamp;
  o.body.replaceChildren(table('Events', [
    ['Last', (e) => age(last(e))], ['Type', (e) => h('span', { class: e.type === 'Warning' ? 'warn' : '' }, e.type)], ['Reason', (e) => e.reason],
    ['Count', (e) => e.series?.count || e.count || 1, true], ['From', (e) => e.source?.component || e.reportingComponent], ['Message', (e) => e.message],
  ], list.items.sort((a, b) => Date.parse(last(b)) - Date.parse(last(a))), 'There are no events about this object.'));
}

// historyTab compares states of the object: those seen since the page was opened, and older
// ones of the window that watches can still read.
async function historyTab(o) {
  await readPast(o);
  const options = () => o.seen.map((s) => h('option', { value: s.version }, `${s.version}${s.past ? '' : `, ${s.at.toLocaleTimeString()}`}`));
  const older = h('select', { 'aria-label': 'from' }), newer = h('select', { 'aria-label': 'to' });
  const difference = h('div');
  const text = (select) => o.seen.find((s) => s.version === select.value)?.text ?? '';
  const draw = () => difference.replaceChildren(o.seen.length > 1 ? diffView(text(older), text(newer)) : h('p', { class: 'quiet' }, 'The history has one revision of this object.'));
  const fill = () => {
    const [a, b] = [older.value, newer.value];
    older.replaceChildren(...options());
    newer.replaceChildren(...options());
    newer.value = b || o.seen[0].version;
    older.value = a || (o.seen[1] ?? o.seen[0]).version;
    draw();
  };
  older.onchange = newer.onchange = draw;
  o.changed = fill;
  o.tab.addEventListener('abort', () => { o.changed = undefined; });
  o.body.replaceChildren(h('div', { class: 'bar' }, h('label', {}, 'From', older), h('label', {}, 'to', newer)), difference);
  fill();
}

// readPast reads the revisions of the object that the service still has: a watch from the
// first revision fails with the oldest one it can begin from.
async function readPast(o) {
  if (o.past) return;
  o.past = true;
  const list = listPath(o.type, o.namespace);
  const q = (version) => new URLSearchParams({ watch: '1', timeoutSeconds: '1', fieldSelector: `metadata.name=${o.name}`, resourceVersion: version });
  let from = '1';
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      const answer = await (await request(`${list}?${q(from)}`, { signal: o.tab })).text();
      const events = answer.split('\n').filter(Boolean).map((l) => JSON.parse(l));
      const gone = events.find((e) => e.type === 'ERROR');
      if (gone) throw Object.assign(new Error(gone.object.message), { code: gone.object.code });
      const past = events.filter((e) => e.type !== 'DELETED').slice(-revisions);
      for (const e of past.reverse()) {
        remember(o, { ...e.object, apiVersion: o.seen[0].object.apiVersion, kind: o.seen[0].object.kind }, true);
      }
      return;
    } catch (err) {
      const oldest = /\((\d+)\)/.exec(err.message ?? '')?.[1];
      if (err.code !== 410 || !oldest) return;
      from = oldest;
    }
  }
}

async function logTab(o) {
  const pod = await getJSON(o.path, { signal: o.tab });
  const names = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].map((c) => c.name);
  const out = h('pre', { class: 'text', tabindex: '0', 'aria-label': 'log' });
  let reading = new AbortController();
  const read = async () => {
    reading.abort();
    reading = new AbortController();
    out.replaceChildren();
    const signal = AbortSignal.any([o.tab, reading.signal]);
    try {
      for await (const line of streamLines(`${objectPath(o.type, o.namespace, o.name, 'log')}?${new URLSearchParams({ container: container.value, follow: 'true', tailLines: '1000' })}`, signal)) {
        out.append(`${line}\n`);
        while (out.childNodes.length > 5000) out.firstChild.remove();
      }
    } catch (err) {
      if (!signal.aborted) out.append(err.message);
    }
  };
  const container = h('select', { 'aria-label': 'Container', onchange: read }, names.map((n) => h('option', { value: n }, n)));
  container.value = pod.spec.containers[0].name;
  o.body.replaceChildren(h('div', { class: 'bar' }, h('label', {}, 'Container', container)), out);
  read();
}

async function deleteObject(o) {
  const answer = await ask(`Delete ${o.type.kind} ${o.name}?`, h('p', {}, 'Dependents are deleted too, in the background, unless you orphan them.'),
    ['Cancel', ''], ['Delete and orphan dependents', 'Orphan'], ['Delete', 'Background', 'danger']);
  if (!answer) return;
  const { uid } = o.seen[0].object.metadata;
  try {
    await request(o.path, { method: 'DELETE', type: 'application/json', body: JSON.stringify({ kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: answer, preconditions: { uid } }), signal: o.signal });
    o.said.replaceChildren(note('Deleted, or waiting for its finalizers.'));
  } catch (err) {
    o.said.replaceChildren(note(err.message, 'bad'));
  }
}
