// What happens while people look: runs that are started, followed and stopped on pages, and servers that go away.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, picture, sleep } from "./tools.mjs";
import { crawl } from "./crawl.mjs";
import { watched } from "./page.mjs";
import { succeed, Ui } from "./server.mjs";

/// Ten batches of half a second, one after another; the fourth fails while a file `broken` is there.
const stage = (folder) => `
description = "Wait a little in each batch"

[each.number]
count = 10

[step]
command = ["sh", "-c", 'echo "begins $0"; sleep 0.8; test "$0" != 4 || test ! -e "$1" || { echo "no such thing" >&2; exit 1; }; echo done > "$2"', "{{ number }}", "${join(folder, "broken")}", "{{ paths.out }}"]

[outputs]
out = { path = "outputs/{{ number }}.txt", schema = false }
`;

/// Writes the project of the checks.
export function slow(folder) {
  for (const path of ["stages", "workspace"]) mkdirSync(join(folder, path), { recursive: true });
  writeFileSync(join(folder, "milepost.toml"), 'name = "slow"\n');
  writeFileSync(join(folder, "stages/1_work.toml"), stage(folder));
}

/// Waits for a text in the content of a page. The content may be replaced meanwhile.
async function shows(page, pattern, place, seconds = 15) {
  const until = performance.now() + seconds * 1000;
  let text = "";
  while (performance.now() < until) {
    text = await page.locator("body").innerText();
    if (pattern.test(text)) return true;
    await sleep(100);
  }
  return expect(false, place, `the page does not show ${pattern} within ${seconds} s: ${JSON.stringify(text.slice(0, 600))}`);
}

/// Opens the overview, and marks the document: a page that is loaded again has no mark.
async function follow(context, ui) {
  const page = await context.newPage();
  await page.goto(ui.url);
  await mark(page);
  return page;
}

const mark = (page) => page.evaluate(() => { window.marked = true; });
const isMarked = (page) => page.evaluate(() => window.marked === true);

/// Starts a run as a person does: the plan, then the button.
async function startRun(page, ui, path) {
  await page.goto(ui.url + path);
  await page.getByRole("button", { name: "Run exactly this" }).click();
  await page.waitForURL(ui.url);
  await mark(page);
}

/// A run is started on one page, and two browsers follow it to its end without loading a page again.
export async function runOnPage(browser, project) {
  const ui = await Ui.start(project);
  ui.label = "live";
  const [one, other] = [await watched(browser, ui), await watched(browser, ui, { colorScheme: "dark" })];
  const [actor, follower] = [await one.newPage(), await follow(other, ui)];
  await actor.goto(ui.url);
  await actor.getByRole("button", { name: "Plan a run" }).click();
  await shows(actor, /10 batches will run/, "live/plan");
  await startRun(actor, ui, "plan");
  for (const [who, page] of [["actor", actor], ["follower", follower]]) {
    await shows(page, /running/, `live (${who})`);
    await shows(page, /[2-8] of 10/, `live (${who})`);
    if (page === actor) await picture(page, "live-running");
  }
  const link = follower.getByRole("link", { name: "work", exact: true }).first();
  await link.focus();
  for (const [who, page] of [["actor", actor], ["follower", follower]]) {
    await shows(page, /10 of 10/, `live (${who})`);
    await shows(page, /The last run finished .*: complete/, `live (${who})`);
    expect(await isMarked(page), `live (${who})`, "the page was loaded again");
  }
  const focused = await follower.evaluate(() => document.activeElement.textContent.trim());
  expect(focused === "work", "live (follower)", `the focus moved from the link of the stage to ${JSON.stringify(focused)}`);

  // A run is stopped by a button, on the page of another person too.
  await startRun(actor, ui, "plan?force=1");
  await shows(actor, /[1-9] of 10/, "live (stop)");
  await follower.getByRole("button", { name: "Stop" }).click({ timeout: 10000 });
  await shows(follower, /The last run finished .*: interrupted/, "live (stop)");
  await shows(actor, /The last run finished .*: interrupted/, "live (stop)");
  await picture(actor, "live-interrupted");

  // Runs of a terminal are followed as well; what failed needs a person, and is run again on the page.
  writeFileSync(join(project, "broken"), "");
  await succeed(1, project, "run", "--keep-going", "--force");
  await shows(actor, /Needs a person[\s\S]*failed\s+work\/4: EXIT/, "live (failed)");
  await picture(actor, "live-failed");
  rmSync(join(project, "broken"));
  await startRun(actor, ui, "plan?failed=1");
  await shows(actor, /10 of 10/, "live (failed)");
  await shows(actor, /The last run finished .*: complete/, "live (failed)");

  // The server ends within seconds, with two streams open and a run that it stops.
  await startRun(actor, ui, "plan?force=1");
  await shows(actor, /running/, "live (end)");
  for (const context of [one, other]) context.allowed = (text) => text.includes("ERR_");
  const seconds = await ui.end();
  expect(ui.code === 0, "live (end)", `the server ends with code ${ui.code}`);
  expect(seconds < 5, "live (end)", `the server needs ${seconds.toFixed(1)} s to end with open streams and a run`);
  for (const page of [actor, follower]) await shows(page, /no connection/, "live (end)");
  await one.close();
  await other.close();
}

/// Opens every page while runs are under way in a terminal.
export async function duringARun(browser, project) {
  let isOver = false;
  const runs = (async () => {
    while (!isOver) await succeed(0, project, "run", "--force", "--quiet");
  })();
  const ui = await Ui.start(project);
  ui.label = "running";
  try {
    await crawl(browser, ui, { each: 1, isMoving: true });
  } finally {
    isOver = true;
    await runs;
    await ui.end();
  }
}

/// A server that crashes and is started again at the same port has another token: pages say what to do, and keep what they show.
export async function lostConnection(browser, project) {
  const ui = await Ui.start(project);
  ui.label = "lost";
  const context = await watched(browser, ui);
  const page = await follow(context, ui);
  await shows(page, /\blive\b/, "lost");
  context.allowed = (text) => text.includes("ERR_") || text.includes("401");
  await ui.kill();
  await shows(page, /no connection/, "lost");
  const again = await Ui.start(project, { port: ui.port });
  await shows(page, /restarted/, "lost");
  await picture(page, "lost-restarted");
  await shows(page, /Stages/, "lost");
  await context.close();
  await again.end();
}

/// A browser with many open pages of one server: a hidden page keeps no stream, and none of them waits for another.
export async function manyTabs(browser, project) {
  const ui = await Ui.start(project);
  ui.label = "tabs";
  const context = await watched(browser, ui);
  for (let tab = 0; tab < 10; tab += 1) {
    const page = await context.newPage();
    await page.goto(ui.url, { timeout: 10000 });
    await shows(page, /\blive\b/, `tabs (${tab + 1})`);
    // Pages without a window count as visible.
    await page.evaluate(() => {
      Object.defineProperty(document, "hidden", { value: true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
  }
  await context.close();
  await ui.end();
}
