// A picture in memory: smooth strokes, filled outlines, and the whole as PNG.
'use strict';
const zlib = require('node:zlib');

const rgb = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));

class Picture {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.pixels = Buffer.alloc(width * height * 3, 255);
  }

  /** Lays a color over a pixel; `cover` is 0 to 1. */
  blend(x, y, [r, g, b], cover) {
    if (x < 0 || y < 0 || x >= this.width || y >= this.height || cover <= 0) return;
    const at = (y * this.width + x) * 3;
    [r, g, b].forEach((part, place) => { this.pixels[at + place] = Math.round(this.pixels[at + place] * (1 - cover) + part * cover); });
  }

  /** Draws a line through points; the ends are round. Each pixel is laid over once, however many parts of the line touch it. */
  stroke(points, color, thick) {
    const cover = new Map();
    const pairs = points.length === 1 ? [[points[0], points[0]]] : points.slice(1).map((end, place) => [points[place], end]);
    for (const [[ax, ay], [bx, by]] of pairs) {
      const [dx, dy] = [bx - ax, by - ay];
      const square = dx * dx + dy * dy;
      const reach = thick / 2 + 1;
      const clamp = (value, most) => Math.min(Math.max(Math.floor(value), 0), most - 1);
      for (let y = clamp(Math.min(ay, by) - reach, this.height); y <= clamp(Math.max(ay, by) + reach, this.height); y += 1) {
        for (let x = clamp(Math.min(ax, bx) - reach, this.width); x <= clamp(Math.max(ax, bx) + reach, this.width); x += 1) {
          const [px, py] = [x + 0.5 - ax, y + 0.5 - ay];
          const along = square === 0 ? 0 : Math.min(1, Math.max(0, (px * dx + py * dy) / square));
          const share = Math.min(1, thick / 2 + 0.5 - Math.hypot(px - along * dx, py - along * dy));
          const at = y * this.width + x;
          if (share > (cover.get(at) ?? 0)) cover.set(at, share);
        }
      }
    }
    const parts = rgb(color);
    for (const [at, share] of cover) this.blend(at % this.width, Math.floor(at / this.width), parts, share);
  }

  /** Fills an outline. */
  fill(points, color, opacity) {
    const parts = rgb(color);
    for (let y = 0; y < this.height; y += 1) {
      const crossings = [];
      points.forEach(([ax, ay], place) => {
        const [bx, by] = points[(place + 1) % points.length];
        if ((ay <= y + 0.5) !== (by <= y + 0.5)) crossings.push(ax + ((y + 0.5 - ay) / (by - ay)) * (bx - ax));
      });
      crossings.sort((a, b) => a - b);
      for (let pair = 0; pair + 1 < crossings.length; pair += 2) {
        const last = Math.min(this.width - 1, Math.round(crossings[pair + 1]) - 1);
        for (let x = Math.max(0, Math.round(crossings[pair])); x <= last; x += 1) this.blend(x, y, parts, opacity);
      }
    }
  }

  /** The picture as PNG: 8 bits a color, no transparency. */
  png() {
    const head = Buffer.alloc(13);
    head.writeUInt32BE(this.width, 0);
    head.writeUInt32BE(this.height, 4);
    head.set([8, 2, 0, 0, 0], 8);
    const row = this.width * 3;
    const lines = Buffer.alloc((row + 1) * this.height);
    for (let y = 0; y < this.height; y += 1) this.pixels.copy(lines, y * (row + 1) + 1, y * row, (y + 1) * row);
    const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
    return Buffer.concat([signature, chunk('IHDR', head), chunk('IDAT', zlib.deflateSync(lines, { level: 9 })), chunk('IEND', Buffer.alloc(0))]);
  }
}

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let bit = 0; bit < 8; bit += 1) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});

function chunk(kind, data) {
  const body = Buffer.concat([Buffer.from(kind, 'latin1'), data]);
  let crc = 0xffffffff;
  for (const byte of body) crc = CRC[(crc ^ byte) & 255] ^ (crc >>> 8);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE((crc ^ 0xffffffff) >>> 0);
  return Buffer.concat([length, body, sum]);
}

module.exports = { Picture };
