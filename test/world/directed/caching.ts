import { expect } from "vitest";
import type { Scene } from "./scene.ts";
import type { SceneLease, SceneProcess, TakeOptions } from "./scene-process.ts";
import { BY_MESSAGE, warm } from "./steps.ts";

// Steps of scenes with cached locks and reads, and limits of docs/guarantees.md in ms.

export const LINGER = 1_000;
/** The longest that Redis has what is cached, and how long after an answer it may be taken. */
export const S = 3_000;
export const FRESH = 100;

/** A process that may cache, and two others. All receive messages. */
export async function three(world: Scene): Promise<[SceneProcess, SceneProcess, SceneProcess]> {
  const [one] = world.processes(1, { linger: LINGER });
  const [other, third] = world.processes(2);
  await warm(world, one, other);
  await warm(world, other, third);
  await warm(world, third, other);
  return [one, other, third];
}

/** A caller takes the lock and unlocks it. */
export async function use(one: SceneProcess, options?: TakeOptions): Promise<void> {
  await (await one.take("lock", options)).unlock();
}

/** Another process has the lock, and gives it to a waiting caller of this one. */
export async function granted(
  { pass }: Scene,
  one: SceneProcess,
  other: SceneProcess,
  options?: TakeOptions,
): Promise<SceneLease> {
  const held = await other.take("lock", { name: options?.name ?? "a" });
  const waiting = one.take("lock", options);
  await pass(10);
  await held.unlock();
  return waiting;
}

/** A caller has it after two messages: no body is inside, or it has just left. */
export async function comesSoon({ timed }: Scene, next: Promise<SceneLease>): Promise<SceneLease> {
  const { result, took } = await timed(next);
  expect(took).toBeLessThan(2 * BY_MESSAGE);
  return result;
}

/** How many locks the process caches, and which processes hold this one in Redis. */
export const cachedBy = ({ redis }: Scene, { client }: SceneProcess): [number, number[]] => [
  client.stats().kept,
  redis.holders("lock:a"),
];
