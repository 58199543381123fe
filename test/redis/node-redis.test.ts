import { createHash } from "node:crypto";
import { type AddressInfo, connect as connectTo, createServer, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createClient as createClient6 } from "redis";
import { createClient as createClient5 } from "redis5";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createLockClient } from "../../src/index.ts";
import type { Link } from "../../src/redis/driver.ts";
import { linkTo } from "../../src/redis/drivers.ts";
import { Chain, copyOf, type Owner } from "../../src/redis/node-redis/chain.ts";
import type { Client } from "../../src/redis/node-redis/client.ts";
import type { Script } from "../../src/redis/script.ts";
import { ScriptRunner } from "../../src/redis/script-runner.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { trackUnhandled } from "../support/leaks.ts";
import type { NodeRedisClient } from "../support/node-redis.ts";
import { until } from "../support/until.ts";

// What node-redis does to its connections without saying so.

type Options = NonNullable<Parameters<typeof createClient6>[0]>;

describe.each([6, 5] as const)("node-redis %d", (version) => {
  const create = version === 6 ? createClient6 : (createClient5 as unknown as typeof createClient6);
  const unhandled = trackUnhandled();
  let server: LocalServer;
  let admin: NodeRedisClient;
  const closing: (() => unknown)[] = [];

  beforeAll(async () => {
    server = await launchServer();
  });
  beforeEach(async () => {
    admin = await client();
    await admin.flushAll();
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
    await unhandled.assertNone();
  });
  afterAll(async () => {
    unhandled.stop();
    await server.stop();
  });

  /** A client that is connected. Its errors are what tests are about. */
  async function client(options: Options = {}): Promise<NodeRedisClient> {
    const made = create({
      ...options,
      socket: { host: server.host, port: server.port, reconnectStrategy: () => 20, ...options.socket },
    } as Options) as NodeRedisClient;
    made.on("error", () => {});
    await made.connect();
    closing.push(() => made.isOpen && made.destroy());
    return made;
  }

  const linkOf = (given: object): Link => {
    const link = linkTo(given);
    if (!link) throw new Error("it is no connection");
    return link;
  };

  it("socketTimeout closes an idle client for good: the error says what to leave out, and an own connection lives on", async () => {
    const idle = await client({ socket: { socketTimeout: 300, reconnectStrategy: undefined as never } });
    const [locks, own] = [createLockClient(idle), createLockClient(idle, { connection: "own" })];
    closing.push(() => own.close({ grace: 0 }));
    closing.push(() => locks.close({ grace: 0 }));
    await locks.lock("holdfast:test").withLock(() => {});
    await until(() => !idle.isOpen);
    await expect(locks.lock("holdfast:test").tryLock()).rejects.toThrow(
      /closed for good.*Socket timeout.*leave out socketTimeout/,
    );
    await own.lock("holdfast:test").withLock(() => {});
  });

  /** What a link tells, in words. */
  const record = (link: Link, told: string[] = []): string[] => {
    closing.push(
      link.on({
        lost: () => void told.push("lost"),
        ready: () => void told.push("ready"),
        ended: () => void told.push("ended"),
      }),
    );
    return told;
  };

  const script = (lua: string, isBound?: true): Script => ({
    name: "test",
    lua,
    sha: createHash("sha1").update(lua).digest("hex"),
    ...(isBound && { isBound }),
  });

  describe("a server that moves (MOVING)", () => {
    /** A way to the server, where a MOVING can be said as Redis Enterprise does. */
    async function mover(): Promise<{ port: number; say(port: number): void }> {
      const sockets: Socket[] = [];
      const way = createServer((near) => {
        const far = connectTo(server.port, server.host);
        for (const [one, other] of [
          [near, far],
          [far, near],
        ] as const) {
          one.on("error", () => {}).on("close", () => other.destroy());
          one.pipe(other);
        }
        sockets.push(near);
      });
      await new Promise<void>((listening) => way.listen(0, "127.0.0.1", listening));
      closing.push(() => {
        for (const socket of sockets) socket.destroy();
        way.close();
      });
      return {
        port: (way.address() as AddressInfo).port,
        say(port) {
          const place = `127.0.0.1:${port}`;
          for (const socket of sockets)
            socket.write(`>4\r\n$6\r\nMOVING\r\n:1\r\n:15\r\n$${place.length}\r\n${place}\r\n`);
        },
      };
    }
    let other: LocalServer;

    beforeAll(async () => {
      other = await launchServer();
    });
    beforeEach(async () => {
      await admin.set("who", "old");
      const elsewhere = await client({ socket: { host: other.host, port: other.port } });
      await elsewhere.set("who", "new");
    });
    afterAll(() => other.stop());

    it.each([
      ["the client", (given: NodeRedisClient) => given],
      ["a copy of the client", (given: NodeRedisClient) => given.withTypeMapping({})],
    ] as const)("%s: its link tells a loss before anything is sent to the other one", async (_, of) => {
      const way = await mover();
      const given = of((await client({ RESP: 3, socket: { port: way.port } })) as NodeRedisClient);
      const link = linkOf(given);
      const told = record(link);
      const commands = new ScriptRunner(link, 5_000);
      closing.push(() => commands.detach());
      const who = script("return redis.call('GET', KEYS[1])", true);
      const ask = (): Promise<string> => commands.runRaw(who, ["who"], [], 5_000).then(String);
      expect(await ask()).toBe("old");
      way.say(other.port);
      // Those that come in between wait for the new socket, and were meant for the old one.
      const answers: Promise<string>[] = [];
      await until(() => {
        if (told.length > 0) return true;
        answers.push(ask().catch((error: Error) => error.message));
        return false;
      });
      expect(told).toEqual(["lost", "ready"]);
      const known = ["old", expect.stringContaining("counts on that connection only")];
      for (const answer of await Promise.all(answers)) expect(known).toContainEqual(answer);
      expect(await ask()).toBe("new");
    });

    it("a connection of our own is not moved", async () => {
      const way = await mover();
      const given = await client({ RESP: 3, socket: { port: way.port } });
      const link = linkOf(given).open();
      closing.push(() => link.close());
      await until(() => link.state === "ready");
      way.say(other.port);
      await until(async () => (await given.get("who")) === "new");
      for (let i = 0; i < 100; i++) expect(String(await link.command(["GET", "who"]))).toBe("old");
    });
  });

  describe("a listener of the application's that throws, on the same client", () => {
    const bug = new Error("HTTP 500");
    const echo = script("return ARGV[1]");

    /** It throws at the next message, of which the client is told with a reply in one chunk. */
    async function listening(): Promise<{ given: NodeRedisClient; throwNow(): Promise<unknown> }> {
      const given = await client({ RESP: 3 });
      const thrown = new Promise((resolve) => given.on("error", resolve));
      await given.subscribe("app", () => {
        throw bug;
      });
      return {
        given,
        throwNow() {
          given.publish("app", "m").catch(() => {});
          return thrown;
        },
      };
    }

    it("no reply counts any more until the client has another connection, and nothing hangs", async () => {
      const { given, throwNow } = await listening();
      const link = linkOf(given);
      const told = record(link);
      const commands = new ScriptRunner(link, 60_000);
      closing.push(() => commands.detach());
      const ask = (word: string): Promise<string> => commands.runRaw(echo, [], [word], 60_000).then(String);
      const outcome = (answer: Promise<unknown>): Promise<unknown> =>
        answer.catch((error: Error) => error.message);
      expect(await ask("a")).toBe("a");
      const thrown = throwNow();
      const asked = ["b", "c", "d"].map((word) => outcome(ask(word)));
      const asAlso = outcome(link.command(["ECHO", "e"]));
      await thrown;
      const wrong =
        "The client gives replies to the wrong commands (Redis at " +
        `127.0.0.1:${server.port}, status out of step: an error was thrown while node-redis read ` +
        "replies: destroy() this client and connect() it again (HTTP 500))";
      for (const answer of asked) expect(await answer).toBe(wrong);
      expect(await asAlso).toBe("The client gives replies to the wrong commands");
      expect(await outcome(ask("f"))).toBe(wrong);
      expect(await outcome(link.command(["ECHO", "g"]))).toBe(
        "The client gives replies to the wrong commands",
      );
      expect(given.isReady).toBe(true);
      expect([link.state, commands.isAway]).toEqual(["away", true]);
      expect(told).toEqual(["lost"]);
      // Its owner gets it another connection.
      given.destroy();
      await given.connect();
      await until(() => link.state === "ready");
      expect(await ask("h")).toBe("h");
      expect(String(await link.command(["ECHO", "i"]))).toBe("i");
    });

    it("a caller gets an error, and never somebody else's lock", async () => {
      const { given, throwNow } = await listening();
      const [mine, theirs] = [createLockClient(given), createLockClient(admin)];
      closing.push(() => theirs.close({ grace: 0 }));
      closing.push(() => mine.close({ grace: 0 }));
      await mine.lock("warm").withLock(async () => {});
      const held = await theirs.lock("held").lock();
      await throwNow();
      for (let i = 0; i < 5; i++) {
        await Promise.all([
          expect(mine.lock(`free ${i}`).tryLock()).rejects.toThrow("destroy() this client and connect()"),
          expect(mine.lock("held").tryLock()).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" }),
        ]);
      }
      held.assertHeld();
    });

    it("a PING that fails is nothing of the kind", async () => {
      const given = await client({ pingInterval: 20 });
      const failed = new Promise<Error>((resolve) => given.on("error", resolve));
      const link = linkOf(given);
      const told = record(link);
      await admin.sendCommand(["ACL", "SETUSER", "default", "-ping"]);
      closing.push(() => admin.sendCommand(["ACL", "SETUSER", "default", "+ping"]));
      expect((await failed).message).toContain("NOPERM");
      expect(String(await link.command(["ECHO", "a"]))).toBe("a");
      expect(told).toEqual([]);
    });
  });

  it("a connection of our own that is closed while it connects is gone", async () => {
    const link = linkOf(await client());
    const count = async (): Promise<number> => (await admin.clientList()).length;
    const before = await count();
    const opened = async (): Promise<number> =>
      Number(/total_connections_received:(\d+)/.exec(await admin.info("stats"))?.[1]);
    const start = await opened();
    const events = {
      isWanted: () => true,
      ready() {},
      message() {},
      lost() {},
      refused() {},
      moved() {},
      ended() {},
    };
    for (let turns = 0; turns < 10; turns++) {
      const links = [link.open(), link.openOnce(), link.listen(false, events)];
      for (let turn = 0; turn < turns; turn++) await nextTurn();
      for (const one of links) one.close();
    }
    // Those that had begun to connect have arrived: later ones come after them.
    await until(async () => (await opened()) >= start + 10, { what: "the connections to be made" });
    const last = link.open();
    await last.command(["PING"]);
    last.close();
    await until(async () => (await count()) === before, { what: "no connection to be left" });
  });

  it.each(["while it waits to try again", "while it is connected"])(
    "a connection of our own goes to another master at once, %s",
    async (when) => {
      const given = (await client()) as unknown as Client;
      let moved = (): void => {};
      const owner: Owner = {
        isOpen: true,
        watch(toAnother) {
          moved = toAnother;
          return () => {};
        },
      };
      // No server listens on port 1. The pause is longer than the test.
      const ports = when === "while it is connected" ? [server.port] : [1];
      const chain = new Chain(
        () => copyOf(given, { port: ports.shift() ?? server.port }),
        () => 600_000,
        owner,
      );
      const told: string[] = [];
      chain.open({
        ready: () => void told.push("ready"),
        lost: () => void told.push("lost"),
        ended: () => void told.push("ended"),
      });
      closing.push(() => chain.close());
      await until(() => told.length === 1);
      moved();
      await until(() => told.length > 1 && chain.state === "ready");
      expect(told).toEqual(when === "while it is connected" ? ["ready", "lost", "ready"] : ["lost", "ready"]);
    },
  );

  describe.each(["the client first", "its copy first"])("a client and its copy, %s", (order) => {
    it("both hear what happens, also after links to both were let go of", async () => {
      const given = await client();
      const both = [given, given.withTypeMapping({})];
      if (order === "its copy first") both.reverse();
      for (let i = 0; i < 3; i++) {
        const stops = both.map((one) => linkOf(one).on({ lost() {}, ready() {}, ended() {} }));
        for (const stop of stops) stop();
      }
      const heard: string[] = [];
      given.on("ready", () => heard.push("the application"));
      for (const one of [...both, given.withTypeMapping({})]) record(linkOf(one), heard);
      given.destroy();
      await given.connect();
      expect(heard.sort()).toEqual([
        ...["ended", "ended", "ended", "lost", "lost", "lost", "ready", "ready", "ready"],
        "the application",
      ]);
    });

    it("one that the application has made deaf is heard all the same, and let go of", async () => {
      const given = await client();
      const copy = given.withTypeMapping({});
      const mine = (): void => {};
      copy.on("ready", mine).off("ready", mine);
      const told: string[] = [];
      const events = { lost: () => void told.push("lost"), ready() {}, ended() {} };
      const stop = linkOf(copy).on(events);
      given.destroy();
      expect(told).toEqual(["lost"]);
      stop();
      await given.connect();
      given.destroy();
      expect(told).toEqual(["lost"]);
    });
  });

  it("a connection of our own may be idle for longer than the socketTimeout of a client that pings", async () => {
    const given = await client({ pingInterval: 200, socket: { socketTimeout: 1_000 } });
    let pings = 0;
    given.on("ping-interval", () => pings++);
    const link = linkOf(given).open();
    closing.push(() => link.close());
    await until(() => link.state === "ready");
    const told = record(link);
    pings = 0;
    await until(() => pings >= 8);
    expect(told).toEqual([]);
  });
});
