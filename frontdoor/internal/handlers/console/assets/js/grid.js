// A table of many rows, of which only the visible ones are elements.
import { h } from './dom.js';

// Grid shows rows: values with id, cells (an array of texts), href and, while they are new,
// fresh. Changes are drawn once per frame.
export class Grid {
  constructor(label) {
    this.rows = new Map();
    this.shown = [];
    this.columns = [];
    this.filter = '';
    this.sort = { column: 0, down: false };
    this.selected = '';
    this.empty = ''; // what to say without rows
    this.head = h('div', { class: 'cols', role: 'row' });
    this.body = h('div', { class: 'rows', role: 'rowgroup' });
    this.element = h('div', { class: 'grid', role: 'table', 'aria-label': label, tabindex: '0', onscroll: () => this.draw(), onkeydown: (e) => this.key(e) }, this.head, this.body);
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.element);
  }

  close() {
    this.resized.disconnect();
    cancelAnimationFrame(this.frame);
  }

  // setColumns takes the titles, and the widths as CSS grid tracks.
  setColumns(columns) {
    this.columns = columns;
    const widths = columns.map((c) => c.width).join(' ');
    this.head.style.gridTemplateColumns = widths;
    this.widths = widths;
    this.head.replaceChildren(...columns.map((c, i) => h('div', { role: 'columnheader', 'aria-sort': i === this.sort.column ? (this.sort.down ? 'descending' : 'ascending') : 'none' },
      h('button', { type: 'button', title: c.title, onclick: () => this.sortBy(i) }, c.name))));
    this.change();
  }

  sortBy(i) {
    this.sort = { column: i, down: this.sort.column === i && !this.sort.down };
    this.setColumns(this.columns);
    this.sorted?.(this.sort);
  }

  set(row) { this.rows.set(row.id, row); this.change(); }
  delete(id) { this.rows.delete(id); this.change(); }
  clear() { this.rows.clear(); this.change(); }

  setFilter(text) {
    this.filter = text.toLowerCase();
    this.change();
  }

  // change draws all again at the next frame.
  change() {
    this.stale = true;
    this.frame ??= requestAnimationFrame(() => { this.frame = undefined; this.draw(); });
  }

  order() {
    const { column, down } = this.sort;
    const key = this.columns[column]?.key ?? ((row) => row.cells[column]);
    const all = [];
    for (const row of this.rows.values()) {
      if (!this.filter || row.cells.some((c) => String(c).toLowerCase().includes(this.filter))) all.push([key(row), row]);
    }
    all.sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x.id < y.id ? -1 : 1));
    if (down) all.reverse();
    this.shown = all.map(([, row]) => row);
    this.element.setAttribute('aria-rowcount', this.shown.length + 1);
    this.counted?.(this.shown.length, this.rows.size);
  }

  draw() {
    if (this.stale) {
      this.stale = false;
      this.order();
    }
    const height = this.head.offsetHeight || 30;
    this.body.style.height = `${this.shown.length * height}px`;
    const first = Math.max(0, Math.floor(this.element.scrollTop / height) - 10);
    const last = Math.min(this.shown.length, first + Math.ceil(this.element.clientHeight / height) + 20);
    const focused = this.body.contains(document.activeElement);
    const lines = [];
    for (let i = first; i < last; i++) lines.push(this.line(this.shown[i], i, height));
    if (!this.shown.length) lines.push(h('p', { class: 'none quiet' }, this.rows.size ? 'No row matches the filter.' : this.empty));
    this.body.replaceChildren(...lines);
    if (focused) this.element.focus({ preventScroll: true });
  }

  line(row, i, height) {
    const e = h('a', { class: row.fresh ? 'line fresh' : 'line', role: 'row', href: row.href, tabindex: '-1', 'aria-rowindex': i + 2, 'data-on': row.id === this.selected },
      this.columns.map((c, n) => h('span', { role: 'cell', title: String(row.cells[n] ?? '') }, c.text ? c.text(row) : String(row.cells[n] ?? ''))));
    row.fresh = false;
    e.style.gridTemplateColumns = this.widths;
    e.style.transform = `translateY(${i * height}px)`;
    return e;
  }

  // key moves the selection: j, k, arrows, Page Up and Down, Home, End; Enter opens.
  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const height = this.head.offsetHeight || 30;
    const page = Math.max(1, Math.floor(this.element.clientHeight / height) - 2);
    const at = this.shown.findIndex((row) => row.id === this.selected);
    const end = this.shown.length - 1;
    const to = { j: at + 1, ArrowDown: at + 1, k: at - 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: end }[e.key];
    if (e.key === 'Enter' && at >= 0 && e.target === this.element) {
      location.hash = this.shown[at].href;
      e.preventDefault();
    }
    if (to === undefined || end < 0) return;
    e.preventDefault();
    const i = Math.min(end, Math.max(0, to));
    this.selected = this.shown[i].id;
    const top = i * height;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + 2 * height > this.element.scrollTop + this.element.clientHeight) this.element.scrollTop = top + 2 * height - this.element.clientHeight;
    this.draw();
  }
}
