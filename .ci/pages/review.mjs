// Review by keyboard: elements of a model are decided on one after another, saved as corrections, and the run that follows applies them.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, picture } from "./tools.mjs";
import { watched } from "./page.mjs";
import { succeed } from "./server.mjs";

/// Goes through the fields of an item by keyboard, back to the first one.
async function everyField(page, at) {
  const focused = () => page.evaluate(() => [...document.querySelectorAll(".field")].findIndex((one) => one.contains(document.activeElement)));
  const fields = await page.locator(".field").count();
  for (let step = 1; step <= fields; step += 1) {
    await page.keyboard.press("f");
    expect((await focused()) === step % fields, at, `f leads to field ${await focused()} of ${fields} at step ${step}`);
    await page.keyboard.press("Escape");
  }
}

/// Decides on so many items with the keyboard alone.
export async function review(browser, ui, project, items) {
  const at = "ifc/review (keyboard)";
  const corrections = join(project, "workspace/inputs/corrections.csv");
  const rows = () => (existsSync(corrections) ? readFileSync(corrections, "utf8").trim().split("\n").length - 1 : 0);
  const context = await watched(browser, ui);
  const page = await context.newPage();
  await page.goto(`${ui.url}review`);
  await picture(page, "review-item");
  const open = async () => Number((await page.locator("main").innerText()).match(/Item \d+ of ([\d,]+) that need/)?.[1].replaceAll(",", "") ?? 0);
  const before = await open();
  await everyField(page, at);
  for (let item = 1; item <= items; item += 1) {
    const heading = await page.locator(".evidence").innerText();
    // A choice leads to the reason.
    await page.keyboard.press("1");
    await page.keyboard.type(`seen on the drawing ${item}`);
    if (item === 1) {
      await page.keyboard.press("Tab");
      await page.keyboard.type("Ada");
      await picture(page, "review-decided");
    }
    await page.keyboard.press("Enter");
    await page.getByText(/Saved 1 correction/).waitFor({ timeout: 10000 });
    expect(rows() === item, at, `${rows()} corrections are saved after ${item} decisions`);
    expect((await page.locator("body").innerText()).indexOf(heading) < 0, at, "the same item is shown after it was saved");
  }
  await picture(page, "review-saved");
  const last = readFileSync(corrections, "utf8").trim().split("\n").pop();
  expect(/Ada/.test(last) && last.includes(`seen on the drawing ${items}`), at, `name and reason are not in the last correction: ${last}`);

  // The page offers to run; the plan names the stage that applies the corrections.
  await page.getByRole("link", { name: "Run now" }).click();
  await page.getByRole("button", { name: "Run exactly this" }).click();
  await page.getByText(/The last run finished .*: complete/).waitFor({ timeout: 60000 });
  const records = JSON.parse(readFileSync(join(project, "workspace/intermediate/classified_all.json"), "utf8"));
  expect(JSON.stringify(records).includes("seen on the drawing 1"), at, "the run did not apply the corrections");

  // What is decided is not asked again, and there is nothing left to do.
  await page.goto(`${ui.url}review`);
  await picture(page, "review-after");
  expect((await open()) === before - items, at, `${await open()} of ${before} items are open after ${items} decisions`);
  expect((await page.getByText("not applied yet").count()) === 0, at, "corrections are not applied after a run");
  const { output } = await succeed(0, project, "run");
  expect(/^up to date: /m.test(output), at, `another run does something: ${output}`);
  expect(rows() === items, at, `${rows()} corrections are saved after the run`);
  await context.close();
}
