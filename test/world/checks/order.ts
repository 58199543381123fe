import type { Check, Run } from "../run.ts";

export const order = (run: Run): Check => ({
  promise: "A fair lock serves its waiters in the order in which they came.",
  entered({ name, kind, member, since, together }) {
    if (run.hasFaults || !kind.isFair || together) return;
    for (const other of run.waiting(name)) {
      // A reader may join those inside; of permits a smaller request waits for a larger one before it.
      const isOlder = other.since < since - run.slack && other.wait !== null;
      if (!isOlder || (kind.mode === "read" && other.kind.mode === "read")) continue;
      // Two that were granted together may get their messages in any order.
      run.time.after(run.slack, () => {
        if (!run.requests.has(other) || other.abortedAt < run.time.now) return;
        run.fail(
          `${name}: ${member.process.name}, which came at ${since.toFixed(0)} ms, was served before ` +
            `${other.member.process.name}, which came at ${other.since.toFixed(0)} ms`,
        );
      });
    }
  },
});
