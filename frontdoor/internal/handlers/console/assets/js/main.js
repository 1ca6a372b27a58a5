// The frame of the console: navigation, keys and which view is shown.
import { h, note, ask } from './dom.js';
import { listPath, loadSettings, postJSON, reachable, session, settings, types, StatusError } from './api.js';
import { listHref } from './types.js';
import { loginView, finishOIDC } from './views/login.js';
import { overviewView } from './views/overview.js';
import { listView } from './views/list.js';
import { objectView } from './views/object.js';
import { watchesView } from './views/watches.js';
import { admissionView } from './views/admission.js';
import { credentialsView } from './views/credentials.js';
import { deprecatedView } from './views/deprecated.js';
import { auditView } from './views/audit.js';

// pages are the views without a parameter: [path, title, key after g, view].
const pages = [
  ['', 'Overview', 'o', overviewView],
  ['watches', 'Watches', 'w', watchesView],
  ['admission', 'Admission', 'a', admissionView],
  ['credentials', 'Certificates and tokens', 'c', credentialsView],
  ['deprecated', 'Deprecated APIs', 'd', deprecatedView],
  ['audit', 'Audit', 'l', auditView],
];

// ctx is what views share: the types, the user and the signal that ends with the view.
const ctx = { types: [], user: null };
const main = h('main', { id: 'main', tabindex: '-1' });
const nav = h('nav', { 'aria-label': 'Console' });
let closing = new AbortController();

function frame() {
  document.body.classList.remove('alone');
  document.body.replaceChildren(
    h('a', { class: 'skip', href: '#main', onclick: (e) => { e.preventDefault(); main.focus(); } }, 'Skip to the content'),
    h('header', { class: 'top' },
      h('button', { id: 'menu', type: 'button', 'aria-label': 'Menu', 'aria-expanded': 'false', onclick: () => menu() }, '☰'),
      h('a', { class: 'name', href: '#/' }, 'Portico'),
      h('span', { class: 'quiet version' }, settings.version),
      h('span', { class: 'space' }),
      h('a', { class: 'version', href: '/docs/' }, 'Documentation'),
      h('span', { class: 'user', title: (ctx.user?.groups ?? []).join(', ') }, ctx.user?.username ?? ''),
      h('button', { type: 'button', 'aria-label': 'Change between light and dark', title: 'Light or dark (t)', onclick: theme }, '◐'),
      h('button', { type: 'button', 'aria-label': 'Keys', title: 'Keys (?)', onclick: keys }, '?'),
      h('button', { type: 'button', id: 'logout', onclick: logout }, 'Log out')),
    nav, main);
  navigation();
}

function menu(open = !document.body.classList.contains('menu')) {
  document.body.classList.toggle('menu', open);
  document.getElementById('menu')?.setAttribute('aria-expanded', String(open));
}

