import { afterAll, beforeAll } from "vitest";
import { spinLua } from "../../src/wires/spin-lua.generated.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { loadScripts } from "../support/load-scripts.ts";
import { present } from "../support/present.ts";
import { staysQuiet } from "../support/quiet.ts";

/** A server of its own for tests of spinLock, which knows its scripts. */
export class SpinStage {
  readonly #parties = new Parties();
  #server: LocalServer | undefined;
  #other: Party | undefined;

  constructor() {
    staysQuiet();
    beforeAll(async () => {
      this.#server = await launchServer();
      this.#other = await this.join();
      await loadScripts(this.other.redis, spinLua);
    });
    afterAll(async () => {
      await this.#parties.close();
      await this.#server?.stop();
    });
  }

  get server(): LocalServer {
    return present(this.#server);
  }

  /** Holds and looks with plain commands. */
  get other(): Party {
    return present(this.#other);
  }

  readonly join = (options: Parameters<Parties["join"]>[0] = {}): Promise<Party> =>
    this.#parties.join({ url: this.server.url, ...options });

  /** A lock that somebody else holds, by a plain SET. */
  readonly held = async (ms = 60_000): Promise<string> => {
    const name = freshName("spin");
    await this.other.redis.set(name, "somebody else", "PX", ms);
    return name;
  };
}
