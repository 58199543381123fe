import { afterAll, beforeAll, beforeEach } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { handoffLua } from "../../src/redis/lua.generated.ts";
import { present } from "./present.ts";
import { openScriptServer, type ScriptConnection, type ScriptServer } from "./script-server.ts";

/** The keys of the lock "x". */
export const [LOCK, QUEUE, CLIENTS, CLOCK]: readonly [string, string, string, string] = [
  "holdfast:{x}",
  "holdfast:{x}:queue",
  "holdfast:{x}:clients",
  "holdfast:clock",
];
const KEYS = [LOCK, QUEUE, CLIENTS, CLOCK];
/** No command comes too late. */
export const NEVER = Number.MAX_SAFE_INTEGER;

/** `a`, `b` and `c` are subscribed; no other client is. */
export const channel = (client: string): string => `holdfast:client:${client}`;
export const hold = (client: string, number = 1): string =>
  `${channel(client)}:${`${number}`.padStart(8, "0")}abcdefghijklm`;
export const entry = (of: string, counted = 1, ttl = 3_000, passes = 0): string =>
  `${counted} ${ttl} ${passes} ${of}`;

type Digit = 0 | 1 | 2;

/**
 * The scripts of the hand-off without a client, at one lock of a Redis of its own. It is empty before
 * each test.
 */
export class BareScripts {
  /** The messages that `a`, `b` and `c` have received in this test. */
  readonly heard: string[] = [];
  #server: ScriptServer | undefined;

  constructor() {
    beforeAll(async () => {
      this.#server = await openScriptServer();
      const channels = ["a", "b", "c"].map(channel);
      await this.#server.listen(channels, (text) => void this.heard.push(text));
    });
    beforeEach(async () => {
      await this.redis.flushall();
      await this.#server?.received();
      this.heard.length = 0;
    });
    afterAll(() => this.#server?.stop());
  }

  get redis(): ScriptConnection {
    return present(this.#server).redis;
  }

  run(script: keyof typeof handoffLua, ...args: (string | number)[]): Promise<unknown> {
    return this.redis.eval(handoffLua[script].lua, KEYS.length, ...KEYS, ...args);
  }

  /** `nonce`: for a try that asks an idle holder. */
  async acquire(of: string, queueing = "", passes = 0, told: Digit = 0, nonce = ""): Promise<unknown> {
    const place = queueing.slice(0, queueing.length - of.length);
    return listed(await this.run("acquire", of, 30_000, NEVER, place, told, passes, "", nonce));
  }

  /** As part of a multi-lock: after `holdfast:{y}`, which `before` must own. */
  async behind(of: string, before: string, ...nonce: string[]): Promise<unknown> {
    const args = [of, 30_000, NEVER, "", 0, 0, before, ...nonce];
    const keys = [...KEYS, "holdfast:{y}"];
    return listed(await this.redis.eval(handoffLua.acquire.lua, keys.length, ...keys, ...args));
  }

  recheck(
    of: string,
    counted: string,
    entryTtl = 4_500,
    queued = entry(of),
    told: Digit = 0,
  ): Promise<unknown> {
    return this.run("recheck", of, 30_000, 0, queued, entryTtl, counted, told);
  }

  release(of: string): Promise<unknown> {
    return this.run("release", of, 1);
  }

  yield(old: string, next: string, told: Digit = 0): Promise<unknown> {
    return this.run("yield", old, 1, next, 30_000, 0, entry(next), told);
  }

  /** For locks of these names. */
  renewStays(...holds: { hold: string; ttl: number; told: Digit | "-"; lock?: string }[]): Promise<unknown> {
    const keys = holds.flatMap(({ lock = LOCK }) => [lock, `${lock}:queue`]);
    const args = holds.flatMap(({ hold, ttl, told }) => [hold, ttl, told]);
    return this.redis.eval(handoffLua.renewStays.lua, 1 + keys.length, CLOCK, ...keys, ...args);
  }

  releaseStays(...holds: { hold: string; token: number; lock?: string }[]): Promise<unknown> {
    const keys = holds.flatMap(({ lock = LOCK }) => [lock, `${lock}:queue`, `${lock}:clients`]);
    const args = holds.flatMap(({ hold, token }) => [hold, token]);
    return this.redis.eval(handoffLua.releaseStays.lua, 1 + keys.length, CLOCK, ...keys, ...args);
  }

  async holder(): Promise<string | undefined> {
    return (await this.redis.get(LOCK))?.slice(37);
  }

  /** The server's time. */
  async micros(): Promise<number> {
    const [seconds = 0, rest = 0] = await this.redis.time();
    return Number(seconds) * 1_000_000 + Number(rest);
  }

  /** Resolves when all messages published before this call have been received. */
  async messages(): Promise<readonly string[]> {
    await this.#server?.received();
    return this.heard;
  }
}

/**
 * The long form of an answer of acquire: a text is the time, and also the token, of an owner with
 * no waiter after it.
 */
export const listed = (answer: unknown): unknown =>
  typeof answer === "string" ? [codes.OWNER, Number(answer), Number(answer), 0] : answer;
