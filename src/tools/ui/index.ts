export { createLockUI, type LockUI } from "./lock-ui.ts";
export { type ObserveOptions, observe } from "./observe.ts";
export type { Authorize, LockUIOptions } from "./options.ts";
export type { Action } from "./shown.ts";
