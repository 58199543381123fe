import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Lease } from "../../src/index.ts";
import { awake } from "../support/awake.ts";
import { watchTraffic } from "./observe.ts";
import type { Subject } from "./subject.ts";

const NAMES: Record<string, (unique: string) => string> = {
  "with braces": (unique) => `{order}:{${unique}`,
  "that close a brace first": (unique) => `}${unique}{}`,
  "with percent signs": (unique) => `100%7B %25 ${unique}%`,
  "with spaces": (unique) => ` grant 1 2 3 ${unique} `,
  "with newlines": (unique) => `line\r\n*3\r\n${unique}\n`,
  "with NUL": (unique) => `\0${unique}\0`,
  "with emoji": (unique) => `🔒${unique}👩‍👩‍👧`,
  "of 512 bytes": (unique) => unique + "é".repeat(238),
};

/** A name may contain anything; two names are two locks. */
export function names(subject: Subject): void {
  describe("names", () => {
    it.each(Object.keys(NAMES))("hands over a lock for names %s", async (which) => {
      const wanted = NAMES[which]?.(randomUUID()) ?? "";
      if (which === "that close a brace first" && subject.kind.startsWith("redisson") && subject.isCluster) {
        expect(() => subject.of(subject.first, wanted)).toThrow(RangeError);
        return;
      }
      const name = subject.name(wanted);
      const { mine, theirs } = subject.pair(name);
      expect(mine.name).toBe(name);
      const lease = await mine.lock();
      expect([await theirs.tryLock(), await theirs.isLocked()]).toEqual([null, true]);
      const waiter = theirs.lock();
      await subject.untilWaiting(name, 1);
      await lease.unlock();
      const asked = awake();
      const next = await waiter;
      expect(next.held).toBe(true);
      expect(awake() - asked).toBeLessThan(1_000); // by message: the next look would come later
      await next.unlock();
    });

    it("keeps similar names apart", async () => {
      const unique = randomUUID();
      const alike = [unique, `{${unique}}`, `%7B${unique}%7D`, `%257B${unique}`, `${unique}\0`, `${unique} `];
      const leases: (Lease | null)[] = [];
      for (const name of alike) leases.push(await subject.of(subject.first, subject.name(name)).tryLock());
      expect(leases).not.toContain(null);
      for (const lease of leases) await lease?.unlock();
    });

    it("refuses names that cannot be one lock, before anything is sent", async () => {
      const traffic = watchTraffic(subject.first);
      const lock = (name: unknown) => () => subject.of(subject.first, name as string);
      expect(lock("")).toThrow(RangeError);
      expect(lock("é".repeat(257))).toThrow(/512 bytes.*514 bytes/);
      expect(lock("half a pair \ud83d")).toThrow(RangeError);
      expect(lock(42)).toThrow(TypeError);
      expect(traffic.commands).toBe(0);
    });
  });
}
