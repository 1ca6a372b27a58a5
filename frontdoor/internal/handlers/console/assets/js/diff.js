// The difference of two texts, line by line.
import { h } from './dom.js';

// maxEdits bounds the work: texts that differ more are shown as replaced.
const maxEdits = 2000;

// lineDiff returns [kind, line] pairs, kind being ' ', '-' or '+', found with the algorithm
// of Myers.
export function lineDiff(before, after) {
  const a = before.split('\n'), b = after.split('\n');
  let front = new Map([[1, 0]]);
  const trace = [];
  for (let d = 0; d <= Math.min(a.length + b.length, maxEdits); d++) {
    trace.push(new Map(front));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && (front.get(k - 1) ?? -1) < (front.get(k + 1) ?? -1)) ? front.get(k + 1) : front.get(k - 1) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) { x++; y++; }
      front.set(k, x);
      if (x >= a.length && y >= b.length) return walkBack(a, b, trace);
    }
  }
  return [...a.map((l) => ['-', l]), ...b.map((l) => ['+', l])];
}

function walkBack(a, b, trace) {
  const out = [];
  let x = a.length, y = b.length;
  for (let d = trace.length - 1; d >= 0; d--) {
    const front = trace[d], k = x - y;
    const from = k === -d || (k !== d && (front.get(k - 1) ?? -1) < (front.get(k + 1) ?? -1)) ? k + 1 : k - 1;
    const px = d ? front.get(from) : 0, py = d ? px - from : 0;
    while (x > px && y > py) { out.push([' ', a[--x]]); y--; }
    if (!d) break;
    if (x === px) out.push(['+', b[--y]]); else out.push(['-', a[--x]]);
  }
  return out.reverse();
}

// diffView shows the changed lines with three lines around each.
export function diffView(before, after) {
  const lines = lineDiff(before, after);
  if (!lines.some(([kind]) => kind !== ' ')) return h('p', { class: 'quiet' }, 'No difference.');
  const near = new Set();
  lines.forEach(([kind], i) => { if (kind !== ' ') for (let n = i - 3; n <= i + 3; n++) near.add(n); });
  const out = [];
  let skipped = false;
  lines.forEach(([kind, text], i) => {
    if (!near.has(i)) { skipped = true; return; }
    if (skipped) out.push(h('div', { class: 'gap' }, '⋯'));
    skipped = false;
    out.push(h('div', { class: { '+': 'add', '-': 'del', ' ': '' }[kind] }, `${kind} ${text}`));
  });
  return h('pre', { class: 'text diff', 'aria-label': 'difference' }, out);
}
