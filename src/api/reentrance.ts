import { type Checked, checkOptions, flag, type Rule } from "./validate.ts";

/** May calls re-enter a hold of this lock, in the scope that has it? */
export interface ReentranceOptions {
  /**
   * false: no other call enters a hold taken through this object, and a call through it enters no
   * hold: each waits for its turn, even inside one scope. For a lock that work of other callers can
   * reach, such as the jobs of a drain loop that a body started. Default: the client's `reentrant`.
   *
   * @example
   * const account = locks.lock("account:1", { reentrant: false });
   */
  reentrant?: boolean | undefined;
}

export const REENTRANCE = { reentrant: flag(undefined) };

/** For kinds with no other option. `why`: they have no `localHandoffs` and no `linger`. @throws TypeError */
export function checkReentrance(options: unknown, why: string): Checked<typeof REENTRANCE> {
  const no: Rule<undefined> = {
    wanted: `left out: ${why}`,
    fits: () => false,
    isHidden: true,
    fallback: undefined,
  };
  return checkOptions("Cannot create a lock", { ...REENTRANCE, localHandoffs: no, linger: no }, options);
}
