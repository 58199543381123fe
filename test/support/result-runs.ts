import type { LockClient, RememberOptions, ResultRun } from "../../src/index.ts";

/** A run of `remember(name)` that has begun. */
interface Running {
  readonly run: ResultRun;
  /** Ends its body with this value. */
  ran(value: unknown): void;
  /** What its call resolves with, or the error with which it rejects. */
  readonly ended: Promise<unknown>;
}

/** Begins a run, whose body ends when the test says so, or throws when its signal aborts. */
export function running(
  locks: LockClient,
  name: string,
  options: Partial<RememberOptions> = {},
): Promise<Running> {
  return new Promise((resolve, reject) => {
    const call = locks.remember(
      name,
      { keep: 60_000, ...options },
      (run) =>
        new Promise((ran, stopped) => {
          run.signal.addEventListener("abort", () => stopped(run.signal.reason));
          resolve({ run, ran, ended });
        }),
    );
    const ended: Promise<unknown> = call.catch((error: unknown) => error);
    call.catch(reject);
  });
}
