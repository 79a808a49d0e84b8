// Follows the links of a site, and checks each kind of page: with and without script, light and dark, wide and narrow.
import { expect, fail, picture } from "./tools.mjs";
import { accessible, fits, name, texts, visit, watched } from "./page.mjs";

/// The most pages of a site.
const MOST = 50;

/// Returns what kind of page a URL shows: its path and the names of its parameters.
function kind(url) {
  const { pathname, searchParams } = new URL(url);
  return [pathname.split("/").pop(), ...new Set(searchParams.keys())].sort().join(" ");
}

/// Checks pages of a site that can be reached by links, so many of `each` kind and `most` in all, and `seeds`, which no link leads to. `isMoving` is
/// true during a run: two readings of a page differ then. Returns the text of each page by its URL.
export async function crawl(browser, ui, { each, seeds = [], most = MOST, isMoving = false } = {}) {
  const context = await watched(browser, ui);
  const plain = await watched(browser, ui, { javaScriptEnabled: false });
  const page = await context.newPage();
  const reader = await plain.newPage();
  await page.goto(ui.url);
  if (!isMoving) await page.getByText("Checking what a run would do").waitFor({ state: "detached" });
  const queue = [ui.url, ...seeds.map((seed) => ui.url + seed)];
  const known = new Set(queue);
  const kinds = new Map();
  const seen = (url) => kinds.get(kind(url)) ?? 0;
  const pages = new Map();
  while (queue.length && pages.size < most) {
    // Kinds that were seen least come first.
    queue.sort((one, other) => seen(one) - seen(other));
    const url = queue.shift();
    const shown = kind(url);
    const count = seen(url);
    if (count >= each) continue;
    kinds.set(shown, count + 1);
    if (!(await isShown(context, ui, url))) continue;
    for (const link of await visit(page, ui, url)) {
      const target = link.url.split("#")[0];
      expect(/^https?:/.test(target), name(url, ui), `a link leads to ${target.slice(0, 100)}`);
      expect(link.text !== "", name(url, ui), `a link has no text: ${name(target, ui)}`);
      if (!target.startsWith(ui.origin)) continue;
      if (!known.has(target)) queue.push(target);
      known.add(target);
    }
    pages.set(url, await texts(page));
    const isFirst = count === 0;
    if (isFirst && !isMoving) await sameWithoutScript(page, reader, url, ui);
    if (isFirst) await looks(page, name(url, ui), `${ui.label}-${shown.replaceAll(" ", "+") || "overview"}`);
  }
  await context.close();
  await plain.close();
  return pages;
}

/// Returns true for a page. What is no page, such as a file to download, must be there too.
async function isShown(context, ui, url) {
  const response = await context.request.get(url, { timeout: 60000 });
  const headers = response.headers();
  const type = headers["content-type"] ?? "";
  if (response.status() !== 200) fail(name(url, ui), `status ${response.status()}`);
  const isPage = type.startsWith("text/html") && !(headers["content-disposition"] ?? "").startsWith("attachment");
  if (!isPage && /html|svg|xml/.test(type)) expect(/sandbox|default-src 'none'/.test(headers["content-security-policy"] ?? ""), name(url, ui), `a file is served as ${type} without a policy`);
  return isPage && response.ok();
}

async function sameWithoutScript(page, reader, url, ui) {
  await reader.goto(url, { waitUntil: "load" });
  const [shown, read] = [await texts(page), await texts(reader)];
  if (shown === read) return;
  let place = 0;
  while (shown[place] === read[place]) place += 1;
  const part = (text) => JSON.stringify(text.slice(Math.max(0, place - 40), place + 80));
  fail(name(url, ui), `without script, another text can be read: ${part(read)} instead of ${part(shown)}`);
}

/// Checks how a page looks: light, dark, on a phone.
async function looks(page, at, file) {
  await picture(page, file);
  await accessible(page, at);
  await page.emulateMedia({ colorScheme: "dark" });
  await accessible(page, `${at} (dark)`, ["color-contrast"]);
  await picture(page, `${file}-dark`);
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 375, height: 800 });
  await fits(page, `${at} (phone)`);
  await accessible(page, `${at} (phone)`, ["scrollable-region-focusable", "target-size", "meta-viewport"]);
  await picture(page, `${file}-phone`);
  await page.setViewportSize({ width: 1280, height: 900 });
}
