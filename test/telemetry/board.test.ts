import { readFileSync } from "node:fs";
import { Registry } from "prom-client";
import { afterAll, expect, it } from "vitest";
import { register } from "../../src/tools/telemetry/prometheus.ts";
import { freshName, Parties } from "../support/fixture.ts";

// docs/grafana.json and docs/alerts.yml ask for what holdfast/prometheus exposes, by its names and labels.

const parties = new Parties();
afterAll(parties.close);

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

/** The metrics that a text names, without what Prometheus adds to those of a histogram. */
const named = (text: string): string[] => [
  ...new Set([...text.matchAll(/holdfast_lock_\w+/g)].map(([name]) => name.replace(/_(bucket|count)$/, ""))),
];

it("the board and the alerts use only existing metrics and labels, and the board all of them", async () => {
  const { locks } = await parties.join();
  const registry = new Registry();
  const unregister = register(locks, registry);
  const lease = await locks.lock(freshName()).lock();
  const exposed = (await registry.getMetricsAsJSON()).map(({ name }) => name);
  const labels = new Set(
    [...(await registry.metrics()).matchAll(/[{,](\w+)="/g)].map(([, label = ""]) => label),
  );
  await lease.unlock();
  unregister();
  const board = JSON.parse(read("docs/grafana.json")) as { panels: { targets: { expr: string }[] }[] };
  const asked = board.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join("\n");
  const alerts = read("docs/alerts.yml");
  expect(named(asked).sort()).toEqual(exposed.sort());
  expect(named(alerts).filter((name) => !exposed.includes(name))).toEqual([]);
  expect(alerts.match(/- alert:/g)).toHaveLength(7);
  expect(named(read("docs/operating.md")).sort()).toEqual(exposed);
  const used = [
    ...`${asked}\n${alerts}`.matchAll(/by \(([^)]+)\)/g),
    ...`${asked}\n${alerts}`.matchAll(/[{,](\w+)(?:=~|!=|=)"/g),
  ].flatMap(([, list = ""]) => list.split(", "));
  expect(used.filter((label) => !labels.has(label) && label !== "reason")).toEqual([]);
});
