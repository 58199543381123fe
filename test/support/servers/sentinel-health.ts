import type { Redis } from "ioredis";
import { GROUP } from "./sentinel-setup.ts";

/** The servers that a sentinel should know. */
export interface Expected {
  otherSentinels: number;
  replicaPorts: number[];
}

/**
 * Does a sentinel know this many others, and a healthy primary with at least these replicas in
 * step?
 */
export async function seesAll(sentinel: Redis, expected: Expected): Promise<boolean> {
  const primary = fields(await sentinel.call("SENTINEL", "MASTER", GROUP));
  const replicas = ((await sentinel.call("SENTINEL", "REPLICAS", GROUP)) as unknown[]).map(fields);
  const isInStep = (port: number) =>
    replicas.some(
      (replica) =>
        replica.get("port") === `${port}` &&
        replica.get("flags") === "slave" &&
        replica.get("master-port") === primary.get("port") &&
        replica.get("master-link-status") === "ok",
    );
  return (
    primary.get("flags") === "master" &&
    primary.get("num-other-sentinels") === `${expected.otherSentinels}` &&
    expected.replicaPorts.every(isInStep)
  );
}

/** Does a server take writes, and do the others copy it, by their own reports? */
export async function isInStep(primary: Redis, replicas: Redis[], primaryPort: number): Promise<boolean> {
  if (!(await primary.info("replication")).includes("role:master")) return false;
  const reports = await Promise.all(replicas.map((replica) => replica.info("replication")));
  return reports.every(
    (report) =>
      report.includes("role:slave") &&
      report.includes(`master_port:${primaryPort}\r`) &&
      report.includes("master_link_status:up"),
  );
}

function fields(reply: unknown): Map<string, string> {
  const words = reply as string[];
  const pairs = words.flatMap((name, index) =>
    index % 2 === 0 ? [[name, words[index + 1] ?? ""] as const] : [],
  );
  return new Map(pairs);
}
