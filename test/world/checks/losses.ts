import type { LockLostError } from "../../../src/index.ts";
import { codeOf } from "../callers.ts";
import type { Check, Run } from "../run.ts";

/** In these runs no key is deleted. */
export const losses = (run: Run): Check => ({
  promise: "A lease is lost with `gone` or `taken` only if Redis has lost it, and so for `revoked`.",
  left(holding, error) {
    if (codeOf(error) !== "LOCK_LOST" || run.forced.has(holding)) return;
    const { reason } = error as LockLostError;
    if (reason === "expired" || reason === "unknown") return;
    const { kindName, name, member } = holding;
    // Its time was over when Redis read that its body had ended, and a newer run has the lock or a result.
    if (kindName === "remember" && reason === "taken") return;
    if (reason === "closed" && run.isClosing(member)) return;
    run.fail(`${kindName} ${name} of ${member.process.name} is lost (${reason}), and Redis had it`);
  },
});
