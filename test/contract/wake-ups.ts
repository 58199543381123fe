import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { awake } from "../support/awake.ts";
import { listenersOf } from "../support/listeners.ts";
import { holdReply, onScript } from "../support/scripts-sent.ts";
import { until } from "../support/until.ts";
import { Gate } from "./observe.ts";
import { seeded } from "./seed.ts";
import type { Subject } from "./subject.ts";

/** The moments at which a wake-up could be lost. */
export function wakeUps(subject: Subject): void {
  describe("wake-ups", () => {
    it("are not lost: a waiter receives an unlock at any moment of its start within a second", async () => {
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
        const listeners = connections.map((redis) => listenersOf(redis));
        const isSubscribed = (): boolean =>
          listeners.some(({ made }) => made.some(({ channels }) => channels.size > 0));
        const heard = (): number => listeners.reduce((sum, one) => sum + one.heard.length, 0);
        // A later "held" that is read after the subscription: what it says is old when its waiter
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
              // A try that was sent before the subscription stood has no place, and no message would wake it.
              if (subject.queues && Array.isArray(reply) && Number(reply[3]) < 0) return null;
              isHeld = true;
              late++;
              return gate.passed;
            });
            send();
          });
        }
        const lease = await theirs.lock();
        const waiter = subject.of(party, name).lock();
        await until(() => late === connections.length);
        const before = heard();
        await lease.unlock();
        await until(() => heard() >= before + connections.length, { what: "the wake-up to be read" });
        const asked = awake();
        gate.open();
        const next = await waiter;
        expect(awake() - asked).toBeLessThan(350); // the next look would come after 1.1 s at the earliest
        await next.unlock();
      },
    );
  });
}
