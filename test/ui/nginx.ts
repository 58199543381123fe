import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findCommand } from "../../tools/redis/command.ts";
import { installPackages, whyNotInstall } from "../../tools/redis/install.ts";
import { freePort } from "../../tools/redis/probe.ts";
import { until } from "../support/until.ts";

/** Debian has it where users' paths do not lead. */
const find = (): string | null =>
  findCommand(["nginx"]) ?? findCommand(["nginx"], "/usr/sbin:/usr/local/sbin");

/** A real nginx, as a proxy before something that a test serves. */
export class Nginx {
  readonly #child: ChildProcess;
  readonly #dir: string;

  private constructor(child: ChildProcess, dir: string) {
    this.#child = child;
    this.#dir = dir;
  }

  /** Why there is none, in one line; null: there is one, installed now if it was not there. */
  static async missing(): Promise<string | null> {
    if (find() !== null) return null;
    const obstacle = whyNotInstall();
    if (obstacle !== null) return `there is no nginx, and none is installed: ${obstacle}`;
    await installPackages(["nginx-light"], (line) => process.stderr.write(`${line}\n`));
    return find() === null ? "nginx-light has no nginx" : null;
  }

  /**
   * `locations`: what stands in the only location of each of its servers. Resolves with their
   * ports, in the same order.
   */
  static async start(locations: readonly string[]): Promise<{ nginx: Nginx; ports: number[] }> {
    const dir = mkdtempSync(join(tmpdir(), "holdfast-nginx-"));
    // A set: a port is free again at once, and may be found twice.
    const found = new Set<number>();
    while (found.size < locations.length) found.add(await freePort());
    const ports = [...found];
    const servers = locations.map(
      (location, i) => `server { listen 127.0.0.1:${ports[i]}; location / { ${location} } }`,
    );
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => {
      mkdirSync(join(dir, kind));
      return `${kind}_temp_path ${kind};`;
    });
    // One process, that of this program's user: nothing is read but this file.
    const config = `
      daemon off; master_process off; pid nginx.pid; error_log error.log;
      events {}
      http { access_log off; ${temporary.join(" ")} ${servers.join("\n")} }
    `;
    writeFileSync(join(dir, "nginx.conf"), config);
    const child = spawn(find() ?? "nginx", ["-p", dir, "-c", "nginx.conf", "-e", "error.log"], {
      stdio: "ignore",
    });
    const nginx = new Nginx(child, dir);
    try {
      for (const port of ports) await until(() => child.exitCode !== null || answers(port));
      if (child.exitCode !== null) throw new Error(readFileSync(join(dir, "error.log"), "utf8"));
    } catch (error) {
      await nginx.stop();
      throw error;
    }
    return { nginx, ports };
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, "exit");
      this.#child.kill("SIGKILL");
      await ended;
    }
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
