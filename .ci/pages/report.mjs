// The report that `milepost report` writes: one file that a browser opens offline.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, fail, picture } from "./tools.mjs";
import { accessible, fits } from "./page.mjs";
import { succeed } from "./server.mjs";

/// Writes a report of a project, and checks it in a browser without network.
export async function report(browser, label, project) {
  const at = `${label} (report)`;
  const file = join(project, "report.html");
  await succeed(0, project, "report", "--out", file);
  const url = pathToFileURL(file).href;
  const context = await browser.newContext({ offline: true, viewport: { width: 1280, height: 900 } });
  context.on("console", (message) => message.type() === "error" && fail(at, `the console has: ${message.text()}`));
  context.on("weberror", (error) => fail(at, `a script fails: ${error.error()}`));
  context.on("request", (request) => expect(request.url() === url || request.url().startsWith("data:"), at, `asks for ${request.url().slice(0, 200)}`));
  const page = await context.newPage();
  await page.goto(url);
  expect((await page.locator("h1").innerText()).trim() !== "", at, "there is no heading");
  expect((await page.evaluate(() => window.hostile)) === undefined, at, "a value was run as script");
  await picture(page, `${label}-report`);
  await accessible(page, at);
  await page.emulateMedia({ colorScheme: "dark" });
  await accessible(page, `${at}, dark`, ["color-contrast"]);
  await page.setViewportSize({ width: 375, height: 800 });
  await fits(page, `${at}, phone`);
  await picture(page, `${label}-report-phone`);
  // A sheet of A4 at 96 pixels an inch, without its margins of 14 mm.
  await page.emulateMedia({ media: "print", colorScheme: "light" });
  await page.setViewportSize({ width: 688, height: 1002 });
  await fits(page, `${at}, on paper`);
  await picture(page, `${label}-report-paper`);
  await context.close();
}
