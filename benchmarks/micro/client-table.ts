import { launchServer } from "../../tools/redis/index.ts";
import { OURS } from "../contenders/ids.ts";
import type { OtherCommit } from "../crew/players.ts";
import { median } from "../figures/statistics.ts";
import { type ClientLoad, type ClientWork, clientMeter, type Subject } from "./client-work.ts";
import type { Counts } from "./counts.ts";

const ROW = 34;
const COLUMN = 34;

/** Callers of one process that take turns at one lock. */
const CONTENDED: ClientLoad = { callers: 4, cold: 2_000, between: 8_000 };
const ALONE: ClientLoad = { callers: 1, cold: 300, between: 9_700 };

/** What is done, by which of Holdfast's locks, and by what it is compared with. */
interface Row {
  readonly about: string;
  readonly ours: string;
  readonly peers: Readonly<Partial<Record<Peer, string>>>;
  readonly load: ClientLoad;
}

const PEERS = ["redis-semaphore", "principle"] as const;
type Peer = (typeof PEERS)[number];

const ROWS: readonly Row[] = [
  {
    about: `contended by ${CONTENDED.callers}, fairLock`,
    ours: "fair-lock",
    peers: { principle: "principle" },
    load: CONTENDED,
  },
  {
    about: "pair, lock",
    ours: "lock",
    peers: { "redis-semaphore": "redis-semaphore", principle: "principle" },
    load: ALONE,
  },
  { about: "pair, lock, node-redis", ours: "lock-node-redis", peers: {}, load: ALONE },
  { about: "pair, read", ours: "read-write-lock", peers: {}, load: ALONE },
  {
    about: "pair, permit",
    ours: "semaphore",
    peers: { "redis-semaphore": "redis-semaphore-permits" },
    load: ALONE,
  },
];

const line = (head: string, cells: readonly string[]): void =>
  void process.stdout.write(`${head.padEnd(ROW)}${cells.map((cell) => cell.padStart(COLUMN)).join("")}\n`);

/** How often a row is counted that still seems too much. */
const MOST_ROUNDS = 3;

/**
 * Prints what a client needs for an acquisition and its release: cold, of the first ones of a new
 * process, and warm; and what a warm one allocates. Holdfast's, another commit's, and others',
 * one after the other in each round.
 *
 * @param isAlone without the others
 * @param isEnough is a row of Holdfast's counted often enough? Whatever disturbs a count adds to it,
 *   so the least counts
 */
export async function printClientTable(
  other: OtherCommit | null,
  isAlone: boolean,
  isEnough: (counts: Counts) => boolean,
): Promise<Counts> {
  const meter = clientMeter();
  const counts: Record<string, number> = {};
  line(
    `client, of one acquisition: the first ones of a process, warm, allocated; rounds: ${meter.rounds}`,
    [],
  );
  line(meter.about, []);
  line("", ["Holdfast", ...(other ? [other.commit.slice(0, 12)] : []), ...(isAlone ? [] : PEERS)]);
  for (const { about, ours, peers, load } of ROWS) {
    const subjects: (Subject | null)[] = [{ contender: ours, library: null }];
    if (other) subjects.push(OURS.includes(ours) ? { contender: ours, library: other.library } : null);
    if (!isAlone)
      for (const peer of PEERS) {
        const contender = peers[peer];
        subjects.push(contender === undefined ? null : { contender, library: null });
      }
    const works = subjects.map((): ClientWork[] => []);
    const own = (): Counts["counts"] => {
      const { cold, warm, bytes } = summary(works[0] ?? [], meter.unit);
      const row = `client, ${about}`;
      return { [`${row}, first ${load.cold}`]: cold, [`${row}, warm`]: warm, [`${row}, bytes`]: bytes };
    };
    const isOver = (round: number): boolean =>
      round >= meter.rounds &&
      (!isAlone || round >= MOST_ROUNDS || isEnough({ unit: meter.unit, counts: own() }));
    for (let round = 0; !isOver(round); round++) {
      const order = [...subjects.entries()];
      for (const [i, subject] of round % 2 === 0 ? order : order.reverse()) {
        if (!subject) continue;
        const server = await launchServer();
        try {
          works[i]?.push(await meter.measure(server.url, subject, load));
        } finally {
          await server.stop();
        }
      }
    }
    const cells = works.map((some) => {
      const { cold, warm, bytes } = summary(some, meter.unit);
      if (some.length === 0) return "–";
      return `${cold.toFixed(1)}, ${warm.toFixed(1)} ${meter.unit}, ${bytes.toFixed(0)} B`;
    });
    line(about, cells);
    Object.assign(counts, own());
  }
  return { unit: meter.unit, counts };
}

/** Of several rounds. Times are disturbed in both directions. */
function summary(works: readonly ClientWork[], unit: Counts["unit"]): ClientWork {
  const of = (key: keyof ClientWork): number => {
    const some = works.map((work) => work[key]);
    return unit === "k" ? Math.min(...some) : median(some);
  };
  return { cold: of("cold"), warm: of("warm"), bytes: of("bytes") };
}
