import { relative } from "node:path";
import type { Reporter, SerializedError, TestModule } from "vitest/node";

/**
 * Names every failed test again in the last lines of a run, one line each: of a long output often
 * only the end is kept.
 */
export class FailuresLast implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    for (const line of failures(modules, unhandled)) process.stderr.write(`${line}\n`);
  }
}

function failures(modules: readonly TestModule[], unhandled: readonly SerializedError[]): string[] {
  return [
    ...modules.flatMap((module) => {
      const file = `${module.project.name} ${relative(process.cwd(), module.moduleId)}`;
      const outside = [module, ...module.children.allSuites()].flatMap((one) => one.errors());
      return [
        ...outside.map((error) => failed(file, error)),
        ...[...module.children.allTests("failed")].map((test) =>
          failed(`${file} > ${test.fullName}`, test.result().errors?.[0]),
        ),
      ];
    }),
    ...unhandled.map((error) => failed("outside every test", error)),
  ];
}

function failed(where: string, error: { readonly message: string } | undefined): string {
  const [reason = ""] = error?.message.split("\n") ?? [];
  return `FAILED ${where}: ${reason}`;
}
