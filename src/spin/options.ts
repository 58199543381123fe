import type { PassingOptions } from "../options.ts";
import type { ReentranceOptions } from "../reentrance.ts";

/** How a spin lock is named in Redis, and handed on. */
export interface SpinLockOptions extends PassingOptions, ReentranceOptions {
  /** Stands before the name in the key, and in `lock.name`. Default: "". */
  prefix?: string | undefined;
}
