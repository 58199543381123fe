import { Redis } from "ioredis";
import { describe, expect, onTestFinished } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { countedLua } from "../../src/redis/lua.generated.ts";
import { rights } from "../support/documented-rights.ts";
import { needs } from "../support/script-server.ts";
import { serverIs } from "../support/server-version.ts";
import { CountedStage } from "./stage.ts";

// What the scripts of counted resources run, and that a user who may not run it learns so before
// anything is written.

const it = needs("ACL");
const stage = new CountedStage();
const documented = rights.counted.map((rule) => rule.replace(/^\+|\|.*$/g, ""));

/** Every command that stands in one of the scripts. */
const called = new Set(
  Object.values(countedLua).flatMap(({ lua }) =>
    [...lua.matchAll(/\b(?:p?call|try)\("([A-Z]+)"/g)].map(([, command = ""]) => command.toLowerCase()),
  ),
);

async function as(rules: readonly string[]): Promise<Redis> {
  const user = { username: "counted", password: "change-me" };
  const all = [
    "reset",
    "on",
    `>${user.password}`,
    "~holdfast:*",
    "resetchannels",
    "&holdfast:*",
    "+evalsha",
    "+eval",
    ...rules,
  ];
  await stage.redis.call("ACL", "SETUSER", user.username, ...all);
  const redis = new Redis({ port: stage.server.port, lazyConnect: true, ...user });
  onTestFinished(() => redis.disconnect());
  return redis;
}

const first = (redis: Redis, script: "firstAcquire" | "firstRecheck"): Promise<unknown> => {
  const { asked, id, entry, lease } = stage.writer("a");
  const args =
    script === "firstAcquire"
      ? [id, lease, Number.MAX_SAFE_INTEGER, asked.mode, 1, 1, 1, 0, entry]
      : [id, lease, "0", entry, 4_500, "1"];
  return redis.eval(countedLua[script].lua, 4, ...stage.names, ...args, "holdfast:client:any");
};

it("setPermits sets a permanent number of permits, or changes nothing", async () => {
  await stage.permits("a", 5).try();
  const before = await stage.dump();
  const redis = await as([...called].flatMap((command) => (command === "persist" ? [] : [`+${command}`])));
  const set = (): Promise<unknown> => redis.eval(countedLua.setPermits.lua, 4, ...stage.names, 3, 100);
  await expect(set()).rejects.toThrow();
  expect(await stage.dump()).toEqual(before);
});

describe("the first command of a connection", () => {
  it("works for a user with the documented rights", async () => {
    const redis = await as(rights.counted);
    expect(await first(redis, "firstAcquire")).toContain(codes.OWNER);
    expect([...called].filter((command) => !documented.includes(command))).toEqual([]);
  });

  it("works for a user that may run every command, and nothing else", async () => {
    const redis = await as([...called].map((command) => `+${command}`));
    expect(await first(redis, "firstAcquire")).toContain(codes.OWNER);
    expect(await first(redis, "firstRecheck")).toContain(codes.GONE);
  });

  (serverIs("7.0") ? it : it.skip).each([...called])(
    "is refused without %s, with nothing done",
    async (missing) => {
      const redis = await as([...called].flatMap((command) => (command === missing ? [] : [`+${command}`])));
      for (const script of ["firstAcquire", "firstRecheck"] as const)
        await expect(first(redis, script)).rejects.toThrow(new RegExp(`NOPERM.* ${missing}\\b`));
      expect(await stage.redis.keys("*")).toEqual([]);
    },
  );
});