function navigation() {
  const groups = Map.groupBy(ctx.types, (t) => t.group);
  const ordered = [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
  nav.replaceChildren(
    ...pages.map(([path, title]) => h('a', { href: `#/${path}`, 'data-path': path }, title)),
    h('input', { id: 'types', type: 'search', placeholder: 'Types (y)', 'aria-label': 'Types', oninput: (e) => filterTypes(e.target.value.toLowerCase()), onkeydown: openFirst }),
    ...ordered.map(([group, of]) => h('details', { 'data-group': group, open: group === '' },
      h('summary', {}, group || 'core'),
      of.sort((a, b) => (a.resource < b.resource ? -1 : 1)).map((t) => h('a', { href: listHref(t), 'data-path': listHref(t).slice(2), 'data-names': [t.resource, t.kind.toLowerCase(), t.group, ...t.short].join(' ') }, t.resource)))));
}

// filterTypes shows the types whose name, short name or group has a text.
function filterTypes(text) {
  for (const details of nav.querySelectorAll('details')) {
    let any = false;
    for (const a of details.querySelectorAll('a')) {
      a.hidden = !a.dataset.names.includes(text);
      any ||= !a.hidden;
    }
    details.hidden = !any;
    details.open = text ? any : details.dataset.group === '' || !!details.querySelector('[aria-current]');
  }
}

function openFirst(e) {
  if (e.key !== 'Enter') return;
  const first = nav.querySelector('details:not([hidden]) a:not([hidden])');
  if (first) { location.hash = first.getAttribute('href'); e.target.blur(); }
}

function mark(path) {
  for (const a of nav.querySelectorAll('a')) {
    const here = a.dataset.path === path;
    if (here) a.setAttribute('aria-current', 'page'); else a.removeAttribute('aria-current');
    if (here && a.closest('details')) a.closest('details').open = true;
  }
}

// show replaces the view by that of the address.
async function show() {
  closing.abort();
  closing = new AbortController();
  const signal = closing.signal;
  menu(false);
  if (!session.open) { login(''); return; }
  main.replaceChildren(h('p', { class: 'quiet' }, 'Loading…'));
  try {
    const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
    const parts = path.split('/').map(decodeURIComponent);
    const view = { ...ctx, signal, main, query: new URLSearchParams(query), parts };
    const page = pages.find(([p]) => p === path);
    const type = ctx.types.find((t) => (t.group || 'core') === parts[1] && t.version === parts[2] && t.resource === parts[3]);
    if (page) {
      document.title = `${page[1]} · Portico`;
      mark(path);
      await page[3](view);
    } else if (parts[0] === 'r' && parts.length === 4 && type) {
      document.title = `${type.resource} · Portico`;
      mark(listHref(type).slice(2));
      await listView(view, type);
    } else if (parts[0] === 'o' && parts.length === 6 && type) {
      document.title = `${parts[5]} · ${type.kind} · Portico`;
      mark(listHref(type).slice(2));
      await objectView(view, type, parts[4] === '-' ? '' : parts[4], parts[5]);
    } else {
      main.replaceChildren(h('h1', {}, 'Not found'), note(`Page ${location.hash} does not exist, or its type is not visible to you.`, 'warn'));
    }
  } catch (err) {
    if (!signal.aborted) failed(main, err);
  }
}

export function failed(where, err) {
  if (!(err instanceof StatusError)) console.error(err);
  where.replaceChildren(h('h1', { 'data-failed': !(err instanceof StatusError) }, err.code === 403 ? 'Not allowed' : 'Request failed'), note(err.message, 'bad'));
}

// away says that the server does not respond until it does again, and then shows a view anew that failed meanwhile.
async function away() {
  if (document.getElementById('away')) return;
  const said = note('The server does not respond. Trying again …', 'bad');
  said.id = 'away';
  document.body.append(said);
  do await new Promise((resolve) => setTimeout(resolve, 2000)); while (!await reachable());
  said.remove();
  if (main.querySelector('[data-failed]')) show();
}

function login(message) {
  closing.abort();
  document.body.classList.add('alone');
  document.title = 'Log in · Portico';
  document.body.replaceChildren(loginView(message, begin));
}

function logout() {
  session.end();
  ctx.types = [];
  location.hash = '#/';
  login('');
}

// begin starts the session once the API has accepted the credentials.
async function begin() {
  const all = await types();
  ctx.user = await whoAmI();
  ctx.types = all.filter((t) => t.verbs.includes('list'));
  session.accepted = true;
  frame();
  await show();
}

// whoAmI asks for the user's name, which releases before 1.28 do not say.
async function whoAmI() {
  const type = settings.types.selfsubjectreviews;
  if (!type) return { username: session.token ? 'token' : 'client certificate' };
  return (await postJSON(listPath(type), { apiVersion: `${type.group}/${type.version}`, kind: type.kind })).status.userInfo;
}

const themes = { light: 'dark', dark: 'light' };

function theme() {
  const now = document.documentElement.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  document.documentElement.dataset.theme = themes[now];
  localStorage.setItem('theme', themes[now]);
}

function keys() {
  const all = [['/', 'filter'], ['y', 'find a type'], ['j k', 'next and previous row'], ['Enter', 'open the row'], ['t', 'light or dark'], ['Esc', 'leave a field, or go back'], ['?', 'this list'],
    ...pages.map(([, title, key]) => [`g ${key}`, title])];
  ask('Keys', h('table', {}, all.map(([k, what]) => h('tr', {}, h('td', {}, h('kbd', {}, k)), h('td', {}, what)))), ['Close', '']);
}

let afterG = false;

function key(e) {
  const typing = e.target.closest?.('input, textarea, select');
  if (e.key === 'Escape' && !document.querySelector('dialog[open]')) {
    if (typing) typing.blur(); else if (session.open && location.hash.startsWith('#/o/')) history.back();
    return;
  }
  if (typing || e.ctrlKey || e.metaKey || e.altKey || !session.open || document.querySelector('dialog[open]')) return;
  const page = afterG && pages.find(([, , k]) => k === e.key);
  afterG = false;
  if (page) location.hash = `#/${page[0]}`;
  else if (e.key === 'g') afterG = true;
  else if (e.key === 't') theme();
  else if (e.key === '?') keys();
  else if (e.key === 'y') { if (matchMedia('(max-width: 46rem)').matches) menu(true); document.getElementById('types')?.focus(); e.preventDefault(); }
  else if (e.key === '/') { document.getElementById('filter')?.focus(); e.preventDefault(); }
  else if ((e.key === 'j' || e.key === 'ArrowDown') && !e.target.closest('.grid')) main.querySelector('.grid')?.focus();
}

async function start() {
  const stored = localStorage.getItem('theme');
  if (stored in themes) document.documentElement.dataset.theme = stored;
  addEventListener('hashchange', show);
  addEventListener('keydown', key);
  addEventListener('unreachable', away);
  addEventListener('loggedout', (e) => login(e.detail));
  await loadSettings();
  try {
    await finishOIDC();
    if (session.open) await begin(); else login('');
  } catch (err) {
    session.end();
    login(err.message);
  }
}

start();
