import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { connectionLua } from "../../src/redis/client-lua.generated.ts";
import { handoffLua } from "../../src/redis/lua.generated.ts";
import { sharded } from "../../src/redis/script.ts";
import { redissonLua } from "../../src/wires/redisson-lua.generated.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { awake } from "./awake.ts";
import { freshName, Parties, type Party } from "./fixture.ts";
import { trackUnhandled, type UnhandledTracker } from "./leaks.ts";
import { loadScripts } from "./load-scripts.ts";
import { Onlooker } from "./onlooker.ts";
import { present } from "./present.ts";
import { type Match, TcpProxy } from "./tcp-proxy.ts";
import { warm } from "./warm.ts";

type JoinOptions = NonNullable<Parameters<Parties["join"]>[0]>;

export interface StageOptions {
  /** More arguments for the server. */
  args?: string[];
  /** Starts another server than a plain one. */
  launch?: () => Promise<LocalServer>;
  /** The options of `near`. */
  near?: Pick<JoinOptions, "redis" | "client">;
  /** The options of `far`. */
  far?: Pick<JoinOptions, "redis" | "client">;
}

/**
 * For a fault: a server for one test file, and for each test a fresh proxy, a client that uses the
 * proxy (`near`), one that is connected directly (`far`), and a lock's name. Registers its hooks
 * when it is created; no test may leave an unhandled rejection or a process warning.
 *
 * @example
 * const stage = new Stage();
 * it("loses a reply", async () => {
 *   const { near, proxy, lock } = stage;
 *   const dropped = proxy.dropReply(runs("acquire"));
 *   await near.locks.lock(lock.name).lock();
 *   await dropped;
 * });
 */
export class Stage {
  readonly #parties = new Parties();
  #server: LocalServer | undefined;
  #props: { proxy: TcpProxy; near: Party; far: Party; lock: Onlooker; quiet: UnhandledTracker } | undefined;

  constructor(options: StageOptions = {}) {
    const { args = [], launch = () => launchServer({ args }), near, far } = options;
    beforeAll(async () => {
      this.#server = await launch();
    });
    beforeEach(async () => {
      const proxy = await TcpProxy.start(this.server);
      const props = {
        quiet: trackUnhandled(),
        proxy,
        near: await this.join({ url: proxy.url, ...near }),
        far: await this.join({ ...far }),
      };
      await loadScripts(props.far.redis, connectionLua, handoffLua, redissonLua);
      const lock = new Onlooker(props.far.redis, freshName(), { clientsRead: this.#parties.read });
      this.#props = { ...props, lock };
    });
    afterEach(async () => {
      this.proxy.thaw();
      this.proxy.refuse(false);
      await this.#parties.close();
      await this.proxy.stop();
      const { quiet } = present(this.#props);
      await quiet.assertNone().finally(quiet.stop);
    });
    afterAll(async () => {
      await this.#server?.stop();
    });
  }

  get server(): LocalServer {
    return present(this.#server);
  }

  get proxy(): TcpProxy {
    return present(this.#props).proxy;
  }

  get near(): Party {
    return present(this.#props).near;
  }

  get far(): Party {
    return present(this.#props).far;
  }

  /** The lock of the present test. */
  get lock(): Onlooker {
    return present(this.#props).lock;
  }

  /** Makes a client open its subscriber connection, as its first wait does. */
  warm(party: Party): Promise<void> {
    return warm(this.far, party);
  }

  /** A client waits in the queue for the lock of the present test, and gives up. */
  async giveUp({ locks }: Party): Promise<void> {
    const enough = new AbortController();
    const waiting = locks.lock(this.lock.name).lock({ signal: enough.signal });
    const left = waiting.catch((reason: unknown) => reason);
    await this.lock.queued(1);
    enough.abort("enough");
    if ((await left) !== "enough") throw new Error("Expected that it waits until it gives up");
  }

  /** One more client, by default with a direct connection; it is closed after the test. */
  join(options: JoinOptions = {}): Promise<Party> {
    return this.#parties.join({ url: this.server.url, ...options });
  }
}

/**
 * The scripts that acquire, by mode. The first one of a connection differs, with the same
 * arguments.
 */
const ACQUIRING = {
  try: ["acquire", "firstAcquire"],
  queue: ["acquire", "firstAcquire"],
  again: ["recheck", "firstRecheck"],
} as const;
/** The second one is sent in Cluster only, while a slot moves. */
const RENEWING = ["renewStays", "renew"] as const;
const SCRIPTS = { ...handoffLua, ...connectionLua };
/** An entry up to its hold: the argument of an acquire that queues. */
const ENTRY = /^[01] \d+ \d+ $/;

/**
 * Matches a run of this script, as a server or a Cluster gets it; "acquire" is any attempt, or one
 * in this mode, and "renew" any renewal. Servers of a stage know all scripts: none is sent whole.
 */
export function runs(script: keyof typeof SCRIPTS, mode?: keyof typeof ACQUIRING): Match {
  const attempts = mode ? ACQUIRING[mode] : [...ACQUIRING.try, ...ACQUIRING.again];
  const meant = script === "acquire" ? attempts : script === "renew" ? RENEWING : [script];
  const scripts = meant.map((key) => SCRIPTS[key]);
  const variants = scripts.flatMap((one) => [one, sharded(one)]);
  const shas = variants.map(({ sha }) => sha);
  // Only for scripts that are always sent as text: others are sent so if the server does not know
  // them, and then once more.
  const texts = script === "releaseStays" ? variants.map(({ lua }) => lua) : [];
  return (command) =>
    (command[0] === "evalsha" ? shas : texts).includes(`${command[1]}`) &&
    (mode === undefined ||
      mode === "again" ||
      ENTRY.test(`${command[6 + Number(command[2])]}`) === (mode === "queue"));
}

/** Resolves with the result and the ms that it took. */
export async function timed<T>(work: Promise<T>): Promise<[T, number]> {
  const start = performance.now();
  return [await work, Math.round(performance.now() - start)];
}

/**
 * As `timed`, but no time passes while this process is suspended: for events that must come soon.
 */
export async function timedAwake<T>(work: Promise<T>): Promise<[T, number]> {
  const start = awake();
  return [await work, Math.round(awake() - start)];
}
