"use strict";
(() => {
  const COLOURS = ["#3b82c4", "#d9683f", "#4aa871", "#9670c4", "#c09a2d", "#c2527f", "#3aa6a6", "#7d8b99",
    "#8c6d46", "#5a5fc7", "#9aa83a", "#d48fb0"];
  const bytes = (text) => {
    const raw = atob(text), out = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
    return out.buffer;
  };
  const floats = (text) => new Float32Array(bytes(text));
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const fit = (canvas, height) => {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
    canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.height = height + "px";
    const pen = canvas.getContext("2d"); pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    return [pen, width];
  };
  const ticks = (low, high, count) => {
    const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough), out = [];
    for (let k = Math.ceil(low / step); k * step <= high; k++) out.push(Number((k * step).toPrecision(12)));
    return out;
  };
  const shown = (value) => String(Number(value.toPrecision(4)));

  const groups = new Map();  // x label -> plots that zoom together
  function lines(canvas, data, height) {
    const x = floats(data.x), linked = data.xlabel.startsWith("time") ? data.xlabel : canvas;
    const curves = data.lines.map((line, k) => ({ ...line, y: floats(line.y), half: line.half ? floats(line.half) : null, on: true, colour: COLOURS[k % COLOURS.length] }));
    const whole = [x[0], x[x.length - 1]];
    let view = [...whole], at = null;
    const figure = canvas.parentNode, legend = document.createElement("div"), tip = document.createElement("output");
    legend.className = "legend"; tip.className = "tip"; tip.hidden = true; figure.prepend(legend); figure.append(tip);
    const title = document.createElement("span"); title.textContent = data.ylabel; legend.append(title);
    for (const curve of curves) {
      const button = document.createElement("button"); button.type = "button"; button.textContent = curve.label; button.style.color = curve.colour;
      button.setAttribute("aria-pressed", "true"); button.title = "show or hide this curve";
      button.addEventListener("click", () => { curve.on = !curve.on; button.setAttribute("aria-pressed", String(curve.on)); draw(); });
      legend.append(button);
    }
    const box = (width) => [54, 8, width - 64, height - 44];
    const draw = () => {
      const [pen, width] = fit(canvas, height), [left, top, w, h] = box(width);
      let low = Infinity, high = -Infinity;
      for (const curve of curves) if (curve.on) for (let i = 0; i < x.length; i++)
        if (x[i] >= view[0] && x[i] <= view[1] && isFinite(curve.y[i])) {
          const half = curve.half && isFinite(curve.half[i]) ? curve.half[i] : 0;
          low = Math.min(low, curve.y[i] - half); high = Math.max(high, curve.y[i] + half);
        }
      if (!(high > low)) { low = (isFinite(low) ? low : 0) - 1; high = low + 2; }
      const pad = 0.06 * (high - low); low -= pad; high += pad;
      const X = (v) => left + (v - view[0]) / (view[1] - view[0]) * w, Y = (v) => top + (high - v) / (high - low) * h;
      pen.clearRect(0, 0, width, height); pen.font = "12px system-ui"; pen.fillStyle = style("--soft"); pen.strokeStyle = style("--line"); pen.lineWidth = 1;
      for (const t of ticks(view[0], view[1], Math.max(3, Math.min(7, w / 70)))) { pen.beginPath(); pen.moveTo(X(t), top); pen.lineTo(X(t), top + h); pen.stroke(); pen.textAlign = "center"; pen.fillText(String(t), X(t), top + h + 14); }
      for (const t of ticks(low, high, 5)) { pen.beginPath(); pen.moveTo(left, Y(t)); pen.lineTo(left + w, Y(t)); pen.stroke(); pen.textAlign = "right"; pen.fillText(String(t), left - 5, Y(t) + 4); }
      pen.textAlign = "center"; pen.fillText(data.xlabel, left + w / 2, height - 4);
      pen.save(); pen.beginPath(); pen.rect(left, top, w, h); pen.clip();
      const several = curves.length > 1, step = (view[1] - view[0]) / w;
      for (const curve of curves.filter((c) => c.on).sort((a, b) => Number(a.dashed) - Number(b.dashed))) {
        pen.strokeStyle = pen.fillStyle = curve.colour;
        if (curve.half) {
          pen.globalAlpha = 0.18; pen.beginPath();
          for (let i = 0; i < x.length; i++) pen.lineTo(X(x[i]), Y(curve.y[i] + curve.half[i]));
          for (let i = x.length - 1; i >= 0; i--) pen.lineTo(X(x[i]), Y(curve.y[i] - curve.half[i]));
          pen.fill();
        }
        pen.setLineDash(curve.dashed ? [6, 3] : []); pen.lineWidth = curve.dashed ? 2 : 1.4;
        pen.globalAlpha = several && !curve.dashed ? 0.7 : 1; pen.beginPath(); let down = false;
        for (let i = 0; i < x.length; i++) {
          const next = i + 1 < x.length ? x[i + 1] : x[i], before = i ? x[i - 1] : x[i];
          if (!isFinite(curve.y[i]) || next < view[0] - step || before > view[1] + step) { down = false; continue; }
          if (down) pen.lineTo(X(x[i]), Y(curve.y[i])); else { pen.moveTo(X(x[i]), Y(curve.y[i])); down = true; }
        }
        pen.stroke();
      }
      pen.globalAlpha = 1; pen.setLineDash([]);
      if (at !== null && x[at] >= view[0] && x[at] <= view[1]) {
        pen.strokeStyle = style("--soft"); pen.lineWidth = 1; pen.beginPath(); pen.moveTo(X(x[at]), top); pen.lineTo(X(x[at]), top + h); pen.stroke();
        for (const curve of curves) if (curve.on && isFinite(curve.y[at])) { pen.fillStyle = curve.colour; pen.beginPath(); pen.arc(X(x[at]), Y(curve.y[at]), 3, 0, 7); pen.fill(); }
      }
      pen.restore();
    };
    const look = (next) => { view = next; draw(); };
    const mine = { whole, look };
    const group = groups.get(linked) || []; group.push(mine); groups.set(linked, group);
    const show = (next) => { for (const plot of groups.get(linked)) if (plot === mine || (plot.whole[0] === whole[0] && plot.whole[1] === whole[1])) plot.look([...next]); };
    const zoom = (factor, share) => {
      const centre = view[0] + share * (view[1] - view[0]), size = (view[1] - view[0]) * factor;
      show([Math.max(whole[0], centre - share * size), Math.min(whole[1], centre + (1 - share) * size)]);
    };
    const move = (share) => {
      const size = view[1] - view[0], start = Math.min(Math.max(view[0] + share * size, whole[0]), whole[1] - size);
      show([start, start + size]);
    };
    const hover = (e) => {
      const [left, , w] = box(canvas.clientWidth), value = view[0] + (e.offsetX - left) / w * (view[1] - view[0]);
      let near = 0; for (let i = 1; i < x.length; i++) if (Math.abs(x[i] - value) < Math.abs(x[near] - value)) near = i;
      at = near; draw(); tip.hidden = false;
      tip.textContent = [`${data.xlabel}: ${shown(x[near])}`, ...curves.filter((c) => c.on && isFinite(c.y[near])).map((c) => `${c.label}: ${shown(c.y[near])}${c.half ? " ± " + shown(c.half[near]) : ""}`)].join("\n");
      const room = canvas.clientWidth - tip.offsetWidth - 8;
      tip.style.left = Math.max(0, Math.min(room, e.offsetX + 14)) + "px"; tip.style.top = canvas.offsetTop + 14 + "px";
    };
    canvas.addEventListener("wheel", (e) => { if (!e.ctrlKey && !e.shiftKey) return; e.preventDefault(); zoom((e.deltaY || e.deltaX) > 0 ? 1.25 : 0.8, (e.offsetX - 54) / (canvas.clientWidth - 64)); }, { passive: false });
    const touching = new Map();
    const spread = () => { const [a, b] = [...touching.values()]; return Math.abs(a - b) || 1; };
    canvas.addEventListener("pointerdown", (e) => { touching.set(e.pointerId, e.offsetX); canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointermove", (e) => {
      if (!touching.has(e.pointerId)) { hover(e); return; }
      const before = touching.size === 2 ? spread() : 0, from = touching.get(e.pointerId);
      touching.set(e.pointerId, e.offsetX);
      if (touching.size === 2) zoom(before / spread(), 0.5); else move((from - e.offsetX) / (canvas.clientWidth - 64));
    });
    canvas.addEventListener("pointerleave", () => { at = null; tip.hidden = true; draw(); });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (e) => touching.delete(e.pointerId));
    canvas.addEventListener("dblclick", () => show([...whole]));
    canvas.addEventListener("keydown", (e) => {
      const act = { "+": () => zoom(0.7, 0.5), "-": () => zoom(1.4, 0.5), ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), Home: () => show([...whole]) }[e.key];
      if (act) { act(); e.preventDefault(); }
    });
    return draw;
  }

  function robot(canvas, data, height) {
    const points = floats(data.points), ellipsoids = floats(data.ellipsoids), n = data.nodes, frames = data.frames, bodies = data.bodies;
    let frame = 0, playing = !matchMedia("(prefers-reduced-motion: reduce)").matches, yaw = 0.8, tilt = 0.35, last = 0;
    const figure = canvas.parentNode, bar = document.createElement("div"); bar.className = "legend"; figure.prepend(bar);
    const button = (text, act) => { const b = document.createElement("button"); b.type = "button"; b.textContent = text; b.addEventListener("click", () => { act(b); draw(); }); bar.append(b); };
    button("play / pause", () => { playing = !playing; });
    let inertia = true; button("inertia ellipsoids", (b) => { inertia = !inertia; b.setAttribute("aria-pressed", String(inertia)); });
    const slider = document.createElement("input"); slider.type = "range"; slider.min = 0; slider.max = frames - 1; slider.value = 0; slider.setAttribute("aria-label", "time");
    slider.addEventListener("input", () => { frame = Number(slider.value); playing = false; draw(); }); bar.append(slider);
    const draw = () => {
      const [pen, width] = fit(canvas, height), scale = 0.42 * Math.min(width, height) / data.reach;
      const cy = Math.cos(yaw), sy = Math.sin(yaw), ct = Math.cos(tilt), st = Math.sin(tilt);
      const see = (p) => {
        const a = cy * p[0] - sy * p[1], b = sy * p[0] + cy * p[1], c = p[2] - data.middle;
        return [width / 2 + scale * a, height / 2 - scale * (ct * c - st * b), ct * b + st * c];
      };
      const node = (k) => { const i = 3 * (frame * n + k); return [points[i], points[i + 1], points[i + 2]]; };
      const path = (list) => { pen.beginPath(); list.forEach((p, k) => k ? pen.lineTo(p[0], p[1]) : pen.moveTo(p[0], p[1])); };
      pen.clearRect(0, 0, width, height); pen.lineCap = "round"; pen.lineJoin = "round";
      pen.strokeStyle = style("--line"); pen.lineWidth = 1;
      for (let g = -4; g <= 4; g++) for (const [p, q] of [[[g, -4], [g, 4]], [[-4, g], [4, g]]]) {
        const s = data.reach / 4; path([see([p[0] * s, p[1] * s, 0]), see([q[0] * s, q[1] * s, 0])]); pen.stroke();
      }
      pen.strokeStyle = COLOURS[0]; pen.lineWidth = 5;
      for (const [a, b] of data.edges) { path([see(node(a)), see(node(b))]); pen.stroke(); }
      pen.strokeStyle = COLOURS[1]; pen.lineWidth = 1;
      if (inertia) for (let k = 0; k < bodies; k++) for (let axis = 0; axis < 3; axis++) {
        const o = 12 * (frame * bodies + k), c = [0, 1, 2].map((i) => ellipsoids[o + i]), ring = [];
        const u = [0, 1, 2].map((i) => ellipsoids[o + 3 + 3 * axis + i]), v = [0, 1, 2].map((i) => ellipsoids[o + 3 + 3 * ((axis + 1) % 3) + i]);
        for (let s = 0; s <= 24; s++) { const t = s * Math.PI / 12; ring.push(see(c.map((w, i) => w + Math.cos(t) * u[i] + Math.sin(t) * v[i]))); }
        path(ring); pen.stroke();
      }
      pen.fillStyle = style("--soft"); pen.font = "12px system-ui"; pen.fillText(`t = ${(frame * data.step).toFixed(2)} s   ${playing ? "" : "paused"}`, 8, 16);
    };
    const tick = (now) => {
      if (playing && now - last > 1000 * data.step) { frame = (frame + 1) % frames; slider.value = frame; last = now; draw(); }
      requestAnimationFrame(tick);
    };
    let from = null;
    canvas.addEventListener("pointerdown", (e) => { from = [e.offsetX, e.offsetY]; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointermove", (e) => { if (!from) return; yaw += (e.offsetX - from[0]) / 120; tilt = Math.min(1.5, Math.max(-1.5, tilt + (e.offsetY - from[1]) / 120)); from = [e.offsetX, e.offsetY]; draw(); });
    canvas.addEventListener("pointerup", () => { from = null; });
    canvas.addEventListener("keydown", (e) => {
      const act = { " ": () => { playing = !playing; }, ArrowLeft: () => { yaw -= 0.15; }, ArrowRight: () => { yaw += 0.15; }, ArrowUp: () => { tilt += 0.1; }, ArrowDown: () => { tilt -= 0.1; } }[e.key];
      if (act) { act(); draw(); e.preventDefault(); }
    });
    requestAnimationFrame(tick);
    return draw;
  }

  const sortable = (table) => {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
    const original = [...body.rows];
    table.classList.add(original.length <= 14 ? "stack" : "long");  // a narrow screen shows every cell with its heading
    for (const row of original) [...row.cells].forEach((cell, k) => { cell.dataset.label = heads[k].textContent; });
    heads.forEach((head, column) => {
      if (original.length < 2 || original[0].cells[column].className === "bar") return;
      head.tabIndex = 0; head.setAttribute("role", "button"); head.title = "sort by this column";
      const sort = () => {
        const now = head.getAttribute("aria-sort"), next = now === "ascending" ? "descending" : now === "descending" ? "none" : "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        if (next !== "none") head.setAttribute("aria-sort", next);
        const key = (row) => { const text = row.cells[column].textContent.trim(), number = parseFloat(text); return text === "" ? [2, 0] : isNaN(number) ? [1, text] : [0, number]; };
        const rows = next === "none" ? original : [...original].sort((a, b) => {
          const [p, q] = [key(a), key(b)], order = p[0] - q[0] || (p[1] < q[1] ? -1 : p[1] > q[1] ? 1 : 0);
          return next === "ascending" ? order : p[0] === 2 || q[0] === 2 ? p[0] - q[0] : -order;
        });
        body.append(...rows);
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === " ") { sort(); e.preventDefault(); } });
    });
  };
  document.querySelectorAll("table").forEach(sortable);

  const kinds = { lines, robot }, drawn = new Map();
  const show = (figure) => {
    if (!drawn.has(figure)) {
      const canvas = figure.querySelector("canvas"), data = JSON.parse(figure.querySelector("script").textContent);
      drawn.set(figure, kinds[figure.className](canvas, data, Number(canvas.dataset.height)));
    }
    drawn.get(figure)();
  };
  const figures = [...document.querySelectorAll("figure")].filter((figure) => figure.querySelector("canvas"));
  for (const figure of figures) {  // room is kept from the start, so that nothing jumps when it is drawn
    const canvas = figure.querySelector("canvas");
    canvas.dataset.height = canvas.getAttribute("height"); canvas.style.height = canvas.dataset.height + "px";
  }
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { watcher.unobserve(entry.target); show(entry.target); }
  }, { rootMargin: "150px" });
  figures.forEach((figure) => watcher.observe(figure));
  const again = () => drawn.forEach((draw) => draw());
  window.addEventListener("resize", again);
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((part) => { part.dataset.was = part.open ? "1" : ""; part.open = true; });
    figures.forEach(show);
  });
  window.addEventListener("afterprint", () => document.querySelectorAll("details").forEach((part) => { part.open = part.dataset.was === "1"; }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
})();
