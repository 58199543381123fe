import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Redis } from "ioredis";
import { createLockClient, type LockClient } from "../../src/index.ts";
import { createLockUI, type LockUI, type LockUIOptions } from "../../src/tools/ui/index.ts";

/** The page on a port of its own. */
export interface Served {
  readonly url: string;
  readonly locks: LockClient;
  readonly ui: LockUI;
  stop(): Promise<void>;
}

/**
 * Serves the page below "/locks", as an application would mount it; with `actions` everybody may do
 * them, unless `options` says who may.
 */
export async function servePage(redis: Redis, options: Partial<LockUIOptions> = {}): Promise<Served> {
  const locks = createLockClient(redis);
  const ui = createLockUI({ locks, redis, ...(options.actions && { authorize: () => true }), ...options });
  const server: Server = createServer((request, response) => void ui.node(request, response));
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/locks`,
    locks,
    ui,
    async stop() {
      ui.close();
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
      await locks.close({ grace: 0 });
    },
  };
}
