"use strict";
(() => {
  const COLOURS = ["#3b82c4", "#d9683f", "#4aa871", "#9670c4", "#c09a2d", "#c2527f", "#3aa6a6", "#7d8b99",
    "#8c6d46", "#5a5fc7", "#9aa83a", "#d48fb0"];
  const floats = (text) => {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new Float32Array(bytes.buffer);
  };
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

  function lines(canvas, data, height) {
    const x = floats(data.x), curves = data.lines.map((line) => ({ ...line, y: floats(line.y) }));
    const whole = [x[0], x[x.length - 1]];
    let view = [...whole];
    const draw = () => {
      const [pen, width] = fit(canvas, height), box = [54, 22, width - 64, height - 58];
      let low = Infinity, high = -Infinity;
      for (const curve of curves) for (let i = 0; i < x.length; i++)
        if (x[i] >= view[0] && x[i] <= view[1] && isFinite(curve.y[i])) { low = Math.min(low, curve.y[i]); high = Math.max(high, curve.y[i]); }
      if (!(high > low)) { low = (isFinite(low) ? low : 0) - 1; high = low + 2; }
      const pad = 0.06 * (high - low); low -= pad; high += pad;
      const X = (v) => box[0] + (v - view[0]) / (view[1] - view[0]) * box[2], Y = (v) => box[1] + (high - v) / (high - low) * box[3];
      pen.clearRect(0, 0, width, height); pen.font = "12px system-ui"; pen.fillStyle = style("--soft"); pen.strokeStyle = style("--line");
      for (const t of ticks(view[0], view[1], 7)) { pen.beginPath(); pen.moveTo(X(t), box[1]); pen.lineTo(X(t), box[1] + box[3]); pen.stroke(); pen.textAlign = "center"; pen.fillText(String(t), X(t), box[1] + box[3] + 14); }
      for (const t of ticks(low, high, 5)) { pen.beginPath(); pen.moveTo(box[0], Y(t)); pen.lineTo(box[0] + box[2], Y(t)); pen.stroke(); pen.textAlign = "right"; pen.fillText(String(t), box[0] - 5, Y(t) + 4); }
      pen.textAlign = "center"; pen.fillText(data.xlabel, box[0] + box[2] / 2, height - 4); pen.textAlign = "left"; pen.fillText(data.ylabel, 4, 14);
      let at = box[0] + box[2]; pen.textAlign = "right";
      curves.map((c, k) => [c, k]).reverse().forEach(([c, k]) => { pen.fillStyle = COLOURS[k % COLOURS.length]; pen.fillText(c.label, at, 14); at -= pen.measureText(c.label).width + 14; });
      pen.save(); pen.beginPath(); pen.rect(...box); pen.clip(); pen.lineWidth = 1.4;
      const several = curves.length > 1, inOrder = curves.map((c, k) => [c, k]).sort((a, b) => Number(a[0].dashed) - Number(b[0].dashed));
      inOrder.forEach(([curve, k]) => {
        pen.strokeStyle = COLOURS[k % COLOURS.length]; pen.setLineDash(curve.dashed ? [6, 3] : []); pen.lineWidth = curve.dashed ? 2 : 1.4;
        pen.globalAlpha = several && !curve.dashed ? 0.7 : 1; pen.beginPath(); let down = false;
        for (let i = 0; i < x.length; i++) {
          if (!isFinite(curve.y[i]) || x[i] < view[0] - 1 || x[i] > view[1] + 1) { down = false; continue; }
          if (down) pen.lineTo(X(x[i]), Y(curve.y[i])); else { pen.moveTo(X(x[i]), Y(curve.y[i])); down = true; }
        }
        pen.stroke();
      });
      pen.restore();
    };
    const zoom = (factor, share) => {
      const centre = view[0] + share * (view[1] - view[0]), half = (view[1] - view[0]) * factor;
      view = [Math.max(whole[0], centre - share * half), Math.min(whole[1], centre + (1 - share) * half)]; draw();
    };
    const move = (share) => {
      const width = view[1] - view[0], start = Math.min(Math.max(view[0] + share * width, whole[0]), whole[1] - width);
      view = [start, start + width]; draw();
    };
    canvas.addEventListener("wheel", (e) => { if (!e.ctrlKey && !e.shiftKey) return; e.preventDefault(); zoom(e.deltaY > 0 ? 1.25 : 0.8, (e.offsetX - 54) / (canvas.clientWidth - 64)); }, { passive: false });
    const touching = new Map();
    const spread = () => { const [a, b] = [...touching.values()]; return Math.abs(a - b) || 1; };
    canvas.addEventListener("pointerdown", (e) => { touching.set(e.pointerId, e.offsetX); canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointermove", (e) => {
      if (!touching.has(e.pointerId)) return;
      const before = touching.size === 2 ? spread() : 0, from = touching.get(e.pointerId);
      touching.set(e.pointerId, e.offsetX);
      if (touching.size === 2) zoom(before / spread(), 0.5); else move((from - e.offsetX) / (canvas.clientWidth - 64));
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (e) => touching.delete(e.pointerId));
    canvas.addEventListener("dblclick", () => { view = [...whole]; draw(); });
    canvas.addEventListener("keydown", (e) => {
      const act = { "+": () => zoom(0.7, 0.5), "-": () => zoom(1.4, 0.5), ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), Home: () => { view = [...whole]; draw(); } }[e.key];
      if (act) { act(); e.preventDefault(); }
    });
    return draw;
  }

  function robot(canvas, data, height) {
    const points = floats(data.points), ellipsoids = floats(data.ellipsoids), n = data.nodes, frames = data.frames, bodies = data.bodies;
    let frame = 0, playing = !matchMedia("(prefers-reduced-motion: reduce)").matches, yaw = 0.8, tilt = 0.35, last = 0;
    const draw = () => {
      const [pen, width] = fit(canvas, height), scale = 0.42 * Math.min(width, height) / data.reach;
      const see = (p) => {
        const a = Math.cos(yaw) * p[0] - Math.sin(yaw) * p[1], b = Math.sin(yaw) * p[0] + Math.cos(yaw) * p[1], c = p[2] - data.middle;
        return [width / 2 + scale * a, height / 2 - scale * (Math.cos(tilt) * c - Math.sin(tilt) * b)];
      };
      const node = (k) => { const i = 3 * (frame * n + k); return [points[i], points[i + 1], points[i + 2]]; };
      pen.clearRect(0, 0, width, height); pen.lineCap = "round";
      pen.strokeStyle = style("--line"); pen.lineWidth = 1;
      for (let g = -4; g <= 4; g++) for (const [p, q] of [[[g, -4], [g, 4]], [[-4, g], [4, g]]]) {
        const s = data.reach / 4, a = see([p[0] * s, p[1] * s, 0]), b = see([q[0] * s, q[1] * s, 0]);
        pen.beginPath(); pen.moveTo(...a); pen.lineTo(...b); pen.stroke();
      }
      pen.strokeStyle = COLOURS[1];
      for (let k = 0; k < bodies; k++) for (let axis = 0; axis < 3; axis++) {
        const o = 12 * (frame * bodies + k), c = [0, 1, 2].map((i) => ellipsoids[o + i]);
        const u = [0, 1, 2].map((i) => ellipsoids[o + 3 + 3 * axis + i]), v = [0, 1, 2].map((i) => ellipsoids[o + 3 + 3 * ((axis + 1) % 3) + i]);
        pen.beginPath();
        for (let s = 0; s <= 24; s++) { const t = s * Math.PI / 12, p = see(c.map((w, i) => w + Math.cos(t) * u[i] + Math.sin(t) * v[i])); if (s) pen.lineTo(...p); else pen.moveTo(...p); }
        pen.stroke();
      }
      pen.strokeStyle = COLOURS[0]; pen.lineWidth = 5;
      for (const [a, b] of data.edges) { pen.beginPath(); pen.moveTo(...see(node(a))); pen.lineTo(...see(node(b))); pen.stroke(); }
      pen.fillStyle = style("--soft"); pen.font = "12px system-ui"; pen.fillText(`t = ${(frame * data.step).toFixed(2)} s   ${playing ? "" : "paused"}`, 8, 16);
    };
    const tick = (now) => {
      if (playing && now - last > 1000 * data.step) { frame = (frame + 1) % frames; last = now; draw(); }
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
  window.addEventListener("beforeprint", () => figures.forEach(show));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
})();
