export type { Check, CheckedServer } from "./api/check.ts";
export type { LockClient, LockStats } from "./api/client.ts";
export type {
  CampaignOptions,
  Election,
  ElectionOptions,
  Leader,
  LeaderBody,
  LeadOptions,
  ObserveOptions,
  Term,
} from "./api/election.ts";
export {
  ClientClosedError,
  ConflictError,
  DeadlockError,
  type DeadlockLink,
  FencedWriteError,
  FingerprintError,
  isLockLost,
  LockError,
  type LockErrorCode,
  LockFormatError,
  LockLostError,
  LockTimeoutError,
  LockUnavailableError,
  LockWantedError,
  NotReplicatedError,
  PermitsError,
  ResultError,
  StaleTokenError,
  TransactionError,
} from "./api/errors.ts";
export type { EventKind, LockEvent, LockEvents } from "./api/events.ts";
export type { GiveUpReason } from "./api/give-up.ts";
export type { BaseLease, Lease, UnfencedLease } from "./api/lease.ts";
export type { Listed, ListedKind, ListOptions } from "./api/list.ts";
export type { Inspected, Inspection, Lock, LockBody, Recalled } from "./api/lock.ts";
export type { MultiLease, MultiLock, MultiLockBody } from "./api/multi-lock.ts";
export type { OnceOptions, OnceResult, Turn } from "./api/once.ts";
export type {
  BodyOptions,
  CheckOptions,
  CloseOptions,
  ForceUnlockOptions,
  LingerOptions,
  LockClientOptions,
  LockOptions,
  PassingOptions,
  ReadWriteOptions,
  RecallOptions,
} from "./api/options.ts";
export type { HoldingParty, Party, WaitingParty } from "./api/party.ts";
export type { ReadWriteInspection, ReadWriteLock } from "./api/read-write-lock.ts";
export type { ClusterLike, NodeRedisLike, RedisArgument, RedisLike, SubscriberLike } from "./api/redis.ts";
export type { ReentranceOptions } from "./api/reentrance.ts";
export type { Remembered, RememberedNow, RememberOptions, ResultRun } from "./api/remember.ts";
export type {
  PermitBody,
  PermitLease,
  Semaphore,
  SemaphoreInspection,
  SemaphoreOptions,
} from "./api/semaphore.ts";
export type { LossReason } from "./api/wording.ts";
export { createLockClient } from "./client/server-client.ts";
