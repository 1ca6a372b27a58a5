// Requests to the API, with the credentials and rights of the user who is logged in.

// StatusError is a Status that the API answered.
export class StatusError extends Error {
  constructor(status, code) {
    super(status.message || `The server responded with ${code}.`);
    this.code = code;
    this.reason = status.reason;
    this.causes = status.details?.causes ?? [];
  }
}

// settings are what the front door says about itself: the groups of its vocabulary, the built-in
// types that the console itself asks for, and whether it offers to log in with OpenID Connect.
export let settings = {};

// reachable reports whether the front door responds.
export const reachable = async () => {
  try {
    return (await fetch('settings.json', { cache: 'no-store' })).ok;
  } catch {
    return false;
  }
};

export async function loadSettings() {
  settings = await (await fetch('settings.json')).json();
}

// The token lives as long as the tab. It is null with a client certificate, which the
// browser presents itself.
export const session = {
  get open() { return sessionStorage.getItem('session') !== null; },
  get token() { return sessionStorage.getItem('session'); },
  begin(token) { sessionStorage.setItem('session', token ?? ''); },
  end() { sessionStorage.removeItem('session'); this.accepted = false; },
  // accepted is true once the API has accepted the credentials.
  accepted: false,
};

// request sends one request and returns the response. Errors are StatusErrors.
export async function request(url, { method = 'GET', accept = 'application/json', type, body, signal } = {}) {
  const headers = { Accept: accept };
  if (session.token) headers.Authorization = `Bearer ${session.token}`;
  if (type) headers['Content-Type'] = type;
  let response;
  try {
    response = await fetch(url, { method, headers, body, signal, cache: 'no-store', redirect: 'error' });
  } catch (err) {
    if (signal?.aborted) throw err;
    dispatchEvent(new Event('unreachable'));
    throw new Error('The server does not respond.', { cause: err });
  }
  if (response.ok) return response;
  const text = await response.text();
  let status = {};
  try { status = JSON.parse(text); } catch { status = { message: text.slice(0, 500) }; }
  if (response.status === 401 && session.accepted) {
    session.end();
    dispatchEvent(new CustomEvent('loggedout', { detail: 'Your session has ended. Log in again.' }));
  }
  throw new StatusError(status, response.status);
}

export const getJSON = async (url, o) => (await request(url, o)).json();
export const getText = async (url, o) => (await request(url, o)).text();
export const postJSON = async (url, object) => (await request(url, { method: 'POST', type: 'application/json', body: JSON.stringify(object) })).json();

// tableOf is the Accept header of Tables.
export const tableOf = () => `application/json;as=Table;v=v1;g=${settings.groups.meta},application/json`;

// lines yields the lines of a response as they arrive.
async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    rest += value;
    let from = 0;
    for (let i; (i = rest.indexOf('\n', from)) >= 0; from = i + 1) yield rest.slice(from, i);
    rest = rest.slice(from);
  }
  if (rest) yield rest;
}

// streamLines yields the lines of a long response, such as a log.
export async function* streamLines(url, signal) {
  yield* lines(await request(url, { accept: '*/*', signal }));
}

const pause = (ms, signal) => new Promise((resolve, reject) => {
  const t = setTimeout(resolve, ms);
  signal.addEventListener('abort', () => { clearTimeout(t); reject(signal.reason); }, { once: true });
});

// watch follows a list from a resourceVersion on and calls each(event) until signal is
// aborted. It connects again after failures of the network. It throws a StatusError when
// the list has to be read again (410) or may no longer be watched.
export async function watch(list, query, resourceVersion, accept, signal, each) {
  for (let failures = 0; ;) {
    const q = new URLSearchParams(query);
    q.set('watch', '1');
    q.set('allowWatchBookmarks', 'true');
    q.set('resourceVersion', resourceVersion);
    try {
      for await (const line of lines(await request(`${list}?${q}`, { accept, signal }))) {
        if (!line) continue;
        const event = JSON.parse(line);
        if (event.type === 'ERROR') throw new StatusError(event.object, event.object.code);
        failures = 0;
        resourceVersion = (event.object.rows?.[0]?.object ?? event.object).metadata?.resourceVersion || resourceVersion;
        if (event.type !== 'BOOKMARK') each(event);
      }
    } catch (err) {
      if (signal.aborted) return;
      if (err instanceof StatusError && err.code < 500 && err.code !== 429) throw err;
      failures++;
    }
    try {
      await pause(Math.min(30000, 250 * 2 ** failures) * (0.5 + Math.random()), signal);
    } catch { return; }
  }
}

// Types.

// types returns the served types: those of the preferred version of each group, and of
// other versions what the preferred one lacks.
export async function types() {
  const accept = `application/json;g=${settings.groups.discovery};v=v2;as=APIGroupDiscoveryList`;
  const lists = await Promise.all(['/api', '/apis'].map((url) => getJSON(url, { accept })));
  const found = [];
  for (const group of lists.flatMap((l) => l.items)) {
    const seen = new Set();
    for (const version of group.versions) {
      for (const r of version.resources ?? []) {
        if (seen.has(r.resource) || !r.verbs?.length) continue;
        seen.add(r.resource);
        found.push({
          group: group.metadata?.name ?? '', version: version.version, resource: r.resource, kind: r.responseKind.kind,
          namespaced: r.scope === 'Namespaced', verbs: r.verbs, subresources: (r.subresources ?? []).map((s) => s.subresource),
          short: r.shortNames ?? [],
        });
      }
    }
  }
  return found;
}

// path makes the path of a request of segments. Links and the API choose names: what another path
// could be made of, or a server could split, is no segment.
export function path(...segments) {
  for (const s of segments) {
    if (typeof s !== 'string' || s === '' || s === '.' || s === '..' || /[/%\\\u0000-\u001f\u007f]/.test(s)) throw new Error(`${JSON.stringify(s ?? '')} is not a name.`);
  }
  return `/${segments.map(encodeURIComponent).join('/')}`;
}

const groupOf = (t) => (t.group ? ['apis', t.group, t.version] : ['api', t.version]);
const placeOf = (t, namespace) => (t.namespaced && namespace ? ['namespaces', namespace] : []);
export const listPath = (t, namespace) => path(...groupOf(t), ...placeOf(t, namespace), t.resource);

// objectPath returns the path of an object, or of a subresource of it.
export function objectPath(t, namespace, name, ...subresource) {
  if (t.namespaced !== Boolean(namespace)) throw new Error(t.namespaced ? `An object of type ${t.resource} needs a namespace.` : `An object of type ${t.resource} has no namespace.`);
  return path(...groupOf(t), ...placeOf(t, namespace), t.resource, name, ...subresource);
}

// may reports whether the user may do something, as SelfSubjectAccessReview says.
export async function may(verb, t, namespace, name, subresource) {
  const review = await postJSON(path('apis', settings.groups.authorization, 'v1', 'selfsubjectaccessreviews'), {
    apiVersion: `${settings.groups.authorization}/v1`, kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { verb, group: t.group, version: t.version, resource: t.resource, namespace, name, subresource } },
  });
  return review.status.allowed === true;
}
