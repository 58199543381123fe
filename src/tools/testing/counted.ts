import type { countedLua as lua } from "../../redis/lua.generated.ts";
import {
  CROWDED,
  DIFFERS,
  GONE,
  HELD,
  type Kept,
  type Memory,
  MINE,
  MOST_HOLDS,
  OWNER,
  RELEASED,
  RENEWED,
  type Reply,
  type Run,
  type Two,
} from "./memory.ts";

interface Units extends Kept {
  mode: string;
  units: number;
  token: number;
  /** After a space; "": none. */
  readonly label: string;
}

/**
 * For a read-write lock or a semaphore. `permits`: 0 = no number is known; `phase`: the token of
 * its readers.
 */
interface Book extends Kept {
  permits: number;
  isSet: boolean;
  phase: number;
  readonly holds: Map<string, Units>;
}

/** The request: at least `units`, at most `upTo`, of `of` permits (0: of as many as there are). */
interface Wanted {
  readonly hold: string;
  readonly label: string;
  readonly mode: string;
  readonly ttl: number;
  readonly passes: number;
  readonly units: number;
  readonly upTo: number;
  readonly of: number;
}

function wantedBy(entry: string): Wanted {
  const [digits = "", ttl, passes, units, upTo, of, hold = "", ...words] = entry.split(" ");
  const wanted = { ttl: Number(ttl), passes: Number(passes), units: Number(units), upTo: Number(upTo) };
  return {
    ...wanted,
    hold,
    label: words.map((label) => ` ${label}`).join(""),
    mode: digits.slice(1),
    of: Number(of),
  };
}

/** A hold, how many of its units stay with it, its token. */
type Ended = readonly [string, number, number];
/**
 * A hold, its lease, until when the command counts, mode, units, the number of permits; passes, the
 * most units, entry, label.
 */
type Acquire = readonly [string, number, number, string, string, string, ...string[]];

