// A project whose names, values, answers, logs and messages attack the page that shows them.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "./tools.mjs";

/// Any of these that is taken for more than text sets `window.hostile` or opens a dialog.
export const ATTACKS = {
  script: "<script>window.hostile=1</script>",
  image: '"><img src=x onerror=window.hostile=2>',
  svg: "'><svg onload=window.hostile=3>",
  link: "javascript:alert(4)",
  markdown: "[look](javascript:alert(5)) ![x](http://evil.invalid/x.png)",
  template: "{{ 7 * 7 }}{% raw %}",
  colours: "\u001b[31mred\u001b[0m \u001b[2J\u001b]8;;http://evil.invalid\u0007link\u001b]8;;\u0007",
  bidi: "user\u202e\u2066gnp.exe\u2069\u2028\u200f",
  event: "\n\nevent: change\ndata: {}\nid: 0\n\n",
};

/// All attacks in one text.
const ALL = Object.values(ATTACKS).join(" ");

/// Names of files: a slash would make a folder.
const NAMES = [ATTACKS.image, ATTACKS.svg, ATTACKS.link, "<b>bold", "a&amp;b%00;=#?", "{{ 7 * 7 }}"];

const project = (folder) => `
name = ${JSON.stringify(ATTACKS.image)}

[params]
note = { default = ${JSON.stringify(ATTACKS.script)}, description = ${JSON.stringify(ATTACKS.svg)} }

[agents.liar]
cli = ["sh", "-c", 'cat > /dev/null; cat "$0"', ${JSON.stringify(join(folder, "workspace/answer.json"))}]
`;

const stages = {
  copy: `
description = ${JSON.stringify(ATTACKS.script)}

[each.item]
path = "inputs/*.txt"

[inputs]
text = "{{ item.path }}"

[step]
copy = "text"

[outputs]
copy = { path = "intermediate/copies/{{ item.stem }}.txt", schema = false }
`,
  viewers: `
description = "Write a file of each kind that the page has a viewer for"

[inputs]
data = "inputs/data.json"
attack = "inputs/attack.log"

[[step]]
copy = "data"
out = "json"

[[step]]
jq = '"id,name\\n" + (.data.elements | map([.id, .name] | @csv) | join("\\n")) + "\\n"'
out = "csv"

[[step]]
jq = '"# " + (.data.elements | map(.name) | join("\\n\\n"))'
out = "md"

[[step]]
jq = '"<svg xmlns=\\"http://www.w3.org/2000/svg\\" onload=\\"window.hostile=6\\"><script>parent.hostile=7</script><text y=\\"20\\">drawn</text></svg>"'
out = "svg"

[[step]]
jq = '"<!doctype html><script>window.hostile=8; parent.hostile=8</script>page"'
out = "html"

[[step]]
command = ["sh", "-c", 'cat "$0"; cat "$0" >&2; head -c 1000000 /dev/zero | tr "\\0" "<" > "$1"', "{{ paths.attack }}", "{{ paths.long }}"]
out = "long"

[outputs]
json = { path = "outputs/data.json", schema = false }
csv = { path = "outputs/data.csv", columns = { id = "string", name = "string" }, schema = false }
md = { path = "outputs/data.md", schema = false }
svg = { path = "outputs/drawing.svg", schema = false }
html = { path = "outputs/page.html", schema = false }
long = { path = "outputs/long.txt", schema = false }
`,
  ask: `
description = "Ask an agent that answers with attacks"

[inputs]
data = "inputs/data.json"

[step]
agent = "liar"
prompt = "prompts/ask.md"

[outputs]
answer = { path = "intermediate/answer.json", schema = false }
`,
  fail: `
description = "Fail with attacks in the message"

[each.row]
from = "inputs/data.json"
select = '.elements[].id'

[inputs]
attack = "inputs/attack.log"

[step]
command = ["sh", "-c", 'cat "$0" >&2; exit 3', "{{ paths.attack }}"]

[outputs]
never = { path = "outputs/never_{{ row | length }}.txt", schema = false }

[policy]
on_failure = "continue"
`,
  check: `
description = "Fail by a check, with attacks in its message"

[inputs]
data = "inputs/data.json"

[step]
jq = '.data'

[outputs]
checked = { path = "outputs/checked.json", schema = false }

[[check]]
test = 'false'
error = "HOSTILE"
message = '{{ data.elements[0].name }}'
`,
};

/// Files of the project, one for each viewer.
export const FILES = ["data.json", "data.csv", "data.md", "drawing.svg", "page.html", "long.txt"].map((name) => `outputs/${name}`);

/// Writes the project into a folder.
export function hostile(folder) {
  const write = (path, text) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  write("milepost.toml", project(folder));
  write("prompts/ask.md", `${ALL.replaceAll("{", "(").replaceAll("}", ")")}\n{{ data | tojson }}\n`);
  Object.entries(stages).forEach(([name, text], place) => write(`stages/${place + 1}_${name}.toml`, text));
  for (const name of NAMES) write(`workspace/inputs/${name}.txt`, ALL);
  const elements = Object.entries(ATTACKS).map(([kind, attack]) => ({ id: `${kind} ${attack}`, name: attack, [attack]: [attack] }));
  write("workspace/inputs/data.json", JSON.stringify({ elements }));
  write("workspace/inputs/attack.log", `${ALL}\n${"<img src=x onerror=window.hostile=9>".repeat(30000)}\n${ALL}\n`);
  write("workspace/answer.json", JSON.stringify({ [ATTACKS.script]: ALL, elements }));
}

/// How the attacks can be read on pages: control characters as escapes.
const SHOWN = {
  ...ATTACKS,
  colours: "\\u001b[31mred\\u001b[0m",
  bidi: "user\\u202e\\u2066gnp.exe\\u2069\\u2028\\u200f",
  event: "event: change",
};

/// Checks that each attack can be read as text on a page, and that no control character can.
export function visible(pages) {
  const all = [...pages.values()];
  for (const [kind, text] of Object.entries(SHOWN)) expect(all.some((shown) => shown.includes(text)), "hostile", `no page shows the text of ${kind}: ${text}`);
  for (const [url, shown] of pages) {
    const control = shown.match(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/u);
    expect(!control, "hostile", `a control character is on ${url.slice(-100)}: ${JSON.stringify(shown.slice(control?.index - 20, control?.index + 20))}`);
  }
}
