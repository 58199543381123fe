import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll } from "vitest";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { Parties } from "./fixture.ts";
import { trackUnhandled } from "./leaks.ts";
import { present } from "./present.ts";
import { addUser, type User } from "./servers/users.ts";

/**
 * A server for the tests of one file, whose users and settings they may change, and its parties.
 */
export class OwnServer {
  readonly parties = new Parties();
  #server: LocalServer | undefined;
  #admin: Redis | undefined;

  constructor() {
    const unhandled = trackUnhandled();
    beforeAll(async () => {
      this.#server = await launchServer();
      this.#admin = new Redis(this.#server.url);
    });
    afterEach(async () => {
      await this.parties.close();
      await unhandled.assertNone();
    });
    afterAll(async () => {
      unhandled.stop();
      this.#admin?.disconnect();
      await this.#server?.stop();
    });
  }

  get server(): LocalServer {
    return present(this.#server);
  }

  get url(): string {
    return this.server.url;
  }

  /** Makes a user with exactly these ACL rules. */
  addUser(...rules: readonly string[]): Promise<User> {
    return addUser({ admins: async () => [this.admin] }, ...rules);
  }

  /** A connection of the default user. */
  get admin(): Redis {
    return present(this.#admin);
  }
}
