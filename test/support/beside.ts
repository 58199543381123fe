import { afterAll, beforeAll } from "vitest";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { Parties, type Party } from "./fixture.ts";
import { present } from "./present.ts";

/**
 * A server for the tests of one file, and a client on it that observes other processes. Registers
 * its hooks when it is created.
 *
 * @example
 * const beside = new Beside();
 * it("…", async () => {
 *   const actor = await Actor.start({ url: beside.server.url });
 *   const lease = await beside.here.locks.lock(name).lock();
 * });
 */
export class Beside {
  #server: LocalServer | undefined;
  #here: Party | undefined;

  constructor(ready: (here: Party) => Promise<void> = async () => {}) {
    const parties = new Parties();
    beforeAll(async () => {
      this.#server = await launchServer();
      this.#here = await parties.join({ url: this.#server.url });
      await ready(this.#here);
    });
    afterAll(async () => {
      await parties.close();
      await this.#server?.stop();
    });
  }

  get server(): LocalServer {
    return present(this.#server);
  }

  get here(): Party {
    return present(this.#here);
  }
}