/** The scripts of read-write locks and semaphores. */
export function counted(db: Memory): Partial<Record<keyof typeof lua, Run>> {
  /** The book without expired holds. */
  function open(key: string): Book {
    const none = { permits: 0, isSet: false, phase: 0, holds: new Map<string, Units>() };
    const book = db.get<Book>(key) ?? db.keep(key, none);
    for (const [hold, { until }] of book.holds) if (until <= db.now) book.holds.delete(hold);
    return book;
  }

  /** Drops a book that is neither held, waited for nor set. */
  function close(key: string, queue: string): void {
    const { holds, isSet } = open(key);
    if (holds.size === 0 && !isSet && !db.waits(queue)) db.drop(key);
  }

  const used = ({ holds }: Book): number => [...holds.values()].reduce((sum, { units }) => sum + units, 0);
  const fits = (book: Book, units: number): boolean =>
    units <= book.permits - used(book) && book.holds.size < MOST_HOLDS;
  /** Was it asked for with another number of permits, or are there not that many? */
  const differs = ({ permits, isSet }: Book, { units, of }: Wanted): boolean =>
    units > permits || (!isSet && of !== 0 && of !== permits);

  /** Readers with no writer between them share a token. */
  function own(book: Book, { hold, label, mode, units, upTo, passes }: Wanted, ttl: number): Units {
    const isShared = mode === "r" && book.holds.size > 0 && book.phase > 0;
    const token = isShared ? book.phase : db.token(passes);
    if (mode === "r") book.phase = token;
    const gets = Math.min(Math.max(units, upTo), book.permits - used(book));
    const made = { mode, units: gets, token, label, until: db.after(ttl) };
    book.holds.set(hold, made);
    return made;
  }

  /**
   * Grants to waiters, in order, until one does not fit. `me`: the caller's own hold, and its
   * lease.
   */
  function advance(key: string, queue: string, me?: string, lease = 0): void {
    const book = open(key);
    const told: (() => void)[] = [];
    for (const [entry] of db.waiting(queue)) {
      const wanted = wantedBy(entry);
      book.permits ||= wanted.of;
      if (!differs(book, wanted)) {
        if (!fits(book, wanted.units)) break;
        const { hold, ttl } = wanted;
        const { token, units } = own(book, wanted, hold === me ? lease : ttl);
        const share = (): unknown =>
          db.tell(hold, `share ${token} ${db.now} ${ttl} ${db.waits(queue)} ${units} ${hold} ${key}`);
        if (hold !== me) told.push(share);
      }
      db.take(queue, entry);
    }
    for (const tell of told) tell();
  }

  function mine(key: string, queue: string, hold: string, lease: number, joins = false): Reply | null {
    const units = open(key).holds.get(hold);
    if (!units) return null;
    const left = joins && db.waits(queue) ? db.left(units) : db.raise(units, lease);
    return [MINE, db.now, units.token, units.units, db.waits(queue), left, 0];
  }

  /** The number that was set, if the code of the caller says another one; 0: it does not. */
  const otherThan = (key: string, { of }: Wanted): number => {
    const { isSet, permits } = open(key);
    return isSet && of !== 0 && of !== permits ? permits : 0;
  };

  const owner = (queue: string, { token, units }: Units, other = 0): Reply => [
    OWNER,
    db.now,
    token,
    units,
    db.waits(queue),
    0,
    0,
    other,
  ];

  /** The first place re-checks at the latest when a unit may come back by itself. */
  function held(key: string, queue: string, entry: string, other = 0): Reply {
    const ends = [...open(key).holds.values()].map((units) => db.left(units));
    return [HELD, db.now, Math.max(0, Math.min(...ends, 1e9)), db.placeOf(queue, entry), 0, 0, other];
  }

  const acquire = ([key, queue]: Two, argv: Acquire): Reply => {
    const [hold, ttl, , mode, asked, permits, passes = "", upTo = "", entry = "", label = ""] = argv;
    const units = Number(asked);
    const numbers = { units, upTo: Number(upTo) || units, of: Number(permits), passes: Number(passes) };
    // Locks are never cached here: holders are not notified of waiters.
    const wanted = { hold, label: label.replace(/^\+/, ""), ttl, mode, ...numbers };
    const already = mine(key, queue, hold, wanted.ttl);
    if (already) return already;
    const book = open(key);
    const isOther = book.permits === 0 || differs(book, wanted);
    advance(key, queue, isOther ? undefined : hold, wanted.ttl);
    let got = book.holds.get(wanted.hold);
    const isFirst = !db.waits(queue);
    // A number from code is that of the present holders or waiters.
    if (isOther && (!isFirst || used(book) > 0 || book.isSet || wanted.units > wanted.of))
      return [DIFFERS, db.now, book.permits, 0];
    if (isOther) book.permits = wanted.of;
    if (!got && isFirst && wanted.units <= book.permits - used(book)) {
      if (!fits(book, wanted.units)) return [CROWDED, db.now];
      got = own(book, wanted, wanted.ttl);
    }
    const other = otherThan(key, wanted);
    if (got) return owner(queue, got, other);
    if (entry) db.enqueue(queue, entry);
    return held(key, queue, entry, other);
  };

  /** It never queues; a join, of readers that share a hold, never makes a hold. */
  const recheck = (
    [key, queue]: Two,
    [hold, lease, joins, entry]: readonly [string, number, string, string],
  ): Reply => {
    const already = mine(key, queue, hold, lease, joins === "1");
    if (already) return already;
    if (joins === "1" || db.placeOf(queue, entry) < 0) return [GONE, db.now, 0];
    advance(key, queue, hold, lease);
    const got = open(key).holds.get(hold);
    if (got) return owner(queue, got);
    return db.placeOf(queue, entry) >= 0 ? held(key, queue, entry) : [GONE, db.now, 0];
  };

  /**
   * Ends a hold, or leaves it fewer units: a writer that keeps one becomes a reader. Returns
   * whether it was there.
   */
  function end(key: string, hold: string, stays: number, token: number): boolean {
    const book = open(key);
    const units = book.holds.get(hold);
    if (!units) return false;
    if (stays === 0) book.holds.delete(hold);
    else if (units.units > stays) {
      if (units.mode === "w") book.phase = token;
      Object.assign(units, units.mode === "w" ? { mode: "r", units: stays, token } : { units: stays });
    }
    return true;
  }

  const release = (
    [key, queue]: Two,
    [hold, stays = 0, token = 0]: readonly [string, ...number[]],
  ): Reply => {
    const wasThere = end(key, hold, stays, token);
    advance(key, queue);
    return wasThere ? [RELEASED, 0] : [GONE, db.lastToken, 0];
  };

  const yields = ([key, queue]: Two, argv: readonly [...Ended, string, number, string]): Reply => {
    const [old, stays, token, hold, lease, entry] = argv;
    const already = mine(key, queue, hold, lease);
    if (already) return already;
    if (!end(key, old, stays, token)) {
      advance(key, queue);
      return [GONE, db.lastToken, 0];
    }
    db.enqueue(queue, entry);
    advance(key, queue, hold, lease);
    const got = open(key).holds.get(hold);
    return got ? owner(queue, got) : held(key, queue, entry);
  };

  const leave = ([key, queue]: Two, [hold, entry]: Two): Reply => {
    db.take(queue, entry);
    const wasThere = end(key, hold, 0, 0);
    advance(key, queue);
    return [wasThere ? RELEASED : GONE, 0];
  };

  const renew: Run = (keys, argv) =>
    keys.flatMap((key, i) => {
      const units = db.get<Book>(key) && open(key).holds.get(String(argv[2 * i]));
      return units ? [RENEWED, db.raise(units, Number(argv[2 * i + 1]))] : [GONE, 0];
    });

  const setPermits = ([key, queue]: Two, [permits]: readonly [number]): Reply => {
    const book = open(key);
    const old = book.permits;
    Object.assign(book, { permits, isSet: true });
    advance(key, queue);
    return [RELEASED, old, used(book), 0];
  };

  const inspect = ([key, queue]: Two): Reply => {
    const book = open(key);
    const holders = [...book.holds].flatMap(([hold, units]): Reply[] => {
      return [hold + units.label, units.mode, units.units, units.token, db.left(units)];
    });
    const queued = db.waiting(queue).flatMap(([entry, at]): Reply[] => {
      const { hold, label, mode, units, upTo } = wantedBy(entry);
      return [hold + label, mode, units, upTo, at];
    });
    return [db.now, book.permits, book.isSet ? 1 : 0, used(book), holders, queued, db.now];
  };

  const forceRelease = (
    [key, queue]: Two,
    [mode, label, token, meant]: readonly [string, string, string, ...string[]],
  ): Reply => {
    const { holds } = open(key);
    const isMeant = (units: Units): boolean =>
      (mode === "" || units.mode === mode) && (!token || Number(token) === units.token);
    const ended = [...holds]
      .filter(([hold, units]) => isMeant(units) && (meant === undefined || hold === meant))
      .map(([hold]) => hold);
    for (const hold of ended) holds.delete(hold);
    advance(key, queue);
    for (const hold of ended) db.tellRevoked(hold, key, label);
    return [ended.length, 0];
  };

  const closing =
    (run: Run): Run =>
    (keys, argv) => {
      const reply = run(keys, argv);
      close(keys[0] ?? "", keys[1] ?? "");
      return reply;
    };
  return {
    acquire: closing(acquire),
    // After all others it has the channel for the check of rights.
    firstAcquire: closing((keys: Two, argv: Acquire) =>
      acquire(keys, argv.slice(0, -1) as unknown as Acquire),
    ),
    recheck: closing(recheck),
    firstRecheck: closing(recheck),
    release: closing(release),
    yield: closing(yields),
    leave: closing(leave),
    setPermits: closing(setPermits),
    inspect: closing(inspect),
    forceRelease: closing(forceRelease),
    renew,
  };
}
