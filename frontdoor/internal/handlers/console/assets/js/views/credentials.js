// Certificates and tokens, those that expire next first.
import { h, note, table } from '../dom.js';
import { validity } from '../x509.js';
import { getJSON, listPath, settings } from '../api.js';
import { readProcesses } from '../metrics.js';
import { objectHref } from '../types.js';

const day = 86400000;

export async function credentialsView({ main, signal }) {
  main.replaceChildren(h('div', { class: 'bar' }, h('h1', {}, 'Certificates and tokens')));
  for (const [title, read] of [['Certificates of the suite', suiteCertificates], ['Issued certificates', certificates], ['Bootstrap tokens', bootstrapTokens]]) {
    const section = h('section', {}, h('h2', {}, title));
    main.append(section);
    try {
      const rows = (await read(signal)).sort((a, b) => (a.ends ?? Infinity) - (b.ends ?? Infinity));
      section.append(table(title, [
        ['Name', (r) => (r.href ? h('a', { href: r.href }, r.name) : r.name)], ['For', (r) => r.what], ['State', (r) => r.state], ['Expires', (r) => expiry(r.ends)],
      ], rows, 'None.'));
    } catch (err) {
      section.append(note(err.message, err.code === 403 ? 'warn' : 'bad'));
    }
  }
}

function expiry(ends) {
  if (!ends) return h('span', { class: 'quiet' }, 'never');
  const left = ends - Date.now();
  return h('span', { class: left < 0 ? 'bad' : left < 30 * day ? 'warn' : '' }, `${new Date(ends).toLocaleString()} (${left < 0 ? 'expired' : `${Math.floor(left / day)} d`})`);
}

// suiteCertificates are those in the files of all processes that this front door knows.
async function suiteCertificates(signal) {
  return (await readProcesses(signal)).flatMap((p) => (p.series ?? []).filter((s) => s.name === 'portico_certificate_expiration_timestamp_seconds')
    .map((s) => ({ name: s.labels.file, what: `${p.service} ${p.instance}`, state: s.labels.kind, ends: s.value * 1000 })));
}

async function certificates(signal) {
  const type = settings.types.certificatesigningrequests;
  if (!type) return [];
  const { items } = await getJSON(`${listPath(type)}?limit=500`, { signal });
  return items.map((o) => ({
    name: o.metadata.name, href: objectHref(type, '', o.metadata.name),
    what: `${o.spec.username}, ${o.spec.signerName}`, state: (o.status?.conditions ?? []).map((c) => c.type).join(', ') || 'Pending',
    ends: o.status?.certificate ? validity(o.status.certificate)?.notAfter : undefined,
  }));
}

// bootstrapTokens shows ids and expirations. The secret parts stay where they are.
async function bootstrapTokens(signal) {
  const type = settings.types.secrets;
  if (!type) return [];
  const { items } = await getJSON(`${listPath(type)}?limit=500`, { signal });
  return items.filter((o) => /^bootstrap\..*\/token$/.test(o.type)).map((o) => ({
    name: o.metadata.name, href: objectHref(type, o.metadata.namespace, o.metadata.name),
    what: o.metadata.namespace, state: '', ends: o.data?.expiration ? Date.parse(atob(o.data.expiration)) : undefined,
  }));
}
