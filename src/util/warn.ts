import { detached } from "./detached.ts";

/**
 * Emits a process warning, outside of any caller's context: the application may listen to warnings.
 */
export function warn(warning: string | Error, code?: string, detail?: string): void {
  detached(() => process.emitWarning(warning, { type: "HoldfastWarning", code, detail }));
}
