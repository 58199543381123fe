/**
 * An error of ioredis, without the command that ioredis adds to it. The command's arguments are a
 * password if AUTH was refused, and holds if it was a script; printing the error would print them.
 * A copy, because several calls can share one error.
 */
export function readable(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const hasGivenUp = error.name === "MaxRetriesPerRequestError";
  if (!hasGivenUp && !("command" in error)) return error;
  const { command: _, ...properties } = Object.getOwnPropertyDescriptors(error) as PropertyDescriptorMap;
  // ioredis's message is about a setting, and says nothing of Redis.
  const message = hasGivenUp ? "ioredis gave up after maxRetriesPerRequest tries" : error.message;
  return Object.create(Object.getPrototypeOf(error), {
    ...properties,
    message: { value: message, writable: true, configurable: true },
    stack: { value: error.stack, writable: true, configurable: true },
  });
}
