import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Redis } from "ioredis";
import { createLockClient, type LockClient } from "../../src/index.ts";
import { createLockUI, type LockUI, type LockUIOptions } from "../../src/tools/ui/index.ts";
import { carrier } from "./carrier.ts";

/** The page at its own port. */
export interface Served {
  readonly url: string;
  readonly locks: LockClient;
  readonly ui: LockUI;
  stop(): Promise<void>;
}

/**
 * Serves the page below "/locks", as an application would mount it. With `actions` every viewer may
 * do them, unless `options` says which viewers may.
 */
export async function servePage(redis: Redis, options: Partial<LockUIOptions> = {}): Promise<Served> {
  const given = carrier(redis);
  const locks = createLockClient(given);
  const ui = createLockUI({
    locks,
    redis: given,
    ...(options.actions && { authorize: () => true }),
    ...options,
  });
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
