import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, onTestFailed } from "vitest";
import { Keys } from "../../src/keys.ts";
import { plain } from "../../src/redis/call.ts";
import {
  type CountedAnswer,
  type CountedInspection,
  decodeSetPermits,
} from "../../src/redis/counted-replies.ts";
import { countedLua } from "../../src/redis/lua.generated.ts";
import { decodeRenewal, type RenewAnswer } from "../../src/redis/replies.ts";
import { ScriptRunner } from "../../src/redis/script-runner.ts";
import { decodeShare, type Share } from "../../src/redis/share-message.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { type Ask, CountedCalls, type Hold } from "../support/counted-calls.ts";
import { loadScripts } from "../support/load-scripts.ts";
import { present } from "../support/present.ts";
import { until } from "../support/until.ts";

export const ALL = 1_000_000;

/** A present token, passes included. */
const PRESENT = 1_800_000_000_000_000;

/** Sends what a test says, and nothing by itself: what a client sends next, an `advance`, is a step of the test. */
class Steps extends ScriptRunner {
  /** From then on, in the server's ms, commands that are sent now are stale; 0: never. */
  staleFrom = 0;
  isMute = false;

  override notAfter(): number {
    return this.staleFrom;
  }

  override send(...command: Parameters<ScriptRunner["send"]>): void {
    if (!this.isMute && command[0] !== countedLua.advance) super.send(...command);
  }
}

/** A hold with what it asks for, and every command about it, as the package sends them. */
export type CountedHold = ReturnType<typeof holdOf>;

function holdOf(
  { calls, steps, redis, keys }: CountedStage,
  hold: Hold,
  ask: Partial<Ask>,
  counted: boolean,
) {
  /** `staleFrom`: in ms of the server's time. */
  const attempt = (more: Partial<Ask>, staleFrom = 0): Promise<CountedAnswer> => {
    steps.staleFrom = staleFrom;
    return calls.attempt(hold, { ...ask, ...more }, counted);
  };
  return {
    id: hold.id,
    hold,
    ask,
    /** Its place in the queue, also where it has never queued. */
    get entry(): string {
      steps.isMute = true;
      void attempt({ mode: "queue" });
      steps.isMute = false;
      return hold.entry + hold.id;
    },
    try: (staleFrom?: number) => attempt({ mode: "try" }, staleFrom),
    queue: (staleFrom?: number) => attempt({ mode: "queue" }, staleFrom),
    recheck: (entryTtl = 4_500) => attempt({ mode: "again", entryTtl }),
    join: (lease = ask.lease) => attempt({ mode: "join", ...(lease && { lease }) }),
    release: (stays = 0, token = PRESENT) => calls.release({ ...hold, token }, stays),
    leave: () => calls.scripts.withdraw(hold),
    yieldTo: (next: { readonly hold: Hold; readonly ask: Partial<Ask> }, stays = 0) =>
      calls.yield({ ...hold, token: PRESENT }, stays, next.hold, next.ask),
    /** A confirmation is as `Replication` sends it. */
    async renew(ttl: number, script: "renew" | "confirm" = "renew"): Promise<RenewAnswer> {
      return decodeRenewal(plain(await redis.eval(countedLua[script].lua, 1, keys.hash, hold.id, ttl)));
    },
  };
}

/**
 * A server of its own, and the scripts of a counted resource. Clients `a` to `d` hear their messages; nobody hears those of others.
 */
export class CountedStage {
  readonly keys = new Keys("", false).ofCounted("rw", "x");
  readonly names = [this.keys.hash, this.keys.queue, this.keys.clients, this.keys.clock];
  /** What was heard in this test, in order. */
  readonly heard: string[] = [];
  #open: { server: LocalServer; redis: Redis; ears: Redis; steps: Steps; calls: CountedCalls } | undefined;
  #marks = 0;

  constructor(args: string[] = []) {
    beforeAll(async () => {
      const server = await launchServer({ args });
      const [redis, ears] = [new Redis(server.url), new Redis(server.url)];
      const steps = new Steps(redis, 60_000);
      this.#open = { server, redis, ears, steps, calls: new CountedCalls(redis, "rw", "x", steps) };
      ears.on("message", (_, message) => this.heard.push(message));
      await ears.subscribe(...["a", "b", "c", "d", "end"].map((client) => this.channel(client)));
      await loadScripts(redis, countedLua);
      await this.reader("a").try(); // the first one also looks at the rights
    });
    beforeEach(async () => {
      await this.redis.flushall();
      await this.listened();
      this.heard.length = 0;
      onTestFailed(async () => {
        const fields = Object.entries(await this.redis.hgetall(this.keys.hash)).slice(0, 20);
        console.error(fields, await this.redis.zrange(this.keys.queue, 0, "20"));
      });
    });
    afterAll(async () => {
      this.#open?.calls.end();
      this.#open?.redis.disconnect();
      this.#open?.ears.disconnect();
      await this.#open?.server.stop();
    });
  }

