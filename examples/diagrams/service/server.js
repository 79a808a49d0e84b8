// The render service: POST /api/v1/render with {"diagram": {board, elements}, "options": {renderer, width, height}}
// answers {"success": true, "image": base64 of a PNG, "metadata": {…}}, or {"success": false, "error", "error_code"};
// GET /health says what it can draw with.
'use strict';
const http = require('node:http');
const browser = require('./browser.js');
const plain = require('./plain.js');
const { read, Refused } = require('./diagram.js');

const LARGEST = 1 << 20;
const RENDERERS = ['auto', 'jsxgraph', 'plain'];
const NOTES = { plain: 'drawn by the service itself, without a browser and without JSXGraph', jsxgraph: 'drawn by JSXGraph in Chromium' };
/** Faults of the browser, not of the diagram: `auto` draws such a picture with the renderer `plain`. */
const FAULTS = ['RENDERER_MISSING', 'RENDER_FAILED', 'TIMEOUT'];

const url = new URL(process.env.DIAGRAM_SCREENSHOT_URL || 'http://localhost:3001');
if (!['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)) {
  console.error(`DIAGRAM_SCREENSHOT_URL names ${url.hostname}, another machine, and no service answers there: start one there`);
  process.exit(2);
}

/** One picture after another: Chromium takes memory. */
let last = Promise.resolve();

async function render(body) {
  let asked;
  try {
    asked = JSON.parse(body);
  } catch (error) {
    throw new Refused(`the request is no JSON: ${error.message}`);
  }
  const renderer = asked?.options?.renderer ?? 'auto';
  if (!RENDERERS.includes(renderer)) throw new Refused(`options.renderer is ${JSON.stringify(renderer)}; known are ${RENDERERS.join(', ')}`);
  const given = read(asked);
  const drawn = last.then(() => draw(given, renderer));
  last = drawn.catch(() => {});
  const { png, labels, points, ticks, by, fallback } = await drawn;
  const { width, height, ignored, board: { strip } } = given;
  const board = { width, height: height - strip };
  const metadata = { renderer: by, fallback, note: NOTES[by], format: 'png', width, height, board, labels, points, ticks, ignored };
  return { success: true, image: png.toString('base64'), metadata };
}

/** Draws with JSXGraph where it can, unless `plain` is asked for; `fallback` says why it could not. */
async function draw(given, renderer) {
  if (renderer === 'plain') return { ...plain.draw(given), by: 'plain', fallback: null };
  try {
    return { ...(await browser.draw(given)), by: 'jsxgraph', fallback: null };
  } catch (error) {
    if (renderer === 'jsxgraph' || !FAULTS.includes(error.code)) throw error;
    return { ...plain.draw(given), by: 'plain', fallback: error.message };
  }
}

async function bodyOf(request) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > LARGEST) throw new Refused(`the request is larger than ${LARGEST} bytes`, 'TOO_LARGE', 413);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

async function answer(request) {
  const { pathname } = new URL(request.url, 'http://service');
  if (pathname === '/health') return { status: 'ok', renderers: { plain: true, jsxgraph: browser.found().missing.length === 0 } };
  if (pathname !== '/api/v1/render') throw new Refused(`nothing is at ${pathname}: POST /api/v1/render draws`, 'NOT_FOUND', 404);
  if (request.method !== 'POST') throw new Refused('/api/v1/render takes POST', 'METHOD_NOT_ALLOWED', 405);
  return render(await bodyOf(request));
}

const server = http.createServer(async (request, response) => {
  let [status, body] = [200, null];
  try {
    body = await answer(request);
  } catch (error) {
    const { status: found = 500, code = 'RENDER_FAILED', message } = error instanceof Refused ? error : { message: error.message };
    status = found;
    body = { success: false, error: status < 500 ? message : `Diagram rendering failed: ${message}`, error_code: code };
  }
  const text = JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
});
server.on('error', (error) => { console.error(`${url.href}: ${error.message}`); process.exit(1); });
server.listen(Number(url.port || 80), url.hostname === '[::1]' ? '::1' : '127.0.0.1');
