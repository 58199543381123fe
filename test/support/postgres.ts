import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import type * as Pg from "pg";
import type { Client } from "pg";
import { findCommand } from "../../tools/redis/command.ts";
import { freePort } from "../../tools/redis/probe.ts";
import { endWithProcess } from "../../tools/redis/reaper.ts";
import { until } from "./until.ts";

/** A server's address as environment variables, which `new Client()` of pg reads. */
export type PostgresEnv = Record<"PGHOST" | "PGPORT" | "PGUSER" | "PGDATABASE", string>;

/**
 * A private PostgreSQL of one test file, on the loopback interface and without durability.
 *
 * @example
 * describe.skipIf(noPostgres)("in PostgreSQL", () => {
 *   let postgres: Postgres;
 *   beforeAll(async () => { postgres = await Postgres.launch(); });
 *   afterAll(() => postgres?.stop());
 *   it("answers", async () => { await (await postgres.connect()).query("SELECT 1"); });
 * });
 */
export class Postgres {
  readonly env: PostgresEnv;
  readonly #child: ChildProcess;
  readonly #dir: string;
  readonly #clients: Client[] = [];

  private constructor(child: ChildProcess, dir: string, port: number) {
    this.#child = child;
    this.#dir = dir;
    this.env = { PGHOST: "127.0.0.1", PGPORT: `${port}`, PGUSER: "holdfast", PGDATABASE: "postgres" };
  }

  /** Makes a data folder, starts the server on it, and waits until it answers: a second or two. */
  static async launch(): Promise<Postgres> {
    if (programs === null) throw new Error("There is no PostgreSQL server here");
    const dir = mkdtempSync(join(tmpdir(), "holdfast-postgres-"));
    const data = join(dir, "data");
    const as = otherUser();
    if (as !== undefined) chownSync(dir, as.uid, as.gid);
    const init = ["-D", data, "-U", "holdfast", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"];
    await promisify(execFile)(join(programs, "initdb"), init, { ...as, cwd: dir });
    const port = await freePort();
    const settings = { listen_addresses: "127.0.0.1", port, unix_socket_directories: "", fsync: "off" };
    const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const child = spawn(join(programs, "postgres"), ["-D", data, ...args], {
      ...as,
      cwd: dir,
      stdio: "ignore",
    });
    const postgres = new Postgres(child, dir, port);
    const forget = endWithProcess(() => void child.kill("SIGQUIT"));
    child.once("exit", forget);
    try {
      await until(() => child.exitCode !== null || postgres.#answers(), {
        what: "PostgreSQL to answer",
        timeout: 30_000,
      });
      if (child.exitCode !== null) throw new Error(`PostgreSQL ended at once (code ${child.exitCode})`);
    } catch (error) {
      await postgres.stop();
      throw error;
    }
    return postgres;
  }

  /** A connection, which `stop()` closes. */
  async connect(): Promise<Client> {
    const client = clientAt(this.env);
    this.#clients.push(client);
    await client.connect();
    return client;
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) await client.end().catch(() => {});
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const exit = once(this.#child, "exit");
      this.#child.kill("SIGINT"); // cuts the connections and ends
      await exit;
    }
    rmSync(this.#dir, { recursive: true, force: true });
  }

  async #answers(): Promise<boolean> {
    const client = clientAt(this.env);
    return client.connect().then(
      () => client.end().then(() => true),
      () => false,
    );
  }
}

/** A client of the server with these variables. A broken connection is reported by its queries. */
export function clientAt({ PGHOST, PGPORT, PGUSER, PGDATABASE }: PostgresEnv): Client {
  // Loaded only when used: every process of the tests has this file.
  const { Client } = createRequire(import.meta.url)("pg") as typeof Pg;
  const client = new Client({ host: PGHOST, port: Number(PGPORT), user: PGUSER, database: PGDATABASE });
  client.on("error", () => {});
  return client;
}

/** The folder of the server's programs: Debian keeps them off the PATH, by version. */
const programs = ((): string | null => {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...versions.map((version) => join(debian, version, "bin")), process.env.PATH ?? ""];
  const initdb = findCommand(["initdb"], folders.join(delimiter));
  return initdb && dirname(realpathSync(initdb));
})();

/** Why the tests with PostgreSQL are skipped; empty if they are not. */
export const noPostgres = programs === null ? "no PostgreSQL server (initdb, postgres) on this machine" : "";

/** PostgreSQL refuses to run as root. */
function otherUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (what: "-u" | "-g", user: string) => Number(execFileSync("id", [what, user], { stdio: "pipe" }));
  const user = ["postgres", "nobody"].find((name) => {
    try {
      return id("-u", name) > 0;
    } catch {
      return false;
    }
  });
  if (user === undefined) throw new Error("Neither a user postgres nor nobody, and PostgreSQL refuses root");
  return { uid: id("-u", user), gid: id("-g", user) };
}
