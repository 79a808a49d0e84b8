// What needs a person: a batch that waits for an answer, a stage that waits for approval, a failed batch, a modified output.
import { appendFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, picture } from "./tools.mjs";
import { accessible, fits, watched } from "./page.mjs";
import { succeed } from "./server.mjs";

const STAGES = {
  "95_fail": `
description = "Fail in one of two batches"

[each.number]
count = 2

[step]
command = ["sh", "-c", 'test "$0" = 1 || { echo cannot >&2; exit 3; }; echo done > "$1"', "{{ number }}", "{{ paths.done }}"]

[outputs]
done = { path = "outputs/done_{{ number }}.txt", schema = false }

[policy]
on_failure = "continue"
`,
  "96_ask": `
description = "Wait for an answer"

[step]
agent = "person"
prompt = "prompts/person.md"

[outputs]
word = { path = "outputs/word.json", schema = "schemas/person_word.schema.json" }
`,
  "97_gate": `
description = "Wait for approval"

[approve]
by = "reviewer"

[step]
jq = '{word: "bridge"}'

[outputs]
approved = { path = "outputs/approved.json", schema = false }
`,
};

const SCHEMA = {
  type: "object",
  required: ["word", "kind"],
  properties: { word: { type: "string" }, kind: { enum: ["noun", "verb"] }, sure: { type: "boolean" }, note: { type: "object" } },
};

/// Adds the stages to a project that has run, and runs it again.
export async function needsPeople(project) {
  for (const folder of ["prompts", "schemas"]) mkdirSync(join(project, folder), { recursive: true });
  appendFileSync(join(project, "milepost.toml"), "\n[agents.person]\nexternal = true\n");
  writeFileSync(join(project, "prompts/person.md"), "Name a word.\n");
  writeFileSync(join(project, "schemas/person_word.schema.json"), JSON.stringify(SCHEMA));
  for (const [name, text] of Object.entries(STAGES)) writeFileSync(join(project, `stages/${name}.toml`), text);
  await succeed(3, project, "run", "--keep-going", "--quiet");
}

/// Checks a page with a form for a person.
async function form(page, ui, at, name) {
  await picture(page, `${ui.label}-${name}`);
  await accessible(page, at);
  await page.setViewportSize({ width: 375, height: 800 });
  await fits(page, `${at}, phone`);
  await page.setViewportSize({ width: 1280, height: 900 });
}

/// Approves a stage and accepts a modified output, as a person does.
export async function decide(browser, ui, project) {
  const context = await watched(browser, ui);
  const page = await context.newPage();
  await approve(page, ui, project);
  await accept(page, ui, project);
  await context.close();
}

/// Approves a stage. A run in a terminal meanwhile does not take what was typed.
async function approve(page, ui, project) {
  await page.goto(`${ui.url}approvals`);
  await form(page, ui, `${ui.label}/approvals`, "approvals");
  await page.getByLabel("Reason").fill("looks right");
  await page.getByLabel("Your name").fill("Ada");
  await page.getByRole("button", { name: "Approve" }).focus();
  await succeed(3, project, "run", "--quiet");
  await page.getByText("paused while a form is filled in").waitFor({ timeout: 10000 });
  await picture(page, `${ui.label}-approvals-filled`);
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText(/1 batch by Ada as reviewer on .*: looks right/).waitFor({ timeout: 10000 });
  recorded(project, ui, "approved", "looks right");
  await form(page, ui, `${ui.label}/stage (approved)`, "approved");
  await succeed(3, project, "run", "--quiet");
}

/// Accepts an output that was modified by hand.
async function accept(page, ui, project) {
  appendFileSync(join(project, "workspace/outputs/approved.json"), "\n");
  await page.goto(`${ui.url}batch?stage=gate&batch=`);
  await form(page, ui, `${ui.label}/batch (modified)`, "modified");
  await page.getByLabel("Reason").fill("one more line");
  expect((await page.getByLabel("Your name").inputValue()) === "Ada", ui.label, "the name of the approval is not offered again");
  await page.getByRole("button", { name: "Accept" }).click();
  await page.getByText("modified by hand, accepted").waitFor({ timeout: 10000 });
  await page.getByText(/modified by hand: accepted by Ada on .*: one more line/).waitFor({ timeout: 10000 });
  recorded(project, ui, "accepted", "one more line");
  await form(page, ui, `${ui.label}/batch (accepted)`, "accepted");
  await succeed(3, project, "run", "--quiet");
  expect(readFileSync(join(project, "workspace/outputs/approved.json"), "utf8").endsWith("\n\n"), ui.label, "a run did not keep the accepted output");
}

/// Checks that the journal has one decision of a kind about the stage, with name and reason.
function recorded(project, ui, kind, why) {
  const journal = join(project, "workspace/.milepost/journal");
  const lines = readdirSync(journal).flatMap((file) => readFileSync(join(journal, file), "utf8").trim().split("\n"));
  const found = lines.map((line) => JSON.parse(line)).filter((record) => record.kind === kind && record.data.stage === "gate");
  const pins = found.map(({ data }) => `${data.pin.who}: ${data.pin.why}`);
  expect(pins.join() === `Ada: ${why}`, ui.label, `the journal has ${JSON.stringify(pins)} as ${kind}`);
}
