export { createLockClient, type LockClient } from "./client.ts";
export {
  ClientClosedError,
  ConflictError,
  isLockLost,
  LockError,
  type LockErrorCode,
  LockLostError,
  LockTimeoutError,
  LockUnavailableError,
  type LossReason,
  NotReplicatedError,
  TransactionError,
} from "./errors.ts";
export type { LockEvents } from "./events.ts";
export type { Lease } from "./lease/lease.ts";
export type { Lock, LockBody } from "./locks/lock.ts";
export { optimistic } from "./optimistic/optimistic.ts";
export type { Transaction } from "./optimistic/transaction.ts";
export type { CloseOptions, LockClientOptions, LockOptions, OptimisticOptions } from "./options.ts";
export type { ClusterLike, RedisLike, SubscriberLike } from "./redis-like.ts";
export type { Inspection } from "./scripts/answers.ts";
