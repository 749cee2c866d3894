"use strict";
// Searches the pages of the site; the index is a script, so that it works from a file and from a server alike.
(() => {
  const home = document.currentScript.src.replace(/site\/search\.js.*$/, "");
  const box = document.createElement("div"), field = document.createElement("input"), list = document.createElement("ul");
  box.className = "find"; field.type = "search"; field.placeholder = "Search the docs"; field.setAttribute("aria-label", "Search the docs");
  box.append(field, list);
  const plain = (text) => text.toLowerCase();
  const score = (entry, words) => {
    let sum = 0;
    for (const word of words) {
      const title = plain(entry.title), at = plain(entry.text).indexOf(word);
      if (title === word) sum += 100; else if (title.includes(word)) sum += 30; else if (at >= 0) sum += 5; else return 0;
    }
    return sum;
  };
  const show = () => {
    const words = plain(field.value).split(/\s+/).filter(Boolean); list.replaceChildren();
    if (!words.length || !window.SEARCH_INDEX) return;
    const found = window.SEARCH_INDEX.map((entry) => [score(entry, words), entry]).filter((pair) => pair[0]).sort((a, b) => b[0] - a[0]).slice(0, 12);
    for (const [, entry] of found) {
      const item = document.createElement("li"), link = document.createElement("a"), note = document.createElement("p");
      link.href = home + entry.url; link.textContent = `${entry.page}: ${entry.title}`;
      const at = Math.max(0, plain(entry.text).indexOf(words[0]) - 60); note.textContent = entry.text.slice(at, at + 160);
      item.append(link, note); list.append(item);
    }
    if (!found.length) { const item = document.createElement("li"); item.textContent = "nothing found"; list.append(item); }
  };
  field.addEventListener("input", show);
  document.querySelector("main").prepend(box);
  const wide = matchMedia("(min-width:51rem)"), pages = document.querySelector("nav details");
  const unfold = () => { if (wide.matches) pages.open = true; };
  unfold(); wide.addEventListener("change", unfold);
})();
