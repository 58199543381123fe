import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { awake } from "../support/awake.ts";
import { holdReply, onScript } from "../support/scripts-sent.ts";
import { until } from "../support/until.ts";
import { Gate } from "./observe.ts";
import { seeded } from "./seed.ts";
import type { Subject } from "./subject.ts";

/** What ioredis knows of a connection's subscriptions. */
type Subscriber = {
  readonly condition?: { readonly subscriber?: { channels(how: string): string[] } | false };
};

/** The moments at which a wake-up could be lost. */
export function races(subject: Subject): void {
  describe("wake-ups", () => {
    it("are not lost: an unlock at any moment of a waiter's start is heard within a second", async () => {
      const { mine, theirs } = subject.pair();
      const { seed, next } = seeded();
      const waits: number[] = [];
      for (let trial = 0; trial < 60; trial++) {
        const lease = await mine.lock();
        const started = awake();
        const waiter = theirs.lock();
        const unlockAt = performance.now() + next() * 3;
        while (performance.now() < unlockAt) await nextTurn();
        await lease.unlock();
        const granted = await waiter;
        waits.push(awake() - started);
        await granted.unlock();
      }
      expect(Math.max(...waits), `the longest wait in ms; HOLDFAST_SEED=${seed}`).toBeLessThan(1_000);
    });

    it.runIf(subject.messages)(
      "are not lost when they overtake the answer that the lock is held",
      async () => {
        const party = await subject.join();
        const { name, theirs } = subject.pair();
        const gate = new Gate();
        const connections = subject.group(party.redis);
        let late = 0;
        const subscribers: Subscriber[] = [];
        const isSubscribed = (): boolean =>
          subscribers.some(({ condition }) =>
            ["subscribe", "ssubscribe"].some((how) => (condition?.subscriber || null)?.channels(how).length),
          );
        // A later "held" that is read behind the subscription: what it says is old when its waiter
        // reads it. Where the subscription takes long, the lock is tried meanwhile, and that "held"
        // goes through.
        for (const redis of connections) {
          let busy = 0;
          let isHeld = false;
          onScript(redis, (script, send) => {
            holdReply(script, (reply) => {
              const says = Array.isArray(reply) ? String(reply[0]) : "";
              if (isHeld || !["held", `${codes.HELD}`].includes(says) || ++busy < 2 || !isSubscribed())
                return null;
              // A try that was sent before the subscription stood has no place, and nobody would wake it.
              if (subject.queues && Array.isArray(reply) && Number(reply[3]) < 0) return null;
              isHeld = true;
              late++;
              return gate.passed;
            });
            send();
          });
        }
        const heard: string[] = [];
        for (const origin of subject.origins(party.redis)) {
          const duplicate = origin.duplicate.bind(origin);
          vi.spyOn(origin, "duplicate").mockImplementation((options) => {
            const hear = (_: string, message: string): unknown => heard.push(message);
            const made = duplicate(options).on("message", hear).on("smessage", hear);
            subscribers.push(made as Subscriber);
            return made;
          });
        }
        const lease = await theirs.lock();
        const waiter = subject.of(party, name).lock();
        await until(() => late === connections.length);
        const before = heard.length;
        await lease.unlock();
        await until(() => heard.length >= before + connections.length, { what: "the wake-up to be read" });
        const asked = awake();
        gate.open();
        const next = await waiter;
        expect(awake() - asked).toBeLessThan(350); // the next look would come after 1.1 s at the earliest
        await next.unlock();
      },
    );
  });
}
