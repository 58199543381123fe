import type { Reporter, TestCase } from "vitest/node";

/** Tells of each test that passed, but not at its first try, and why it had failed: a retry must not hide that. */
export class Retried implements Reporter {
  readonly #lines: string[] = [];

  onTestCaseResult(test: TestCase): void {
    if (!test.diagnostic()?.flaky) return;
    const [error] = test.result().errors ?? [];
    this.#lines.push(
      `${test.module.relativeModuleId} > ${test.fullName}: ${error?.message ?? "no error is known"}`,
    );
  }

  onTestRunEnd(): void {
    for (const line of this.#lines) console.log(`tried again  ${line}`);
  }
}
