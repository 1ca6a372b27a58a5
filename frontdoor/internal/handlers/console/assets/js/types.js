// Addresses of pages about types and objects.
const href = (...parts) => `#/${parts.map(encodeURIComponent).join('/')}`;
const place = (t) => [t.group || 'core', t.version, t.resource];

export const listHref = (t, namespace) => href('r', ...place(t)) + (namespace ? `?ns=${encodeURIComponent(namespace)}` : '');
export const objectHref = (t, namespace, name) => href('o', ...place(t), namespace || '-', name);
