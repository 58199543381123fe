import type { Told } from "../../src/tools/ui/observed.ts";
import { toldCall } from "../support/told-call.ts";
import type { Scene, tellWaitTimes } from "./scene.ts";

// A shop at work, for the pictures of the docs.

const S = 1_000;
const M = 60 * S;

export const scenes: readonly Scene[] = [
  {
    name: "order:4711",
    by: ["billing-7c9f", 1],
    label: "nightly invoices",
    held: 41 * S,
    left: 23 * S,
    waiters: [
      ["web-1", 2041, 38 * S],
      ["web-3", 1877, 21 * S],
      ["refunds-0", 1, 12 * S],
      ["web-2", 2210, 4 * S],
    ],
  },
  {
    name: "stock:sku-981",
    by: ["web-1", 2041],
    held: 44 * S,
    left: 26 * S,
    waiters: [
      ["picker-4", 88, 33 * S],
      ["picker-2", 91, 9 * S],
    ],
  },
  {
    name: "invoice:2026-11",
    by: ["refunds-0", 1],
    held: 18 * S,
    left: 12 * S,
    waiters: [["mailer-1", 1, 6 * S]],
  },
  { name: "import:catalogue", by: ["jobs-2", 1], label: "import@2.3", held: 14 * M, left: 28 * S },
  { name: "customer:88031", by: ["web-2", 2210], held: 2 * S, left: 27 * S },
  { name: "report:daily", by: ["jobs-1", 1], held: 3 * M + 12 * S, left: 11 * S },
  { name: "account:1", by: ["ledger-a", 12], held: 9 * S, left: 22 * S, waiters: [["ledger-b", 12, 8 * S]] },
  { name: "account:2", by: ["ledger-b", 12], held: 9 * S, left: 22 * S, waiters: [["ledger-a", 12, 7 * S]] },
  { name: "customer:10277", by: ["web-3", 1877], held: 640, left: 29 * S },
  { name: "cache:prices", by: ["web-1", 2041], held: 120, left: 5 * S },
];

const wave = (step: number, at: number, width: number): number => Math.exp(-(((step - at) / width) ** 2));

export const waitTimes: Parameters<typeof tellWaitTimes>[1] = [
  ["order:4711", (step) => 3 + 40 * wave(step, 52, 6), (step) => 60 + 14_000 * wave(step, 56, 5)],
  ["stock:sku-981", (step) => 12 + 9 * Math.sin(step / 4), (step) => 180 + 300 * wave(step, 20, 8)],
  ["customer:88031", (step) => (step % 7 === 0 ? 6 : 1), () => 24],
  ["invoice:2026-11", (step) => 22 * wave(step, 31, 4), (step) => 300 + 2_600 * wave(step, 31, 3)],
  ["account:1", (step) => (step > 44 ? 5 : 0), (step) => 90 + (step - 44) * 160],
  ["cache:prices", (step) => 8 + 5 * Math.cos(step / 3), () => 9],
];

/** All by one process, as one entry has them. */
export const CALLS: Told["calls"] = [
  toldCall("order:4711", "lost", { ago: 4 * M, heldFor: 30 * S, waitedFor: 0 }),
  toldCall("order:4711", "released", { ago: 170 * S, heldFor: 62 * S, waitedFor: 8 * S }),
  toldCall("order:4711", "giveup", { ago: 95 * S, waitedFor: 10 * S }),
  toldCall("order:4711", "released", { ago: 41 * S, heldFor: 48 * S, waitedFor: 6_240 }),
];
