// A page in the browser that must behave: nothing on the console, no error, no violation of the policy, no request to another origin.
import { axe, expect, fail } from "./tools.mjs";

/// Opens a context whose pages are watched. `options` are those of Playwright.
export async function watched(browser, ui, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
  });
  // A check that ends the server on purpose lets messages about it pass.
  context.allowed = () => false;
  const place = (page) => name(page.url(), ui);
  context.on("console", (message) => {
    if (!["error", "warning"].includes(message.type()) || context.allowed(message.text())) return;
    // The status of a page is checked where it is opened.
    if (message.location().url === message.page()?.url()) return;
    fail(message.page() ? place(message.page()) : "console", `the console has: ${message.text().slice(0, 300)}`);
  });
  context.on("weberror", (error) => fail(place(error.page()), `a script fails: ${error.error()}`));
  context.on("dialog", (dialog) => {
    fail(place(dialog.page()), `a dialog opens: ${dialog.message()}`);
    dialog.dismiss();
  });
  context.on("request", (request) => {
    const url = request.url();
    // The viewer of PDFs is a part of the browser.
    if (!url.startsWith(`${ui.origin}/`) && !/^(data|chrome|chrome-error|chrome-extension):/.test(url)) fail("requests", `another origin is asked: ${url.slice(0, 200)}`);
  });
  return context;
}

/// Returns the path of a page without the token, as failures name it.
export function name(url, ui) {
  return `${ui.label ?? ""}/${url.replace(ui.url, "")}`.slice(0, 160);
}

/// Opens a page and checks what all pages promise. Returns its links.
export async function visit(page, ui, url) {
  const at = name(url, ui);
  const response = await page.goto(url, { waitUntil: "load" });
  expect(response.status() === 200, at, `status ${response.status()}`);
  expect((await page.title()).trim() !== "", at, "there is no title");
  const heading = page.locator("h1");
  expect((await heading.count()) === 1 && (await heading.innerText()).trim() !== "", at, "there is not one h1 with a text");
  expect((await page.evaluate(() => window.hostile)) === undefined, at, `a value was run as script: ${await page.evaluate(() => window.hostile)}`);
  return page.evaluate(() => [...document.querySelectorAll("a[href]")].map((link) => {
    const text = link.getAttribute("aria-label") ?? link.textContent.trim();
    return { url: new URL(link.getAttribute("href"), document.baseURI).href, text };
  }));
}

/// Returns what can be read in the content of a page, without times, which the script shows as time since then.
export function texts(page) {
  return page.evaluate(() => {
    const main = document.querySelector("main").cloneNode(true);
    main.querySelectorAll("time, script, template").forEach((one) => one.remove());
    return main.textContent.replace(/\s+/g, " ").trim();
  });
}

/// The most elements of a page that axe checks: it needs minutes for a large file, whose rows are all alike.
const MOST_CHECKED = 1500;

/// Checks a page as it is shown with axe: nothing serious, nothing critical. What a long page has at its end is removed.
export async function accessible(page, at, rules) {
  await page.evaluate((most) => [...document.querySelectorAll("main *")].slice(most).forEach((one) => one.remove()), MOST_CHECKED);
  await page.evaluate(axe);
  const { violations } = await page.evaluate((rules) => window.axe.run(document, { resultTypes: ["violations"], ...(rules && { runOnly: rules }) }), rules);
  for (const { id, impact, help, nodes } of violations) {
    if (impact !== "serious" && impact !== "critical") continue;
    const [{ html, failureSummary }] = nodes;
    fail(at, `axe: ${help} (${id}, ${impact}, ${nodes.length} times): ${html.slice(0, 200)} ${failureSummary.replace(/\s+/g, " ").slice(0, 300)}`);
  }
}

/// Checks that a page does not scroll sideways.
export async function fits(page, at) {
  const { width, wide } = await page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    const isClipped = (one) => one.closest(".wide, .graph, pre, svg, table") !== null && one.getBoundingClientRect().left < width;
    const wide = [...document.querySelectorAll("body *")].find((one) => one.getBoundingClientRect().right > width + 1 && !isClipped(one));
    return { width: document.documentElement.scrollWidth - width, wide: wide && wide.outerHTML.slice(0, 200) };
  });
  expect(width <= 0, at, `the page is ${width} px wider than the screen, by ${wide}`);
}
