import type { RunnerTask } from "vitest";

/** Tests of a suite that are deliberately not run, and why. */
export interface Exemption {
  /** The name of the `describe` around them. Left out: any. */
  readonly theme?: RegExp;
  /** Their titles. Each pattern must match a test: see `idlePatterns`. */
  readonly tests: readonly RegExp[];
  readonly why: string;
}

/** A test, by its title and the name of the `describe` around it. */
export interface Titled {
  readonly theme: string;
  readonly title: string;
}

/** Why this test does not run. Undefined: it runs. */
export const exemptionOf = (exemptions: readonly Exemption[], test: Titled): string | undefined =>
  exemptions.find((one) => one.tests.some((pattern) => isMatch(one, pattern, test)))?.why;

/**
 * The patterns that match none of these tests: a title has changed, or the test is gone. An
 * obsolete exemption could later match a test that should run.
 */
export function idlePatterns(exemptions: readonly Exemption[], tests: readonly Titled[]): string[] {
  return exemptions.flatMap((one) =>
    one.tests
      .filter((pattern) => !tests.some((test) => isMatch(one, pattern, test)))
      .map((pattern) => `${one.theme ?? "any theme"}: ${pattern}`),
  );
}

function isMatch({ theme }: Exemption, pattern: RegExp, test: Titled): boolean {
  return (theme?.test(test.theme) ?? true) && pattern.test(test.title);
}

/** All tests in a `describe`, including those that do not run. */
export function testsIn(task: RunnerTask | undefined): Titled[] {
  if (task?.type === "suite") return task.tasks.flatMap(testsIn);
  return task ? [{ theme: task.suite?.name ?? "", title: task.name }] : [];
}
