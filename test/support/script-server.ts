import { Redis, type RedisOptions } from "ioredis";
import { inject, it } from "vitest";
import type { RedisLike } from "../../src/api/redis.ts";
import type { Script } from "../../src/redis/script.ts";
import { RedisError, type Reply } from "../../src/tools/testing/keyspace.ts";
import { MemoryLink } from "../../src/tools/testing/memory-link.ts";
import { MemoryRedis } from "../../src/tools/testing/memory-redis.ts";
import { TestNetwork } from "../../src/tools/testing/test-network.ts";
import { TestProcess } from "../../src/tools/testing/test-process.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { standIns } from "./link.ts";
import { loadScripts } from "./load-scripts.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Where tests of scripts run; without it on a Redis of their own. See vitest.config.ts. */
    scriptsOn?: "memory";
  }
}

/** Do tests of scripts run on a Redis in memory? */
const isInMemory = inject("scriptsOn") === "memory";

/** What the Redis in memory lacks. */
type Need =
  | "ACL" // users, and their rights
  | "a client library" // its options, and what it makes of replies
  | "a clock of its own" // which steps
  | "INFO persistence" // how often the server has written
  | "maxmemory"; // a server that is full

/** A test that runs on a real Redis only, for this reason. */
export const needs = (_: Need): ReturnType<typeof it.skipIf> => it.skipIf(isInMemory);

/** What tests of scripts call of a connection, as ioredis has it. */
export type ScriptConnection = Pick<
  Redis,
  | "call"
  | "callBuffer"
  | "config"
  | "del"
  | "dumpBuffer"
  | "eval"
  | "evalsha"
  | "exists"
  | "flushall"
  | "get"
  | "hdel"
  | "hget"
  | "hgetall"
  | "hlen"
  | "hset"
  | "info"
  | "keys"
  | "lrange"
  | "pexpire"
  | "ping"
  | "pttl"
  | "publish"
  | "rpush"
  | "set"
  | "time"
  | "zadd"
  | "zcard"
  | "zrange"
  | "zrem"
>;

/** A Redis for the scripts of one test file: a server of its own, or the Redis in memory. */
export interface ScriptServer {
  readonly redis: ScriptConnection;
  /** @throws Error in memory */
  readonly local: LocalServer;
  /** So EVALSHA knows them. */
  load(scripts: Readonly<Record<string, Script>>): Promise<void>;
  /** A connection for a driver, with these options on a server. */
  connect(options?: Omit<RedisOptions, "replyMapping">): { readonly connection: RedisLike; end(): void };
  /** Receives the messages of these channels from now on. */
  listen(channels: readonly string[], receive: (message: string) => void): Promise<void>;
  /** Resolves when all messages published before this call have been received. */
  received(): Promise<void>;
  stop(): Promise<void>;
}

/** `args`: for a server, which the memory ignores: only tests that need a server depend on them. */
export const openScriptServer = (args: string[] = []): Promise<ScriptServer> =>
  isInMemory ? Promise.resolve(inMemory()) : launched(args);

async function launched(args: string[]): Promise<ScriptServer> {
  const local = await launchServer({ args });
  const [redis, ears] = [new Redis(local.url), new Redis(local.url)];
  const receivers: ((message: string) => void)[] = [];
  ears.on("message", (_, message) => {
    for (const receive of receivers) receive(message);
  });
  return {
    redis,
    local,
    load: (scripts) => loadScripts(redis, scripts),
    connect(options = {}) {
      const connection = new Redis(local.url, options);
      return { connection, end: () => connection.disconnect() };
    },
    async listen(channels, receive) {
      receivers.push(receive);
      await ears.subscribe(...channels);
    },
    async received() {
      await redis.ping();
      await ears.ping();
    },
    async stop() {
      redis.disconnect();
      ears.disconnect();
      await local.stop();
    },
  };
}

// ---- in memory

function inMemory(): ScriptServer {
  // With the digits below 1 ms, as a server's clock has them.
  const redis = new MemoryRedis(() => (performance.timeOrigin + performance.now()) * 1_000);
  const network = new TestProcess(Object.assign(new TestNetwork(), { redis }));
  return {
    redis: connectionTo(redis),
    get local(): never {
      throw new Error("the Redis in memory is no server: say what this test needs, with needs()");
    },
    async load(scripts) {
      for (const { sha } of Object.values(scripts)) redis.known.add(sha);
    },
    connect() {
      const link = new MemoryLink(network);
      const connection = {} as RedisLike;
      standIns.set(connection, link);
      return { connection, end: () => link.close() };
    },
    async listen(channels, receive) {
      for (const channel of channels) redis.subscribe(channel, (_, message) => receive(utf8(message)));
    },
    received: async () => {},
    stop: async () => {},
  };
}

const bytes = (word: unknown): string =>
  (Buffer.isBuffer(word) ? word : Buffer.from(String(word))).toString("latin1");
const utf8 = (text: string): string => Buffer.from(text, "latin1").toString();

/** A reply with Buffers for texts. */
function raw(reply: Reply): unknown {
  if (reply === null || typeof reply === "number") return reply;
  if (typeof reply === "string") return Buffer.from(reply, "latin1");
  return "ok" in reply ? Buffer.from(reply.ok) : reply.map(raw);
}

/** A reply with strings for texts. */
function shown(reply: unknown): unknown {
  return Array.isArray(reply) ? reply.map(shown) : Buffer.isBuffer(reply) ? reply.toString() : reply;
}

/** Commands by the names of ioredis's methods. */
function connectionTo(redis: MemoryRedis): ScriptConnection {
  const send = async (...words: unknown[]): Promise<unknown> => {
    try {
      return raw(redis.call(words.map(bytes)));
    } catch (error) {
      throw error instanceof RedisError ? new RedisError(utf8(error.message)) : error;
    }
  };
  const kept = (key: string) => redis.keys.get(bytes(key));
  const special: Readonly<Record<string, (...words: string[]) => Promise<unknown>>> = {
    ping: async () => "PONG",
    callBuffer: send,
    call: async (...words) => shown(await send(...words)),
    flushall: async () => void redis.keys.clear(),
    keys: async () => (shown(await send("SCAN", "0")) as unknown[])[1],
    hgetall: async (key) => {
      const pairs = shown(await send("HGETALL", key)) as string[];
      return Object.fromEntries(pairs.flatMap((one, i) => (i % 2 === 0 ? [[one, pairs[i + 1]]] : [])));
    },
    // Another program's key: the memory has no lists, so it is of another type for all its commands.
    rpush: async (key, item) => {
      redis.keys.set(bytes(key), { type: "list", value: [item], until: Number.POSITIVE_INFINITY } as never);
      return 1;
    },
    lrange: async (key) => kept(key)?.value,
    dumpBuffer: async (key) => Buffer.from(JSON.stringify(contentOf(kept(key)))),
  };
  return new Proxy({} as ScriptConnection, {
    get: (_, name) =>
      // A promise may resolve with the connection.
      name === "then"
        ? undefined
        : (special[String(name)] ??
          ((...words: unknown[]) => special.call?.(...([name, ...words.flat()] as string[])))),
  });
}

function contentOf(kept: ReturnType<MemoryRedis["find"]>): unknown {
  if (kept?.type === "hash") return [...kept.value].sort();
  return kept?.type === "zset" ? kept.value.members.map((one) => [one, kept.value.score(one)]) : kept?.value;
}
