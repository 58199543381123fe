import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Redis as Redis6 } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { HELD_BACK } from "../../src/defaults.ts";
import type { Call } from "../../src/redis/call.ts";
import type { Link, LinkEvents, ListenerEvents } from "../../src/redis/driver.ts";
import { linkTo } from "../../src/redis/drivers.ts";
import { type Script, ScriptKeys } from "../../src/redis/script.ts";
import { Statement } from "../../src/redis/statement.ts";
import { LinkedList } from "../../src/util/linked-list.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { block } from "../support/block.ts";
import { connectionIds, trackUnhandled } from "../support/leaks.ts";
import { type NodeRedisOptions, openNodeRedis } from "../support/node-redis.ts";
import { until } from "../support/until.ts";

/** An application's connection, by one of the libraries. */
interface Given {
  readonly given: object & { listenerCount(event: string): number };
  close(): void;
}

const ioredisOf = (Redis: typeof Redis6, { database, ...options }: NodeRedisOptions): Given => {
  const db = database === undefined ? {} : { db: database };
  const redis = new Redis({ retryStrategy: () => 20, ...options, ...db });
  redis.on("error", () => {});
  return { given: redis, close: () => redis.disconnect() };
};
const nodeRedisOf = (version: 5 | 6, options: NodeRedisOptions): Given => {
  const client = openNodeRedis(version, options);
  return { given: client, close: () => client.isOpen && client.destroy() };
};

const LIBRARIES: readonly [string, (options: NodeRedisOptions) => Given][] = [
  ["ioredis 6", (options) => ioredisOf(Redis6, options)],
  ["ioredis 5", (options) => ioredisOf(Redis5 as unknown as typeof Redis6, options)],
  ["node-redis 6", (options) => nodeRedisOf(6, options)],
  ["node-redis 5", (options) => nodeRedisOf(5, options)],
];

const scriptOf = (lua: string, more: Partial<Script> = {}): Script => ({
  name: "test",
  lua,
  sha: createHash("sha1").update(lua).digest("hex"),
  ...more,
});
const ECHO = scriptOf("return ARGV[1]");
const PUSH = scriptOf("return redis.call('RPUSH', KEYS[1], ARGV[1])");

type Sent = Call & { readonly reply: Promise<unknown> };

/** Sends a script as text, as the engine does, and resolves with what the driver says of it. */
function send(link: Link, script: Script, keys: readonly string[] = [], argv: readonly string[] = []): Sent {
  let replied: (reply: unknown) => void = () => {};
  let refused: (error: unknown) => void = () => {};
  const reply = new Promise<unknown>((resolve, reject) => {
    replied = resolve;
    refused = reject;
  });
  reply.catch(() => {});
  const owner = {
    unanswered: new LinkedList<Call>(),
    replied: (_: Call, answer: unknown) => replied(answer),
    refused: (_: Call, error: unknown) => refused(error),
  };
  const made = new ScriptKeys(link.keyPrefix, keys);
  const callback = { answered: () => {}, failed: () => {} };
  const call = Object.assign(
    new link.Call(
      owner,
      new Statement({ isCluster: false }, script, made, argv),
      "",
      0,
      () => null,
      callback,
      60_000,
      0,
      "",
    ),
    { reply },
  );
  call.name = "eval";
  link.send(call);
  return call;
}

/** What a link tells, in words. */
function record(link: Link): { told: string[]; stop: () => void } {
  const told: string[] = [];
  const events: LinkEvents = {
    lost: () => void told.push("lost"),
    ready: () => void told.push("ready"),
    ended: () => void told.push("ended"),
  };
  return { told, stop: link.on(events) };
}

const listening = (told: string[], isWanted = (): boolean => true): ListenerEvents => ({
  isWanted,
  ready: () => void told.push("ready"),
  message: (channel, message) => void told.push(`${channel}: ${message}`),
  lost: () => void told.push("lost"),
  refused: (error) => void told.push(`refused: ${error.name}`),
  moved: () => void told.push("moved"),
  ended: () => void told.push("ended"),
});

