import { codes, countedLua as lua } from "../redis/lua.generated.ts";
import type { Script } from "../redis/script.ts";
import { channelOf, enqueue, take, ticketOf, waiting } from "./held.ts";
import type { Kept, Memory, Reply, Run } from "./memory.ts";

const { OWNER, MINE, HELD, GONE, RELEASED, RENEWED, DIFFERS, CROWDED, MOST_HOLDS } = codes;

interface Units extends Kept {
  mode: string;
  units: number;
  token: number;
  /** Behind a space; "": none. */
  readonly label: string;
}

/** Of a read-write lock or a semaphore. `permits`: 0 = nobody has said how many; `phase`: the token of its readers. */
interface Book extends Kept {
  permits: number;
  isSet: boolean;
  phase: number;
  readonly holds: Map<string, Units>;
}

/** What is asked for: at least so many units, up to so many, of so many permits (0: of as many as there are). */
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
  const [digits = "", ttl, passes, units, upTo, of, hold = "", label] = entry.split(" ");
  const wanted = { ttl: Number(ttl), passes: Number(passes), units: Number(units), upTo: Number(upTo) };
  return {
    ...wanted,
    hold,
    label: label === undefined ? "" : ` ${label}`,
    mode: digits.slice(1),
    of: Number(of),
  };
}

