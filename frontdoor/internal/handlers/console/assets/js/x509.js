// Reads when a certificate is valid.

// validity returns notBefore and notAfter of the first certificate of a base64-encoded PEM
// file in milliseconds, or null if it cannot be read.
export function validity(encoded) {
  try {
    const body = /-----BEGIN CERTIFICATE-----([^-]+)-----END/.exec(atob(encoded))[1];
    const der = Uint8Array.from(atob(body.replace(/\s/g, '')), (c) => c.charCodeAt(0));
    const [certificate] = children(der, element(der, 0));
    const fields = children(der, certificate);
    // version [0] is optional; then serialNumber, signature, issuer, validity.
    const [notBefore, notAfter] = children(der, fields[fields[0].tag === 0xa0 ? 4 : 3]).map((e) => time(der, e));
    return { notBefore, notAfter };
  } catch {
    return null;
  }
}

function element(der, at) {
  let length = der[at + 1], from = at + 2;
  if (length & 0x80) {
    const bytes = length & 0x7f;
    length = 0;
    for (let i = 0; i < bytes; i++) length = length * 256 + der[from + i];
    from += bytes;
  }
  if (from + length > der.length) throw new RangeError('truncated');
  return { tag: der[at], from, to: from + length };
}

function children(der, parent) {
  const found = [];
  for (let at = parent.from; at < parent.to;) {
    const e = element(der, at);
    found.push(e);
    at = e.to;
  }
  return found;
}

function time(der, { tag, from, to }) {
  let text = String.fromCharCode(...der.subarray(from, to));
  if (tag === 0x17) text = (Number(text.slice(0, 2)) < 50 ? '20' : '19') + text;
  const [, y, mo, d, hh, mm, ss] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(text);
  return Date.UTC(y, mo - 1, d, hh, mm, ss);
}
