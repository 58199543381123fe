import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serverCommand } from "./command.ts";
import { freePort } from "./probe.ts";
import { AddressInUse, type ServerProcess, startProcess } from "./process.ts";
import { endWithProcess } from "./reaper.ts";

/** A Redis that can be connected to. */
export interface RedisServer {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** Stops the server if it was launched for us, and removes its private folder. Safe to call twice. */
  stop(): Promise<void>;
}

/** A Redis that this process launched, and that ends with it. */
export interface LocalServer extends RedisServer {
  /** The process id now; `restart()` changes it. */
  readonly pid: number;
  /** Where the server works and writes its log, `server.log`. */
  readonly dir: string;
  /** Ends the server as a crash would (SIGKILL when left out) and waits until it is gone. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again on the same port, and empty, since nothing is persisted. Kills it first if it still runs. */
  restart(): Promise<void>;
}

/** How often a port chosen by us may turn out to be taken before something else must be wrong. */
const PORT_ATTEMPTS = 5;

/**
 * Launches a Redis on the loopback interface, without persistence, and waits until it answers.
 *
 * @param options.args more arguments for the server; later ones win over ours
 * @param options.port a free one when left out
 * @param options.dir the working folder, kept at the end; a temporary one, removed at the end, when left out
 * @param options.command the server's program; the one on the PATH when left out
 * @throws Error when there is no server program, when the port is taken, or (with the end of the server's log)
 *   when it ends or does not answer within 10 s
 */
export async function launchServer(
  options: { args?: string[]; port?: number; dir?: string; command?: string } = {},
): Promise<LocalServer> {
  const command = options.command ?? serverCommand();
  if (command === null) throw new Error("Neither redis-server nor valkey-server is on the PATH");
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), "holdfast-redis-")));
  const folderIsOurs = options.dir === undefined;
  const start = (port: number) => startProcess({ command, args: options.args ?? [], port, dir });

  try {
    const { port, first } = await startSomewhere(options.port, start);
    return new Launched({ port, dir, folderIsOurs, first, start });
  } catch (error) {
    if (folderIsOurs) await rm(dir, { recursive: true, force: true });
    throw error;
  }
}

type Start = (port: number) => Promise<ServerProcess>;

async function startSomewhere(wanted: number | undefined, start: Start) {
  for (let attempt = 1; ; attempt++) {
    const port = wanted ?? (await freePort());
    try {
      return { port, first: await start(port) };
    } catch (error) {
      const again = error instanceof AddressInUse && wanted === undefined && attempt < PORT_ATTEMPTS;
      if (!again) throw error;
    }
  }
}

class Launched implements LocalServer {
  readonly host = "127.0.0.1";
  readonly port: number;
  readonly url: string;
  readonly dir: string;
  readonly #folderIsOurs: boolean;
  readonly #start: Start;
  readonly #forget: () => void;
  #process: ServerProcess;
  #stopped = false;

  constructor(given: {
    port: number;
    dir: string;
    folderIsOurs: boolean;
    first: ServerProcess;
    start: Start;
  }) {
    this.port = given.port;
    this.url = `redis://127.0.0.1:${given.port}`;
    this.dir = given.dir;
    this.#folderIsOurs = given.folderIsOurs;
    this.#process = given.first;
    this.#start = given.start;
    this.#forget = endWithProcess(() => {
      if (this.#folderIsOurs) rmSync(this.dir, { recursive: true, force: true });
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    return this.#process.kill(signal);
  }

  async restart(): Promise<void> {
    if (this.#stopped) throw new Error("This server was stopped; launch another one");
    await this.kill();
    this.#process = await this.#start(this.port);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    // SIGKILL, since there is nothing to save, and it also ends a server that a test has frozen.
    await this.kill();
    this.#forget();
    if (this.#folderIsOurs) await rm(this.dir, { recursive: true, force: true });
  }
}
