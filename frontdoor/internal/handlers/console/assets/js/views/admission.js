// Admission: services of the chain with their verdicts, webhooks and policies.
import { h, note, table } from '../dom.js';
import { getJSON, listPath } from '../api.js';
import { listHref } from '../types.js';

export async function admissionView({ main, types, signal }) {
  const kinds = ['admissionservices', 'mutatingwebhookconfigurations', 'validatingwebhookconfigurations', 'mutatingadmissionpolicies', 'validatingadmissionpolicies'];
  const of = kinds.map((resource) => types.find((t) => t.resource === resource)).filter(Boolean);
  main.replaceChildren(h('div', { class: 'bar' }, h('h1', {}, 'Admission')));
  for (const type of of) {
    const section = h('section', {}, h('h2', {}, h('a', { href: listHref(type) }, type.kind)));
    main.append(section);
    try {
      const { items } = await getJSON(`${listPath(type)}?limit=500`, { signal });
      section.append(table(type.kind, [
        ['Name', (o) => h('a', { href: `#/o/${type.group}/${type.version}/${type.resource}/-/${encodeURIComponent(o.metadata.name)}` }, o.metadata.name)],
        ...columns[type.resource] ?? [],
      ], items, 'None.'));
    } catch (err) {
      section.append(note(err.message, err.code === 403 ? 'warn' : 'bad'));
    }
  }
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
