// The suite alive: health checks, rates, latencies and lags.
import { h, note, bytes } from '../dom.js';
import { getText } from '../api.js';
import { quantile, readMetrics, sum } from '../metrics.js';

const pace = 3000;

export async function overviewView({ main, signal }) {
  const health = h('div', { class: 'cards' }), numbers = h('div', { class: 'cards' }), said = h('div');
  main.replaceChildren(h('div', { class: 'bar' }, h('h1', {}, 'Overview')), said, h('h2', {}, 'Health'), health, h('h2', {}, 'Metrics of this front door’s process'), numbers);
  let before, at;
  const update = async () => {
    try {
      health.replaceChildren(...checks(await readyz(signal)));
      const now = await readMetrics('/metrics', signal), time = performance.now();
      numbers.replaceChildren(...cards(before, now, (time - at) / 1000));
      before = now;
      at = time;
      said.replaceChildren();
    } catch (err) {
      if (!signal.aborted) said.replaceChildren(note(err.message, err.code === 403 ? 'warn' : 'bad'));
    }
  };
  await update();
  const timer = setInterval(() => { if (!document.hidden) update(); }, pace);
  signal.addEventListener('abort', () => clearInterval(timer));
}

// readyz returns the lines of the health checks, also when one fails.
async function readyz(signal) {
  try {
    return await getText('/readyz?verbose', { accept: 'text/plain', signal });
  } catch (err) {
    if (err.code !== 500 && err.code !== 503) throw err;
    return err.message;
  }
}

function checks(text) {
  return text.split('\n').map((line) => /^\[([+-])\](\S+) (.*)$/.exec(line)).filter(Boolean)
    .sort((a, b) => (a[1] === b[1] ? (a[2] < b[2] ? -1 : 1) : a[1] === '-' ? -1 : 1))
    .map(([, sign, name, what]) => h('div', { class: 'card' }, h('h3', {}, h('span', { class: `dot ${sign === '+' ? 'good' : 'bad'}` }), name), h('span', { class: 'quiet' }, what)));
}

const milliseconds = (s) => (s === undefined ? '–' : `${(s * 1000).toFixed(s < 0.01 ? 2 : 0)} ms`);

function cards(before, now, seconds) {
  const rate = (name, matches) => (before ? `${((sum(now, name, matches) - sum(before, name, matches)) / seconds).toFixed(1)} /s` : '–');
  const requests = 'apiserver_request_duration_seconds';
  const reads = (l) => l.verb === 'get' || l.verb === 'list';
  const writes = (l) => ['create', 'update', 'patch', 'delete', 'deletecollection'].includes(l.verb);
  const one = (name) => sum(now, name);
  const has = (name) => now.has(name);
  const hub = one('portico_watchhub_revision'), mirror = one('portico_store_mirror_revision');
  return [
    ['Requests', [
      ['all', rate('apiserver_request_total')], ['reads', rate('apiserver_request_total', reads)], ['writes', rate('apiserver_request_total', writes)],
      ['refused (429)', rate('apiserver_request_total', (l) => l.code === '429')], ['failed (5xx)', rate('apiserver_request_total', (l) => l.code?.startsWith('5'))]]],
    ['Latency', [
      ['reads p50', milliseconds(before && quantile(0.5, requests, before, now, reads))], ['reads p99', milliseconds(before && quantile(0.99, requests, before, now, reads))],
      ['writes p50', milliseconds(before && quantile(0.5, requests, before, now, writes))], ['writes p99', milliseconds(before && quantile(0.99, requests, before, now, writes))]]],
    ['In progress', [
      ['requests', one('apiserver_current_inflight_requests')], ['queued', one('apiserver_current_inqueue_requests')], ['watches, connections', one('apiserver_longrunning_requests')]]],
    has('portico_store_mirror_revision') && ['Store', [
      ['objects', one('portico_store_mirror_objects').toLocaleString()], ['revision', mirror],
      has('portico_watchhub_revision') && ['hub is behind by', Math.max(0, mirror - hub)]]],
    has('portico_etcd_database_bytes') && ['etcd', [
      ['database', bytes(one('portico_etcd_database_bytes'))], ['in use', bytes(one('portico_etcd_database_used_bytes'))], ['quota', bytes(one('portico_etcd_quota_bytes'))],
      has('portico_store_etcd_up') && ['responds', one('portico_store_etcd_up') ? 'yes' : 'no']]],
    ['Process', [
      ['CPU', before ? `${(100 * (one('process_cpu_seconds_total') - sum(before, 'process_cpu_seconds_total')) / seconds).toFixed(1)} %` : '–'],
      ['memory', bytes(one('process_resident_memory_bytes'))], ['goroutines', one('go_goroutines')], ['open files', one('process_open_fds')]]],
  ].filter(Boolean).map(([title, rows]) => h('div', { class: 'card' }, h('h3', {}, title), h('dl', {}, rows.filter(Boolean).map(([name, value]) => [h('dt', {}, name), h('dd', {}, String(value))]))));
}
