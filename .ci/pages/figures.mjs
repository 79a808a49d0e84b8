// Figures: how fast pages are painted with many batches, and what an open page costs a run.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "./tools.mjs";
import { watched } from "./page.mjs";
import { succeed, Ui } from "./server.mjs";

const STAGE = `
description = "Copy each file"

[each.item]
path = "inputs/*.txt"

[inputs]
text = "{{ item.path }}"

[step]
copy = "text"

[outputs]
copy = { path = "intermediate/{{ item.stem }}.txt", schema = false }
`;

/// The longest that a page may take until it is painted, in milliseconds: far above what it takes, because machines are shared.
const MOST_MS = 3000;

/// Writes a project of so many batches.
export function many(folder, batches) {
  for (const path of ["stages", "workspace/inputs"]) mkdirSync(join(folder, path), { recursive: true });
  writeFileSync(join(folder, "milepost.toml"), 'name = "many"\n');
  writeFileSync(join(folder, "stages/1_copy.toml"), STAGE);
  for (let at = 0; at < batches; at += 1) writeFileSync(join(folder, `workspace/inputs/f${String(at).padStart(6, "0")}.txt`), `file ${at}\n`);
}

const median = (numbers) => numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)];

/// Prints the median time to the first paint of pages, and the largest.
export async function firstPaint(browser, ui, paths) {
  const context = await watched(browser, ui);
  for (const path of paths) {
    const times = [];
    let bytes = 0;
    for (let turn = 0; turn < 6; turn += 1) {
      const page = await context.newPage();
      const response = await page.goto(ui.url + path);
      bytes = (await response.body()).length;
      const paint = await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
      // The first time, the server reads the workspace.
      if (turn > 0) times.push(await paint.jsonValue());
      else console.log(`         /${path}: first paint ${Math.round(await paint.jsonValue())} ms when the server has just started`);
      await page.close();
    }
    const middle = Math.round(median(times));
    console.log(`         /${path}: first paint ${middle} ms (median of 5, most ${Math.round(Math.max(...times))} ms), ${Math.round(bytes / 1000)} kB`);
    expect(middle < MOST_MS, `${ui.label}/${path}`, `the first paint takes ${middle} ms`);
  }
  await context.close();
}

/// Waits until the server has read the workspace, and checked what a run would do.
async function rest(ui) {
  for (let used = -1; ui.processorTime() - used > 0.05; ) {
    used = ui.processorTime();
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

/// Prints how long a run takes without and with an open page: the least of some runs of each, in turns. The first runs of a workspace are
/// faster than later ones, which replace files; they are not counted.
export async function costOfAPage(browser, project, turns) {
  for (let turn = 0; turn < 3; turn += 1) await succeed(0, project, "run", "--force", "--quiet");
  const times = { without: [], with: [] };
  let used = 0;
  for (let turn = 0; turn < turns; turn += 1) {
    for (const how of ["without", "with"]) {
      let ui, context;
      if (how === "with") {
        ui = await Ui.start(project);
        context = await watched(browser, ui);
        await (await context.newPage()).goto(ui.url);
        await rest(ui);
      }
      const before = ui?.processorTime();
      times[how].push((await succeed(0, project, "run", "--force", "--quiet")).seconds);
      if (ui) used += ui.processorTime() - before;
      await context?.close();
      await ui?.end();
    }
  }
  const [without, with_] = [Math.min(...times.without), Math.min(...times.with)];
  console.log(`         a run of ${without.toFixed(2)} s takes ${with_.toFixed(2)} s with an open page (${((with_ / without - 1) * 100).toFixed(1)} %); the server uses ${(used / turns).toFixed(2)} s of processor time meanwhile`);
}
