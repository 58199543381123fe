import type { Scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";

// Steps of scenes about results that callers share.

export const KEEP = 60_000;
type Options = Partial<Parameters<SceneProcess["client"]["remember"]>[1]>;

/** A body that takes so long, and returns how many have run by then. */
export class Job {
  runs = 0;
  /** Bodies whose lease was held, at a time. */
  most = 0;
  readonly #inside = new Set<{ readonly held: boolean }>();

  call(one: SceneProcess, ms = 20, { keep = KEEP, ...options }: Options = {}, fails = false) {
    return one.does(() =>
      one.client.remember("x", { keep, ...options }, async (run) => {
        const mine = ++this.runs;
        this.#inside.add(run);
        this.most = Math.max(this.most, [...this.#inside].filter(({ held }) => held).length);
        await one.sleep(ms);
        this.#inside.delete(run);
        if (fails) throw new Error(`run ${mine} has failed`);
        return mine;
      }),
    );
  }
}

export const failure = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error);
export const got = (call: Promise<{ value: unknown }>): Promise<unknown> => call.then(({ value }) => value);

/** Its processes receive messages. */
export async function warm(world: Scene, ...all: SceneProcess[]): Promise<void> {
  const [first, ...others] = all;
  if (!first) return;
  const job = new Job();
  const running = job.call(first, 100, { keep: 0 });
  await world.pass(5);
  await Promise.all([running, ...others.map((one) => job.call(one, 0, { keep: 0 }))]);
  const back = job.call(others[0] ?? first, 100, { keep: 0 });
  await world.pass(5);
  await Promise.all([back, job.call(first, 0, { keep: 0 })]);
  await first.does(() => first.client.forget("x"));
}
