import type { UnfencedLease } from "../../src/index.ts";

type Shown = Pick<UnfencedLease, "held" | "signal" | "remaining">;

/** What a lease shows at each moment, as this one shows it, and these further parts. */
export const leaseLike = <T extends object>(shown: Shown, more: T): Shown & T =>
  Object.assign(
    {
      get held() {
        return shown.held;
      },
      get signal() {
        return shown.signal;
      },
      get remaining() {
        return shown.remaining;
      },
    },
    more,
  );
