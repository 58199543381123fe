import { visible } from "../util/visible.ts";

/**
 * One who holds or waits, as people see it. These names mean the same wherever holders, waiters and
 * locks are shown: in `inspect()`, `list()`, errors, events, elections, the page's JSON and the
 * command line's `--json`. JSON has no Infinity, so no end is null there.
 *
 * | field | what | null |
 * |---|---|---|
 * | `id`, `label`, `host`, `pid` | of a `Party`: below | below |
 * | `holder` | the `Party` that holds; of several the one that has held longest | it is free |
 * | `holders` | all of them, where several may hold | – |
 * | `waiters` | waiting processes in the order of their places, the next one first; `[]`: no process waits | Redis keeps no queue of this kind (spin, Redisson, several masters) |
 * | `since` | ms since 1970 by the server's clock, since when it has held or waited | what is in Redis does not say |
 * | `heldFor`, `waitedFor` | the same as ms up to when Redis was asked; of events, of the page's history and of `run`, up to when that ended | what is in Redis does not say |
 * | `remaining` | whole ms until the hold ends unless it is renewed; Infinity: no end is set | it is free |
 * | `token` | the fencing token of the hold | it is free, or its kind has none |
 * | `units` | permits of a semaphore; of others 1 | – |
 * | `mode` | "read" or "write" of a read-write lock | it is another kind |
 * | `name`, `kind` | of the lock | – |
 * | `kept` | its holder may keep it unused (`linger`); of an `acquire` event: this process had kept it | – |
 * | `permits`, `isSet`, `used` | of a semaphore: how many there are, whether `setPermits()` said so, how many are held | no number is known |
 * | `value` | what a leader says of itself | it is no election, or has another leader by now |
 * | `at` | when that was so: ms since 1970 by the server's clock | this kind does not tell |
 * | `here` | the callers of this client alone: `waiting`, `longest` | – |
 * | `waiting` | how many callers of this client wait: one process may have many | – |
 * | `longest` | ms that the longest wait has lasted | none waits |
 * | `client` | the id of a lock client | – |
 * | `call` | a number of the client's for each call that has events | – |
 * | `heldBy` | where the holder is, as far as the client knows | – |
 * | `passed` | another caller of this process had it before, and no other process in between | – |
 * | `firstToken` | of the first of the callers that may have been without the lock | – |
 * | `error`, `why` | what a call or a lease ended with; the same in a word | – |
 * | `cycle` | of a deadlock: the locks with their holders, of which each waits for the next lock | – |
 * | `rejected` | one of these callers waits no longer | – |
 */
export interface Party {
  /**
   * `<client id>:<number of the hold>`; what another library has written, as it is; of a leader
   * that has told its address, the id of its client.
   */
  readonly id: string;
  /**
   * The `label` of the call, else of its client; null: neither has one. It is that caller's own
   * text, control characters included: escape it before you print it.
   */
  readonly label: string | null;
  /**
   * The name of its host: in Kubernetes that of its pod, where every `pid` is 1. Null: another
   * library wrote it.
   */
  readonly host: string | null;
  readonly pid: number | null;
  /** Since when it holds the lock, or waits for it: ms since 1970 by the server's clock. Null: not known. */
  readonly since: number | null;
}

/* What the page's JSON has beside these (src/tools/ui/shown.ts):
 *
 * | field | what |
 * |---|---|
 * | `view`, `actions` | which view it is; what viewers may do |
 * | `age`, `due`, `trouble` | ms since Redis answered; ms of age at which there should be something newer; why there is nothing newer |
 * | `isPartial`, `isCut`, `isByName` | there will be more; there is more; the search has read names alone |
 * | `unread`, `untold` | what could not be read, in a sentence: of callers that wait; of observed processes |
 * | `locks`, `lock`, `fitting` | locks of a list; the one that is shown; how many fit the search |
 * | `total`, `waitedLocks` | how many locks there are; how many of them a process waits for |
 * | `holderCount`, `waitingProcesses` | how many hold a lock of a list; how many processes wait for it |
 * | `lease` | ms that a lease lasts from its last renewal, as far as looks have shown it |
 * | `lost`, `losses` | the last loss of a lock; how many there were |
 * | `history`, `what`, `ago` | what was told of a lock, the latest first: which event; ms ago |
 * | `heats`, `waits`, `p95`, `processes` | by lock and step of time, how many calls waited; how long 95 of 100 did at most; how many processes told it |
 * | `deadlocks`, `circles`, `isSure` | how many there are for sure; all that were found; is it one for sure? |
 * | `waitsFor` | the lock that a caller of a circle waits for |
 * | `clients`, `blocks` | which clients hold what others wait for; the locks of one |
 * | `calls`, `circle`, `isElsewhere` | of a client: how many of its calls wait; it waits for itself; it is shown elsewhere |
 * | `done`, `said` | of an action: was it done; what became of it, in a sentence |
 *
 * … and `--json` of the command line:
 *
 * | field | what |
 * |---|---|
 * | `outcome`, `code`, `signal`, `message` | what became of a command: in a word, its exit code, the signal that has ended it, a sentence |
 * | `names`, `tokens` | of `run` and `elect`: the locks, and the token of each |
 * | `broken`, `answer`, `url` | of `break`: how many holds; of `recall`: what became of it; of `ui`: where the page is |
 * | `ok`, `problems`, `unknown`, `servers` | of `doctor`, as `check()` says it |
 * | `place`, `version`, `evictionPolicy`, `replicas`, `clockAhead` | of a server |
 * | `latency`, `roundTrip`, `handOff`, `delivery` | ms: of a command and its answer, from an unlock to the next holder, of a message |
 * | `leftovers`, `heldLocks`, `longestHeld`, `endless`, `missing` | what is in Redis: how many locks are held, the one that is held longest, those without an end, why it is not known |
 *
 * test/cli/names.test.ts holds what is shown against these tables. */

/** A party that holds, with what it has. */
export interface HoldingParty extends Party {
  /** ms that it has held the lock. Null: not known. */
  readonly heldFor: number | null;
  /** ms until its hold ends unless it is renewed; Infinity: no end is set. */
  readonly remaining: number;
  /** Its fencing token. Null: its kind has none. */
  readonly token: number | null;
  /** Permits of a semaphore; of others 1. */
  readonly units: number;
  /** Of a read-write lock. Null: it is another kind. */
  readonly mode: "read" | "write" | null;
}

/** A waiting process, or at a fair lock a waiting caller, with what it wants. */
export interface WaitingParty extends Party {
  /** ms that it has waited. Null: not known. */
  readonly waitedFor: number | null;
  /** Permits of a semaphore; of others 1. */
  readonly units: number;
  /** Of a read-write lock. Null: it is another kind. */
  readonly mode: "read" | "write" | null;
}

/**
 * As messages and the command line name it: "nightly invoice (web-1:4711)", "web-1:4711", or by the
 * id that another library wrote.
 */
export function showParty({ label, host, pid, id }: Omit<Party, "since">): string {
  // Another library's id has any length.
  if (host === null) return visible(label ?? id.slice(0, ID_SHOWN));
  const place = `${visible(host)}:${pid}`;
  return label === null ? place : `${visible(label)} (${place})`;
}

const ID_SHOWN = 100;
