// The requests of the last minutes at this front door.
import { h } from '../dom.js';
import { Grid } from '../grid.js';
import { getJSON } from '../api.js';

const pace = 5000;

export const recentRequests = async (signal, limit = 4096) => (await getJSON(`/debug/portico/v1/requests?limit=${limit}`, { signal })).requests;

export async function auditView({ main, signal, query }) {
  const state = h('span', { class: 'quiet', role: 'status' });
  const filter = h('input', { id: 'filter', type: 'search', placeholder: 'Filter (/)', 'aria-label': 'Filter', value: query.get('q') ?? '', oninput: () => { grid.setFilter(filter.value); history.replaceState(null, '', filter.value ? `#/audit?${new URLSearchParams({ q: filter.value })}` : '#/audit'); } });
  const grid = new Grid('requests');
  signal.addEventListener('abort', () => grid.close());
  const time = (r) => new Date(r.received).toLocaleTimeString();
  grid.sort = { column: 0, down: true };
  grid.setColumns([
    { name: 'Time', width: '6rem', key: (row) => row.id }, { name: 'Code', width: '3.5rem' }, { name: 'Verb', width: '6rem' }, { name: 'Path', width: 'minmax(14rem, 4fr)' },
    { name: 'User', width: 'minmax(8rem, 2fr)' }, { name: 'ms', width: '5rem', key: (row) => Number(row.cells[5]) }, { name: 'Client', width: 'minmax(8rem, 2fr)' },
  ]);
  grid.counted = (shown, all) => { state.textContent = shown === all ? `${all} requests` : `${shown} of ${all} requests`; };
  grid.setFilter(filter.value);
  main.replaceChildren(h('div', { class: 'bar' }, h('h1', {}, 'Audit'), state, h('span', { class: 'space' }), filter), grid.element);
  const update = async () => {
    const requests = await recentRequests(signal);
    grid.rows.clear();
    requests.forEach((r, i) => grid.set({
      id: `${r.received} ${String(requests.length - i).padStart(5, '0')}`,
      cells: [time(r), r.code, r.verb, r.path, r.impersonatedUser ? `${r.user} as ${r.impersonatedUser}` : r.user ?? '', r.milliseconds.toFixed(1), r.userAgent ?? ''],
    }));
  };
  await update();
  const timer = setInterval(() => { if (!document.hidden) update().catch(() => {}); }, pace);
  signal.addEventListener('abort', () => clearInterval(timer));
}
