/** What a fixture has set up: its hooks run before tests and not before that. */
export function present<T>(part: T | undefined): T {
  if (part === undefined) throw new Error("It is not set up yet, or there is none: use it inside of tests");
  return part;
}
