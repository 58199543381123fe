import type { KindName } from "../kinds.ts";
import type { Scene } from "./scene.ts";
import type { SceneLease, SceneProcess, TakeOptions } from "./scene-process.ts";

// Steps that many scenes begin with, and limits of docs/guarantees.md in ms.

/** The lease time, the grant window, and the longest time to the next re-check. */
export const L = 30_000;
export const W = 3_000;
export const R = 1_900;
/** A caller gets a lock by a message: after two packets, and what its process does in between. */
export const BY_MESSAGE = 5;

/** A process that has waited once receives messages. */
export async function warm({ pass }: Scene, one: SceneProcess, other: SceneProcess): Promise<void> {
  const held = await other.take("lock", { name: "w" });
  const waiting = one.take("lock", { name: "w" });
  await pass(100);
  await held.unlock();
  await (await waiting).unlock();
}

/** A process holds it, and callers of others wait for it, the first one first. */
export async function parked<W extends SceneProcess[]>(
  { pass, redis }: Scene,
  holder: SceneProcess,
  waiters: readonly [...W],
  { kind = "lock", ...options }: TakeOptions & { readonly kind?: KindName } = {},
): Promise<{ held: SceneLease; waiting: { [K in keyof W]: Promise<SceneLease> } }> {
  const held = await holder.take(kind, { units: kind.includes("sem") ? 3 : 1 });
  const waiting: Promise<SceneLease>[] = [];
  for (const waiter of waiters) {
    waiting.push(waiter.take(kind, options));
    await pass(20);
  }
  const { name } = held.lease;
  const queue = redis.queue(name);
  if (queue.join() !== waiters.map(({ number }) => number).join())
    throw new Error(`the queue of ${name} is ${queue.join()}`);
  return { held, waiting: waiting as { [K in keyof W]: Promise<SceneLease> } };
}

/** They get it one after the other, by messages, and give it back. */
export async function inTurn({ timed }: Scene, ...waiting: readonly Promise<SceneLease>[]): Promise<void> {
  for (const next of waiting) {
    const { result, took } = await timed(next);
    if (took > BY_MESSAGE) throw new Error(`it took ${took.toFixed(1)} ms`);
    await result.unlock();
  }
}

/** A caller that takes it, and notes its name as soon as it has it. */
export function noting(order: string[], kind: KindName) {
  return async (one: SceneProcess, who: string): Promise<void> => {
    const lease = await one.take(kind);
    order.push(who);
    await lease.unlock();
  };
}

/** What becomes of a call: its error's code and reason, or null. */
export const outcomeOf = (
  call: Promise<unknown>,
): Promise<null | readonly [code: string, reason: string | undefined]> =>
  call.then(
    () => null,
    ({ code, reason }: { code: string; reason?: string }) => [code, reason] as const,
  );