/** The scripts of read-write locks and semaphores. */
export function counted(memory: Memory): [Script, Run][] {
  /** The books without what is over. */
  function open(key: string): Book {
    const none = { permits: 0, isSet: false, phase: 0, holds: new Map<string, Units>() };
    const book = memory.get<Book>(key) ?? memory.keep(key, Number.POSITIVE_INFINITY, none);
    for (const [hold, { until }] of book.holds) if (until <= memory.now) book.holds.delete(hold);
    return book;
  }

  /** What nobody holds, waits for or has set is nothing. */
  function close(key: string, queue: string): void {
    const { holds, isSet } = open(key);
    if (holds.size === 0 && !isSet && waiting(memory, queue).length === 0) memory.drop(key);
  }

  const used = ({ holds }: Book): number => [...holds.values()].reduce((sum, { units }) => sum + units, 0);
  const waits = (queue: string): number => (waiting(memory, queue).length > 0 ? 1 : 0);
  const fits = (book: Book, units: number): boolean =>
    units <= book.permits - used(book) && book.holds.size < MOST_HOLDS;
  /** Was it asked for under another number of permits, or are there not so many? */
  const differs = ({ permits, isSet }: Book, { units, of }: Wanted): boolean =>
    units > permits || (!isSet && of !== 0 && of !== permits);

  /** Readers with no writer between them share a token. */
  function own(book: Book, { hold, label, mode, units, upTo, passes }: Wanted, ttl: number): Units {
    const isShared = mode === "r" && book.holds.size > 0 && book.phase > 0;
    const token = isShared ? book.phase : memory.token(passes);
    if (mode === "r") book.phase = token;
    const gets = Math.min(Math.max(units, upTo), book.permits - used(book));
    const made = { mode, units: gets, token, label, until: memory.after(ttl) };
    book.holds.set(hold, made);
    return made;
  }

  /** Gives to those that wait, in order, until one does not fit. `me`: the caller's own hold, and its lease. */
  function advance(key: string, queue: string, me?: unknown, lease = 0): void {
    const book = open(key);
    const told: (() => void)[] = [];
    for (const entry of [...waiting(memory, queue)]) {
      const wanted = wantedBy(entry);
      book.permits ||= wanted.of;
      if (!differs(book, wanted)) {
        if (!fits(book, wanted.units)) break;
        const { hold, ttl } = wanted;
        const { token, units } = own(book, wanted, hold === me ? lease : ttl);
        const share = (): unknown =>
          memory.publish(
            channelOf(hold),
            `share ${token} ${memory.now} ${ttl} ${waits(queue)} ${units} ${hold} ${key}`,
          );
        if (hold !== me) told.push(share);
      }
      take(memory, queue, entry);
    }
    for (const tell of told) tell();
  }

  function mine(key: string, queue: string, hold: unknown, lease: number, joins = false): Reply | null {
    const units = open(key).holds.get(String(hold));
    if (!units) return null;
    const left = joins && waits(queue) ? memory.left(units) : memory.raise(units, lease);
    return [MINE, memory.now, units.token, units.units, waits(queue), left, 0];
  }

  const owner = (queue: string, { token, units }: Units): Reply => [
    OWNER,
    memory.now,
    token,
    units,
    waits(queue),
    0,
  ];

  /** When a unit may come back by itself is when the first place looks at the latest. */
  function held(key: string, queue: string, entry: string): Reply {
    const ends = [...open(key).holds.values()].map((units) => memory.left(units));
    return [HELD, memory.now, Math.max(0, Math.min(...ends, 1e9)), waiting(memory, queue).indexOf(entry), 0];
  }

  const acquire: Run = ([key = "", queue = ""], argv) => {
    const [hold, lease, , mode, units, upTo, of, passes, entry, label = ""] = argv;
    const wanted = {
      ...wantedBy(`0${mode} 0 ${passes} ${units} ${upTo} ${of} ${hold}${label}`),
      ttl: Number(lease),
    };
    const already = mine(key, queue, hold, wanted.ttl);
    if (already) return already;
    const book = open(key);
    const isOther = book.permits === 0 || differs(book, wanted);
    advance(key, queue, isOther ? undefined : hold, wanted.ttl);
    let got = book.holds.get(wanted.hold);
    const isFirst = !waits(queue);
    // A number from code is that of those that hold or wait.
    if (isOther && (!isFirst || used(book) > 0 || book.isSet || wanted.units > wanted.of))
      return [DIFFERS, memory.now, book.permits, 0];
    if (isOther) book.permits = wanted.of;
    if (!got && isFirst && wanted.units <= book.permits - used(book)) {
      if (!fits(book, wanted.units)) return [CROWDED, memory.now];
      got = own(book, wanted, wanted.ttl);
    }
    if (got) return owner(queue, got);
    if (entry) enqueue(memory, queue, String(entry));
    return held(key, queue, String(entry));
  };

  /** It never queues; a join, of readers that share a hold, never makes one. */
  const recheck: Run = ([key = "", queue = ""], [hold, lease, joins, text]) => {
    const entry = String(text);
    const already = mine(key, queue, hold, Number(lease), joins === "1");
    if (already) return already;
    if (joins === "1" || !waiting(memory, queue).includes(entry)) return [GONE, memory.now, 0];
    advance(key, queue, hold, Number(lease));
    const got = open(key).holds.get(String(hold));
    if (got) return owner(queue, got);
    return waiting(memory, queue).includes(entry) ? held(key, queue, entry) : [GONE, memory.now, 0];
  };

  /** Ends a hold, or leaves it fewer units: a writer that keeps one becomes a reader. Returns whether it was there. */
  function end(key: string, hold: unknown, stays: number, token: number): boolean {
    const book = open(key);
    const units = book.holds.get(String(hold));
    if (!units) return false;
    if (stays === 0) book.holds.delete(String(hold));
    else if (units.units > stays) {
      if (units.mode === "w") book.phase = token;
      Object.assign(units, units.mode === "w" ? { mode: "r", units: stays, token } : { units: stays });
    }
    return true;
  }

  const release: Run = ([key = "", queue = ""], [hold, stays, token]) => {
    const wasThere = end(key, hold, Number(stays), Number(token));
    advance(key, queue);
    return wasThere ? [RELEASED, 0] : [GONE, memory.lastToken, 0];
  };

  const yields: Run = ([key = "", queue = ""], [old, stays, token, hold, lease, text]) => {
    const entry = String(text);
    const already = mine(key, queue, hold, Number(lease));
    if (already) return already;
    if (!end(key, old, Number(stays), Number(token))) {
      advance(key, queue);
      return [GONE, memory.lastToken, 0];
    }
    enqueue(memory, queue, entry);
    advance(key, queue, hold, Number(lease));
    const got = open(key).holds.get(String(hold));
    return got ? owner(queue, got) : held(key, queue, entry);
  };

  const leave: Run = ([key = "", queue = ""], [hold, entry]) => {
    take(memory, queue, String(entry));
    const wasThere = end(key, hold, 0, 0);
    advance(key, queue);
    return [wasThere ? RELEASED : GONE, 0];
  };

  const renew: Run = (keys, argv) =>
    keys.flatMap((key, i) => {
      const units = memory.get<Book>(key) && open(key).holds.get(String(argv[2 * i]));
      return units ? [RENEWED, memory.raise(units, Number(argv[2 * i + 1]))] : [GONE, 0];
    });

  const setPermits: Run = ([key = "", queue = ""], [permits]) => {
    const book = open(key);
    const old = book.permits;
    Object.assign(book, { permits: Number(permits), isSet: true });
    advance(key, queue);
    return [RELEASED, old, used(book), 0];
  };

  const inspect: Run = ([key = "", queue = ""]) => {
    const book = open(key);
    const holders = [...book.holds].flatMap(([hold, units]): Reply[] => {
      return [hold + units.label, units.mode, units.units, units.token, memory.left(units)];
    });
    const queued = waiting(memory, queue).flatMap((entry): Reply[] => {
      const { hold, label, mode, units, upTo } = wantedBy(entry);
      return [hold + label, mode, units, upTo, ticketOf(memory, queue, entry)];
    });
    return [memory.now, book.permits, book.isSet ? 1 : 0, used(book), holders, queued, memory.now];
  };

  const forceRelease: Run = ([key = "", queue = ""], [mode, label, token]) => {
    const { holds } = open(key);
    const isMeant = (units: Units): boolean =>
      (mode === "" || units.mode === mode) && (!token || Number(token) === units.token);
    const ended = [...holds].filter(([, units]) => isMeant(units)).map(([hold]) => hold);
    for (const hold of ended) holds.delete(hold);
    advance(key, queue);
    for (const hold of ended)
      memory.publish(channelOf(hold), `revoked ${hold} ${key}${label ? ` ${label}` : ""}`);
    return [ended.length, 0];
  };

  const closing =
    (run: Run): Run =>
    (keys, argv) => {
      const reply = run(keys, argv);
      close(keys[0] ?? "", keys[1] ?? "");
      return reply;
    };
  const scripts: [Script, Run][] = [
    [lua.acquire, acquire],
    [lua.firstAcquire, acquire],
    [lua.recheck, recheck],
    [lua.firstRecheck, recheck],
    [lua.release, release],
    [lua.yield, yields],
    [lua.leave, leave],
    [lua.setPermits, setPermits],
    [lua.inspect, inspect],
    [lua.forceRelease, forceRelease],
  ];
  return [...scripts.map(([script, run]): [Script, Run] => [script, closing(run)]), [lua.renew, renew]];
}
