/**
 * The stack of a call: so many frames, the first of which called `below`. Its text is made when it is
 * read, which may throw: an application may have its own `Error.prepareStackTrace`.
 */
export function stackOf(below: (...args: never[]) => unknown, frames: number): { readonly stack: unknown } {
  const limit = Error.stackTraceLimit;
  // An application may have frozen this property.
  const isSet = Reflect.set(Error, "stackTraceLimit", frames);
  const taken = { stack: "" };
  Error.captureStackTrace(taken, below);
  if (isSet) Reflect.set(Error, "stackTraceLimit", limit);
  return taken;
}
