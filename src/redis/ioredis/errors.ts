/**
 * An error of ioredis as the caller of a lock may see it. Without the command that ioredis puts
 * into it: the arguments of that are a password where AUTH was refused, and holds where a script
 * was, and printing the error would print them. A copy, as several calls can share one error.
 */
export function readable(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const hasGivenUp = error.name === "MaxRetriesPerRequestError";
  if (!hasGivenUp && !("command" in error)) return error;
  const { command: _, ...properties } = Object.getOwnPropertyDescriptors(error) as PropertyDescriptorMap;
  // Its own words are about a setting, and say nothing of Redis.
  const message = hasGivenUp ? "ioredis gave up after maxRetriesPerRequest tries" : error.message;
  return Object.create(Object.getPrototypeOf(error), {
    ...properties,
    message: { value: message, writable: true, configurable: true },
    stack: { value: error.stack, writable: true, configurable: true },
  });
}
