// What all parts of the check share: its settings, the browser, the list of failures, pictures.
import { createRequire } from "node:module";
import { join } from "node:path";

export const { CHROMIUM, MODULES, PROGRAM, SCRATCH, PICTURES } = process.env;
export const BATCHES = Number(process.env.BATCHES);

const require = createRequire(join(MODULES, "/"));
export const { chromium } = require("playwright-core");
export const axe = require("axe-core").source;

const failures = [];

/// Records a failure and prints it. The check goes on, so that one run names all of them.
export function fail(place, text) {
  const line = `${place}: ${text}`;
  if (failures.includes(line)) return;
  failures.push(line);
  console.log(`FAILED ${line}`);
}

/// Records a failure unless a condition holds.
export function expect(condition, place, text) {
  if (!condition) fail(place, text);
  return condition;
}

/// Runs one part of the check and prints how long it took. An exception is a failure of that part only.
export async function part(name, body) {
  const begun = performance.now();
  try {
    await body();
  } catch (error) {
    fail(name, String(error.stack ?? error).slice(0, 1500));
  }
  console.log(`${((performance.now() - begun) / 1000).toFixed(1).padStart(6)} s  ${name}`);
}

/// Returns the exit code of the whole check, after a last line that sums up.
export function exitCode() {
  console.log(failures.length ? `browser: ${failures.length} failed` : "browser: all pages are as they should be");
  return failures.length ? 1 : 0;
}

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/// Saves a picture of a page, `NAME.png`, to the end of the page or so far that a person can still look at it.
export async function picture(page, name) {
  if (!PICTURES) return;
  const { width, height } = await page.evaluate(() => ({ width: innerWidth, height: document.documentElement.scrollHeight }));
  const clip = { x: 0, y: 0, width, height: Math.min(height, 3000) };
  await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true, clip, animations: "disabled" });
}
