import { setTimeout as pause } from "node:timers/promises";
import { Worker } from "node:worker_threads";

/** Further lines are dropped while stderr has no reader. */
const MOST = 200;

/**
 * Writes to file descriptor 2, and waits there while it has no reader. It must not be made
 * non-blocking instead: the command shares the open file, and would get EAGAIN.
 */
const WRITER = `
const { parentPort } = require("node:worker_threads");
const { writeSync } = require("node:fs");
parentPort.on("message", (text) => {
  let bytes = Buffer.from(text);
  while (bytes.length > 0)
    try {
      bytes = bytes.subarray(writeSync(2, bytes));
    } catch (error) {
      if (error.code !== "EAGAIN") break;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }
  parentPort.postMessage(0);
});
`;

/**
 * stderr of a program that watches a command. Node.js writes to pipes and terminals synchronously:
 * a reader that pauses, or Ctrl-S, would stop the timers that end the command in time. While
 * `mayBlock` is false a thread writes.
 */
export class Stderr {
  mayBlock = true;
  #worker: Worker | null = null;
  #pending = 0;

  write(text: string): void {
    // After what the thread still has to write, so that lines stay in order.
    if (this.mayBlock && this.#pending === 0) process.stderr.write(text);
    else if (this.#pending < MOST) {
      this.#pending++;
      this.#worker ??= this.#start();
      this.#worker.ref();
      this.#worker.postMessage(text);
    }
  }

  /** Resolves when all is written, or after `most` ms. */
  async drained(most: number): Promise<void> {
    const since = performance.now();
    while (this.#pending > 0 && performance.now() - since < most) await pause(5);
  }

  #start(): Worker {
    const worker = new Worker(WRITER, { eval: true });
    worker.on("message", () => {
      this.#pending--;
      // The thread keeps this program alive only until all is written.
      if (this.#pending === 0) worker.unref();
    });
    worker.on("error", () => {
      this.#pending = 0;
      this.#worker = null;
    });
    return worker;
  }
}
