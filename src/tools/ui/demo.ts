import { json, plainly } from "./guard.ts";
import type { Done, ShownDemo } from "./shown.ts";

/** A fleet that works in the memory of the page's own process, and can be disturbed. */
export interface Demo {
  shown(): ShownDemo;
  /** Turns a knob. Null: this is no knob of the fleet, or none that can be turned now. */
  turn(wanted: unknown): Done | null;
}

/** Turns a knob that a viewer wants, and shows the fleet after it. */
export async function turn(demo: Demo, request: Request): Promise<Response> {
  let wanted: unknown;
  try {
    wanted = JSON.parse(await request.text());
  } catch {
    wanted = null;
  }
  const done = demo.turn(wanted);
  return done ? json({ ...done, demo: demo.shown() }) : plainly(400, "This is no knob of the demo now.");
}
