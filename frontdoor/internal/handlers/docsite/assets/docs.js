// Search, theme and keys of the documentation.
import { h } from '/console/js/dom.js';

const maxFound = 30;
const search = document.getElementById('search');
const found = document.getElementById('found');
const contents = document.getElementById('contents');
const menu = document.getElementById('menu');
const themes = { light: 'dark', dark: 'light' };
let index; // a promise of all sections

function theme() {
  const now = document.documentElement.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  document.documentElement.dataset.theme = themes[now];
  localStorage.setItem('theme', themes[now]);
}

async function load() {
  const response = await fetch('/docs/search.json');
  if (!response.ok) throw new Error(`the index cannot be read: ${response.status}`);
  return (await response.json()).map((e) => ({ ...e, title: `${e.page} ${e.section ?? ''}`.toLowerCase(), all: `${e.page} ${e.section ?? ''} ${e.text}`.toLowerCase() }));
}

// rank puts sections first whose title has the words; 0 is no match.
function rank(e, words) {
  if (!words.every((w) => e.all.includes(w))) return 0;
  return 1 + words.filter((w) => e.title.includes(w)).length * 2 + (words.length === 1 && e.page.toLowerCase() === words[0] ? 4 : 0);
}

// excerpt returns the text around a word.
function excerpt(e, word) {
  const at = Math.max(0, e.text.toLowerCase().indexOf(word) - 40);
  return (at > 0 ? '…' : '') + e.text.slice(at, at + 120);
}

async function find() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  contents.hidden = words.length > 0;
  if (!words.length) { found.replaceChildren(); return; }
  try {
    index ??= load();
    const all = await index;
    if (words.join(' ') !== search.value.toLowerCase().split(/\s+/).filter(Boolean).join(' ')) return; // typed on
    const ranked = all.map((e) => [rank(e, words), e]).filter(([r]) => r).sort(([a], [b]) => b - a).slice(0, maxFound);
    found.replaceChildren(...ranked.map(([, e]) => h('a', { href: `/docs/${e.path}` }, e.section ? `${e.page}: ${e.section}` : e.page, h('small', {}, excerpt(e, words[0])))),
      ranked.length ? '' : h('p', { class: 'quiet' }, 'Nothing found.'));
  } catch (err) {
    index = undefined;
    found.replaceChildren(h('p', { class: 'bad' }, err.message));
  }
}

function toggle(open = !document.body.classList.contains('menu')) {
  document.body.classList.toggle('menu', open);
  menu.setAttribute('aria-expanded', String(open));
}

function key(e) {
  const typing = e.target.closest?.('input');
  if (e.key === 'Escape' && typing) { search.value = ''; find(); search.blur(); return; }
  if (e.key === 'Enter' && typing) { found.querySelector('a')?.click(); return; }
  if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === 't') theme();
  else if (e.key === '/') { if (matchMedia('(max-width: 46rem)').matches) toggle(true); search.focus(); e.preventDefault(); }
}

const stored = localStorage.getItem('theme');
if (stored in themes) document.documentElement.dataset.theme = stored;
search.addEventListener('input', find);
menu.addEventListener('click', () => toggle());
nav().addEventListener('click', (e) => { if (e.target.closest('a')) toggle(false); });
document.getElementById('theme').addEventListener('click', theme);
addEventListener('keydown', key);
document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest' });

function nav() { return document.querySelector('nav'); }
