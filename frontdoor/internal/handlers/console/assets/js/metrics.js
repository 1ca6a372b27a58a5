// Metrics in Prometheus' text format.
import { getJSON, getText } from './api.js';

// readMetrics returns the samples of a process by name: each has labels and a value.
export async function readMetrics(path = '/metrics', signal) {
  const found = new Map();
  for (const line of (await getText(path, { accept: 'text/plain', signal })).split('\n')) {
    const m = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!m) continue;
    const labels = {};
    for (const [, name, value] of (m[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value.replace(/\\(.)/g, (_, c) => (c === 'n' ? '\n' : c));
    if (!found.has(m[1])) found.set(m[1], []);
    found.get(m[1]).push({ labels, value: Number(m[3]) });
  }
  return found;
}

const all = () => true;

// sum adds the samples of a name that match.
export const sum = (metrics, name, matches = all) => (metrics.get(name) ?? []).filter((s) => matches(s.labels)).reduce((n, s) => n + s.value, 0);

// quantile returns a quantile of what a histogram has counted between two readings, in its
// unit, or undefined if it has counted nothing.
export function quantile(q, name, before, now, matches = all) {
  const buckets = new Map();
  for (const [metrics, sign] of [[now, 1], [before, -1]]) {
    for (const s of metrics?.get(`${name}_bucket`) ?? []) {
      if (matches(s.labels)) buckets.set(s.labels.le, (buckets.get(s.labels.le) ?? 0) + sign * s.value);
    }
  }
  const bounds = [...buckets].map(([le, n]) => [le === '+Inf' ? Infinity : Number(le), n]).sort(([a], [b]) => a - b);
  const total = bounds.at(-1)?.[1] ?? 0;
  if (total <= 0) return undefined;
  let low = 0, below = 0;
  for (const [le, n] of bounds) {
    if (n >= q * total) return le === Infinity ? low : low + (le - low) * ((q * total - below) / (n - below || 1));
    [low, below] = [le, n];
  }
  return low;
}

// readProcesses returns the measurements of all processes that the front door knows.
export const readProcesses = async (signal) => (await getJSON('/debug/portico/v1/processes', { signal })).items;
