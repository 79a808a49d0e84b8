// Pages by keyboard: everything can be reached by Tab in the order in which it is read, and the focus is always visible.
import { expect } from "./tools.mjs";
import { name } from "./page.mjs";

/// The most elements of a page that are reached.
const MOST = 60;

/// Describes the element that has the focus.
function focused() {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const style = getComputedStyle(one);
  const { left, top, right, bottom } = one.getBoundingClientRect();
  const isOutlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
  const isInside = right > 0 && left < innerWidth && bottom > 0 && top < innerHeight;
  return {
    text: (one.getAttribute("aria-label") ?? (one.textContent.trim() || one.name || one.tagName)).slice(0, 60),
    isMain: one.closest("main") !== null,
    isVisible: isOutlined && isInside && right > left && bottom > top,
  };
}

/// Walks through a page with Tab.
export async function walk(page, ui, url) {
  const at = `${name(url, ui)} (keyboard)`;
  await page.goto(url);
  const steps = [];
  for (let step = 0; step < MOST; step += 1) {
    await page.keyboard.press("Tab");
    const found = await page.evaluate(focused);
    if (!found) break;
    expect(found.isVisible, at, `the focus on ${JSON.stringify(found.text)} is not visible`);
    steps.push(found);
  }
  const outside = steps.filter((step) => !step.isMain).map((step) => step.text);
  const nav = await page.locator("nav[aria-label=Pages] a").allInnerTexts();
  const brand = await page.locator(".brand").innerText();
  const expected = ["Skip to the content", brand, ...nav];
  expect(outside.slice(0, expected.length).join() === expected.join(), at, `Tab reaches ${outside.join(", ")} instead of ${expected.join(", ")}`);
  expect((await page.locator("[tabindex]:not([tabindex='0'], [tabindex='-1'])").count()) === 0, at, "a tabindex changes the order");
  const fields = page.locator("main :is(a[href], button:not([disabled]), input:not([type=hidden]), select, textarea, summary):visible");
  // Tab reaches one button of a radio group; arrows reach the others.
  const reachable = new Set(await fields.evaluateAll((all) => all.map((one, at) => (one.type === "radio" ? one.name : at)))).size;
  const reached = steps.filter((step) => step.isMain).length;
  const most = MOST - expected.length;
  expect(reached >= Math.min(reachable, most), at, `Tab reaches ${reached} of ${reachable} links, buttons and fields`);

  await page.goto(url);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  if (reachable) expect((await page.evaluate(focused))?.isMain, at, "the link to the content does not lead there");
}
