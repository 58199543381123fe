import { expect, it } from "vitest";
import type { PermitLease, Semaphore } from "../../src/index.ts";
import { failure } from "../contract/observe.ts";
import { SemaphoreServer } from "../support/semaphores.ts";

// How many permits a call wants stands before its other arguments, and may be left out. What one
// permit has in common with a lock is in the contract of locks.

const own = new SemaphoreServer();

type Body = (lease: PermitLease) => Promise<void>;
type Form = (slots: Semaphore, body: Body) => Promise<void>;

const TIMES = { wait: 10_000, lease: 20_000 };

/** How many permits each form takes, and the form. */
const FORMS: Readonly<Record<string, readonly [number, Form]>> = {
  "withPermits(body)": [1, (slots, body) => slots.withPermits(body)],
  "withPermits(units, body)": [2, (slots, body) => slots.withPermits(2, body)],
  "withPermits(options, body)": [1, (slots, body) => slots.withPermits(TIMES, body)],
  "withPermits(units, options, body)": [2, (slots, body) => slots.withPermits(2, TIMES, body)],
  "await using, tryAcquire()": [1, (slots, body) => inBlock(slots.tryAcquire(), body)],
  "await using, tryAcquire(units)": [2, (slots, body) => inBlock(slots.tryAcquire(2), body)],
  "await using, tryAcquire(units, wait, lease)": [
    2,
    (slots, body) => inBlock(slots.tryAcquire(2, TIMES.wait, TIMES.lease), body),
  ],
  "await using, tryAcquire(units, options)": [2, (slots, body) => inBlock(slots.tryAcquire(2, TIMES), body)],
  "await using, tryAcquire(options)": [1, (slots, body) => inBlock(slots.tryAcquire(TIMES), body)],
  "await using, acquire()": [1, (slots, body) => inBlock(slots.acquire(), body)],
  "await using, acquire(units, options)": [2, (slots, body) => inBlock(slots.acquire(2, TIMES), body)],
  "await using, acquire(options)": [1, (slots, body) => inBlock(slots.acquire(TIMES), body)],
};

async function inBlock(acquiring: Promise<PermitLease | null>, body: Body): Promise<void> {
  await using lease = await acquiring;
  if (lease) await body(lease);
}

it.each(Object.entries(FORMS))(
  "%s has its permits in its block, and no longer",
  async (how, [units, form]) => {
    const [mine, theirs] = (await own.open(2, 3)) as [Semaphore, Semaphore];
    let seen: unknown;
    await form(mine, async (lease) => {
      const { used } = await theirs.inspect();
      const isShort = lease.remaining <= TIMES.lease;
      seen = { units: lease.units, held: lease.held, used, isShort, tooMany: await theirs.tryAcquire(3) };
    });
    const isShort = /options|lease/.test(how);
    expect(seen).toEqual({ units, held: true, used: units, isShort, tooMany: null });
    await theirs.withPermits(3, { wait: TIMES.wait }, () => {});
  },
);

const body = () => {
  throw new Error("a body that must not run");
};

it.each<[string, unknown[]]>([
  ["withPermits(body, options)", [body, { wait: 5 }]],
  ["withPermits(body, units)", [body, 2]],
  ["withPermits(units, body, options)", [2, body, { wait: 5 }]],
])("%s is refused with the order that counts, and the body does not run", async (_, args) => {
  const [slots] = (await own.open(1, 3)) as [Semaphore];
  const withPermits = slots.withPermits.bind(slots) as (...args: unknown[]) => Promise<unknown>;
  const error = await failure(withPermits(...args));
  expect(error).toBeInstanceOf(TypeError);
  expect((error as TypeError).message).toMatch(/takes the options before the function/);
});
