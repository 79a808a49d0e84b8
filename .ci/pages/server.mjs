// The program under test: a command, and a server of pages, as a person starts and ends them.
import { execFile, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { PROGRAM } from "./tools.mjs";

/// Runs a command of a project. Returns its exit code, what it printed, and the seconds that it took.
export function milepost(project, ...words) {
  const begun = performance.now();
  return new Promise((resolve) => {
    const child = execFile(PROGRAM, ["-C", project, ...words], { maxBuffer: 1 << 28 }, (_, out, err) => {
      resolve({ code: child.exitCode, output: out + err, seconds: (performance.now() - begun) / 1000 });
    });
  });
}

/// Runs a command, and throws unless it ends with this code.
export async function succeed(code, project, ...words) {
  const ran = await milepost(project, ...words);
  if (ran.code !== code) throw new Error(`milepost ${words.join(" ")} in ${project} ended with ${ran.code}, not ${code}:\n${ran.output.slice(-2000)}`);
  return ran;
}

const servers = new Set();
process.on("exit", () => servers.forEach((child) => child.kill("SIGKILL")));

/// A server of the pages of a project.
export class Ui {
  /// Starts a server and waits until it prints its URL.
  static async start(project, { port = 0 } = {}) {
    const ui = new Ui();
    ui.child = spawn(PROGRAM, ["-C", project, "ui", "--no-open", "--port", String(port)]);
    servers.add(ui.child);
    ui.ended = new Promise((resolve) => ui.child.on("exit", (code, signal) => {
      servers.delete(ui.child);
      resolve(code ?? signal);
    }));
    let printed = "";
    ui.url = await new Promise((resolve, reject) => {
      const read = (data) => {
        printed += data;
        const url = printed.match(/http:\/\/\S+\/ui\/[0-9a-f]+\//);
        if (url) resolve(url[0]);
      };
      ui.child.stdout.on("data", read);
      ui.child.stderr.on("data", read);
      ui.ended.then((code) => reject(new Error(`milepost ui ended with ${code}: ${printed}`)));
    });
    ui.port = Number(new URL(ui.url).port);
    ui.origin = new URL(ui.url).origin;
    return ui;
  }

  /// Returns the seconds of processor time that the server has used; `NaN` where there is no `/proc`.
  processorTime() {
    const stat = `/proc/${this.child.pid}/stat`;
    if (!existsSync(stat)) return NaN;
    const [user, system] = readFileSync(stat, "utf8").split(") ")[1].split(" ").slice(11, 13);
    return (Number(user) + Number(system)) / 100;
  }

  /// Ends the server as Ctrl-C does. Returns the seconds until it has ended.
  async end() {
    const begun = performance.now();
    this.child.kill("SIGINT");
    this.code = await this.ended;
    return (performance.now() - begun) / 1000;
  }

  /// Ends the server at once, as a crash does.
  async kill() {
    this.child.kill("SIGKILL");
    await this.ended;
  }
}
