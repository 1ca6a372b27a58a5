// Deprecated APIs that clients use, and which clients these are.
import { h, note, table, age } from '../dom.js';
import { readMetrics } from '../metrics.js';
import { recentRequests } from './audit.js';

export async function deprecatedView({ main, signal }) {
  main.replaceChildren(h('div', { class: 'bar' }, h('h1', {}, 'Deprecated APIs')));
  const used = (await readMetrics('/metrics', signal)).get('apiserver_requested_deprecated_apis') ?? [];
  main.append(h('h2', {}, 'Requested since this front door started'), table('Deprecated APIs', [
    ['Group version', (s) => `${s.labels.group ? `${s.labels.group}/` : ''}${s.labels.version}`],
    ['Resource', (s) => s.labels.resource + (s.labels.subresource ? `/${s.labels.subresource}` : '')],
    ['Removed in', (s) => s.labels.removed_release || '–'],
  ], used.filter((s) => s.value > 0), 'No client has requested a deprecated API.'));
  const section = h('section', {}, h('h2', {}, 'Users in the last requests'));
  main.append(section);
  try {
    const by = new Map();
    for (const r of (await recentRequests(signal)).filter((r) => r.deprecated)) {
      const what = /^\/apis?\/(?:[^/]+\/)?[^/]+/.exec(r.path)?.[0] ?? r.path;
      const id = JSON.stringify([what, r.user, r.userAgent]);
      const seen = by.get(id) ?? { what, user: r.user, agent: r.userAgent, count: 0, last: r.received };
      seen.count++;
      by.set(id, seen);
    }
    section.append(table('Clients', [
      ['User', (r) => r.user], ['Client', (r) => r.agent], ['API', (r) => r.what], ['Requests', (r) => r.count, true], ['Last', (r) => `${age(r.last)} ago`],
    ], [...by.values()], 'None.'));
  } catch (err) {
    section.append(note(err.message, 'warn'));
  }
}
