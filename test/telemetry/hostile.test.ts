import { Registry } from "prom-client";
import { afterAll, expect, it } from "vitest";
import { register } from "../../src/tools/telemetry/prometheus.ts";
import { visible } from "../../src/util/visible.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { HOSTILE, UNPRINTABLE } from "../support/hostile-texts.ts";

// Names of time series: what a lock is called ends no label, no line, and looks like no other one.

const parties = new Parties();
afterAll(parties.close);

it("a name is one label, which is escaped as everywhere", async () => {
  const registry = new Registry();
  const { locks } = await parties.join();
  const prefix = `${freshName()}/`;
  const unregister = register(locks, registry, { nameOf: (name) => name.slice(prefix.length) });
  for (const name of HOSTILE) await locks.lock(prefix + name).withLock(() => {});
  const lines = (await registry.metrics()).split("\n");
  for (const line of lines) expect(line).not.toMatch(UNPRINTABLE);
  const held = lines.filter((line) => line.startsWith("holdfast_lock_held{"));
  const names = held.map((line) => {
    // As Prometheus reads it: a backslash, a quote and a line feed are escaped in a label's value.
    const [, value = ""] =
      /^holdfast_lock_held\{lock="((?:[^"\\]|\\[\\"n])*)",kind="lock"\} 0$/.exec(line) ?? [];
    return value.replace(/\\(.)/g, (_, one: string) => (one === "n" ? "\n" : one));
  });
  expect(names.sort()).toEqual(HOSTILE.map(visible).sort());
  unregister();
});

it("names for which nameOf returns the same template are one series, also if it returns no writable string", async () => {
  const registry = new Registry();
  const { locks } = await parties.join();
  const unregister = register(locks, registry, { nameOf: () => "a\ud83d" });
  for (let i = 0; i < 2; i++) await locks.lock(freshName()).withLock(() => {});
  const held = (await registry.metrics())
    .split("\n")
    .filter((line) => line.startsWith("holdfast_lock_held{"));
  expect(held).toEqual([String.raw`holdfast_lock_held{lock="a\\ud83d",kind="lock"} 0`]);
  unregister();
});
