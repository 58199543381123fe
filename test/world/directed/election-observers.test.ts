import { expect, test } from "vitest";
import { NEWS_REST } from "../../../src/defaults.ts";
import { campaign, election, observe } from "./observing.ts";
import { scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, L, outcomeOf } from "./steps.ts";

// What observers of an election are shown, and proclamations, while connections or Redis fail.

const HOUR = 3_600_000;
const REPLY_TIMEOUT = 5_000;

const leaderOf = async (one: SceneProcess): Promise<string | null> =>
  (await one.does(() => election(one).leader()))?.value ?? null;

test(
  "only an observer's connection for messages breaks: it asks again, because it may have missed a message",
  scene(async (world) => {
    const [one, watcher] = world.processes(2);
    const term = await campaign(one, "one");
    const { seen, end } = observe(watcher);
    await world.pass(50);
    watcher.messages.freezeReplies(60_000);
    await term.proclaim("two");
    await world.pass(50);
    expect(seen).toEqual(["one"]);
    watcher.messages.cut();
    const { took } = await world.timed(world.until(() => seen.at(-1) === "two"));
    // Without the reconnect it would ask after 7 s.
    expect(took).toBeLessThan(200);
    await term.resign();
    await end();
  }),
);

test(
  "Redis does not answer: observers are shown no leader, with an error event, and the leader again afterwards",
  scene(async (world) => {
    const [one, watcher] = world.processes(2);
    const errors = watcher.heard("error");
    const term = await campaign(one, "one");
    const { seen, end } = observe(watcher);
    await world.pass(50);
    watcher.commands.freeze(20_000);
    await term.proclaim("two");
    const { took } = await world.timed(world.until(() => seen.at(-1) === null));
    expect(took).toBeLessThan(REPLY_TIMEOUT + 100);
    expect(errors.map(String)).toEqual([
      expect.stringMatching(/its leader could not be read this time, because Redis at /),
    ]);
    await world.pass(20_000 - took);
    await world.until(() => seen.at(-1) === "two");
    expect(seen).toEqual(["one", null, "two"]);
    await term.resign();
    await end();
  }),
);

test(
  "Redis loses all keys: no former leader is shown, and the leader notices at its renewal",
  scene(async (world) => {
    const [one, two, watcher] = world.processes(3);
    const term = await campaign(one, "one");
    const { seen, end } = observe(watcher);
    await world.pass(50);
    world.redis.dropAll();
    const next = await campaign(two, "two");
    expect(next.token).toBeGreaterThan(term.token);
    await world.pass(BY_MESSAGE);
    expect(seen).toEqual(["one", "two"]);
    await world.pass(L / 3);
    expect([term.held, term.lost?.reason]).toEqual([false, "taken"]);
    await next.resign();
    await end();
  }),
);

test(
  "a proclamation is lost: proclaim() rejects with LOCK_UNAVAILABLE, and the next renewal proclaims the value",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    one.losesCommands("fail");
    const term = await campaign(one, "one");
    const cut = one.on("proclaim").sent(() => one.commands.cut());
    const proclaimed = outcomeOf(term.proclaim("two"));
    await cut;
    expect(await proclaimed).toEqual(["LOCK_UNAVAILABLE", undefined]);
    expect([term.value, await leaderOf(other)]).toEqual(["two", "one"]);
    await world.pass(L / 3);
    expect(await leaderOf(other)).toBe("two");
    await term.resign();
  }),
);

test(
  "a candidate cannot proclaim itself: it is rejected, and does not lead",
  scene(async (world) => {
    const [one, two, watcher] = world.processes(3);
    await (await campaign(one, "before")).resign();
    const { seen, end } = observe(watcher);
    await world.pass(50);
    const silent = one.on("proclaim").sent(() => one.commands.freeze(60_000));
    const rejected = outcomeOf(campaign(one, "one"));
    await silent;
    expect(await rejected).toEqual(["LOCK_UNAVAILABLE", undefined]);
    one.commands.cut();
    const next = await campaign(two, "two");
    // An observer that has just asked rests first.
    await world.pass(NEWS_REST + BY_MESSAGE);
    expect(seen).toEqual([null, "two"]);
    await next.resign();
    await end();
  }),
);

test.each(["during its term", "after its term", "while another one leads"] as const)(
  "a late copy of a proclamation changes nothing: %s",
  (when) =>
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const term = await campaign(one, "one");
      const cut = one.on("proclaim").sent(() => one.commands.cut({ copies: 3_000 }));
      const proclaimed = term.proclaim("two");
      await cut;
      await proclaimed;
      await term.proclaim("three");
      if (when !== "during its term") await term.resign();
      const next = when === "while another one leads" ? await campaign(other, "next") : null;
      await one.on("proclaim").executed();
      const now = { "during its term": "three", "after its term": null, "while another one leads": "next" };
      expect(await leaderOf(other)).toBe(now[when]);
      await term.resign();
      await next?.resign();
    })(),
);

test(
  "the server's clock is set back by an hour, and the leader crashes: it is shown for that hour, or until forceResign()",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    const term = await campaign(one, "one");
    const waiting = campaign(two, "two");
    await world.pass(100);
    one.crash();
    world.redis.setBack(HOUR);
    await world.pass(HOUR);
    expect(await leaderOf(two)).toBe("one");
    expect(await election(two).forceResign()).toBe(true);
    const { result: next, took } = await world.timed(waiting);
    expect(took).toBeLessThan(BY_MESSAGE);
    expect(next.token).toBeGreaterThan(term.token);
    expect(await leaderOf(two)).toBe("two");
    await next.resign();
  }),
);

test(
  "a leader stays: observers are shown it without a gap",
  scene(async (world) => {
    const [one, watcher] = world.processes(2);
    const term = await campaign(one, "one");
    const { seen, end } = observe(watcher);
    await world.pass(5 * L);
    expect(seen).toEqual(["one"]);
    await term.resign();
    await end();
  }),
);

test(
  "Redis refuses an observer its channel: it asks about once a second, and an error event says so once",
  scene(async (world) => {
    const [one, watcher] = world.processes(2);
    watcher.mayNotSubscribe();
    const errors = watcher.heard("error");
    const { seen, end } = observe(watcher);
    await world.pass(50);
    const term = await campaign(one, "one");
    const { took } = await world.timed(world.until(() => seen.at(-1) === "one"));
    expect(took).toBeLessThan(1_300);
    const { sent } = watcher;
    await world.pass(10_000);
    expect(watcher.sent - sent).toBeGreaterThan(7);
    expect(watcher.sent - sent).toBeLessThan(14);
    const why = /its messages cannot be received, so its leader is queried once a second, because/;
    expect(errors.map(String).filter((text) => why.test(text))).toHaveLength(1);
    await term.resign();
    await end();
  }),
);
