import { setTimeout as delay } from "node:timers/promises";
import type { LockClient, OnceOptions, OnceResult, Turn } from "../../src/index.ts";

interface Started {
  readonly turn: Turn;
  /** Ends the body. */
  readonly end: () => void;
  /** The outcome of the call: its result, or the code of its rejection. */
  readonly outcome: Promise<OnceResult<string> | { readonly code: unknown; readonly reason: unknown }>;
}

/** Calls of `locks.once` in one process. */
export class Runs {
  readonly #started: Started[] = [];

  /** The number of the run, or why there is none. */
  start(locks: LockClient, name: string, options: OnceOptions): Promise<number | OnceResult<string>> {
    return new Promise((resolve, reject) => {
      const outcome = locks.runOnce(name, options, (turn) => {
        return new Promise<string>((end) => {
          resolve(this.#started.push({ turn, end: () => end("done"), outcome: settled }) - 1);
        });
      });
      const settled = outcome.catch(({ code, reason }) => ({ code, reason }));
      outcome.then(resolve, reject);
    });
  }

  async end(run: number) {
    const { turn, end, outcome } = this.#started[run] as Started;
    const { signal, held } = turn;
    const told = { held, aborted: signal.aborted };
    end();
    return { ...told, outcome: await outcome };
  }

  async callFor(locks: LockClient, name: string, options: OnceOptions, pause: number, ms: number) {
    const begins: number[] = [];
    const until = performance.now() + ms;
    const call = async (): Promise<void> => {
      while (performance.now() < until) {
        await locks.runOnce(name, options, ({ begin }) => void begins.push(begin));
        await delay(pause);
      }
    };
    await Promise.all([call(), call(), call()]);
    return begins;
  }
}
