import { launchServer } from "../../tools/redis/index.ts";
import type { OtherCommit } from "../crew/players.ts";
import { median } from "../figures/statistics.ts";
import { BETWEEN, type ClientWork, COLD, clientMeter, type Subject, WARM } from "./client-work.ts";

const ROW = 40;
const COLUMN = 24;

const line = (head: string, cells: readonly string[]): void =>
  void process.stdout.write(`${head.padEnd(ROW)}${cells.map((cell) => cell.padStart(COLUMN)).join("")}\n`);

/**
 * Prints what a client needs for a contended acquisition of `fairLock` and its release: Holdfast's,
 * another commit's, and that of the bare principle, one after the other in each round.
 */
export async function printClientTable(other: OtherCommit | null): Promise<void> {
  const subjects: [title: string, subject: Subject][] = [
    ["principle", { contender: "principle", library: null }],
    ["Holdfast", { contender: "fair-lock", library: null }],
  ];
  if (other) subjects.push([other.commit.slice(0, 12), { contender: "fair-lock", library: other.library }]);
  const { about, unit, rounds, measure } = clientMeter();
  const works = new Map<string, ClientWork[]>(subjects.map(([title]) => [title, []]));
  for (let round = 0; round < rounds; round++)
    for (const [title, subject] of round % 2 === 0 ? subjects : subjects.toReversed()) {
      const server = await launchServer();
      try {
        works.get(title)?.push(await measure(server.url, subject));
      } finally {
        await server.stop();
      }
    }
  line(`client, of one acquisition of fairLock, 4 callers of one process: medians of ${rounds} rounds`, []);
  line(about, []);
  line(
    "",
    subjects.map(([title]) => title),
  );
  const row = (head: string, key: keyof ClientWork, unit: string): void => {
    const figures = subjects.map(([title]) => median(works.get(title)?.map((work) => work[key]) ?? []));
    const [base = 1] = figures;
    line(
      head,
      figures.map(
        (figure, i) => `${figure.toFixed(1)} ${unit}${i === 0 ? "" : ` (${(figure / base).toFixed(2)} ×)`}`,
      ),
    );
  };
  row(`the first ${COLD} of a new process`, "cold", unit);
  row(`the ${WARM} after ${COLD + BETWEEN}`, "warm", unit);
  row("heap allocated by a warm one", "bytes", "bytes");
}
