const never = new Int32Array(new SharedArrayBuffer(4));

/**
 * Blocks this process's only thread for so many ms, as a long computation does: no timer fires, and
 * no message is read. It costs no CPU time, which other tests need.
 */
export function block(ms: number): void {
  const end = performance.now() + ms;
  for (let left = ms; left > 0; left = end - performance.now()) Atomics.wait(never, 0, 0, left);
}