  get redis(): Redis {
    return present(this.#open).redis;
  }

  get server(): LocalServer {
    return present(this.#open).server;
  }

  get steps(): Steps {
    return present(this.#open).steps;
  }

  get calls(): CountedCalls {
    return present(this.#open).calls;
  }

  channel(client: string): string {
    return `holdfast:client:${client}`;
  }

  #hold(client: string, ask: Partial<Ask>, counted = true): CountedHold {
    return holdOf(this, this.calls.hold(client), ask, counted);
  }

  /** `counted`: do its client's receivers count? */
  reader(client: string, ask: Partial<Ask> = {}, counted?: boolean): CountedHold {
    return this.#hold(client, { as: "r", permits: ALL, ...ask }, counted);
  }

  writer(client: string): CountedHold {
    return this.#hold(client, { as: "w", units: ALL, upTo: ALL, permits: ALL, passes: 16 });
  }

  /** Of a semaphore with so many permits. */
  permits(client: string, permits: number, units = 1, ask: Partial<Ask> = {}): CountedHold {
    return this.#hold(client, { as: "p", permits, units, upTo: units, ...ask });
  }

  async run(script: keyof typeof countedLua, ...args: (string | number)[]): Promise<unknown> {
    const { sha } = countedLua[script];
    return plain(await this.redis.callBuffer("evalsha", sha, this.names.length, ...this.names, ...args));
  }

  inspect(): Promise<CountedInspection> {
    return this.calls.scripts.inspect("x");
  }

  async setPermits(n: number, stamp: number): Promise<ReturnType<typeof decodeSetPermits>> {
    return decodeSetPermits(await this.run("setPermits", n, stamp));
  }

  /** Every message that was sent before. */
  async listened(): Promise<string[]> {
    const mark = `mark ${++this.#marks}`;
    await this.redis.publish(this.channel("end"), mark);
    await until(() => this.heard.includes(mark), { what: "all messages" });
    return this.heard.filter((message) => !message.startsWith("mark "));
  }

  /** The grants that were heard, and by hold. */
  async shares(): Promise<Share[]> {
    return (await this.listened()).flatMap((message) => decodeShare(message) ?? []);
  }

  async grantees(): Promise<string[]> {
    return (await this.shares()).map(({ hold }) => hold);
  }

  /** The holds that live. */
  async holders(): Promise<string[]> {
    const fields = await this.redis.hgetall(this.keys.hash);
    const now = await this.millis();
    return Object.keys(fields).filter((hold) => hold !== "=" && Number(fields[hold]?.slice(3, 16)) >= now);
  }

  async queued(): Promise<string[]> {
    return (await this.redis.zrange(this.keys.queue, 0, "-1")).map((entry) => entry.split(" ")[6] ?? "");
  }

  async books(): Promise<Books> {
    const text = present((await this.redis.hget(this.keys.hash, "=")) ?? undefined);
    const [source = "", ...numbers] = text.split(" ");
    const [used = 0, permits = 0, holds = 0, reap = 0, scanned = 0, phase = 0, stamp = 0] =
      numbers.map(Number);
    return { source: source.slice(1), used, permits, holds, reap, scanned, phase, stamp };
  }

  /** Changes the books by hand. */
  async rewrite(change: Partial<Books>): Promise<void> {
    const books: Books = Object.assign(await this.books(), change);
    const widths = { used: 7, permits: 7, holds: 5, reap: 13, scanned: 13, phase: 16, stamp: 16 } as const;
    const words = Object.entries(widths).map(([word, width]) =>
      String(books[word as keyof typeof widths]).padStart(width, "0"),
    );
    await this.redis.hset(this.keys.hash, "=", [`1${books.source}`, ...words].join(" "));
  }

  async micros(): Promise<number> {
    const [seconds = 0, rest = 0] = await this.redis.time();
    return Number(seconds) * 1_000_000 + Number(rest);
  }

  async millis(): Promise<number> {
    return Math.ceil((await this.micros()) / 1_000);
  }

  /** As if its client had crashed, and the hold's end had passed. */
  async over({ id }: CountedHold): Promise<void> {
    const field = present((await this.redis.hget(this.keys.hash, id)) ?? undefined);
    const end = (await this.millis()) - 2;
    await this.redis.hset(this.keys.hash, id, field.slice(0, 3) + end + field.slice(16));
    await this.rewrite({ reap: Math.min(end, (await this.books()).reap), scanned: end - 1_000 });
  }

  /** All keys as they are, without their TTLs. */
  async dump(): Promise<Record<string, unknown>> {
    const all: Record<string, unknown> = {};
    for (const key of (await this.redis.keys("*")).sort())
      all[key] = (await this.redis.dumpBuffer(key)).toString("hex");
    return all;
  }
}

export interface Books {
  readonly source: string;
  readonly used: number;
  readonly permits: number;
  readonly holds: number;
  readonly reap: number;
  readonly scanned: number;
  readonly phase: number;
  readonly stamp: number;
}
