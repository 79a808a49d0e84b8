// Keys of the review pages. Every form works without them.
"use strict";
(() => {
  const form = document.querySelector("form.decision");
  const isTyping = (one) => one && (one.matches("select, textarea") || one.matches("input:not([type=radio], [type=checkbox])"));

  // A field has one value: a choice, or another value.
  if (form) {
    for (const field of form.querySelectorAll(".field")) {
      const other = field.querySelector(".other :is(input, select)"), none = field.querySelector(".none input");
      if (!other) continue;
      field.addEventListener("change", (event) => {
        if (event.target.type === "radio" && event.target.value) other.value = "";
        if (event.target === other && other.value && none) none.checked = true;
      });
    }
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) event.preventDefault();
      form.dataset.sent = "1";
    });
    addEventListener("pageshow", () => { delete form.dataset.sent; });
  }

  // A message that is on the page when it loads is read out only if it changes.
  const saved = document.querySelector(".saved");
  if (saved && saved.textContent) {
    const text = saved.textContent;
    saved.textContent = "";
    setTimeout(() => { saved.textContent = text; }, 150);
  }

  const follow = (name) => { const link = document.querySelector(`[data-key="${name}"]`); if (link) link.click(); return Boolean(link); };
  const fields = [...document.querySelectorAll(".field")];
  // The field that was used last stays the current one after `Esc`.
  let used = fields[0];
  addEventListener("focusin", (event) => { used = event.target.closest(".field") || used; });
  const current = () => document.activeElement.closest(".field") || used;
  const nextField = () => {
    const field = fields[(fields.indexOf(current()) + 1) % fields.length];
    return focus(field && field.querySelector("input:checked, .other :is(input, select)"));
  };
  const focus = (one) => { if (one) { one.focus(); if (one.select) one.select(); } return Boolean(one); };
  const choose = (digit) => {
    const field = current(), radio = field && field.querySelector(`[data-digit="${digit}"]`);
    if (!radio) return false;
    radio.checked = true;
    radio.dispatchEvent(new Event("change", { bubbles: true }));
    const why = form.elements.why;
    (why && !why.value ? why : radio).focus();
    return true;
  };
  const keys = () => {
    const list = document.querySelector(".keys");
    if (list) { list.open = !list.open; if (list.open) list.querySelector("summary").focus(); }
    return Boolean(list);
  };
  const save = () => { if (form) form.requestSubmit(); return Boolean(form); };

  addEventListener("keydown", (event) => {
    const at = document.activeElement, key = event.key;
    if (event.isComposing || event.altKey) return;
    let done = false;
    if (key === "Enter" && (event.ctrlKey || event.metaKey)) done = save();
    else if (event.ctrlKey || event.metaKey) return;
    else if (key === "Escape") { at.blur(); return; }
    else if (isTyping(at)) return;
    else if (/^[0-9]$/.test(key)) done = choose(key);
    else if (key === "f") done = nextField();
    else if (key === "o") done = focus((current() || document).querySelector(".other :is(input, select)"));
    else if (key === "w") done = focus(document.querySelector("[name=why]"));
    else if (key === "?") done = keys();
    else if (key === "s") done = follow("next");
    else if (key === "Enter" && !at.matches("a, button, summary")) done = save();
    else if (at.matches("input")) return;
    else if (key === "ArrowRight") done = follow("next");
    else if (key === "ArrowLeft") done = follow("previous");
    if (done) event.preventDefault();
  });
})();
