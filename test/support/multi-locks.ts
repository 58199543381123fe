import { afterAll, beforeAll, expect } from "vitest";
import type { LockClientOptions } from "../../src/index.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { freshName, Parties, type Party } from "./fixture.ts";
import { trackUnhandled } from "./leaks.ts";
import { Onlooker } from "./onlooker.ts";
import { present } from "./present.ts";

/**
 * For the tests of several locks: a private server, which counts commands and shows remaining keys,
 * and two clients. Registers its hooks when it is created.
 *
 * @example
 * const several = new MultiLocks();
 * it("takes all", async () => {
 *   const names = three();
 *   const lease = await several.mine.locks.multiLock(names).lock();
 *   await lease.unlock();
 *   await several.gone(names);
 * });
 */
export class MultiLocks {
  readonly #parties = new Parties();
  #server: LocalServer | undefined;
  #both: readonly [Party, Party] | undefined;

  constructor() {
    const quiet = trackUnhandled({ ignore: ["LOCK_SELF_WAIT"] });
    beforeAll(async () => {
      this.#server = await launchServer();
      this.#both = [await this.join(), await this.join()];
    });
    afterAll(async () => {
      const left = await this.mine.redis.keys("holdfast:*");
      await this.#parties.close();
      await this.server.stop();
      await quiet.assertNone().finally(quiet.stop);
      expect(left.filter((key) => !key.endsWith(":clients"))).toEqual(["holdfast:clock"]);
    });
  }

  get server(): LocalServer {
    return present(this.#server);
  }

  get mine(): Party {
    return present(this.#both)[0];
  }

  get theirs(): Party {
    return present(this.#both)[1];
  }

  /** One more client; it is closed at the end. */
  join(client: LockClientOptions = {}): Promise<Party> {
    return this.#parties.join({ url: this.server.url, client });
  }

  look(name: string): Onlooker {
    return new Onlooker(this.mine.redis, name);
  }

  /** Waits until no key of these locks is left. */
  gone(names: readonly string[]): Promise<unknown> {
    return Promise.all(names.map((name) => this.look(name).gone()));
  }

  /** The client that holds each of them. */
  holders(names: readonly string[]): Promise<string[]> {
    return Promise.all(
      names.map(async (name) => (await this.look(name).holder()).replace(/^.*holdfast:client:|:[^:]*$/g, "")),
    );
  }
}

/** Three names in their order. */
export function three(): [string, string, string] {
  const name = freshName("multi");
  return [`${name}:a`, `${name}:b`, `${name}:c`];
}
