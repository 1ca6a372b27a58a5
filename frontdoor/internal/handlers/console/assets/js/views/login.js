// Logging in with a token, a client certificate or OpenID Connect.
import { h, note } from '../dom.js';
import { session, settings } from '../api.js';

// loginView returns the form. begin starts the session, or throws why it cannot.
export function loginView(message, begin) {
  const said = h('div', {}, message && note(message, 'bad'));
  const token = h('input', { id: 'token', type: 'password', autocomplete: 'off', spellcheck: 'false', autofocus: true, required: true });
  const enter = async (value) => {
    said.replaceChildren();
    session.begin(value);
    try {
      await begin();
    } catch (err) {
      session.end();
      said.replaceChildren(note(err.code === 401 || err.code === 403 ? 'These credentials are not accepted.' : err.message, 'bad'));
    }
  };
  return h('div', { class: 'login' }, h('h1', {}, 'Portico'), h('p', { class: 'quiet' }, settings.version), said,
    h('form', { onsubmit: (e) => { e.preventDefault(); enter(token.value.trim()); } },
      h('label', { for: 'token' }, 'Token'), token, h('button', { class: 'first' }, 'Log in')),
    h('div', { class: 'or' }),
    h('button', { type: 'button', id: 'certificate', onclick: () => enter(null) }, 'Use the client certificate of this browser'),
    settings.oidc && h('button', { type: 'button', id: 'oidc', onclick: () => { location.href = 'login'; } }, 'Log in with OpenID Connect'));
}

// finishOIDC begins a session if the issuer has sent the browser back with a code. The code
// is exchanged by the front door, which checks that this browser asked for it.
export async function finishOIDC() {
  const query = new URLSearchParams(location.search);
  if (!query.has('state')) return;
  history.replaceState(null, '', location.pathname + location.hash);
  if (query.has('error')) throw new Error(`The issuer refused: ${query.get('error_description') || query.get('error')}`);
  const response = await fetch('token', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ code: query.get('code'), state: query.get('state') }) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.message);
  session.begin(answer.token);
}
