/** A fixture's object. It exists only once the hooks before the tests have run. */
export function present<T>(part: T | undefined): T {
  if (part === undefined) throw new Error("It is not set up yet, or there is none: use it inside of tests");
  return part;
}
