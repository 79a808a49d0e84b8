// The renderer `jsxgraph`: a page with JSXGraph, drawn by Chromium without a window.
'use strict';
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { Refused } = require('./diagram.js');

/** Milliseconds for one picture: less than the 30 s that the caller waits. */
const LIMIT = 25_000;

/** Where Chromium and JSXGraph are, or what is missing. */
function found() {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  const named = process.env.CHROMIUM ? [process.env.CHROMIUM] : ['chromium', 'chromium-browser', 'google-chrome'].flatMap((name) => folders.map((folder) => path.join(folder, name)));
  const chromium = named.find((file) => fs.existsSync(file));
  const library = path.join(__dirname, 'node_modules/jsxgraph/distrib/jsxgraphcore.js');
  const missing = [];
  if (!chromium) missing.push(process.env.CHROMIUM ? `CHROMIUM names ${process.env.CHROMIUM}, which is not there` : 'Chromium is not on the PATH (Debian: apt install chromium)');
  if (!fs.existsSync(library)) missing.push(`JSXGraph is not installed (npm install --prefix service)`);
  return { chromium, library, missing };
}

function page(library, given) {
  const { width, height, board } = given;
  const data = JSON.stringify(given).replaceAll('<', '\\u003c');
  const code = fs.readFileSync(path.join(__dirname, 'page.js'), 'utf8');
  return `<!doctype html><html><head><meta charset="utf-8"><title></title><style>body{margin:0;background:#fff}#box{width:${width}px;height:${height - board.strip}px}#title{display:flex;align-items:center;justify-content:center;height:${board.strip}px;font:600 18px sans-serif;white-space:nowrap}text{font-family:sans-serif}</style>
<script src="${pathToFileURL(library)}"></script></head><body><div id="title"></div><div id="box"></div><script type="application/json" id="given">${data}</script><script>${code}</script></body></html>`;
}

/** Draws a diagram. Gives the PNG, and where labels and points are in it, in pixels from the top left. */
async function draw(given) {
  const { chromium, library, missing } = found();
  if (missing.length) throw new Refused(`the renderer jsxgraph is not here: ${missing.join('; ')}`, 'RENDERER_MISSING', 503);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'diagram-'));
  try {
    const [html, image] = [path.join(folder, 'page.html'), path.join(folder, 'image.png')];
    fs.writeFileSync(html, page(library, given));
    const options = ['--headless', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', '--no-first-run', '--hide-scrollbars',
      '--force-device-scale-factor=1', `--user-data-dir=${path.join(folder, 'profile')}`, `--window-size=${given.width},${given.height}`, '--virtual-time-budget=3000',
      `--screenshot=${image}`, '--dump-dom'];
    // Chromium's sandbox refuses to work for root.
    if (process.getuid?.() === 0) options.push('--no-sandbox');
    const printed = await run(chromium, [...options, String(pathToFileURL(html))]);
    const title = /<title>([A-Za-z0-9+/=]+)<\/title>/.exec(printed);
    if (!title || !fs.existsSync(image)) throw new Refused('Chromium made no picture', 'RENDER_FAILED', 500);
    const { error, ...told } = JSON.parse(Buffer.from(title[1], 'base64').toString('utf8'));
    if (error) throw new Refused(`JSXGraph: ${error}`);
    return { png: fs.readFileSync(image), ...told };
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs a program and gives what it prints. One that a signal ends, as after a crash, is started once more. */
async function run(program, options) {
  const end = Date.now() + LIMIT;
  try {
    return await once(program, options, end);
  } catch (error) {
    if (!error.isCrash) throw error;
    return once(program, options, end);
  }
}

function once(program, options, end) {
  return new Promise((done, failed) => {
    const child = spawn(program, options, { stdio: ['ignore', 'pipe', 'ignore'], timeout: Math.max(1, end - Date.now()), killSignal: 'SIGKILL' });
    const parts = [];
    child.stdout.on('data', (part) => parts.push(part));
    child.on('error', (error) => failed(new Refused(`Chromium does not start: ${error.message}`, 'RENDER_FAILED', 500)));
    child.on('close', (code, signal) => {
      if (signal === 'SIGKILL') failed(new Refused(`Chromium drew nothing in ${LIMIT / 1000} seconds`, 'TIMEOUT', 504));
      else if (signal) failed(Object.assign(new Refused(`Chromium crashed (${signal})`, 'RENDER_FAILED', 500), { isCrash: true }));
      else if (code !== 0) failed(new Refused(`Chromium ended with exit code ${code}`, 'RENDER_FAILED', 500));
      else done(Buffer.concat(parts).toString('utf8'));
    });
  });
}

module.exports = { draw, found };
