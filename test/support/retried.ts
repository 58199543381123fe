import type { Reporter, TestCase } from "vitest/node";

/** Tells of each test that passed, but not at its first try, and why it had failed: a retry must not hide that. */
export class Retried implements Reporter {
  readonly #lines: string[] = [];

  onTestCaseResult(test: TestCase): void {
    if (!test.diagnostic()?.flaky) return;
    const [error] = test.result().errors ?? [];
    this.#lines.push(`${test.module.relativeModuleId} > ${test.fullName}: ${reasons(error)}`);
  }

  onTestRunEnd(): void {
    for (const line of this.#lines) console.log(`tried again  ${line}`);
  }
}

/** Its message, and those of its causes. */
const reasons = (error: { message: string; cause?: unknown } | undefined): string => {
  if (!error) return "no error is known";
  const cause = error.cause as typeof error | undefined;
  return cause ? `${error.message}; because of: ${reasons(cause)}` : error.message;
};
