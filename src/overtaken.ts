/**
 * Why a call leaves the line of a lock: its scope has got the lock by another call, which it now enters. Nobody outside of the
 * package sees this error.
 */
export const OVERTAKEN = new Error("another call of the same scope got the lock");
