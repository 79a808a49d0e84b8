// Review by keyboard: elements of a model are decided on one after another, saved as corrections, and the run that follows applies them.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, picture } from "./tools.mjs";
import { watched } from "./page.mjs";

/// Decides on so many items with the keyboard alone.
export async function review(browser, ui, project, items) {
  const at = "ifc/review (keyboard)";
  const corrections = join(project, "workspace/inputs/corrections.csv");
  const rows = () => (existsSync(corrections) ? readFileSync(corrections, "utf8").trim().split("\n").length - 1 : 0);
  const context = await watched(browser, ui);
  const page = await context.newPage();
  await page.goto(`${ui.url}review`);
  await picture(page, "review-item");
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
  await page.getByText(/The last run ended .*: complete/).waitFor({ timeout: 60000 });
  const records = JSON.parse(readFileSync(join(project, "workspace/intermediate/classified_all.json"), "utf8"));
  expect(JSON.stringify(records).includes("seen on the drawing 1"), at, "the run did not apply the corrections");
  await context.close();
}
