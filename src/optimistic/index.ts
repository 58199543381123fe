export type { Transaction } from "./attempt.ts";
export { optimistic } from "./optimistic.ts";
export type { OptimisticOptions } from "./options.ts";
