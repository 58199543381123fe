import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { decodeMessage } from "../../src/redis/messages.ts";
import { CountedCalls } from "../support/counted-calls.ts";
import { freshName } from "../support/fixture.ts";
import { needs, openScriptServer, type ScriptServer } from "../support/script-server.ts";
import { serverIs } from "../support/server-version.ts";
import { until } from "../support/until.ts";

// The scripts of counted resources, as the package calls them.

let server: ScriptServer;
beforeAll(async () => {
  server = await openScriptServer();
});
afterAll(() => server.stop());

const WHICHEVER = { holder: null, token: null };

describe.each([
  ["", {}],
  ["with a prefix of spaces and braces", { keyPrefix: "my {app}: é " }],
  ["by a connection whose numbers are strings", { stringNumbers: true }],
])("%s", (way, options) => {
  const test = way === "" ? it : needs("a client library");

  async function open() {
    const { connection, end } = server.connect(options);
    const calls = new CountedCalls(connection, freshName("tenant {ü}"));
    const heard: string[] = [];
    await server.listen([calls.channelOf("a")], (message) => void heard.push(message));
    onTestFinished(() => {
      calls.end();
      end();
    });
    return {
      calls,
      heard,
      key: calls.commands.keysOf([calls.commands.keys.ofCounted("semaphore", calls.name).hash]).full[0],
    };
  }

  test("units are acquired, waited for, handed over, renewed and released", async () => {
    const { calls, heard, key } = await open();
    const [holder, waiter] = [calls.hold("a"), calls.hold("a")];
    expect(await calls.attempt(holder, { units: 4, upTo: 4 })).toMatchObject({
      is: "owner",
      units: 4,
      ttl: 30_000,
    });
    expect(await calls.attempt(waiter, { units: 2, upTo: 3 })).toMatchObject({ is: "held", position: 0 });
    expect(waiter.entry).toBe("1p 3000 0 2 3 5 ");
    expect(await calls.attempt(waiter, { mode: "again" })).toMatchObject({ is: "held", position: 0 });
    expect(await calls.release(holder, 3)).toEqual({ is: "released", more: false });
    await until(() => heard.length > 0);
    const share = { is: "grant", hold: waiter.id, units: 2, ttl: 3_000, waits: false, key };
    expect(decodeMessage(heard[0] ?? "")).toMatchObject(share);
    expect(calls.commands.keys.name(key ?? "")).toBe(calls.name);
    const named = { id: waiter.id, name: waiter.name, label: "" };
    const [renewed] = await calls.semaphore.renew([{ hold: named, ttl: 9_000, flag: null }], 1_000);
    expect(renewed).toMatchObject({ is: "renewed", ttl: 9_000 });
    expect(await calls.semaphore.confirm(named, 10_000, 1_000)).toMatchObject({ is: "renewed", ttl: 10_000 });
    expect(await calls.semaphore.look(calls.name)).toMatchObject({
      permits: 5,
      used: 5,
      holders: expect.arrayContaining([
        expect.objectContaining({ party: expect.objectContaining({ units: 2, mode: null }) }),
      ]),
      waiters: [],
    });
    expect(await calls.semaphore.withdraw(waiter)).toMatchObject({ is: "released" });
    expect(await calls.release(holder)).toMatchObject({ is: "released" });
    expect(await calls.release(holder)).toMatchObject({ is: "gone", clock: expect.any(Number) });
  });

  test("permits are set and unknown, and a different number is refused", async () => {
    const { calls } = await open();
    const hold = calls.hold("a");
    expect(await calls.attempt(hold, { permits: null })).toMatchObject({
      is: "refused",
      error: { code: "PERMITS_UNKNOWN" },
    });
    expect(await calls.semaphore.setPermits(calls.name, 3)).toMatchObject({ is: "released", old: 0 });
    expect(await calls.semaphore.setPermits(calls.name, 7)).toMatchObject({ is: "released", old: 3 });
    expect(await calls.attempt(hold, { permits: 3, units: 6, upTo: 6 })).toMatchObject({
      is: "owner",
      units: 6,
    });
    expect(await calls.attempt(calls.hold("a"), { units: 8, upTo: 8 })).toMatchObject({
      is: "refused",
      error: { stored: 7 },
    });
    expect(await calls.semaphore.look(calls.name)).toMatchObject({ permits: 7, isSet: true, used: 6 });
  });

  test("readers join, a writer yields, and a force-release ends all", async () => {
    const { calls, heard } = await open();
    const { read, write } = calls.readWrite.plain;
    const [reader, writer, next] = [calls.hold("a"), calls.hold("a"), calls.hold("a")];
    await calls.attempt(reader, { kind: "read" });
    expect(await calls.join(reader)).toMatchObject({ already: true, waits: false });
    await calls.attempt(writer, { kind: "write", passes: 16 });
    expect(await calls.join(reader)).toMatchObject({ already: true, waits: true });
    await calls.readWrite.readers.withdraw(reader);
    await until(() => heard.some((message) => message.includes(writer.id)));
    expect(await calls.yield(writer, next)).toMatchObject({ is: "owner", units: 1_000_000 });
    expect(await calls.yield(writer, calls.hold("a"))).toMatchObject({ is: "gone" });
    expect(await read.forceRelease(calls.name, null, WHICHEVER)).toBe(0);
    expect(await write.forceRelease(calls.name, "me and you", WHICHEVER)).toBe(1);
    await until(() =>
      heard.some((message) => message.startsWith("revoked ") && message.endsWith(" me%20and%20you")),
    );
  });

  test("sends the next script by itself if one does not grant all", async () => {
    const { calls, heard } = await open();
    const permits = 2 * codes.RUN + 1;
    const holder = calls.hold("a");
    await calls.attempt(holder, { permits, units: permits, upTo: permits });
    await Promise.all(Array.from({ length: permits }, () => calls.attempt(calls.hold("a"), { permits })));
    expect(await calls.release(holder)).toMatchObject({ more: true });
    await until(() => heard.length === permits);
  });
});

// Redis 6.2 cannot tell ahead.
(serverIs("7.0") ? needs("ACL") : it.skip)(
  "the first command tells a user that lacks a right, with nothing done",
  async () => {
    const name = freshName();
    await server.redis.call(
      "ACL",
      "SETUSER",
      "counted",
      "reset",
      "on",
      ">change-me",
      "~*",
      "&*",
      "+@all",
      "-hget",
    );
    const redis = new Redis({
      port: server.local.port,
      username: "counted",
      password: "change-me",
      lazyConnect: true,
    });
    onTestFinished(() => redis.disconnect());
    const calls = new CountedCalls(redis, name);
    await expect(calls.attempt(calls.hold("a"), {})).rejects.toThrow(/NOPERM.* hget/);
    expect(await server.redis.keys(`*${name}*`)).toEqual([]);
  },
);
