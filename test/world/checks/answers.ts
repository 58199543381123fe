import { codeOf } from "../callers.ts";
import { entries, entriesOf, nameOf, owners, ownersOf } from "../ownership.ts";
import { servedBy } from "../results.ts";
import type { Check, Request, Run } from "../run.ts";

/** Their keys have other forms. */
const UNREAD = /spin|redisson|once/;

/** Was there a reason to say that it is busy? */
export const answers = (run: Run): Check => {
  /** When a lock was held or waited for last, by its name, as far as scripts have shown it. */
  const busyAt = new Map<string, number>();
  const wasBusy = new WeakSet<Request>();
  const isBusy = (name: string, except: Request | null): boolean =>
    owners(run).some((one) => one.name === name) ||
    entries(run).some((one) => one.name === name) ||
    run.inside(name).length > 0 ||
    run.wanting(name).some((one) => one !== except && one.wait !== null);
  return {
    promise: "A call says that a lock is busy only if another caller had it, or waited, after the call.",
    asked(request) {
      if (isBusy(request.name, request)) wasBusy.add(request);
    },
    ran(_, { keys }) {
      for (const key of keys) {
        const name = nameOf(key.replace(/:queue$/, ""));
        if (name && (ownersOf(run, key).length > 0 || entriesOf(run, key).length > 0))
          busyAt.set(name, run.time.now);
      }
    },
    granted: ({ name }) => void busyAt.set(name, run.time.now),
    entered: ({ name }) => void busyAt.set(name, run.time.now),
    refused(request, error) {
      const { kindName, kind, name, since, member, together } = request;
      // Of a multi-lock any other member may have been busy.
      if (together || servedBy(request)) return;
      const code = error === null ? "null" : codeOf(error);
      if ((code !== "null" && code !== "LOCK_TIMEOUT") || UNREAD.test(kind.family)) return;
      const isRight = wasBusy.has(request) || (busyAt.get(name) ?? -1) >= since || isBusy(name, request);
      if (!isRight)
        run.fail(
          `${kindName} ${name}, ${member.process.name}: ${code}, and nobody has had it since the call`,
        );
    },
  };
};
