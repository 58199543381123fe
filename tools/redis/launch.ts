import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serverCommand } from "./command.ts";
import { freePort } from "./probe.ts";
import { AddressInUse, type Prepared, startProcess } from "./process.ts";
import { Launched, type LocalServer, type Start } from "./server.ts";

/** How often a port that we chose may turn out to be taken before there must be another cause. */
const PORT_ATTEMPTS = 5;

export interface LaunchOptions {
  /** More arguments for the server; later ones override ours. */
  args?: string[];
  /** Default: a free one. */
  port?: number;
  /** The working folder, kept at the end. Default: a temporary one, removed at the end. */
  dir?: string;
  /** The server's program. Default: the one on the PATH. */
  command?: string;
  /**
   * Called once, before the first start, with the working folder: a place for files that the server
   * needs.
   */
  prepare?: (dir: string) => Promise<Prepared>;
}

/**
 * Launches a Redis on the loopback interface, without persistence, and waits until it answers.
 *
 * @throws Error if there is no server program, if the port is taken, or (with the end of the
 * server's log) if it ends or does not answer within 10 s
 */
export async function launchServer(options: LaunchOptions = {}): Promise<LocalServer> {
  const command = options.command ?? serverCommand();
  if (command === null) throw new Error("Neither redis-server nor valkey-server is on the PATH");
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), "holdfast-redis-")));
  const folderIsOurs = options.dir === undefined;
  const args = options.args ?? [];

  try {
    const prepared = (await options.prepare?.(dir)) ?? {};
    const start: Start = (port, more = []) =>
      startProcess({ ...prepared, command, args: [...args, ...more], dir, port });
    const { port, first } = await startSomewhere(options.port, start);
    const url = `${prepared.tls ? "rediss" : "redis"}://127.0.0.1:${port}`;
    return new Launched({ port, url, dir, folderIsOurs, first, start });
  } catch (error) {
    if (folderIsOurs) await rm(dir, { recursive: true, force: true });
    throw error;
  }
}

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