describe.each(LIBRARIES)("%s", (library, connect) => {
  const unhandled = trackUnhandled();
  let server: LocalServer;
  let admin: Redis6;
  const closing: (() => void)[] = [];

  beforeAll(async () => {
    server = await launchServer({ args: ["--databases", "4"] });
    admin = new Redis6(server.url, { retryStrategy: () => 20 });
    admin.on("error", () => {});
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) close();
    await admin.flushall();
    await unhandled.assertNone();
  });
  afterAll(async () => {
    unhandled.stop();
    admin.disconnect();
    await server.stop();
  });

  const at = (): NodeRedisOptions => ({ host: server.host, port: server.port });
  const give = (options: NodeRedisOptions = {}): Given => {
    const given = connect({ ...at(), ...options });
    closing.push(given.close);
    return given;
  };
  const linkOf = ({ given }: Given): Link => {
    const link = linkTo(given);
    if (!link) throw new Error("it is no connection");
    return link;
  };
  const ready = async (link: Link): Promise<string[]> => {
    const { told, stop } = record(link);
    closing.unshift(stop);
    await until(() => link.state === "ready", { what: "the link to be ready" });
    return told;
  };
  const kill = async (type: "normal" | "pubsub"): Promise<void> => {
    for (const id of await connectionIds(admin, type)) await admin.client("KILL", "ID", id);
  };

  it("reports its address", async () => {
    const link = linkOf(give({ keyPrefix: "app:" }));
    expect(link.kind).toBe("server");
    expect(link.name).toBe(`127.0.0.1:${server.port}`);
    expect(link.isOwn).toBe(false);
    expect(link.nodes).toBeNull();
    await ready(link);
    expect(link.status).toBe("ready");
    expect(link.lastError).toBeNull();
  });

  it("replies with Buffers for texts, numbers for numbers, and null for nil", async () => {
    const link = linkOf(give());
    await ready(link);
    const reply = await send(link, scriptOf("return { 1, 'a', { false, '' }, redis.status_reply('OK') }"))
      .reply;
    expect(reply).toEqual([1, Buffer.from("a"), [null, Buffer.from("")], Buffer.from("OK")]);
    expect(await send(link, scriptOf("return nil")).reply).toBeNull();
    expect(await send(link, ECHO, [], ["ä€😀"]).reply).toEqual(Buffer.from("ä€😀"));
    expect(await link.command(["EVAL", "return { 1, 'a' }", 0])).toEqual([1, Buffer.from("a")]);
  });

  it("names Redis's errors, without the words of the command", async () => {
    const link = linkOf(give());
    await ready(link);
    const call = send(link, scriptOf("return redis.error_reply('MINE secret is out')"), [], ["hidden"]);
    const error = await call.reply.then(
      () => null,
      (reason: Error) => reason,
    );
    expect(error).toBeInstanceOf(Error);
    expect(error?.name).toBe("ReplyError");
    expect(error?.message).toBe("MINE secret is out");
    expect(JSON.stringify(Object.getOwnPropertyDescriptors(error))).not.toContain("hidden");
    await expect(link.command(["NOSUCH"])).rejects.toMatchObject({ name: "ReplyError" });
  });

  it("sends in order, including what waits for the connection", async () => {
    const link = linkOf(give());
    const { stop } = record(link);
    closing.unshift(stop);
    const calls = Array.from({ length: 200 }, (_, i) => send(link, PUSH, ["list"], [String(i)]));
    expect(calls[0]?.isWritten).toBe(false);
    await Promise.all(calls.map(({ reply }) => reply));
    expect(await admin.lrange("list", 0, -1)).toEqual(Array.from({ length: 200 }, (_, i) => String(i)));
  });

  // ioredis writes within `send`.
  it.skipIf(library.startsWith("ioredis"))(
    "knows in the first callback after a blocked event loop that it has held back commands",
    async () => {
      const link = linkOf(give());
      const { stop } = record(link);
      closing.unshift(stop);
      await send(link, ECHO, [], ["1"]).reply;
      // Queued before the driver can queue anything for its write.
      const first = nextTurn().then(() => link.heldUntil);
      const since = performance.now();
      const call = send(link, ECHO, [], ["2"]);
      block(5 * HELD_BACK);
      expect(await first).toBeGreaterThanOrEqual(since + 5 * HELD_BACK);
      await call.reply;
    },
  );

  // ioredis tells of the error, and goes on in database 0.
  it.skipIf(library.startsWith("ioredis"))(
    "has no effect in another database than the requested one",
    async () => {
      const link = linkOf(give({ database: 9 })); // of 0 to 3
      const { told, stop } = record(link);
      closing.unshift(stop);
      const call = send(link, PUSH, ["elsewhere"], ["1"]);
      await until(() => told.filter((word) => word === "lost").length >= 2 || link.state === "ready");
      expect(await admin.exists("elsewhere")).toBe(0);
      expect(call.isOver).toBe(false);
    },
  );

  it("resends what was under way when the connection was lost, in order, except what is over", async () => {
    const link = linkOf(give());
    const told = await ready(link);
    told.splice(0);
    server.suspend();
    const calls = ["1", "2", "3"].map((n) => send(link, PUSH, ["list"], [n]));
    const [, second] = calls;
    if (second) second.isOver = true;
    // node-redis writes in the next turn.
    await nextTurn();
    await nextTurn();
    expect(link.holdsBack).toBe(false);
    await server.kill();
    await server.restart();
    await calls[2]?.reply;
    // ioredis sends again by itself, and all of it.
    const again = library.startsWith("ioredis") ? ["1", "2", "3"] : ["1", "3"];
    expect(await admin.lrange("list", 0, -1)).toEqual(again);
    await until(() => told.includes("ready"));
    expect(new Set(told.slice(0, -1))).toEqual(new Set(["lost"]));
    expect(link.readyUntil).toBeGreaterThan(0);
  });

  it("keeps commands while there is no server", async () => {
    const link = linkOf(give());
    const told = await ready(link);
    await server.kill();
    await until(() => told.includes("lost"));
    expect(link.state).toBe("away");
    await until(() => link.lastError instanceof Error);
    const call = send(link, PUSH, ["late"], ["1"]);
    expect(call.isWritten).toBe(false);
    await server.restart();
    expect(await call.reply).toBe(1);
    await until(() => told.includes("ready"));
    expect(link.lastError).toBeNull();
  });

  it("ends with the caller's connection", async () => {
    const given = give();
    const link = linkOf(given);
    const told = await ready(link);
    given.close();
    await until(() => told.includes("ended"));
    expect(link.state).toBe("ended");
    await expect(send(link, ECHO, [], ["x"]).reply).rejects.toThrow(Error);
  });

  it("leaves no listener behind", async () => {
    const given = give();
    const link = linkOf(given);
    const events = ["ready", "error", "end", "close", "connect"];
    const count = (): number[] => events.map((event) => given.given.listenerCount(event));
    const before = count();
    const one = link.on({ lost() {}, ready() {}, ended() {} });
    const two = link.on({ lost() {}, ready() {}, ended() {} });
    expect(count()).not.toEqual(before);
    one();
    two();
    expect(count()).toEqual(before);
    // Also for those that listen afterwards.
    await ready(link);
    expect(await send(link, ECHO, [], ["x"]).reply).toEqual(Buffer.from("x"));
  });

  it("opens connections of its own, which reconnect, can be replaced, and are closed", async () => {
    const own = linkOf(give()).open();
    expect(own.isOwn).toBe(true);
    const early = send(own, ECHO, [], ["early"]);
    const told = await ready(own);
    expect(await early.reply).toEqual(Buffer.from("early"));
    const id = await own.command(["CLIENT", "ID"]);
    expect(own.replace("")).toBe(true);
    await until(() => told.includes("lost") && own.state === "ready");
    expect(await own.command(["CLIENT", "ID"])).not.toBe(id);
    own.close();
    await until(() => own.state === "ended");
    await expect(send(own, ECHO, [], ["x"]).reply).rejects.toThrow(Error);
  });

  it("replaces its own connection to a suspended server", async () => {
    const own = linkOf(give()).open();
    closing.unshift(() => own.close());
    const told = await ready(own);
    server.suspend();
    const call = send(own, ECHO, [], ["again"]);
    await nextTurn();
    await nextTurn();
    expect(own.replace("")).toBe(true);
    await until(() => told.includes("lost"));
    server.resume();
    expect(await call.reply).toEqual(Buffer.from("again"));
  });

  it("opens a connection for one use", async () => {
    const once = linkOf(give()).openOnce();
    closing.unshift(() => once.close());
    expect(once.isOwn).toBe(false);
    const { told, stop } = record(once);
    closing.unshift(stop);
    expect(await send(once, ECHO, [], ["x"]).reply).toEqual(Buffer.from("x"));
    expect(await once.command(["WAIT", 0, 10])).toBe(0);
    const waiting = once.command(["BLPOP", "never", 0]);
    const lost = expect(waiting).rejects.toThrow(Error);
    await until(async () => String(await admin.client("LIST")).includes("cmd=blpop"));
    await kill("normal");
    await lost;
    await until(() => told.includes("ended"));
    expect(once.state).toBe("ended");
    await expect(send(once, ECHO, [], ["x"]).reply).rejects.toThrow(Error);
  });

  it("subscribes, resubscribes after a loss, and ends when it is not needed", async () => {
    const told: string[] = [];
    let isWanted = true;
    const listener = linkOf(give()).listen(
      false,
      listening(told, () => isWanted),
    );
    closing.unshift(() => listener.close());
    expect(listener.isReady).toBe(false);
    await until(() => listener.isReady);
    await listener.subscribe(["a", "b"]);
    await admin.publish("a", "1");
    await until(() => told.includes("a: 1"));
    listener.unsubscribe("b");
    await until(async () => (await admin.pubsub("NUMSUB", "b"))[1] === 0);
    await kill("pubsub");
    await until(() => told.includes("lost"));
    await until(() => listener.isReady);
    await listener.subscribe(["a"]);
    await admin.publish("a", "2");
    await until(() => told.includes("a: 2"));
    isWanted = false;
    await kill("pubsub");
    await until(() => told.includes("ended"));
    expect(told).toEqual(["ready", "a: 1", "lost", "ready", "a: 2", "lost", "ended"]);
    expect(listener.isReady).toBe(false);
  });

  it("reports that a user may not subscribe, or not log in", async () => {
    await admin.acl("SETUSER", "quiet", "on", ">pass", "~*", "+@all", "-subscribe");
    const told: string[] = [];
    const listener = linkOf(give({ username: "quiet", password: "pass" })).listen(false, listening(told));
    closing.unshift(() => listener.close());
    await until(() => listener.isReady);
    await expect(listener.subscribe(["a"])).rejects.toMatchObject({ name: "ReplyError" });
    await admin.acl("DELUSER", "quiet");
    await until(() => told.some((word) => word === "refused: ReplyError"));
    expect(listener.isReady).toBe(false);
  });

  it("closes a subscriber at once, for good", async () => {
    const told: string[] = [];
    const listener = linkOf(give()).listen(false, listening(told));
    await until(() => listener.isReady);
    await listener.subscribe(["a"]);
    listener.close();
    await until(async () => (await admin.pubsub("NUMSUB", "a"))[1] === 0);
    await until(() => !listener.isReady);
    expect(told.filter((word) => word === "ready")).toHaveLength(1);
  });
});
