/* The tile player: turns each <div data-flashcourse-player> of the page into a player, once.
 *
 * The page gets the scores and the values once; what a step shows is computed here, in closed form
 * (m = max of the scores seen, l = Σ exp(S − m), O = softmax · V), so no step asks the kernel.
 * `yours`, the learner's run, holds only what differs from that. Everything is drawn inside a
 * shadow root: several players on a page, and the page's own styles, leave each other alone.
 */
(() => {
  "use strict";
  const STYLE = "@STYLE@";

  // ------------------------------------------------------------ small tools

  const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  const esc = (s) => String(s).replace(/[&<>"]/g, (c) => escapes[c]);
  const fill = (s, values) => s.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
  const range = (n) => Array.from({ length: n }, (_, x) => x);

  function bytesOf(base64) {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  }

  const floatsOf = (base64) => new Float32Array(bytesOf(base64).buffer);

  /** A number as the course writes it: 3 decimals, fewer when it is large; −∞, NaN. */
  function num(x) {
    if (x === null || x === undefined) return "—";
    if (Number.isNaN(x)) return "NaN";
    if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
    const size = Math.abs(x);
    const s = size !== 0 && (size >= 1e5 || size < 5e-4) ? x.toExponential(1)
      : x.toFixed(size < 100 ? 3 : 1);
    return s.replace(/-/g, "−").replace(/e\+/, "e");
  }

  /** A row of numbers, or just 0 for a row of zeros. */
  const vector = (xs, more) => Array.from(xs).every((x) => x === 0) ? "0"
    : `[${Array.from(xs, num).join(", ")}${more ? ", …" : ""}]`;
  const grouped = new Intl.NumberFormat("en-US");
  const count = (n) => grouped.format(n);

  function bytes(n) {
    if (n < 1024) return `${n} B`;
    return n < 1 << 20 ? `${+(n / 1024).toFixed(1)} KiB` : `${+(n / (1 << 20)).toFixed(1)} MiB`;
  }

  /** A sentence with {blanks}, as the list of its words and what fills the blanks. */
  const sentence = (s, values) => s.split(/\{(\w+)\}/).map((part, n) => (n % 2 ? values[part] : part));

  function setAttribute(node, name, value) {
    if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }

  function setText(node, words) {
    if (node.textContent !== words) node.textContent = words;
  }

  // ------------------------------------------------------------ panels that change in place

  /* A step may change hundreds of numbers, and little else. html`<td class=${c}>${x}</td>` says what
   * a panel holds; its elements are made once, and a later step writes only the ${holes} that differ.
   * A hole is the whole value of an attribute (false: no attribute), or stands between tags and
   * holds words, a template of one element, or a list of these. */
  const html = (parts, ...values) => ({ parts, values });

  const patterns = new Map(); // a template's constant parts -> { element, holes }

  function patternOf(parts) {
    if (!patterns.has(parts)) {
      const template = document.createElement("template"), last = parts.length - 1;
      template.innerHTML = parts.map((part, n) => part + (n === last ? ""
        : part.endsWith("=") ? `"{hole}"` : "<!--hole-->")).join("").trim();
      const element = template.content.firstChild;
      patterns.set(parts, { element, holes: Array.from(holesIn(element, [])) });
    }
    return patterns.get(parts);
  }

  /** Where the holes of an element are, in their order: [path of child numbers, attribute]. */
  function* holesIn(node, path) {
    if (node.nodeType === Node.COMMENT_NODE) yield [path, null];
    for (const name of node.getAttributeNames?.() ?? []) {
      if (node.getAttribute(name) === "{hole}") yield [path, name];
    }
    for (const [n, child] of node.childNodes.entries()) yield* holesIn(child, [...path, n]);
  }

  class Filled {
    constructor({ parts, values }) {
      const { element, holes } = patternOf(parts);
      this.parts = parts;
      this.node = element.cloneNode(true);
      this.holes = holes.map(([path, name]) => {
        const node = path.reduce((at, n) => at.childNodes[n], this.node);
        return name ? new AttributeHole(node, name) : new Hole(node);
      });
      this.fill(values);
    }
    fill(values) {
      for (let n = 0; n < values.length; n++) this.holes[n].put(values[n]);
    }
  }

  class AttributeHole {
    constructor(node, name) { Object.assign(this, { node, name, value: null }); }
    put(value) {
      if (value === this.value) return;
      this.value = value;
      if (value === false) this.node.removeAttribute(this.name);
      else this.node.setAttribute(this.name, value);
    }
  }

  /** What stands before the node `end`: words and templates. */
  class Hole {
    constructor(end) { Object.assign(this, { end, items: [] }); }
    put(value) {
      const list = Array.isArray(value) ? value : [value];
      for (let n = 0; n < list.length; n++) this.putOne(list[n], n);
      while (this.items.length > list.length) this.items.pop().node.remove();
    }
    putOne(value, n) {
      const old = this.items[n], words = value.parts ? undefined : String(value);
      if (old && old.parts === value.parts) {
        if (value.parts) old.fill(value.values);
        else if (old.words !== words) old.node.data = old.words = words;
        return;
      }
      const item = value.parts ? new Filled(value) : { words, node: new Text(words) };
      if (old) old.node.replaceWith(item.node);
      else this.end.before(item.node);
      this.items[n] = item;
    }
  }

  // ------------------------------------------------------------ the algorithm's values

  /** Sizes of the run, and for a tile the rows and keys in it. */
  class Grid {
    constructor(data) {
      Object.assign(this, { rows: data.rows, keys: data.keys, dim: data.dim, dimV: data.dimV,
        br: data.br, bc: data.bc, shown: data.shown });
      this.down = Math.ceil(this.rows / this.br);
      this.across = Math.ceil(this.keys / this.bc);
      this.tiles = this.down * this.across;
    }
    rowRange(bi) { return [bi * this.br, Math.min(this.rows, (bi + 1) * this.br)]; }
    keyRange(bj) { return [bj * this.bc, Math.min(this.keys, (bj + 1) * this.bc)]; }
    order(loop) {
      return range(this.tiles).map((t) => loop === "q"
        ? [Math.floor(t / this.across), t % this.across]
        : [t % this.down, Math.floor(t / this.down)]);
    }
  }

  /** Of each tile, the first `grid.shown` rows, keys and dimensions are computed and shown. */
  class Exact {
    constructor(data, grid) {
      this.grid = grid;
      this.S = floatsOf(data.scores);
      this.V = floatsOf(data.values);
    }
    score(row, key) { return this.S[row * this.grid.keys + key]; }

    /** m, l, O of a row after its first n keys, in closed form. */
    after(row, n) {
      const dims = Math.min(this.grid.dimV, this.grid.shown), O = new Array(dims).fill(0);
      let m = -Infinity, l = 0;
      for (let key = 0; key < n; key++) m = Math.max(m, this.score(row, key));
      for (let key = 0; key < n; key++) {
        const weight = Math.exp(this.score(row, key) - m);
        l += weight;
        for (let x = 0; x < dims; x++) O[x] += weight * this.V[key * dims + x];
      }
      return { m, l, O: O.map((x) => (l ? x / l : 0)) };
    }

    /** What tile (bi, bj) reads, computes and leaves, for the rows that are shown. */
    tile(bi, bj, divide) {
      const [first, end] = this.grid.rowRange(bi), [left, right] = this.grid.keyRange(bj);
      const { shown } = this.grid, keys = range(Math.min(right - left, shown)).map((x) => left + x);
      const rows = range(Math.min(end - first, shown)).map((x) => {
        const row = first + x, before = this.after(row, left), after = this.after(row, right);
        const all = range(right - left).map((y) => this.score(row, left + y));
        const P = all.map((s) => Math.exp(s - after.m)), alpha = Math.exp(before.m - after.m);
        const scaled = (state) => divide === "end" ? state.O.map((o) => o * state.l) : state.O;
        return { row, S: all.slice(0, shown), P: P.slice(0, shown), m0: before.m, l0: before.l,
          O0: scaled(before), mb: Math.max(...all), m1: after.m, alpha,
          lb: P.reduce((a, b) => a + b, 0), l1: after.l, O1: scaled(after), final: after.O,
          m2: after.m, l2: after.l };
      });
      return { rows, keys, left, right, first, end };
    }
  }

  // The learner's names, and where their values stand in a tile's row.
  const NAMES = { S_ij: "S", m_block: "mb", m_new: "m1", P_ij: "P", l_block: "lb", l_new: "l1",
    out_i: "O1", m_i: "m2", l_i: "l2", "m_i before": "m0", "l_i before": "l0",
    "out_i before": "O0" };
  const MANY = new Set(["S", "P", "O0", "O1"]);

  const differs = (a, b) => !(a === b || Math.abs(a - b) <= 1e-4 * (1 + Math.abs(b)));

  /** A value that differs at step t: "=name" stands for the same as that name, "<" for what the step
   * before left. */
  function sent(diffs, t, name) {
    const values = diffs[t][name];
    if (values[0] === "=") return sent(diffs, t, values.slice(1));
    return values === "<" ? sent(diffs, t - 1, name.replace(" before", "")) : values;
  }

  /** The learner's tile: the exact one, with what differs put in its place. */
  function learnersTile(exact, { diffs, unseen }, t) {
    const rows = exact.rows.map((row) => ({ ...row, bad: new Set() }));
    const place = (name, values) => rows.forEach((row, x) => {
      const field = NAMES[name], width = MANY.has(field) ? row[field].length : 1;
      const own = values && Array.from(values.slice(x * width, (x + 1) * width));
      const right = exact.rows[x][field];
      row[field] = own ? (MANY.has(field) ? own : own[0]) : null;
      if (own && own.some((one, y) => differs(one, MANY.has(field) ? right[y] : right))) {
        row.bad.add(field);
      }
    });
    for (const name of unseen) place(name, null);
    for (const name of Object.keys(diffs[t] ?? {})) place(name, floatsOf(sent(diffs, t, name)));
    return { ...exact, rows };
  }

  // ------------------------------------------------------------ what moves

  /** What one tile loads from and stores to HBM: [direction, kind, name, elements]. */
  function moves(grid, loop, bi, bj) {
    const [r0, r1] = grid.rowRange(bi), [c0, c1] = grid.keyRange(bj);
    const rows = r1 - r0, keys = c1 - c0, list = [];
    const of = `[${r0}:${r1}]`, move = (...what) => list.push(what);
    const keysIn = () => {
      move("in", "kv", `K[${c0}:${c1}]`, keys * grid.dim);
      move("in", "kv", `V[${c0}:${c1}]`, keys * grid.dimV);
    };
    if (loop === "q") {
      if (bj === 0) move("in", "q", `Q${of}`, rows * grid.dim);
      keysIn();
      if (bj === grid.across - 1) {
        move("out", "o", `O${of}`, rows * grid.dimV);
        move("out", "o", `L${of}`, rows);
      }
      return list;
    }
    if (bi === 0) keysIn();
    move("in", "q", `Q${of}`, rows * grid.dim);
    for (const way of ["in", "out"]) {
      move(way, "o", `O${of}`, rows * grid.dimV);
      move(way, "o", `m, l${of}`, 2 * rows);
    }
    return list;
  }

  function trafficSoFar(grid, loop, order) {
    let sum = 0;
    return order.map(([bi, bj]) => {
      for (const [, , , elements] of moves(grid, loop, bi, bj)) sum += elements;
      return sum;
    });
  }

  const standardTraffic = (g) =>
    (g.rows + g.keys) * g.dim + (g.keys + g.rows) * g.dimV + 4 * g.rows * g.keys;

  const workingSet = (g, rows, keys) =>
    (rows + keys) * g.dim + (rows + keys) * g.dimV + rows * keys + 2 * rows;

  function largestBlock(g, elements) {
    const c = 2 * g.dim + 2 * g.dimV + 2;
    return Math.floor((Math.sqrt(c * c + 4 * elements) - c) / 2);
  }

  // ------------------------------------------------------------ the grid picture

  const SIDE = 252, LEFT = 44, TOP = 44;

  class Picture {
    constructor(grid, words, risen, wrong) {
      this.grid = grid;
      this.words = words;
      this.tileW = SIDE * grid.bc / grid.keys;
      this.tileH = SIDE * grid.br / grid.rows;
      this.html = this.draw(risen, wrong);
    }
    x(key) { return LEFT + SIDE * key / this.grid.keys; }
    y(row) { return TOP + SIDE * row / this.grid.rows; }
    box(bi, bj) {
      const [r0, r1] = this.grid.rowRange(bi), [c0, c1] = this.grid.keyRange(bj);
      return [this.x(c0), this.y(r0), this.x(c1) - this.x(c0), this.y(r1) - this.y(r0)];
    }
    path(tiles) {
      return tiles.map(([bi, bj]) => {
        const [x, y, w, h] = this.box(bi, bj);
        return `M${x} ${y}h${w}v${h}h${-w}z`;
      }).join("");
    }
    hatch(tiles) {
      return tiles.map(([bi, bj]) => {
        const [x, y, w, h] = this.box(bi, bj);
        return `M${x} ${y}l${w} ${h}M${x + w} ${y}l${-w} ${h}`;
      }).join("");
    }
    lines(down, across) {
      const steps = (n, size) => range(n - 1).map((x) => (x + 1) * size);
      const { br, bc, rows, keys } = this.grid;
      return steps(down, down === rows ? 1 : br).map((r) => `M${LEFT} ${this.y(r)}h${SIDE}`)
        .concat(steps(across, across === keys ? 1 : bc).map((c) => `M${this.x(c)} ${TOP}v${SIDE}`))
        .join("");
    }
    draw(risen, wrong) {
      const { grid: g, words: w } = this, end = LEFT + SIDE, some = g.rows <= 32 && g.keys <= 32;
      const shades = [[0.001, 0.34, 0.13], [0.34, 0.67, 0.24], [0.67, 1.1, 0.38]].map((shade) =>
        `<path d="${this.path(risen.filter(([, , part]) => part >= shade[0] && part < shade[1]))}"
          style="fill:rgba(var(--rise),${shade[2]})"/>`);
      const names = g.down > 16 ? [] : range(g.down).map((bi) => {
        const y = this.y((g.rowRange(bi)[0] + g.rowRange(bi)[1]) / 2) + 4;
        return `<text x="${LEFT - 13}" y="${y}" text-anchor="middle">${bi * g.br}</text>`;
      });
      if (g.across <= 16) names.push(...range(g.across).map((bj) => `<text text-anchor="middle"
        x="${this.x((g.keyRange(bj)[0] + g.keyRange(bj)[1]) / 2)}" y="${TOP - 9}">${bj * g.bc}</text>`));
      return `<svg viewBox="0 0 352 304" aria-hidden="true">
        <text class="name kn" x="${LEFT}" y="14">${esc(w.keysName)}</text>
        <text class="name qn" text-anchor="end" transform="translate(15 ${TOP}) rotate(-90)"
          x="0">${esc(w.rowsName)}</text>
        <text class="name on" x="${end + 10}" y="34">O, m, l</text>
        <rect class="strip kv" x="${LEFT}" y="${TOP - 22}" width="${SIDE}" height="18"/>
        <rect class="strip q" x="${LEFT - 22}" y="${TOP}" width="18" height="${SIDE}"/>
        ${names.join("")}
        <rect class="area" x="${LEFT}" y="${TOP}" width="${SIDE}" height="${SIDE}"/>
        ${shades.join("")}<path class="wrong" d="${this.hatch(wrong)}"/>
        <path class="cover" data-part="cover"/>
        <path class="cells" d="${some ? this.lines(g.rows, g.keys) : ""}"/>
        <path class="lines" style="stroke-width:${g.tiles > 400 ? 0.25 : 0.6}" d="${this.lines(g.down, g.across)}"/>
        <rect class="edge" x="${LEFT}" y="${TOP}" width="${SIDE}" height="${SIDE}"/>
        ${range(g.down).map((bi) => {
          const [, y, , h] = this.box(bi, 0);
          return `<rect class="strip o" x="${end + 10}" y="${y}" width="42" height="${h}"/>
            <rect class="seen" x="${end + 10}" y="${y}" width="0" height="${h}"/>`;
        }).join("")}
        <rect class="load q" data-part="q" x="${LEFT - 22}" width="18"/>
        <rect class="load kv" data-part="kv" y="${TOP - 22}" height="18"/>
        <rect class="load o" data-part="o" x="${end + 10}" width="42"/>
        <rect class="now" data-part="now"/><g data-part="numbers"></g></svg>`;
    }
    attach(root) {
      this.parts = Object.fromEntries(Array.from(root.querySelectorAll(".grid [data-part]"),
        (part) => [part.dataset.part, part]));
      this.seen = Array.from(root.querySelectorAll(".grid .seen"));
      this.shown = new Array(this.seen.length).fill(0);
    }
    set(part, attributes) {
      for (const [name, value] of Object.entries(attributes)) {
        setAttribute(this.parts[part], name, value);
      }
    }
    /** Shows step `t` of `order`: the tile now, what is loaded, what is done. */
    show(order, t, loop, scores, wrong) {
      const [bi, bj] = order[t], [x, y, width, height] = this.box(bi, bj);
      this.set("now", { x, y, width, height, class: wrong ? "now off" : "now" });
      this.set("q", { y, height });
      this.set("kv", { x, width });
      this.set("o", { y, height });
      this.set("cover", { d: this.cover(order, t, loop) });
      this.showSeen(order, t, loop);
      const fits = scores && width / (scores.right - scores.left) >= 28;
      this.showScores(fits ? scores.rows.flatMap((row) => row.S.map((s, n) =>
        [this.x(scores.left + n + 0.5), this.y(row.row + 0.5) + 4, s.toFixed(1).replace("-", "−")])) : []);
    }
    showScores(scores) {
      const { numbers } = this.parts;
      while (numbers.childNodes.length > scores.length) numbers.lastChild.remove();
      scores.forEach(([x, y, words], n) => {
        const text = numbers.childNodes[n]
          ?? numbers.appendChild(document.createElementNS(numbers.namespaceURI, "text"));
        setAttribute(text, "class", "s");
        setAttribute(text, "x", x);
        setAttribute(text, "y", y);
        setText(text, words);
      });
    }
    /** The part of the grid that was not visited yet, which hides its shading. */
    cover(order, t, loop) {
      const [bi, bj] = order[t], right = LEFT + SIDE, bottom = TOP + SIDE;
      const [x, y, w, h] = this.box(bi, bj);
      if (loop === "q") {
        return `M${x + w} ${y}H${right}V${y + h}H${x + w}zM${LEFT} ${y + h}H${right}V${bottom}` +
          `H${LEFT}z`;
      }
      if (loop === "kv") {
        return `M${x} ${y + h}H${x + w}V${bottom}H${x}zM${x + w} ${TOP}H${right}V${bottom}` +
          `H${x + w}z`;
      }
      return this.unvisited(new Set(order.slice(0, t + 1).map(([i, j]) => i * this.grid.across + j)));
    }
    /** The tiles that are not in `visited`, neighbours in a row as one rectangle. */
    unvisited(visited) {
      const { down, across } = this.grid, left = (n) => !visited.has(n);
      let path = "";
      for (let bi = 0; bi < down; bi++) {
        for (let bj = 0; bj < across; bj++) {
          const first = bj, at = bi * across;
          if (!left(at + bj)) continue;
          while (bj + 1 < across && left(at + bj + 1)) bj++;
          const [x, y] = this.box(bi, first), [lastX, , width, height] = this.box(bi, bj);
          path += `M${x} ${y}H${lastX + width}v${height}H${x}z`;
        }
      }
      return path;
    }
    /** How many of the keys each block of rows has seen. */
    showSeen(order, t, loop) {
      const [bi, bj] = order[t], { keys } = this.grid, part = (b) => this.grid.keyRange(b)[1] / keys;
      const other = new Array(this.seen.length).fill(0);
      if (loop === "other") for (const [i, j] of order.slice(0, t + 1)) other[i] = part(j);
      this.seen.forEach((rect, b) => {
        const now = loop === "q" ? (b < bi ? 1 : b === bi ? part(bj) : 0)
          : loop === "kv" ? (b <= bi ? part(bj) : bj ? part(bj - 1) : 0) : other[b];
        if (now !== this.shown[b]) rect.setAttribute("width", 42 * (this.shown[b] = now));
      });
    }
  }

  // ------------------------------------------------------------ the panels of numbers

  const written = (x) => (Array.isArray(x) ? vector(x) : num(x));

  /** One value; where the learner's differs, the right one stands under it. */
  function value(own, right, bad, name, row) {
    if (own === null || own === undefined) {
      return html`<span class="val missing" data-name=${name} data-row=${row}>—</span>`;
    }
    return bad
      ? html`<span class="val bad"><span data-name=${name} data-row=${row}>${written(own)}</span>
          ≠<small>✓ ${written(right)}</small></span>`
      : html`<span class="val" data-name=${name} data-row=${row}>${written(own)}</span>`;
  }

  function cell(own, right, differing, shaded) {
    if (own === null) return html`<td class="missing">—</td>`;
    if (differing && differs(own, right)) {
      return html`<td class="bad">${num(own)} ≠<small>✓ ${num(right)}</small></td>`;
    }
    const shade = shaded && Number.isFinite(own) && `shade-${Math.round(10 * clamp(own, 0, 1))}`;
    return html`<td class=${shade}>${num(own)}</td>`;
  }

  function matrix(name, law, exact, own) {
    const rows = own.rows.map((row, x) => html`<tr><th scope="row">${`q${row.row}`}</th>${
      exact.rows[x][name].map((right, y) =>
        cell(row[name] && row[name][y], right, row.bad?.has(name), name === "P"))}</tr>`);
    return html`<table class=${exact.keys.length > 4 && "tight"}>
      <caption>${`${name}_ij`} <small>= ${law}</small></caption><tr><td class="corner"></td>${
      exact.keys.map((key) => html`<th scope="col">${`k${key}`}</th>`)}</tr>${rows}</table>`;
  }

  function stateLines(exact, own, chosen, words, O) {
    return own.rows.map((row, x) => {
      const right = exact.rows[x];
      const show = (name) => value(row[name], right[name], row.bad?.has(name), name, row.row);
      const change = (label, from, to) => html`<span><span class="name">${label}</span> <span
        class="old">${show(from)}</span> → ${show(to)}</span>`;
      return html`<div class="line"><button class="row" data-pick=${x} aria-pressed=${x === chosen
        ? "true" : "false"} title=${words.pickRow}>${`q${row.row}`}</button><div>
        <span>${change("m", "m0", "m1")}${right.m1 > right.m0 ? html`<span class="up"> ▲</span>` : ""}</span>
        <span><span class="name">α</span> <span class="val" data-name="alpha"
          data-row=${row.row}>${num(right.alpha)}</span></span>
        ${change("l", "l0", "l1")}${change(O, "O0", "O1")}</div></div>`;
    });
  }

  /** The rows of formulas for one query row: [TODO, variables, formula, with numbers, fields]. */
  function formulas(row, divide, last, words) {
    const { more } = row;
    const S = vector(row.S, more.P), P = vector(row.P, more.P);
    const old = vector(row.O0, more.O), a = num(row.alpha);
    const lines = [
      ["TODO 2", ["S_ij"], "S = q·kᵀ / √d", "", S, ["S"]],
      ["TODO 3", ["m_block", "m_new"], "m_new = max(m_old, max S)",
        `max(${num(row.m0)}, ${num(row.mb)})`, num(row.m1), ["mb", "m1"]],
      ["TODO 4", ["P_ij"], "P = exp(S − m_new)", "", P, ["P"]],
      ["", [], "α = exp(m_old − m_new)", `exp(${num(row.m0)} − ${par(row.m1)})`, a, []],
      ["TODO 5", ["l_block", "l_new"], "l_new = α·l_old + ΣP",
        `${a}·${num(row.l0)} + ${num(row.lb)}`, num(row.l1), ["lb", "l1"]],
      divide === "end"
        ? ["TODO 6", ["out_i"], "Õ_new = α·Õ_old + P·V", `${a}·${old} + P·V`,
          vector(row.O1, more.O), ["O1"]]
        : ["TODO 6", ["out_i"], "O_new = (α·l_old·O_old + P·V) / l_new",
          `(${a}·${num(row.l0)}·${old} + P·V) / ${num(row.l1)}`, vector(row.O1, more.O), ["O1"]],
    ];
    if (divide === "end" && last) {
      lines.push([words.lastly, [], "O = Õ / l", "", vector(row.final, more.O), []]);
    }
    return lines;
  }

  const par = (x) => (x < 0 ? `(${num(x)})` : num(x));

  function formulaList(exact, own, x, grid, divide, last, words, code) {
    const more = { P: exact.right - exact.left > grid.shown, O: grid.dimV > grid.shown };
    const row = { ...exact.rows[x], more }, mine = own.rows[x];
    const lines = formulas(row, divide, last, words).map(([todo, names, law, filled, res, fields]) => {
      const wrong = fields.filter((field) => mine.bad?.has(field)).map((field) =>
        html`<div class="bad">≠ ${words.yours}: ${nameOf(field)} = ${written(mine[field])}</div>`);
      const source = names.filter((name) => code?.[name]).map((name) =>
        html`<code>${fill(words.codeLine, { line: code[name][0] })}  ${code[name][1]}</code>`);
      return html`<li><span class="todo">${todo}</span><div>${law}
        <span class="with">= ${filled ? `${filled} = ` : ""}</span><span class="res">${res}</span>
        ${wrong}${source}</div></li>`;
    });
    const kept = ["m2", "l2"].filter((field) => mine.bad?.has(field)).map((field) =>
      html`<li><span class="todo">${words.kept}</span><div class="bad">≠ ${nameOf(field)} = ${
        num(mine[field])} <span class="with">(${num(row[field])})</span></div></li>`);
    return lines.concat(kept);
  }

  const nameOf = (field) => Object.keys(NAMES).find((name) => NAMES[name] === field);

  // ------------------------------------------------------------ the player

  const ICONS = { first: "M3 2h2v12H3zM14 2v12L6 8z", back: "M12 2v12L4 8z", play: "M4 2l9 6-9 6z",
    pause: "M3 2h4v12H3zM9 2h4v12H9z", next: "M4 2l8 6-8 6z", last: "M2 2l8 6-8 6zM11 2h2v12h-2z" };
  const icon = (name) => `<svg viewBox="0 0 16 16" aria-hidden="true"><path d="${ICONS[name]}"/></svg>`;

  class Player {
    constructor(host) {
      this.host = host;
      this.data = JSON.parse(host.dataset.flashcoursePlayer);
      this.words = this.data.words;
      this.grid = new Grid(this.data);
      this.exact = this.data.scores ? new Exact(this.data, this.grid) : null;
      this.yours = this.data.yours;
      this.own = Boolean(this.yours && this.yours.tiles);
      Object.assign(this, { loop: this.data.loop, divide: this.data.divide, row: null, timer: null });
      this.setOrder();
      this.step = clamp(this.data.start, 0, this.order.length - 1);
      this.build();
      this.listen();
      this.theme();
      this.showChoices();
      this.show();
      host.dataset.ready = "true";
    }

    setOrder() {
      const { yours } = this, own = this.own;
      this.shownLoop = own ? yours.loop : this.loop;
      this.shownDivide = own ? yours.divide : this.divide;
      this.order = own ? this.learnersOrder() : this.grid.order(this.loop);
      const loop = this.shownLoop === "kv" ? "kv" : "q";
      this.traffic = trafficSoFar(this.grid, loop, this.order);
      this.trafficInAll = trafficSoFar(this.grid, loop, this.grid.order(loop)).pop();
      this.wrong = new Set(own ? yours.wrong : []);
    }

    learnersOrder() {
      const { loop, order, tiles } = this.yours;
      return loop === "other" ? order : this.grid.order(loop).slice(0, tiles);
    }

    /** [bi, bj, share of rows whose maximum rose], for the shading of the grid. */
    risen() {
      const g = this.grid, tiles = g.order("q");
      if (this.data.summary) {
        const share = bytesOf(this.data.summary.rise);
        return tiles.map(([bi, bj], n) => [bi, bj, share[n] / 255]);
      }
      const highest = new Array(g.rows).fill(-Infinity);
      return tiles.map(([bi, bj]) => {
        const [r0, r1] = g.rowRange(bi), [c0, c1] = g.keyRange(bj);
        let rose = 0;
        for (let row = r0; row < r1; row++) {
          let top = -Infinity;
          for (let key = c0; key < c1; key++) top = Math.max(top, this.exact.score(row, key));
          if (top > highest[row]) { highest[row] = top; rose += 1; }
        }
        return [bi, bj, rose / (r1 - r0)];
      });
    }

    wrongTiles() {
      return this.yours ? this.yours.wrong.map((t) => this.learnersOrder()[t]) : [];
    }

    build() {
      const { words: w, grid: g } = this;
      this.root = this.host.attachShadow({ mode: "open" });
      this.picture = new Picture(g, w, this.risen(), this.wrongTiles());
      const button = (name) => `<button data-go="${name}" aria-label="${esc(w[name])}"
        title="${esc(w[name])}" class="${name}">${icon(name)}</button>`;
      const choice = (label, name, values) => `<span class="choice" role="group"
        aria-label="${esc(label)}">${esc(label)} <span class="set">${values.map(([key, words]) =>
          `<button data-set="${name}" data-to="${key}">${esc(words)}</button>`).join("")}</span></span>`;
      const memory = `<div class="mem"></div>`;
      this.root.innerHTML = `<style>${STYLE}</style><section class="fc" tabindex="0"
          aria-label="${esc(w.title)}">
        <header><h3>${esc(w.title)}</h3><span class="which"></span><span class="where"></span></header>
        <div class="bar">${["first", "back", "play", "next", "last"].map(button).join("")}
          <div class="track"><input type="range" min="0" value="0" aria-label="${esc(w.slider)}"></div>
          <select aria-label="${esc(w.speed)}">${[0.5, 1, 2, 4, 16].map((s) =>
            `<option value="${s}"${s === 1 ? " selected" : ""}>${s}×</option>`).join("")}</select></div>
        <div class="options">
          ${this.yours ? choice(w.show, "own", [["exact", w.exact], ["yours", w.yours]]) : ""}
          ${choice(w.loop, "loop", [["q", w.loopQ], ["kv", w.loopKV]])}
          ${choice(w.division, "divide", [["step", w.divideStep], ["end", w.divideEnd]])}</div>
        <div class="verdict" hidden></div>
        <div class="body"><div class="grid">${this.picture.html}<p class="legend"></p></div>
          <div><div class="numbers"></div>${this.exact ? "" : memory}</div></div>
        ${this.exact ? `<div class="foot"><div class="laws"></div>${memory}</div>` : ""}
        <p class="hint"><kbd>←</kbd> <kbd>→</kbd> <kbd>Home</kbd> <kbd>End</kbd> ${w.keysHint}</p>
        <div class="sr" aria-live="polite"></div></section>`;
      this.find = (selector) => this.root.querySelector(selector);
      this.nodes = Object.fromEntries(["first", "back", "play", "next", "last", "where", "which",
        "numbers", "laws", "mem", "track", "sr"].map((name) => [name, this.find(`.${name}`)]));
      this.slider = this.find("input");
      this.panels = Object.fromEntries(["numbers", "laws", "mem"].filter((name) => this.nodes[name])
        .map((name) => [name, new Hole(this.nodes[name].appendChild(new Comment()))]));
      this.picture.attach(this.root);
      this.find(".legend").innerHTML =
        `<span class="key" style="background:var(--done)"></span>${esc(w.legendDone)} ` +
        `<span class="key" style="background:rgba(var(--rise),.38)"></span>${esc(w.legendRise)}` +
        (this.wrongTiles().length ? ` <span class="bad">╳</span> ${esc(w.legendWrong)}` : "");
      if (this.yours) this.verdict();
    }

    verdict() {
      const { yours, words } = this, box = this.find(".verdict");
      box.hidden = false;
      box.classList.add(yours.tone);
      box.innerHTML = `<b aria-hidden="true">${{ right: "✓", wrong: "≠", open: "…" }[yours.tone]}</b> <span>${esc(yours.message)}</span>` +
        (yours.first !== null ? `<button data-go="difference">${esc(words.jump)}</button>` : "");
    }

    // -------------------------------------------------------- what the reader does

    listen() {
      const section = this.find(".fc");
      this.host.dataset.lmSuppressShortcuts = "true"; // or JupyterLab and Notebook 7 take the keys
      section.addEventListener("click", (event) => this.click(event));
      section.addEventListener("keydown", (event) => this.key(event));
      this.slider.addEventListener("input", (event) => this.go(+event.target.value));
      this.find("select").addEventListener("change", () => { if (this.timer) this.play(true); });
      for (const kind of ["keyup", "keypress"]) {
        section.addEventListener(kind, (event) => event.stopPropagation());
      }
    }

    click(event) {
      const target = event.target.closest("button");
      if (!target) return;
      const { go, set, to, pick } = target.dataset;
      if (go) this.button(go);
      if (set) this.choose(set, to);
      if (pick) { this.row = +pick; this.show(); }
    }

    button(name) {
      if (name === "play") return this.play(!this.timer);
      if (name === "difference") return this.toDifference();
      const to = { first: 0, back: this.step - 1, next: this.step + 1, last: this.order.length - 1 };
      this.play(false);
      return this.go(to[name]);
    }

    choose(name, to) {
      const tile = this.order[this.step];
      if (name === "own") this.own = to === "yours" && this.yours.tiles > 0;
      else this[name] = to;
      this.setOrder();
      this.showChoices();
      const again = this.order.findIndex(([bi, bj]) => bi === tile[0] && bj === tile[1]);
      this.go(again < 0 ? this.order.length - 1 : again);
    }

    toDifference() {
      this.own = true;
      this.setOrder();
      this.showChoices();
      this.row = null;
      this.go(this.yours.first);
    }

    key(event) {
      const last = this.order.length - 1;
      const to = { ArrowRight: this.step + 1, ArrowDown: this.step + 1, ArrowLeft: this.step - 1,
        ArrowUp: this.step - 1, Home: 0, End: last, PageDown: this.step + this.grid.across,
        PageUp: this.step - this.grid.across }[event.key];
      const tag = event.target.tagName;
      event.stopPropagation();
      if (tag === "SELECT" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === " " && tag !== "BUTTON") this.play(!this.timer);
      else if (to !== undefined) { this.play(false); this.go(to); }
      else return;
      event.preventDefault();
    }

    play(on) {
      if (!on && !this.timer) return;
      clearInterval(this.timer);
      this.timer = null;
      if (on) {
        if (this.step === this.order.length - 1) this.go(0);
        this.timer = setInterval(() => {
          if (!this.host.isConnected || this.step >= this.order.length - 1) this.play(false);
          else this.go(this.step + 1);
        }, 1000 / +this.find("select").value);
      }
      const button = this.nodes.play, name = this.timer ? "pause" : "play";
      button.innerHTML = icon(name);
      button.setAttribute("aria-label", this.words[name]);
    }

    go(step) {
      this.step = clamp(step, 0, this.order.length - 1);
      this.show();
    }

    // -------------------------------------------------------- what a step shows

    show() {
      const [bi, bj] = this.order[this.step];
      const right = this.exact && this.exact.tile(bi, bj, this.shownDivide);
      this.picture.show(this.order, this.step, this.shownLoop, right, this.wrong.has(this.step));
      this.showControls(bi, bj);
      if (right) this.showNumbers(right, bi, bj);
      else this.showSummary(bi, bj);
      this.showMemory(bi, bj);
      this.host.dataset.step = this.step;
      this.host.dataset.tile = `${bi * this.grid.br},${bj * this.grid.bc}`;
    }

    /** What the reader chose, and the mark of the first difference on the slider. */
    showChoices() {
      const chosen = { own: this.own ? "yours" : "exact", loop: this.shownLoop, divide: this.shownDivide };
      for (const button of this.root.querySelectorAll("[data-set]")) {
        const { set, to } = button.dataset;
        button.setAttribute("aria-pressed", chosen[set] === to);
        button.disabled = set === "own" ? to === "yours" && !this.yours.tiles : this.own;
      }
      setText(this.nodes.which, this.words[`which_${this.shownLoop}_${this.shownDivide}`] || "");
      this.slider.max = this.order.length - 1;
      this.showFlag(this.order.length);
    }

    showControls(bi, bj) {
      const { words: w, step, nodes } = this, steps = this.order.length;
      this.where = fill(w.where, { i: bi * this.grid.br, j: bj * this.grid.bc, step: step + 1, steps });
      this.slider.value = step;
      setAttribute(this.slider, "aria-valuetext", this.where);
      setText(nodes.where, this.where);
      for (const name of ["first", "back"]) setAttribute(nodes[name], "aria-disabled", !step);
      for (const name of ["next", "last"]) setAttribute(nodes[name], "aria-disabled", step === steps - 1);
    }

    showFlag(steps) {
      const first = this.own ? this.yours.first : null;
      this.find(".flag")?.remove();
      if (first === null || steps < 2) return;
      const at = first / (steps - 1);
      this.nodes.track.insertAdjacentHTML("beforeend", `<span class="flag" aria-hidden="true"
        style="left:calc(${at * 100}% + ${8 - 16 * at}px)">▼</span>`);
    }

    showNumbers(right, bi, bj) {
      const { words: w, yours, grid: g } = this;
      const own = this.own ? learnersTile(right, yours, this.step) : right;
      const worst = own.rows.findIndex((row) => row.bad && row.bad.size);
      const row = Math.min(this.row ?? Math.max(0, worst), own.rows.length - 1);
      const O = this.shownDivide === "end" ? "Õ" : "O";
      const cut = Math.max(right.end - right.first, right.right - right.left, g.dimV) > g.shown;
      this.panels.numbers.put([
        html`<div class="pair">${matrix("S", "q·kᵀ/√d", right, own)}
          ${matrix("P", "exp(S − m)", right, own)}</div>`,
        html`<div class="state"><h4>${w.state}</h4>${stateLines(right, own, row, w, O)}</div>`,
        cut ? html`<p class="legend">${fill(w.cut, { n: g.shown })}</p>` : ""]);
      const lines = formulaList(right, own, row, g, this.shownDivide, bj === g.across - 1, w,
        this.own ? yours.code : null);
      this.panels.laws.put([html`<h4>${fill(w.laws, { row: `q${right.first + row}` })}</h4>`,
        html`<ol>${lines}</ol>`]);
      const spoken = own.rows[row];
      this.say(fill(w.spoken, { where: this.where, row: `q${spoken.row}`, m: written(spoken.m1),
        l: written(spoken.l1), alpha: num(right.rows[row].alpha), O: written(spoken.O1) }));
    }

    showSummary(bi, bj) {
      const { words: w, data } = this, n = bi * this.grid.across + bj;
      this.rise ??= bytesOf(data.summary.rise);
      this.alpha ??= bytesOf(data.summary.alpha);
      this.top ??= floatsOf(data.summary.top);
      const [r0, r1] = this.grid.rowRange(bi);
      const facts = [[w.sumTop, num(this.top[n])],
        [w.sumRise, `${Math.round(this.rise[n] / 255 * (r1 - r0))} / ${r1 - r0}`],
        [w.sumAlpha, num(this.alpha[n] / 255)]];
      this.panels.numbers.put(html`<div class="state"><h4>${w.summary}</h4>${facts.map(([name, x]) =>
        html`<div class="line fact"><span>${name}</span><b>${x}</b></div>`)}
        <p class="hint">${w.hidden}</p></div>`);
      this.say(this.where);
    }

    say(words) {
      setText(this.nodes.sr, this.timer ? "" : words);
    }

    showMemory(bi, bj) {
      const { words: w, grid: g, data } = this, E = data.elementBytes;
      const [r0, r1] = g.rowRange(bi), [c0, c1] = g.keyRange(bj);
      const set = workingSet(g, r1 - r0, c1 - c0) * E, share = set / data.sram;
      const done = this.traffic[this.step], all = this.trafficInAll, standard = standardTraffic(g);
      const full = Math.max(all, standard);
      const width = (part) => `width:${clamp(100 * part, 0, 100).toFixed(2)}%`;
      const strong = (words) => html`<strong>${words}</strong>`;
      const loop = this.shownLoop === "kv" ? "kv" : "q";
      const chips = moves(g, loop, bi, bj).map(([way, kind, name, n]) => html`<span
        class=${`chip ${kind}`}>${way === "in" ? "↓" : "↑"} ${name} · ${count(n)}</span>`);
      this.panels.mem.put([
        html`<h4>${w.moved}</h4>`, html`<div class="chips">${chips}</div>`,
        html`<h4>${w.hbm}</h4>`,
        html`<div class="meter"><div class="will" style=${width(all / full)}></div>
          <div style=${width(done / full)}></div></div>`,
        html`<p>${sentence(w.hbmText, { done: html`<strong data-name="traffic">${count(done)}</strong>`,
          all: count(all), standard: strong(count(standard)) })}</p>`,
        html`<h4>${w.sram}</h4>`,
        html`<div class="meter"><div class=${share > 1 && "over"} style=${width(share)}></div></div>`,
        html`<p>${sentence(share > 1 ? w.sramOver : w.sramText, { set: strong(bytes(set)),
          size: bytes(data.sram), name: data.sramName, percent: +(100 * share).toPrecision(2),
          block: count(largestBlock(g, data.sram / E)) })}</p>`,
        html`<p class="with">${fill(w.never, { n: count(g.rows * g.keys),
          tile: count((r1 - r0) * (c1 - c0)) })}</p>`]);
    }

    // -------------------------------------------------------- light or dark

    theme() {
      const section = this.find(".fc");
      const paint = () => section.toggleAttribute("data-dark", isDark(this.host));
      paint();
      const watch = new MutationObserver(paint);
      const options = { attributes: true, attributeFilter: ["class", "theme",
        "data-jp-theme-light", "data-jp-theme-name", "data-vscode-theme-kind", "style"] };
      watch.observe(document.body, options);
      watch.observe(document.documentElement, options);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
    }
  }

  /** Jupyter's, Colab's and VS Code's own word for it; else the page's colour; else the system's. */
  function isDark(element) {
    const { body, documentElement: html } = document;
    if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false";
    if (html.getAttribute("theme")) return html.getAttribute("theme") === "dark";
    if (/vscode-(dark|high-contrast(?!-light))/.test(body.className)) return true;
    if (/vscode-(light|high-contrast-light)/.test(body.className)) return false;
    for (let node = element.parentElement; node; node = node.parentElement) {
      const [r, g, b, a = 1] = getComputedStyle(node).backgroundColor.match(/[\d.]+/g).map(Number);
      if (a > 0.5) return 0.299 * r + 0.587 * g + 0.114 * b < 128;
    }
    return window !== window.top && matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function mountAll() {
    for (const host of document.querySelectorAll("[data-flashcourse-player]")) {
      if (host.shadowRoot) continue;
      try {
        new Player(host);
      } catch (error) {
        host.dataset.ready = "failed";
        console.error("flashcourse player:", error);
      }
    }
  }

  /** Where widgets bring players later, without a script of their own: mounts these as they come. */
  function watch() {
    if (window.flashcourseWatches || !document.querySelector("[data-flashcourse-watch]")) return;
    window.flashcourseWatches = true;
    let asked = false;
    new MutationObserver(() => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => { asked = false; mountAll(); });
    }).observe(document.body, { childList: true, subtree: true });
  }

  mountAll();
  watch();
  requestAnimationFrame(mountAll); // some front ends run the script before they attach its output
  setTimeout(() => { mountAll(); watch(); }, 300);
})();
