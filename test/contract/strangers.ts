import { describe, expect, it } from "vitest";
import type { Lease, Lock, LockClient, MultiLease } from "../../src/index.ts";
import { Queue } from "./drain-loops.ts";
import { Gate, recordOf, tried } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** What a caller has of a lock, and how it gives that back. */
interface Stay {
  readonly lease: Lease | MultiLease;
  leave(): Promise<void>;
}

/** The ways in which a caller takes a lock. */
const WAYS: Readonly<Record<string, (lock: Lock, locks: LockClient) => Promise<Stay>>> = {
  "lock()": async (lock) => stayOf(await lock.lock()),
  "tryLock()": async (lock) => stayOf(await lock.tryLock()),
  "multiLock().lock()": async (lock, locks) => stayOf(await locks.multiLock([lock]).lock()),
  "withLock()": (lock) => bodyOf((body) => lock.withLock(body)),
  "multiLock().withLock()": (lock, locks) => bodyOf((body) => locks.multiLock([lock]).withLock(body)),
};

function stayOf(lease: Lease | MultiLease | null): Stay {
  if (!lease) throw new Error("Expected the lock, and it was busy");
  return { lease, leave: () => lease.unlock() };
}

/** Resolves when the body runs, which ends when it is told to. */
function bodyOf(
  run: (body: (lease: Lease | MultiLease) => Promise<void>) => Promise<unknown>,
): Promise<Stay> {
  return new Promise((resolve, reject) => {
    const gate = new Gate();
    const body = run((lease) => {
      const leave = async () => {
        gate.open();
        await body;
      };
      resolve({ lease, leave });
      return gate.passed;
    });
    body.catch(reject);
  });
}

/** Not every client has multi-locks, and permits have no place in one. */
const waysOf = ({ isQuorum, kind }: Subject): string[] =>
  Object.keys(WAYS).filter((way) => !way.startsWith("multi") || !(isQuorum || kind === "permit"));

/**
 * Work of another caller that runs in the context of a body, as a drain loop does it, keeps its
 * lock whatever becomes of the body.
 */
export function strangers(subject: Subject): void {
  /** One request's body starts a loop, which runs a job of another one that takes a lock. */
  async function meet(way: string, mine: Lock, theirs: Lock) {
    const { locks } = subject.first;
    const queue = new Queue();
    const [inside, pushed, leaving] = [new Gate(), new Gate(), new Gate()];
    const body = mine.withLock(async (lease) => {
      queue.push(() => pushed.passed); // the loop runs from here on
      inside.open();
      await leaving.passed;
      return lease.held;
    });
    await inside.passed;
    const taken = queue.ask(() => (WAYS[way] as (typeof WAYS)[string])(theirs, locks));
    pushed.open();
    return {
      stranger: await taken,
      queue,
      /** Ends the body. Resolves with whether it had its lock to its end. */
      end: () => {
        leaving.open();
        return body;
      },
    };
  }

  describe("strangers in a body", () => {
    for (const which of ["the body's lock", "another lock"])
      for (const way of waysOf(subject)) {
        it.each(["before", "with", "after"])(
          `hold ${which} by ${way} to their own end, which comes %s the body's`,
          async (when) => {
            const [first, second] = [subject.pair(), subject.pair()];
            const other = which === "another lock" ? second : first;
            const told = recordOf(subject.first.locks, [first.name, second.name]);
            const { stranger, queue, end } = await meet(way, first.mine, other.mine);
            const { lease } = stranger;
            const { signal } = lease;
            expect([lease.held, await tried(other.theirs)]).toEqual([true, null]);
            if (when === "before") {
              await stranger.leave();
              expect(await tried(first.theirs)).toBe(null); // the body has its lock
              expect(await end()).toBe(true);
            } else if (when === "with") {
              const [kept] = await Promise.all([end(), stranger.leave()]);
              expect(kept).toBe(true);
            } else {
              expect(await end()).toBe(true);
              expect([lease.held, signal.aborted]).toEqual([true, false]);
              expect(await tried(other.theirs)).toBe(null);
              // The loop is in the context of a body that has ended: nothing is entered by it any
              // more. Readers come in anyway.
              if (subject.kind !== "readLock") expect(await queue.ask(() => tried(other.mine))).toBe(null);
              lease.assertHeld();
              await stranger.leave();
            }
            expect([lease.held, signal.aborted]).toEqual([false, false]);
            for (const { theirs } of [first, other]) await (await theirs.lock({ wait: 10_000 })).unlock();
            const locks = which === "another lock" ? 2 : 1;
            expect([told.acquire.length, told.release.length]).toEqual([locks, locks]);
            expect([told.lost, told.error]).toEqual([[], []]);
          },
        );
      }
  });
}
