// Watches in progress at all front doors.
import { h, note, age, bytes, table, ask } from '../dom.js';
import { getJSON, path, request } from '../api.js';

const pace = 3000;

export async function watchesView({ main, signal }) {
  const said = h('div'), missing = h('div'), list = h('div'), state = h('span', { class: 'quiet', role: 'status' });
  const own = h('input', { type: 'checkbox', onchange: () => update() }); // of Portico's own controllers and of Kubernetes'
  main.replaceChildren(h('div', { class: 'bar' }, h('h1', {}, 'Watches'), state, h('span', { class: 'space' }), h('label', {}, own, 'of the system, too')), said, missing, list);
  const close = async (w) => {
    if (!await ask('Close this watch?', h('p', {}, `${w.user} follows ${w.resource}. The client may watch again.`), ['Cancel', ''], ['Close the watch', 'yes', 'danger'])) return;
    try {
      await request(path('debug', 'portico', 'v1', 'watches', w.id), { method: 'DELETE', signal });
      said.replaceChildren(note('Closed.'));
      await update();
    } catch (err) {
      said.replaceChildren(note(err.message, 'bad'));
    }
  };
  const update = async () => {
    const { items: all, total, frontDoors } = await getJSON('/debug/portico/v1/watches?limit=1000', { signal });
    const hosts = new Map(frontDoors.map((d) => [d.instance, d.host]));
    const silent = frontDoors.filter((d) => d.error).map((d) => `Without the watches of front door ${[d.host, d.address].filter(Boolean).join(', ')}: ${d.error}.`);
    if (missing.textContent !== silent.join('')) missing.replaceChildren(...silent.map((text) => note(text, 'bad')));
    const items = own.checked ? all : all.filter((w) => !/^system:(?!admin$|anonymous$)/.test(w.user));
    state.textContent = items.length < total ? `${items.length} of ${total}` : `${total}`;
    list.replaceChildren(table('Watches', [
      ['Who', (w) => [h('div', {}, w.user), h('div', { class: 'quiet' }, [w.userAgent, w.client].filter(Boolean).join(', '))]],
      ['What', (w) => [h('div', {}, [w.namespace && `${w.namespace}/`, w.resource].filter(Boolean).join('')), h('div', { class: 'quiet' }, [w.group ? `${w.group}/${w.version}` : w.version, w.labelSelector, w.fieldSelector].filter(Boolean).join(', '))]],
      ['Replica', (w) => [h('div', {}, hosts.get(w.frontDoor)), h('div', { class: 'quiet' }, w.frontDoor)]],
      ['Since', (w) => age(w.since)], ['Sent', (w) => bytes(w.bytes), true],
      ['Revision', (w) => w.revision || '–', true],
      ['Stalled', (w) => (w.stalledSeconds >= 1 ? h('span', { class: 'warn' }, `${Math.round(w.stalledSeconds)} s`) : ''), true],
      ['', (w) => h('button', { type: 'button', 'aria-label': `Close the watch of ${w.user}`, onclick: () => close(w) }, 'Close')],
    ], items, total ? 'All watches are of the system.' : 'There are no watches.'));
  };
  await update();
  const timer = setInterval(() => { if (!document.hidden && !document.querySelector('dialog[open]')) update().catch(() => {}); }, pace);
  signal.addEventListener('abort', () => clearInterval(timer));
}
