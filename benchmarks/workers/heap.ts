/** Bytes of the heap that are in use. For node --expose-gc. */
export function heap(): number {
  if (!globalThis.gc) throw new Error("node must run with --expose-gc");
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}
