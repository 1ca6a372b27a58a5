// Admission: services of the chain with their verdicts, webhooks and policies.
import { h, note, table } from '../dom.js';
import { getJSON, listPath, settings } from '../api.js';
import { listHref, objectHref } from '../types.js';
import { readProcesses } from '../metrics.js';

const pace = 3000;

export async function admissionView({ main, signal }) {
  const kinds = ['admissionservices', 'mutatingwebhookconfigurations', 'validatingwebhookconfigurations', 'mutatingadmissionpolicies', 'validatingadmissionpolicies'];
  const of = kinds.map((resource) => settings.types[resource]).filter(Boolean);
  const chart = h('section');
  main.replaceChildren(h('div', { class: 'bar' }, h('h1', {}, 'Admission')), chart);
  await follow(chart, signal);
  for (const type of of) {
    const section = h('section', {}, h('h2', {}, h('a', { href: listHref(type) }, type.kind)));
    main.append(section);
    try {
      const { items } = await getJSON(`${listPath(type)}?limit=500`, { signal });
      section.append(table(type.kind, [
        ['Name', (o) => h('a', { href: objectHref(type, '', o.metadata.name) }, o.metadata.name)],
        ...columns[type.resource] ?? [],
      ], items, 'None.'));
    } catch (err) {
      section.append(note(err.message, err.code === 403 ? 'warn' : 'bad'));
    }
  }
}

// follow shows the verdicts of admission services, and again while the page is open.
async function follow(chart, signal) {
  const update = async () => {
    try {
      chart.replaceChildren(h('h2', {}, 'Verdicts of admission services'), verdicts(await readProcesses(signal)));
    } catch (err) {
      if (!signal.aborted) chart.replaceChildren(h('h2', {}, 'Verdicts of admission services'), note(err.message, err.code === 403 ? 'warn' : 'bad'));
    }
  };
  await update();
  const timer = setInterval(() => { if (!document.hidden) update(); }, pace);
  signal.addEventListener('abort', () => clearInterval(timer));
}

const kindsOfVerdict = [['allowed', 'good'], ['denied', 'warn'], ['failed', 'bad']];

// verdicts is a bar for each service: its calls since the start of the processes, by verdict.
function verdicts(processes) {
  const of = new Map();
  const entry = (name) => { if (!of.has(name)) of.set(name, { name, calls: {}, count: 0, seconds: 0 }); return of.get(name); };
  for (const s of processes.flatMap((p) => p.series ?? [])) {
    if (s.name === 'portico_admission_service_calls_total') entry(s.labels.service).calls[s.labels.verdict] = (entry(s.labels.service).calls[s.labels.verdict] ?? 0) + s.value;
    if (s.name === 'portico_admission_service_seconds') { entry(s.labels.service).count += s.count ?? 0; entry(s.labels.service).seconds += s.value; }
  }
  return table('Verdicts of admission services', [
    ['Service', (e) => e.name],
    ['Calls', bar],
    ...kindsOfVerdict.map(([verdict]) => [verdict, (e) => (e.calls[verdict] ?? 0).toLocaleString(), true]),
    ['Mean time', (e) => (e.count ? `${(1000 * e.seconds / e.count).toFixed(1)} ms` : '–'), true],
  ], [...of.values()].sort((a, b) => (a.name < b.name ? -1 : 1)), 'No service has been called.');
}

function bar(e) {
  const parts = kindsOfVerdict.filter(([verdict]) => e.calls[verdict]).map(([verdict, kind]) => {
    const part = h('span', { class: kind, title: `${verdict}: ${e.calls[verdict]}` });
    part.style.flexGrow = e.calls[verdict];
    return part;
  });
  return h('div', { class: 'verdicts', role: 'img', 'aria-label': kindsOfVerdict.map(([verdict]) => `${e.calls[verdict] ?? 0} ${verdict}`).join(', ') }, parts);
}

const webhooks = [
  ['Webhooks', (o) => (o.webhooks ?? []).map((w) => h('div', {}, w.name, h('span', { class: 'quiet' }, ` ${w.failurePolicy}, ${w.timeoutSeconds}s`)))],
  ['Asked at', (o) => (o.webhooks ?? []).map((w) => h('div', {}, w.clientConfig.url ?? `${w.clientConfig.service?.namespace}/${w.clientConfig.service?.name}`))],
];
const policy = [
  ['Failure policy', (o) => o.spec.failurePolicy],
  ['Rules', (o) => (o.spec.matchConstraints?.resourceRules ?? []).map((r) => h('div', {}, `${(r.operations ?? []).join(', ')} ${(r.resources ?? []).join(', ')}`))],
];
const columns = {
  admissionservices: [
    ['Phase', (o) => o.spec.phase], ['Enforcement', (o) => o.spec.enforcement ?? o.spec.mode],
    ['Conditions', (o) => (o.status?.conditions ?? []).map((c) => h('div', { class: c.status === 'True' ? 'good' : 'bad', title: c.message }, `${c.type}: ${c.status}`))],
    ['Status', (o) => h('pre', {}, JSON.stringify({ ...o.status, conditions: undefined }, null, 1))],
  ],
  mutatingwebhookconfigurations: webhooks, validatingwebhookconfigurations: webhooks,
  mutatingadmissionpolicies: policy, validatingadmissionpolicies: policy,
};
