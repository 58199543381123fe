import { AsyncResource } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import type { Lease, Lock } from "../../src/index.ts";
import type { Party } from "../support/fixture.ts";
import { until } from "../support/until.ts";
import { Gate } from "./observe.ts";
import type { Subject } from "./subject.ts";

type Job = () => Promise<void>;

/**
 * A queue as applications have many: the first push starts the loop, in the context of the caller
 * that pushed.
 */
export class Queue {
  readonly #jobs: Job[] = [];
  readonly #start: (loop: () => void) => void;
  readonly #bind: (job: Job) => Job;
  #isDraining = false;

  /** `start`: runs the loop. `bind`: what is pushed instead of a job. */
  constructor(start: (loop: () => void) => void = (loop) => loop(), bind: (job: Job) => Job = (job) => job) {
    this.#start = start;
    this.#bind = bind;
  }

  push(job: Job): void {
    this.#jobs.push(this.#bind(job));
    if (this.#isDraining) return;
    this.#isDraining = true;
    this.#start(() => void this.#drain());
  }

  /** Pushes a job, and resolves with what it returns. */
  ask<T>(job: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => this.push(() => job().then(resolve, reject)));
  }

  async #drain(): Promise<void> {
    for (let job = this.#jobs.shift(); job; job = this.#jobs.shift()) await job();
    this.#isDraining = false;
  }
}

/**
 * One request is in the body of a `withLock` and is the first to push a job. Another one, outside
 * of every scope, pushes a job that takes the same lock. Returns the lease of the first, and that
 * of the second as it is while the first is inside.
 */
async function meet(lock: Lock, queue: Queue, body: (meeting: Promise<Lease | null>) => Promise<void>) {
  const [inside, pushed, met] = [new Gate(), new Gate(), new Gate()];
  let second: Lease | null = null;
  const first = lock.withLock(async (lease) => {
    queue.push(() => pushed.passed); // the loop runs from here on
    inside.open();
    await body(met.passed.then(() => second));
    return lease.token;
  });
  await inside.passed;
  let isOver = false;
  queue.push(async () => {
    second = await lock.tryLock();
    met.open();
    await second?.unlock();
    isOver = true;
  });
  pushed.open();
  await first;
  await until(() => isOver, { what: "the second request's job" });
}

/** Work of one caller that runs in the asynchronous context of another one. */
export function drainLoops(subject: Subject): void {
  const of = (party: Party): Lock => subject.of(party, subject.name());

  describe("drain loops", () => {
    it("re-enter, with the same token, what the scope that started them holds", async () => {
      const lock = of(subject.first);
      await meet(lock, new Queue(), async (meeting) => {
        expect(await meeting).not.toBe(null); // both requests are inside
        expect(lock.isHeldHere()).toBe(true);
      });
    });

    it("with jobs that AsyncResource.bind() has bound: these are strangers to the scope", async () => {
      const lock = of(subject.first);
      await meet(lock, new Queue(undefined, AsyncResource.bind), async (meeting) => {
        expect(await meeting).toBe(null);
      });
    });

    it("started by locks.outside() are strangers to the scope", async () => {
      const { locks } = subject.first;
      await meet(of(subject.first), new Queue(locks.outside.bind(locks)), async (meeting) => {
        expect(await meeting).toBe(null);
      });
    });
  });
}
