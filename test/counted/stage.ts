import { afterAll, beforeAll, beforeEach, onTestFailed } from "vitest";
import { type Answer, type Args, ordered, read } from "../../src/redis/codec.ts";
import {
  type CountedAnswer,
  type CountedInspection,
  countedInspectionOf,
  countedOf,
  readTaken,
} from "../../src/redis/counted-replies.ts";
import { Keys } from "../../src/redis/keys.ts";
import { countedLua as lua } from "../../src/redis/lua.generated.ts";
import { decodeMessage, type Message } from "../../src/redis/messages.ts";
import type { ReleaseAnswer, RenewAnswer } from "../../src/redis/replies.ts";
import type { LocalServer } from "../../tools/redis/index.ts";
import { plain } from "../support/plain.ts";
import { present } from "../support/present.ts";
import { openScriptServer, type ScriptConnection, type ScriptServer } from "../support/script-server.ts";

/** What one hold asks for. */
export interface Asked {
  readonly mode: "r" | "w" | "p";
  readonly lease?: number;
  readonly units?: number;
  readonly upTo?: number;
  readonly permits?: number;
  readonly passes?: number;
  /** Do its receivers count? */
  readonly counted?: 0 | 1;
  /** The TTL of a grant. */
  readonly window?: number;
}

/** A hold with what it asks for: every command about it is a method. */
export class CountedHold {
  readonly id: string;
  readonly asked: Asked;
  readonly #stage: CountedStage;

  constructor(stage: CountedStage, id: string, asked: Asked) {
    this.#stage = stage;
    this.id = id;
    this.asked = asked;
  }

  get lease(): number {
    return this.asked.lease ?? 30_000;
  }

  get entry(): string {
    const { mode, passes = 0, permits = ALL, counted = 1, window = 3_000 } = this.asked;
    return `${counted}${mode} ${window} ${passes} ${this.units} ${this.upTo} ${permits} ${this.id}`;
  }

  get units(): number {
    return this.asked.units ?? (this.asked.mode === "w" ? ALL : 1);
  }

  get upTo(): number {
    return this.asked.upTo ?? this.units;
  }

  async #acquire(entry: string, notAfter = Number.MAX_SAFE_INTEGER): Promise<CountedAnswer> {
    const { mode, permits = ALL, passes = 0 } = this.asked;
    const args = ordered(lua.acquire, {
      hold: this.id,
      lease: this.lease,
      notAfter,
      mode,
      units: digits(this.units),
      permits: digits(permits),
      passes,
      upTo: this.upTo > this.units ? this.upTo : "",
      entry,
    });
    const reply = await this.#stage.run("acquire", ...args);
    const isList = Array.isArray(reply);
    const answer = isList ? read(lua.acquire.form.replies, reply) : readTaken(reply, this.units);
    return countedOf(answer, this.lease);
  }

  try(notAfter?: number): Promise<CountedAnswer> {
    return this.#acquire("", notAfter);
  }

  queue(notAfter?: number): Promise<CountedAnswer> {
    return this.#acquire(this.entry, notAfter);
  }

  async #recheck(lease: number, given: Partial<Args<typeof lua.recheck>>): Promise<CountedAnswer> {
    const usual = { joins: 0, entry: this.entry, stays: 4_500, counted: 1 };
    const args = ordered(lua.recheck, { hold: this.id, lease, ...usual, ...given });
    return countedOf(read(lua.recheck.form.replies, await this.#stage.run("recheck", ...args)), lease);
  }

  recheck(counted: "0" | "1" = "1", stays = 4_500): Promise<CountedAnswer> {
    return this.#recheck(this.lease, { counted, stays });
  }

  join(lease = this.lease): Promise<CountedAnswer> {
    return this.#recheck(lease, { joins: 1 });
  }

  async release(stays = 0, present = 1_800_000_000_000_000): Promise<ReleaseAnswer> {
    const args = ordered(lua.release, { hold: this.id, ...(stays > 0 && { stays, present }) });
    return read(lua.release.form.replies, await this.#stage.run("release", ...args));
  }

  async leave(): Promise<ReleaseAnswer> {
    return read(lua.leave.form.replies, await this.#stage.run("leave", this.id, this.entry));
  }

  async yieldTo(hold: CountedHold, stays = 0): Promise<unknown> {
    return this.#stage.run("yield", this.id, stays, 1_800_000_000_000_000, hold.id, hold.lease, hold.entry);
  }

  async renew(ttl = this.lease, script: "renew" | "confirm" = "renew"): Promise<RenewAnswer> {
    const { redis, keys } = this.#stage;
    return read(lua.confirm.form.replies, await redis.eval(lua[script].lua, 1, keys.hash, this.id, ttl));
  }
}

export const ALL = 1_000_000;

/** As the books have a number. */
const digits = (number: number): string => String(number).padStart(7, "0");

/**
 * A Redis of its own, and the scripts of a counted resource. Clients `a` to `d` hear their
 * messages; nobody hears those of others.
 */
export class CountedStage {
  readonly keys = new Keys("", false).ofCounted("rw", "x");
  readonly names = [this.keys.hash, this.keys.queue, this.keys.clients, this.keys.clock];
  /** What was heard in this test, in order. */
  readonly heard: string[] = [];
  #server: ScriptServer | undefined;
  #made = 0;

  /** `args`: of a server; see `openScriptServer`. */
  constructor(args: string[] = []) {
    beforeAll(async () => {
      this.#server = await openScriptServer(args);
      await this.#server.load(lua);
      const channels = ["a", "b", "c", "d"].map((client) => this.channel(client));
      await this.#server.listen(channels, (message) => void this.heard.push(message));
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
    afterAll(() => this.#server?.stop());
  }

  get redis(): ScriptConnection {
    return present(this.#server).redis;
  }

  get server(): LocalServer {
    return present(this.#server).local;
  }

  channel(client: string): string {
    return `holdfast:client:${client}`;
  }

  hold(client: string, asked: Asked): CountedHold {
    const number = `${++this.#made}`.padStart(8, "0");
    return new CountedHold(this, `${this.channel(client)}:${number}abcdefghijklm`, asked);
  }

  reader(client: string, asked: Partial<Asked> = {}): CountedHold {
    return this.hold(client, { mode: "r", ...asked });
  }

  writer(client: string, asked: Partial<Asked> = {}): CountedHold {
    return this.hold(client, { mode: "w", passes: 16, ...asked });
  }

  /** Of a semaphore with so many permits. */
  permits(client: string, permits: number, units = 1, asked: Partial<Asked> = {}): CountedHold {
    return this.hold(client, { mode: "p", permits, units, ...asked });
  }

  async run(script: keyof typeof lua, ...args: (string | number)[]): Promise<unknown> {
    const { sha } = lua[script];
    return plain(await this.redis.callBuffer("evalsha", sha, this.names.length, ...this.names, ...args));
  }

  async inspect(): Promise<CountedInspection> {
    return countedInspectionOf(read(lua.inspect.form.replies, await this.run("inspect")));
  }

  async setPermits(n: number, stamp: number): Promise<Answer<typeof lua.setPermits.form.replies>> {
    return read(lua.setPermits.form.replies, await this.run("setPermits", n, stamp));
  }

  /** Every message that was sent before. */
  async listened(): Promise<readonly string[]> {
    await present(this.#server).received();
    return this.heard;
  }

  /** The grants that were heard, and by hold. */
  async shares(): Promise<Extract<Message, { is: "grant" }>[]> {
    return (await this.listened()).map(decodeMessage).filter((message) => message?.is === "grant");
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
