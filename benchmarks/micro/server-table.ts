import { idAt, OURS } from "../contenders/ids.ts";
import { findPlayers, type OtherCommit } from "../crew/players.ts";
import type { Load } from "../workers/protocol.ts";
import type { Counts } from "./counts.ts";
import { launchMeter } from "./meter.ts";
import { type ServerWork, serverWork } from "./server-work.ts";

const ROW = 34;
const COLUMN = 22;
const CALLERS = 8;
const THOUSAND = Array.from({ length: 1_000 }, (_, i) => `many:${i}`);

/** What is done, by which of Holdfast's locks, and by what it is compared with. */
interface Row {
  readonly about: string;
  readonly ours: string;
  readonly peers: Readonly<Partial<Record<Peer, string>>>;
  readonly load: Partial<Load>;
}

const PEERS = ["redis-semaphore", "principle", "two empty scripts"] as const;
type Peer = (typeof PEERS)[number];
const LOCKS = { "redis-semaphore": "redis-semaphore", principle: "principle" } as const;

const CONTENDED = { tasks: CALLERS };
const ROWS: readonly Row[] = [
  { about: "pair, lock", ours: "lock", peers: { ...LOCKS, "two empty scripts": "floor-pair" }, load: {} },
  { about: "pair, lock with labels", ours: "labelled-lock", peers: {}, load: {} },
  { about: "pair, fairLock", ours: "fair-lock", peers: {}, load: {} },
  { about: `contended by ${CALLERS}, fairLock`, ours: "fair-lock", peers: LOCKS, load: CONTENDED },
  { about: "many locks, lock", ours: "lock", peers: LOCKS, load: { tasks: 4, names: THOUSAND } },
  { about: "pair, read", ours: "read-write-lock", peers: {}, load: {} },
  { about: "pair, write", ours: "read-write-lock", peers: {}, load: { tasks: 0, writer: 0 } },
  {
    about: "pair, permit",
    ours: "semaphore",
    peers: { "redis-semaphore": "redis-semaphore-permits" },
    load: {},
  },
];

const line = (head: string, cells: readonly string[]): void =>
  void process.stdout.write(`${head.padEnd(ROW)}${cells.map((cell) => cell.padStart(COLUMN)).join("")}\n`);

/**
 * Prints what the server needs for an acquisition and its release, of Holdfast, another commit's
 * Holdfast, and others, side by side.
 *
 * @param isAlone without the others
 */
export async function printServerTable(other: OtherCommit | null, isAlone: boolean): Promise<Counts> {
  const players = findPlayers({ profile: null, other });
  const meter = await launchMeter();
  const counts: Record<string, number> = {};
  const text = ({ cost, calls }: ServerWork): string =>
    `${cost.toFixed(1)} ${meter.unit}, ${calls.toFixed(1)} cmds`;
  const others = isAlone ? [] : PEERS;
  try {
    line(`server, of one acquisition: ${meter.about}; commands outside and inside of scripts`, []);
    line("", ["Holdfast", ...(other ? [other.commit.slice(0, 12)] : []), ...others]);
    for (const { about, ours, peers, load } of ROWS) {
      const before = other && OURS.includes(ours) ? [idAt(ours, other.commit)] : [];
      const ids = [ours, ...before, ...others.map((peer) => peers[peer])];
      const cells: string[] = [];
      for (const id of ids) {
        const player = id === undefined ? undefined : players.get(id);
        const work = player ? await serverWork(meter, player, load) : null;
        if (work && id === ours) counts[`server, ${about}`] = work.cost;
        cells.push(work ? text(work) : "–");
      }
      line(about, cells);
    }
    return { unit: meter.unit, counts };
  } finally {
    await meter.stop();
  }
}
