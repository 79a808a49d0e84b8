// Checks the pages of `milepost ui` in a browser. `.ci/browser` installs what it needs and starts it.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BATCHES, CHROMIUM, chromium, exitCode, part, SCRATCH } from "./tools.mjs";
import { crawl } from "./crawl.mjs";
import { costOfAPage, firstPaint, many } from "./figures.mjs";
import { FILES, hostile, visible } from "./hostile.mjs";
import { walk } from "./keyboard.mjs";
import { duringARun, lostConnection, manyTabs, runOnPage, slow } from "./live.mjs";
import { watched } from "./page.mjs";
import { decide, needsPeople } from "./person.mjs";
import { report } from "./report.mjs";
import { review } from "./review.mjs";
import { milepost, succeed, Ui } from "./server.mjs";

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
// Projects of many files are made and removed faster in memory.
const memory = existsSync("/dev/shm") ? mkdtempSync("/dev/shm/milepost-pages-") : SCRATCH;
process.on("exit", () => memory !== SCRATCH && rmSync(memory, { recursive: true, force: true }));
const folder = (name) => join(["many", "some"].includes(name) ? memory : SCRATCH, name);
const parts = [];
const check = (name, body) => parts.push([name, body]);

/// Starts a server of a project, and ends it after the check.
async function serving(label, body) {
  const ui = await Ui.start(folder(label));
  ui.label = label;
  try {
    await body(ui);
  } finally {
    for (const context of browser.contexts()) await context.close();
    await ui.end();
  }
}

/// Walks through the pages of the navigation by keyboard.
async function byKeyboard(ui) {
  const context = await watched(browser, ui);
  const page = await context.newPage();
  await page.goto(ui.url);
  const links = await page.locator("nav[aria-label=Pages] a").evaluateAll((all) => all.map((one) => one.href));
  for (const url of links) await walk(page, ui, url);
  await context.close();
}

/// Pages that no link leads to.
const SEEDS = { ifc: ["elements?what=wall", "elements?what=2dlbQle3KLHU3pax%24SELYb&field=volume_m3"], "study-plan": ["elements?what=outputs/study_plan.json"] };

for (const system of ["ifc", "grading", "study-plan", "diagrams", "prompt-tests"]) {
  check(system, async () => {
    await succeed(0, SCRATCH, "init", system, folder(system));
    await succeed(0, folder(system), "run");
    await report(browser, system, folder(system));
    await serving(system, async (ui) => {
      await crawl(browser, ui, { each: system === "ifc" ? 2 : 1, seeds: SEEDS[system] });
      if (system !== "ifc") return;
      await byKeyboard(ui);
      await review(browser, ui, folder(system), 3);
    });
    await needsPeople(folder(system));
    await serving(system, async (ui) => {
      ui.label = `${system}-failed`;
      await crawl(browser, ui, { each: 1, most: 14 });
      if (system === "study-plan") await decide(browser, ui, folder(system));
    });
  });
}

check("hostile values", async () => {
  hostile(folder("hostile"));
  await succeed(1, folder("hostile"), "run", "--keep-going");
  await report(browser, "hostile", folder("hostile"));
  const seeds = ["elements?what=%3Cscript%3E", "elements?what=outputs/data.md&field=%22%3E%3Cimg%3E", ...FILES.map((file) => `file?path=${file}`)];
  await serving("hostile", async (ui) => visible(await crawl(browser, ui, { each: 12, seeds })));
});

check("live", async () => {
  slow(folder("live"));
  await runOnPage(browser, folder("live"));
  await duringARun(browser, folder("live"));
  await lostConnection(browser, folder("live"));
  await manyTabs(browser, folder("live"));
});

check(`${BATCHES} batches`, async () => {
  many(folder("many"), BATCHES);
  const ran = await milepost(folder("many"), "run", "--quiet");
  console.log(`         ran ${BATCHES} batches in ${ran.seconds.toFixed(1)} s`);
  await serving("many", async (ui) => {
    await firstPaint(browser, ui, ["", "stage?stage=copy", "timeline"]);
  });
  many(folder("some"), 2000);
  await costOfAPage(browser, folder("some"), 2);
});

const wanted = process.env.PARTS?.split(",");
for (const [name, body] of parts) if (!wanted || wanted.some((word) => name.includes(word))) await part(name, body);
await browser.close();
process.exitCode = exitCode();
