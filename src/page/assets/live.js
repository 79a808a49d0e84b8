// Keeps a page up to date: when the workspace changes, its content is fetched again and replaced. Reading needs no script.
"use strict";
(() => {
  const root = document.documentElement.dataset.root;
  const shown = document.querySelector("[data-live]");
  let running = false;
  const say = (text) => { if (shown && shown.textContent !== text) shown.textContent = text; };

  // Times, as time since then.
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const ago = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  const since = () => {
    for (const time of document.querySelectorAll("time[datetime]")) {
      const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
      if (Number.isNaN(seconds)) continue;
      const [unit, size] = units.find(([, size]) => seconds >= size) || units[3];
      if (!time.title) time.title = time.textContent;
      time.textContent = ago.format(-Math.max(0, Math.floor(seconds / size)), unit);
    }
  };

  // Why the content stays as it is for now: a person is in the midst of something.
  const hold = () => {
    const main = document.querySelector("main");
    if (main.querySelector(":is(input, textarea, select):focus")) return "paused while a field is in use";
    if ([...main.querySelectorAll("form[method=post] :is(input, textarea)")].some((one) => one.value !== one.defaultValue)) return "paused while a form is filled in";
    return getSelection().isCollapsed ? "" : "paused while text is selected";
  };

  // Finds in new content what had the focus.
  const key = (one) => [one.tagName, one.id, one.getAttribute("href"), one.getAttribute("name"), one.tagName === "A" || one.textContent].join();
  const alike = (main, wanted) => [...main.querySelectorAll("a, button, summary, [tabindex]")].filter((one) => key(one) === wanted);

  // Replaces the content by that of the page as it is now. What a person opened, typed or scrolled stays.
  let busy = false, again = false, waits = 0;
  const refresh = async () => {
    if (busy) { again = true; return; }
    busy = true; again = false; waits = 0;
    const begun = performance.now();
    try {
      const response = await fetch(location.href, { headers: { accept: "text/html" } });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const next = page.querySelector("main"), main = document.querySelector("main"), held = hold();
      if (held) {
        say(held);
        again = true;
      } else if (response.ok && next && main) {
        const open = new Set([...main.querySelectorAll("details[open][id]")].map((one) => one.id));
        const shut = new Set([...main.querySelectorAll("details:not([open])[id]")].map((one) => one.id));
        const scrolled = [...main.querySelectorAll(".wide, .graph")].map((one) => one.scrollLeft);
        const active = main.contains(document.activeElement) && main !== document.activeElement ? document.activeElement : null;
        const wanted = active && key(active), place = active && alike(main, wanted).indexOf(active);
        main.replaceChildren(...next.childNodes);
        for (const one of main.querySelectorAll("details[id]")) if (open.has(one.id) || shut.has(one.id)) one.open = open.has(one.id);
        main.querySelectorAll(".wide, .graph").forEach((one, at) => { one.scrollLeft = scrolled[at] || 0; });
        const same = wanted && alike(main, wanted)[place];
        if (same) same.focus({ preventScroll: true });
        say(running ? "running" : "live");
        since();
      } else {
        say("out of date: the server returned " + response.status);
      }
    } catch { /* The stream of events tells when the server is back. */ }
    // A page that is slow to make is made rarely while a run needs the machine.
    const pause = Math.max(1000, (running ? 50 : 2) * (performance.now() - begun));
    waits = setTimeout(free, pause);
  };
  const free = () => { busy = false; waits = 0; if (again) refresh(); };

  since();
  setInterval(since, 15000);
  const main = document.querySelector("main[data-live-at]");
  if (main && window.EventSource) {
    let events = null, at = main.dataset.liveAt;
    const connect = () => {
      if (events || document.hidden) return;
      events = new EventSource(root + "/events?after=" + encodeURIComponent(at));
      let first = true;
      events.addEventListener("change", (event) => {
        const data = JSON.parse(event.data);
        // What a run has left is shown at once.
        if (running && !data.running && waits) { clearTimeout(waits); free(); }
        running = data.running;
        const isNews = !first || data.records.length > 0 || event.lastEventId !== at;
        say((isNews && hold()) || (running ? "running" : "live"));
        if (isNews) refresh();
        first = false;
        at = event.lastEventId;
      });
      events.onopen = () => say(running ? "running" : "live");
      // A server that was started again refuses the token of this page, and the browser does not try again.
      events.onerror = () => say(events && events.readyState === EventSource.CLOSED ? "the server restarted: open the new URL that it printed" : "no connection to the server");
    };
    // A browser opens few connections to a server, so a page that nobody sees keeps none.
    const disconnect = () => { if (events) events.close(); events = null; };
    document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
    addEventListener("pagehide", disconnect);
    addEventListener("pageshow", connect);
    connect();
  }
})();
